// The graph as names and edges: unique layer names, every value defined once, no cycles, topological order, nothing
// that no output needs. Does not look into operators. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <string>
#include <vector>

#include "ir/base/result.h"

namespace hoist {

inline void append(Diagnostics& to, const Diagnostics& from) { to.insert(to.end(), from.begin(), from.end()); }

/// "layer 'conv1' (Conv)", for messages.
std::string layer_place(const onnx::NodeProto& node);

/// True if an attribute of the layer is a graph, as in Loop and If.
bool has_subgraph(const onnx::NodeProto& node);

/// The version of ai.onnx that gives the node its meaning: `opset`, which is the model's, unless set_version has set
/// another. A function may be written for another version than the model that calls it.
int version_of(const onnx::NodeProto& node, int opset);
void set_version(onnx::NodeProto& node, int version);
/// Files may not set the version.
void forget_version(onnx::NodeProto& node);

/// Calls `f` for each of the nodes and of those in graphs inside of them.
void for_each_node(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                   const std::function<void(onnx::NodeProto&)>& f);

/// Every name that a node reads or that its graphs read, including names of values of those graphs.
std::vector<std::string> reads_of(const onnx::NodeProto& node);

/// Names the nodes of the graph and of the graphs inside nodes: a node without a name is named after its operator and
/// place ("Conv_3"), and a repeated name gets a suffix.
void name_layers(onnx::GraphProto& graph);

/// Outputs that are listed again become copies with names of their own. Returns a note for each.
std::vector<std::string> copy_repeated_outputs(onnx::GraphProto& graph);

/// Values and operators without a name, names defined twice, used but never defined, or outputs never made.
Diagnostics check_names(const onnx::GraphProto& graph);

/// Removes nodes that no graph output depends on; empties the names of unused outputs after the first. Returns the
/// number of nodes removed.
int remove_unused_layers(onnx::GraphProto& graph);

/// Puts nodes into topological order, keeping the file's order where that is one; the same in graphs that nodes hold.
/// Errors: a cycle, spelt out.
Result<Nothing> sort_layers(onnx::GraphProto& graph);

}  // namespace hoist
