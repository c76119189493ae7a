// Decides for each node whether hoist supports it: its kind, its replacement, and the user's alternative if it is not
// supported. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include "frontend/frontend.h"
#include "frontend/model/functions.h"
#include "ir/program/operator_call.h"

namespace hoist {

/// `opset` is the model's; bodies are searched in this version and in the newest.
Support support_of(const onnx::NodeProto& node, int opset, const HasOperator& has_operator);

/// A seed derived from the node's name, for a node that draws random numbers without a seed; nothing for other nodes.
std::optional<Attribute> seed_of_name(const onnx::NodeProto& node);

/// Nodes without support, one message each, in model order; and nodes that break their operator's rules.
Diagnostics check_operators(const onnx::ModelProto& model, const HasOperator& has_operator);

}  // namespace hoist
