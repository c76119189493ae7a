// Other values for the weights of a model file. The rest of the model stays: the graph, names, metadata and fields that
// hoist does not read; only a copy of an initialiser that becomes an initialiser leaves the graph. To write a program
// as a model use write_model.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

/// The names of the initialisers of floats with at least one dimension, in the file's order, then the names of their
/// copies by Identity, which exporters write for parameters of equal values: a model's weights, among them. Errors: the
/// file is no ONNX model.
Result<std::vector<std::string>> float_initialisers(const std::filesystem::path& model);

/// The bytes of the model with these values of initialisers, which have the types and shapes of the file; a copy of an
/// initialiser becomes an initialiser, and layers that were exported for training have their form for inference. Values
/// from external files are inside the result; other initialisers stay where they are. Errors: the file is no ONNX model
/// or lacks an initialiser, a result past 2 GiB.
Result<std::string> replace_weights(const std::filesystem::path& model, const std::map<std::string, Tensor>& weights);

}  // namespace hoist
