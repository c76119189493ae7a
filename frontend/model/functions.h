// Replaces calls of functions by their bodies: the model's own functions, and operators of the standard that are
// defined by a function and that hoist has no operator for. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <string>

#include "ir/base/result.h"

namespace hoist {

using HasOperator = std::function<bool(const std::string& domain, const std::string& operation)>;

/// Whether an operator has a function body: the standard's at this version, or one that hoist has for an operator of
/// com.microsoft. No promise that the body can be used.
bool has_function_body(const std::string& domain, const std::string& operation, int opset);

/// Replaces every call of the model's own functions, deeply, also in graphs inside of layers, and removes the
/// functions. Layers of a body are named after the call: "call/Conv_0". Bodies for another opset than the model's are
/// converted. Errors: recursion, too many arguments, bodies that cannot be converted, more than `maximum_layers` layers
/// in all.
Diagnostics expand_model_functions(onnx::ModelProto& model, int64_t maximum_layers);

/// Replaces operators for which `has_operator` says no where there is a body whose own operators
/// are there or have bodies in turn. What has none stays; where a body is there but cannot be used, `lacking` gets the
/// layer's name and the operator that the body lacks. Needs inferred types, which it makes itself.
Diagnostics expand_standard_functions(onnx::ModelProto& model, int opset, const HasOperator& has_operator,
                                      int64_t maximum_layers, std::map<std::string, std::string>& lacking);

}  // namespace hoist
