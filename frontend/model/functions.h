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

/// True if an operator has a function body: the standard's at this version, or one that hoist has for an operator of
/// com.microsoft. The body may still be unusable.
bool has_function_body(const std::string& domain, const std::string& operation, int opset);

/// Replaces every call of the model's own functions, deeply, also in graphs inside of layers, and removes the
/// functions. Layers of a body are named after the call: "call/Conv_0". Bodies for another opset than the model's are
/// converted. Errors: recursion, too many arguments, bodies that cannot be converted, more than `maximum_layers` layers
/// in all.
Diagnostics expand_model_functions(onnx::ModelProto& model, int64_t maximum_layers);

/// Inlines operators for which `has_operator` is false, if they have a body whose own operators are available or have
/// bodies in turn. Operators without a body stay; if a body is unusable, `lacking` gets the layer's name and the
/// operator that the body lacks. Needs inferred types, which it computes itself.
Diagnostics expand_standard_functions(onnx::ModelProto& model, int opset, const HasOperator& has_operator,
                                      int64_t maximum_layers, std::map<std::string, std::string>& lacking);

}  // namespace hoist
