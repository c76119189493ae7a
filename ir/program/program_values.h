// Evaluation of a whole program, one definition after the other. The program must not contain controls, which only the
// runtime executes; their original calls are evaluated like all others.
#pragma once

#include <vector>

#include "ir/evaluate/evaluate.h"
#include "ir/program/program.h"

namespace hoist {

/// The inputs and, by name, all constants and all definitions that are arrays. Errors: the errors of evaluate.
Result<Bindings> program_values(const Program& program, Bindings inputs);
/// The outputs of the model for these inputs, cut to their actual extents.
Result<std::vector<Tensor>> program_outputs(const Program& program, const std::vector<Tensor>& inputs);
/// The same for values that are already known, including the outputs.
Result<std::vector<Tensor>> program_outputs(const Program& program, const Bindings& values);

}  // namespace hoist
