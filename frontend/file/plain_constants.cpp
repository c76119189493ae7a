#include "frontend/file/plain_constants.h"

#include <string>
#include <vector>

#include "frontend/file/bounded_size.h"
#include "frontend/file/tensor_proto.h"
#include "frontend/model/structure.h"
#include "ir/language/tensor.h"
#include "ir/program/onnx_type.h"

namespace hoist {
namespace {

class Plainer {
 public:
  Plainer(int64_t maximum_bytes, const ExternalData& external) : maximum_bytes_(maximum_bytes), external_(external) {}

  void graph(onnx::GraphProto& graph) {
    for (const onnx::SparseTensorProto& sparse : graph.sparse_initializer()) {
      const std::string owner = "sparse initialiser '" + sparse.values().name() + "'";
      if (Result<onnx::TensorProto> tensor = dense(sparse, owner))
        *graph.add_initializer() = std::move(*tensor);
      else
        problems.insert(problems.end(), tensor.errors().begin(), tensor.errors().end());
    }
    graph.clear_sparse_initializer();
    nodes(*graph.mutable_node());
  }

  void nodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    for (onnx::NodeProto& node : nodes) {
      const bool is_constant = node.domain().empty() && node.op_type() == "Constant";
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (is_constant) constant(attribute, layer_place(node));
        if (attribute.has_g()) graph(*attribute.mutable_g());
        for (onnx::GraphProto& inside : *attribute.mutable_graphs()) graph(inside);
      }
    }
  }

  Diagnostics problems;

 private:
  void constant(onnx::AttributeProto& attribute, const std::string& owner) {
    onnx::TensorProto value;
    if (attribute.name() == "value_string" || attribute.name() == "value_strings") {
      value.set_data_type(onnx::TensorProto::STRING);
      if (attribute.name() == "value_string") {
        value.add_string_data(attribute.s());
      } else {
        value.add_dims(attribute.strings_size());
        *value.mutable_string_data() = attribute.strings();
      }
    } else if (attribute.name() == "sparse_value") {
      Result<onnx::TensorProto> tensor = dense(attribute.sparse_tensor(), owner);
      if (!tensor) {
        problems.insert(problems.end(), tensor.errors().begin(), tensor.errors().end());
        return;
      }
      value = std::move(*tensor);
    } else {
      return;
    }
    attribute.Clear();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = std::move(value);
  }

  // Positions are flat indices into the shape, or one index per dimension.
  Result<onnx::TensorProto> dense(const onnx::SparseTensorProto& sparse, const std::string& owner) const {
    HOIST_TRY(const Tensor values, tensor_from_proto(sparse.values(), owner, maximum_bytes_, &external_));
    HOIST_TRY(const Tensor places, tensor_from_proto(sparse.indices(), owner, maximum_bytes_, &external_));
    const std::vector<int64_t> shape(sparse.dims().begin(), sparse.dims().end());
    if (!bounded_byte_size(values.scalar(), shape, maximum_bytes_))
      return Diagnostic{
          owner,
          "its shape " + shape_text(shape) + " is past the limit of " + std::to_string(maximum_bytes_) + " bytes", ""};
    const auto rank = static_cast<int64_t>(shape.size());
    const std::vector<int64_t>& found = places.shape();
    const bool linear = found.size() == 1;
    if (values.shape().size() != 1 || places.scalar() != Scalar::i64 || found.empty() || found.size() > 2 ||
        found[0] != values.size() || (!linear && found[1] != rank))
      return Diagnostic{owner,
                        "has values " + shape_text(values.shape()) + " at positions " + shape_text(found) +
                            " in a tensor " + shape_text(shape),
                        "positions are [values] or [values][dimensions] of i64"};
    Tensor out(values.scalar(), shape);
    const int bits = row(out.scalar()).bits;
    for (int64_t i = 0; i < values.size(); ++i) {
      int64_t position = linear ? places.integer_at(i) : 0;
      bool inside = position >= 0 && position < out.size();
      for (int64_t d = 0; d < rank && !linear && inside; ++d) {
        const int64_t index = places.integer_at(i * rank + d), extent = shape[static_cast<size_t>(d)];
        inside = index >= 0 && index < extent;
        position = position * extent + index;
      }
      if (!inside)
        return Diagnostic{owner, "value " + std::to_string(i) + " lies outside of its shape " + shape_text(shape), ""};
      store_element(out.data(), bits, position, load_element(values.data(), bits, i));
    }
    return tensor_to_proto(out, sparse.values().name());
  }

  const int64_t maximum_bytes_;
  const ExternalData& external_;
};

}  // namespace

Diagnostics make_constants_plain(onnx::ModelProto& model, int64_t maximum_bytes, const ExternalData& external) {
  Plainer plainer(maximum_bytes, external);
  plainer.graph(*model.mutable_graph());
  for (onnx::FunctionProto& function : *model.mutable_functions()) plainer.nodes(*function.mutable_node());
  return plainer.problems;
}

}  // namespace hoist
