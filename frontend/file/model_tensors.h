// Takes the weights out of a model, so that the library's passes work on a skeleton of names and shapes and hoist holds
// each byte once. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/file/model_file.h"
#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

using Constants = std::map<std::string, Tensor>;

/// Moves initialisers and Constant nodes into `constants`. In the graph, small ones stay as initialisers (the version
/// converter and shape inference look at their values), the others become graph inputs. Graph inputs that repeat an
/// initialiser, as in old models, are removed. Tensors in attributes are checked and made dense.
Diagnostics take_constants(onnx::GraphProto& graph, int64_t maximum_bytes, const ExternalData& external,
                           Constants& constants);

/// Adds constants to a graph that lacks them: small ones as initialisers, the others as graph inputs.
void place_constants(onnx::GraphProto& graph, const Constants& constants);

/// A graph input or output of this type. An extent below 0 is left open.
void set_tensor_type(onnx::ValueInfoProto& value, Scalar scalar, const std::vector<int64_t>& shape);

}  // namespace hoist
