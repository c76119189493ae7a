#include "frontend/inference_form.h"

#include <algorithm>
#include <set>
#include <string>

namespace hoist {
namespace {

using Names = std::set<std::string>;

// All values that layers or outputs read, in the graph and those inside.
void add_reads(const onnx::GraphProto& graph, Names& reads) {
  for (const onnx::ValueInfoProto& output : graph.output()) reads.insert(output.name());
  for (const onnx::NodeProto& node : graph.node()) {
    reads.insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) add_reads(attribute.g(), reads);
      for (const onnx::GraphProto& inner : attribute.graphs()) add_reads(inner, reads);
    }
  }
}

bool reads_more_than_first(const onnx::NodeProto& node, const Names& reads) {
  return std::any_of(node.output().begin() + std::min(1, node.output_size()), node.output().end(),
                     [&](const std::string& output) { return !output.empty() && reads.count(output) != 0; });
}

bool stop_normalising_by_batch(onnx::NodeProto& node) {
  bool changed = node.output_size() > 1;
  if (changed) node.mutable_output()->DeleteSubrange(1, node.output_size() - 1);
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.name() != "training_mode" || attribute.i() == 0) continue;
    attribute.set_i(0);
    changed = true;
  }
  return changed;
}

bool stop_dropping(onnx::NodeProto& node, const Names& inputs) {
  if (node.input_size() < 3 || node.input(2).empty() || inputs.count(node.input(2)) != 0) return false;
  node.mutable_input()->DeleteSubrange(2, 1);
  return true;
}

}  // namespace

int use_inference_form(onnx::GraphProto& graph) {
  Names reads, inputs;
  add_reads(graph, reads);
  for (const onnx::ValueInfoProto& input : graph.input()) inputs.insert(input.name());
  int changed = 0;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (!node.domain().empty() || reads_more_than_first(node, reads)) continue;
    if (node.op_type() == "BatchNormalization") changed += stop_normalising_by_batch(node) ? 1 : 0;
    if (node.op_type() == "Dropout") changed += stop_dropping(node, inputs) ? 1 : 0;
  }
  return changed;
}

}  // namespace hoist
