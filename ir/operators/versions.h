// Upgrades calls of older versions of ai.onnx to the newest version, so that every operator has one meaning further on.
// A row of the table changes a call whose meaning changed after a version; operators whose versions differ in types
// alone, or in attributes whose default is the old meaning, need none. A frontend says the version of a call, and
// ProgramBuilder brings it up when it adds the call: types, ranks and constants are known there, in bodies too.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/base/result.h"
#include "ir/operators/definitions/composition.h"

namespace hoist {

struct NamedCall;

/// True if the newest version of ai.onnx gives this call of an older version another meaning.
bool has_newer_meaning(const NamedCall& call);

/// The composer's call, of version `call().version`, in the newest version. Further calls are added through the
/// composer. Errors: attributes of the wrong kind, unknown values that have to be known at compile time.
Result<NamedCall> newest_meaning(Composer& composer);

}  // namespace hoist
