// onnx's own inference of types and shapes and its checks of single nodes, with their exceptions turned into values and
// without the inputs on which they would not terminate. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <unordered_map>

#include "ir/base/result.h"

namespace hoist {

/// A message of onnx as one lower-case line; the original has sentences over several lines, some with a call stack.
std::string tidy(std::string message);

using ValueTypes = std::unordered_map<std::string, onnx::TypeProto>;

/// The newest version of ai.onnx that the library knows.
int newest_opset();
/// The version of a domain ("" is ai.onnx) that the model imports; 0 if it does not.
int opset_of(const onnx::ModelProto& model, const std::string& domain = "");

/// Types of all values as far as onnx can infer them, without declared intermediate types. Never fails: after an
/// inference error the remaining types are missing.
ValueTypes infer_types(const onnx::ModelProto& model);

/// The same, reporting every node whose inputs do not fit together.
Diagnostics check_types(const onnx::ModelProto& model, ValueTypes& types);

/// onnx's check of a node against its operator's schema: arity, attribute names and types.
std::optional<Diagnostic> check_node(const onnx::NodeProto& node, const onnx::ModelProto& model);

}  // namespace hoist
