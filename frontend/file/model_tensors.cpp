#include "frontend/file/model_tensors.h"

#include <unordered_map>
#include <unordered_set>

#include "frontend/file/bounded_size.h"
#include "frontend/file/tensor_proto.h"
#include "frontend/model/structure.h"
#include "ir/program/onnx_type.h"

namespace hoist {
namespace {

constexpr int64_t small_elements = 1024;

Tensor floats(std::vector<int64_t> shape, const google::protobuf::RepeatedField<float>& values) {
  return Tensor::of(Scalar::f32, std::move(shape), std::vector<float>(values.begin(), values.end()));
}

Tensor integers(std::vector<int64_t> shape, const google::protobuf::RepeatedField<int64_t>& values) {
  return Tensor::of(Scalar::i64, std::move(shape), std::vector<int64_t>(values.begin(), values.end()));
}

// The value of a Constant node, whose attributes have the types of the operator. A tensor is moved out of the node.
Result<Tensor> constant_value(onnx::NodeProto& node, int64_t maximum_bytes, const ExternalData& external) {
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    const std::string& name = attribute.name();
    if (name == "value")
      return tensor_from_proto(std::move(*attribute.mutable_t()), layer_place(node), maximum_bytes, &external);
    if (name == "value_float") return Tensor::of(Scalar::f32, {}, std::vector<float>{attribute.f()});
    if (name == "value_int") return Tensor::of(Scalar::i64, {}, std::vector<int64_t>{attribute.i()});
    if (name == "value_floats") return floats({attribute.floats_size()}, attribute.floats());
    if (name == "value_ints") return integers({attribute.ints_size()}, attribute.ints());
  }
  return Diagnostic{layer_place(node), "has no value that is a tensor of numbers", ""};
}

// Checks that an initialiser agrees with the declared input of its name.
Diagnostics check_place(const onnx::ValueInfoProto& input, const Tensor& tensor) {
  const auto& type = input.type().tensor_type();
  const std::string where = "initialiser '" + input.name() + "'";
  if (type.elem_type() != 0 && type.elem_type() != onnx_type(tensor.scalar())) {
    return {{where,
             "has type " + onnx_type_name(onnx_type(tensor.scalar())) + ", the graph input of its name " +
                 onnx_type_name(type.elem_type()),
             ""}};
  }
  if (!type.has_shape()) return {};
  bool same = type.shape().dim_size() == static_cast<int>(tensor.shape().size());
  for (int i = 0; same && i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    same = !dim.has_dim_value() || dim.dim_value() == tensor.shape()[static_cast<size_t>(i)];
  }
  if (same) return {};
  return {{where, "has shape " + shape_text(tensor.shape()) + ", which the graph input of its name contradicts", ""}};
}

class Taker {
 public:
  Taker(onnx::GraphProto& graph, int64_t maximum_bytes, const ExternalData& external, Constants& constants)
      : graph_(graph), maximum_bytes_(maximum_bytes), external_(external), constants_(constants) {}

  Diagnostics take() {
    take_initialisers();
    take_nodes();
    if (problems_.empty()) rebuild();
    return problems_;
  }

 private:
  void keep(const std::string& name, Result<Tensor> tensor) {
    if (tensor.ok())
      constants_[name] = std::move(*tensor);
    else
      problems_.insert(problems_.end(), tensor.errors().begin(), tensor.errors().end());
  }

  void take_initialisers() {
    for (onnx::TensorProto& place : *graph_.mutable_initializer()) {
      onnx::TensorProto proto;  // the proto is freed with its bytes, so each byte is held once
      proto.Swap(&place);
      const std::string name = proto.name(), owner = "initialiser '" + name + "'";
      keep(name, tensor_from_proto(std::move(proto), owner, maximum_bytes_, &external_));
    }
  }

  void take_nodes() {
    google::protobuf::RepeatedPtrField<onnx::NodeProto> rest;
    for (onnx::NodeProto& node : *graph_.mutable_node()) {
      if (node.domain().empty() && node.op_type() == "Constant" && node.output_size() == 1) {
        keep(node.output(0), constant_value(node, maximum_bytes_, external_));
        continue;
      }
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (!attribute.has_t()) continue;
        const std::string owner = layer_place(node) + ", attribute '" + attribute.name() + "'";
        Result<Tensor> tensor = tensor_from_proto(attribute.t(), owner, maximum_bytes_, &external_);
        if (tensor.ok())
          *attribute.mutable_t() = tensor_to_proto(*tensor, attribute.t().name());
        else
          problems_.insert(problems_.end(), tensor.errors().begin(), tensor.errors().end());
      }
      rest.Add()->Swap(&node);
    }
    graph_.mutable_node()->Swap(&rest);
  }

  void rebuild() {
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
    for (onnx::ValueInfoProto& input : *graph_.mutable_input()) {
      const auto at = constants_.find(input.name());
      if (at == constants_.end()) {
        inputs.Add()->Swap(&input);
        continue;
      }
      const Diagnostics wrong = check_place(input, at->second);
      problems_.insert(problems_.end(), wrong.begin(), wrong.end());
    }
    graph_.mutable_input()->Swap(&inputs);
    graph_.clear_initializer();
    place_constants(graph_, constants_);
  }

  onnx::GraphProto& graph_;
  const int64_t maximum_bytes_;
  const ExternalData& external_;
  Constants& constants_;
  Diagnostics problems_;
};

}  // namespace

Diagnostics take_constants(onnx::GraphProto& graph, int64_t maximum_bytes, const ExternalData& external,
                           Constants& constants) {
  return Taker(graph, maximum_bytes, external, constants).take();
}

void place_constants(onnx::GraphProto& graph, const Constants& constants) {
  for (const auto& [name, tensor] : constants) {
    if (tensor.size() <= small_elements) {
      *graph.add_initializer() = tensor_to_proto(tensor, name);
      continue;
    }
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(name);
    set_tensor_type(input, tensor.scalar(), tensor.shape());
  }
}

void set_tensor_type(onnx::ValueInfoProto& value, Scalar scalar, const std::vector<int64_t>& shape) {
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type(scalar));
  type.mutable_shape()->clear_dim();
  for (const int64_t extent : shape) {
    auto* dim = type.mutable_shape()->add_dim();
    if (extent >= 0) dim->set_dim_value(extent);
  }
}

}  // namespace hoist
