// What a program computes, by the evaluator: one definition after the other. Its controls are performed by the runtime
// and have to be none here; the calls that they come from are evaluated like any other.
#pragma once

#include <vector>

#include "ir/evaluate/evaluate.h"
#include "ir/program/program.h"

namespace hoist {

/// The inputs and, by name, every constant and every definition that is an array. Errors: those of evaluate.
Result<Bindings> program_values(const Program& program, Bindings inputs);
/// The outputs of the model for these inputs, one for each of its own, cut to the extents that data give them.
Result<std::vector<Tensor>> program_outputs(const Program& program, const std::vector<Tensor>& inputs);
/// The same of values that are known already, those of outputs among them.
Result<std::vector<Tensor>> program_outputs(const Program& program, const Bindings& values);

}  // namespace hoist
