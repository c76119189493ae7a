#include "frontend/replace_weights.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "frontend/frontend.h"
#include "frontend/model_header.h"

namespace hoist {
namespace {

bool is_of_floats(const onnx::TensorProto& tensor) {
  return tensor.data_type() == onnx::TensorProto::FLOAT || tensor.data_type() == onnx::TensorProto::DOUBLE;
}

// The initialisers that Identity copies, by the names of the copies.
using Copies = std::map<std::string, const onnx::TensorProto*>;
Copies copies_in(const onnx::GraphProto& graph) {
  Copies initialisers, out;
  for (const onnx::TensorProto& tensor : graph.initializer()) initialisers.emplace(tensor.name(), &tensor);
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "Identity" || node.input_size() != 1 || node.output_size() != 1) continue;
    const auto found = initialisers.find(node.input(0));
    if (found == initialisers.end()) continue;
    initialisers.emplace(node.output(0), found->second);
    out.emplace(node.output(0), found->second);
  }
  return out;
}

// Names, documentation and fields that this version of ONNX does not know stay.
void set_values(onnx::TensorProto& tensor, const Tensor& values) {
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(values.data(), values.bytes().size());
}

}  // namespace

Result<std::vector<std::string>> float_initialisers(const std::filesystem::path& path) {
  return guarded(path, [&]() -> Result<std::vector<std::string>> {
    HOIST_TRY(const onnx::ModelProto model, parse_model(path, ReadOptions(), nullptr));
    std::vector<std::string> out;
    const auto add = [&](const std::string& name, const onnx::TensorProto& tensor) {
      if (is_of_floats(tensor) && tensor.dims_size() > 0) out.push_back(name);
    };
    for (const onnx::TensorProto& tensor : model.graph().initializer()) add(tensor.name(), tensor);
    for (const auto& [name, tensor] : copies_in(model.graph())) add(name, *tensor);
    return out;
  });
}

Result<std::string> replace_weights(const std::filesystem::path& path, const std::map<std::string, Tensor>& weights) {
  return guarded(path, [&]() -> Result<std::string> {
    ReadOptions options;
    options.inference_form = true;
    HOIST_TRY(onnx::ModelProto model, parse_model(path, options, nullptr));
    onnx::GraphProto& graph = *model.mutable_graph();
    std::vector<onnx::TensorProto> added;
    for (const auto& [name, tensor] : copies_in(graph)) {
      if (weights.count(name) == 0) continue;
      added.push_back(*tensor);
      added.back().set_name(name);
    }
    const auto is_replaced = [&](const onnx::NodeProto& node) {
      return std::any_of(added.begin(), added.end(), [&](const onnx::TensorProto& tensor) {
        return node.output_size() == 1 && node.output(0) == tensor.name();
      });
    };
    auto& nodes = *graph.mutable_node();
    nodes.erase(std::remove_if(nodes.begin(), nodes.end(), is_replaced), nodes.end());
    for (const onnx::TensorProto& tensor : added) *graph.add_initializer() = tensor;
    size_t replaced = 0;
    for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
      const auto found = weights.find(tensor.name());
      if (found == weights.end()) continue;
      set_values(tensor, found->second);
      ++replaced;
    }
    if (replaced != weights.size())
      return Diagnostic{path.string(), "has other initialisers than before the training", "train again"};
    std::string out;
    if (!model.SerializeToString(&out))
      return Diagnostic{path.string(), "with its weights inside is past 2 GiB, the limit of protobuf", ""};
    return out;
  });
}

}  // namespace hoist
