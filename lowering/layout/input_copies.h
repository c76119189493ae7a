// Copies of model inputs and outputs, which are row-major as in ONNX without a border: bordered copies for
// convolutions, and NHWC copies.
#pragma once

#include <string>

#include "ir/target/profile.h"
#include "lowering/layout/storage_plan.h"

namespace hoist {

/// The name of the copy of a model input.
std::string copy_name(const std::string& input);

/// Adds a bordered copy of each model input that is read with a border, and an NHWC copy of each that is read across
/// cache lines.
void copy_inputs(Program& program, StoragePlan& plan, const Profile& profile);

}  // namespace hoist
