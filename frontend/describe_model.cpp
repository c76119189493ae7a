// value_kinds and list_operators: facts that a model file states, without reading it as a program.
#include <map>
#include <set>

#include "frontend/frontend.h"
#include "frontend/model/check_nodes.h"
#include "frontend/model/inference.h"
#include "frontend/model/maps.h"
#include "frontend/model/sequences.h"
#include "frontend/model_header.h"

namespace hoist {

Result<ValueKinds> value_kinds(const std::filesystem::path& path) {
  return guarded(path, [&]() -> Result<ValueKinds> {
    HOIST_TRY(const onnx::ModelProto model, parse_model(path, {}, nullptr));
    std::set<std::string> initialised;
    for (const onnx::TensorProto& tensor : model.graph().initializer()) initialised.insert(tensor.name());
    for (const onnx::SparseTensorProto& tensor : model.graph().sparse_initializer())
      initialised.insert(tensor.values().name());
    ValueKinds out;
    const auto add = [&](const onnx::ValueInfoProto& value, std::vector<ValueKind>& kinds, std::vector<MapKeys>& keys) {
      kinds.push_back(declared_value_of(value.type()).kind);
      const bool maps = kinds.back() == ValueKind::map || kinds.back() == ValueKind::sequence_of_maps;
      auto said = maps ? keys_of(model.graph(), value) : Result<MapKeys>(MapKeys());
      keys.push_back(said.ok() ? std::move(*said) : MapKeys());  // reading the model reports the error
    };
    for (const onnx::ValueInfoProto& input : model.graph().input()) {
      if (initialised.count(input.name()) == 0) add(input, out.inputs, out.input_keys);
    }
    for (const onnx::ValueInfoProto& output : model.graph().output()) add(output, out.outputs, out.output_keys);
    return out;
  });
}

namespace {

void count_operators(const onnx::NodeProto& node, int opset, const HasOperator& has_operator,
                     std::map<std::pair<std::string, std::string>, OperatorUse>& uses) {
  const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  OperatorUse& use = uses[{domain, node.op_type()}];
  const Support support = support_of(node, opset, has_operator);
  // One unsupported node decides the support of its kind.
  if (use.count++ == 0 || support == Support::none) use.support = support;
  use.domain = domain;
  use.operation = node.op_type();
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    for (const onnx::NodeProto& inner : attribute.g().node()) count_operators(inner, opset, has_operator, uses);
    for (const onnx::GraphProto& graph : attribute.graphs()) {
      for (const onnx::NodeProto& inner : graph.node()) count_operators(inner, opset, has_operator, uses);
    }
  }
}

}  // namespace

Result<std::vector<OperatorUse>> list_operators(const std::filesystem::path& path, const ReadOptions& options) {
  return guarded(path, [&]() -> Result<std::vector<OperatorUse>> {
    HOIST_TRY(onnx::ModelProto model, parse_model(path, options, nullptr));
    if (Diagnostics problems = check_header(model, path.string()); !problems.empty()) return problems;
    normalise_domains(model);
    std::map<std::pair<std::string, std::string>, OperatorUse> uses;
    std::set<std::pair<std::string, std::string>> own;  // calls of the model's functions
    const int opset = opset_of(model);
    for (const onnx::FunctionProto& function : model.functions()) {
      own.insert({function.domain() == "ai.onnx" ? "" : function.domain(), function.name()});
      for (const onnx::NodeProto& node : function.node()) count_operators(node, opset, options.has_operator, uses);
    }
    for (const onnx::NodeProto& node : model.graph().node()) count_operators(node, opset, options.has_operator, uses);
    std::vector<OperatorUse> out;
    for (auto& [key, use] : uses) {
      if (own.count(key)) use.support = Support::function;
      out.push_back(use);
    }
    return out;
  });
}

}  // namespace hoist
