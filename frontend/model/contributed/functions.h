// Bodies of the operators of onnxruntime's domain com.microsoft that consist of several standard layers, and bodies
// that replace function bodies of the standard. Operators of that domain that are one formula are rows of the operator
// table. Borders onnx; for frontend only.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

namespace hoist {

bool has_contributed_body(const std::string& domain, const std::string& operation);

/// The names of all operators of com.microsoft that have a body.
std::vector<std::string> contributed_operators();

/// True if a node without a domain is one of onnxruntime's own operators.
bool is_contributed_without_domain(const onnx::NodeProto& node);

/// The body for this call, with its attributes bound; nothing if no body covers the call (a mask of an unusual shape,
/// packed inputs). `types` are the types of the inputs, without a value if they are unknown.
std::optional<onnx::FunctionProto> contributed_body(const onnx::NodeProto& node,
                                                    const std::vector<onnx::TypeProto>& types);

}  // namespace hoist
