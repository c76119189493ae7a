#include "frontend/model/local_names.h"

#include <map>
#include <string>
#include <unordered_set>

namespace hoist {
namespace {

// The renamed values of a body, by their old names.
using Scope = std::map<std::string, std::string>;

class Renaming {
 public:
  explicit Renaming(const onnx::GraphProto& graph) {
    for (const onnx::ValueInfoProto& input : graph.input()) taken_.insert(input.name());
    for (const onnx::TensorProto& tensor : graph.initializer()) taken_.insert(tensor.name());
    for (const onnx::NodeProto& node : graph.node()) taken_.insert(node.output().begin(), node.output().end());
  }

  void rename_in(onnx::NodeProto& node, const Scope& scope) {
    for (std::string& input : *node.mutable_input()) apply(scope, input);
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) rename_body(*attribute.mutable_g(), scope);
      for (onnx::GraphProto& graph : *attribute.mutable_graphs()) rename_body(graph, scope);
    }
  }

 private:
  static void apply(const Scope& scope, std::string& name) {
    if (const auto found = scope.find(name); found != scope.end()) name = found->second;
  }

  void rename_body(onnx::GraphProto& body, Scope scope) {
    std::unordered_set<std::string> own;
    const auto define = [&](const std::string& name) {
      if (name.empty() || !own.insert(name).second) return;  // an initialiser may have its place among the inputs
      scope.erase(name);
      if (!taken_.insert(name).second) scope[name] = fresh(name);
    };
    for (const onnx::ValueInfoProto& input : body.input()) define(input.name());
    for (const onnx::TensorProto& tensor : body.initializer()) define(tensor.name());
    for (const onnx::NodeProto& node : body.node()) {
      for (const std::string& output : node.output()) define(output);
    }
    for (auto* values : {body.mutable_input(), body.mutable_output(), body.mutable_value_info()}) {
      for (onnx::ValueInfoProto& value : *values) apply(scope, *value.mutable_name());
    }
    for (onnx::TensorProto& tensor : *body.mutable_initializer()) apply(scope, *tensor.mutable_name());
    for (onnx::NodeProto& node : *body.mutable_node()) {
      for (std::string& output : *node.mutable_output()) apply(scope, output);
      rename_in(node, scope);
    }
  }

  std::string fresh(const std::string& name) {
    int& count = counts_[name];
    std::string out;
    do out = name + "_" + std::to_string(++count + 1);
    while (!taken_.insert(out).second);
    return out;
  }

  std::unordered_set<std::string> taken_;
  std::map<std::string, int> counts_;
};

}  // namespace

void make_names_unique(onnx::GraphProto& graph) {
  Renaming renaming(graph);
  for (onnx::NodeProto& node : *graph.mutable_node()) renaming.rename_in(node, {});
}

}  // namespace hoist
