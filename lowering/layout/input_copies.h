// Copies of model inputs and outputs, which are row-major as in ONNX without a border: bordered copies for
// convolutions, NHWC copies, and copies of filters in the order in which convolutions read them.
#pragma once

#include <string>

#include "ir/target/profile.h"
#include "lowering/layout/storage_plan.h"

namespace hoist {

/// The name of the copy of a model input.
std::string copy_name(const std::string& input);

/// Adds a bordered copy of each model input that is read with a border, an NHWC copy of each that is read across cache
/// lines, and on CPUs a copy of each that holds the filters of a convolution.
void copy_inputs(Program& program, StoragePlan& plan, const Profile& profile);

}  // namespace hoist
