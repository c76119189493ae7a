// Operators of onnxruntime's domain com.microsoft that are several layers of the standard: their bodies. Operators of
// that domain that are one formula are rows of the table of operators. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

namespace hoist {

bool has_contributed_body(const std::string& domain, const std::string& operation);

/// The names of all that have one.
std::vector<std::string> contributed_operators();

/// Whether a node without a domain is one that onnxruntime means of its own.
bool is_contributed_without_domain(const onnx::NodeProto& node);

/// The body for this call, its attributes bound; nothing where it uses what no body is written for (a mask of an
/// unusual shape, packed inputs). `types` are those of the inputs, without a value where they are not known.
std::optional<onnx::FunctionProto> contributed_body(const onnx::NodeProto& node,
                                                    const std::vector<onnx::TypeProto>& types);

}  // namespace hoist
