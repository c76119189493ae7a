// Upgrades calls of older versions of ai.onnx to the newest version, so that every operator has one meaning further on.
// A row of the table changes a call whose meaning changed after a version; operators whose versions differ in types
// alone, or in attributes whose default is the old meaning, need none. A frontend states the version of a call, and
// ProgramBuilder upgrades the call when it adds it: types, ranks and constants are known there, in bodies too. The
// definitions (operators.h) have the newest meaning alone and begin after the last version of their operator here, so
// that a program text of an older version is refused.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/base/result.h"
#include "ir/operators/definitions/composition.h"

namespace hoist {

struct NamedCall;

/// The last version of ai.onnx in which the operator had another meaning than in the newest; 0 if it never had.
int last_old_version(std::string_view operation);

/// The operator of ai.onnx that replaced this one, as Resize replaced Upsample; "" if none did.
std::string_view successor_of(std::string_view operation);

/// True if the newest version of ai.onnx gives this call of an older version another meaning.
bool has_newer_meaning(const NamedCall& call);

/// The composer's call, of version `call().version`, in the newest version. Further calls are added through the
/// composer. Errors: attributes of the wrong kind, unknown values that have to be known at compile time.
Result<NamedCall> newest_meaning(Composer& composer);

}  // namespace hoist
