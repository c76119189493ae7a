// Copies of model inputs and outputs, which have ONNX's order and nothing around them: with a border for the
// convolutions that read them, or with channels innermost.
#pragma once

#include <string>

#include "ir/target/profile.h"
#include "lowering/layout/storage_plan.h"

namespace hoist {

/// The name of the copy of a model input.
std::string copy_name(const std::string& input);

/// Model inputs that are read with a border get a copy that has one, and so do those that are read across lines.
void copy_inputs(Program& program, StoragePlan& plan, const Profile& profile);

}  // namespace hoist
