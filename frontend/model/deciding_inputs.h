// Which inputs of a model a program has to know, found by building it. Knows nothing of ONNX.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program/program_builder.h"

namespace hoist {

/// The inputs whose values determine the shapes of layers without a definition. `header` has the inputs, constants and
/// version of the program, `lists` its values that are lists of inputs, `calls` are in topological order, and `places`
/// are the places for messages about layers without a definition, which begin with the layer's name.
std::set<std::string> deciding_inputs(Program header, const std::map<std::string, TensorList>& lists,
                                      const std::vector<NamedCall>& calls, const std::set<std::string>& places);

}  // namespace hoist
