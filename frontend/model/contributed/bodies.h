// Bodies of contributed operators (functions.h), as functions of standard operators. Only for the files of this folder.
#pragma once

#include <onnx/defs/function.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hoist::bodies {

using Integers = std::vector<int64_t>;

/// A call and the body that is being written for it.
class Writer {
 public:
  Writer(const onnx::NodeProto& call, const std::vector<onnx::TypeProto>& types, onnx::FunctionProto& body)
      : call_(call), types_(types), body_(body), builder_(body) {}

  bool given(int input) const { return input < call_.input_size() && !call_.input(input).empty(); }
  bool wanted(int output) const { return output < call_.output_size() && !call_.output(output).empty(); }
  int inputs() const { return call_.input_size(); }

  const onnx::AttributeProto* attribute(std::string_view name) const {
    const auto& all = call_.attribute();
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.name() == name; });
    return at == all.end() ? nullptr : &*at;
  }
  int64_t integer(std::string_view name, int64_t otherwise) const {
    const auto* a = attribute(name);
    return a == nullptr ? otherwise : a->i();
  }
  float number(std::string_view name, float otherwise) const {
    const auto* a = attribute(name);
    return a == nullptr ? otherwise : a->f();
  }

  /// The extents of an input, -1 for a symbolic one; nothing if even their number is unknown.
  std::optional<Integers> extents(int input) const {
    const auto i = static_cast<size_t>(input);
    if (i >= types_.size() || !types_[i].has_tensor_type() || !types_[i].tensor_type().has_shape()) return std::nullopt;
    Integers out;
    for (const auto& dim : types_[i].tensor_type().shape().dim())
      out.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    return out;
  }

  /// The element type of an input (TensorProto.DataType); UNDEFINED if it is unknown.
  int element_type(int input) const {
    const auto i = static_cast<size_t>(input);
    return i < types_.size() && types_[i].has_tensor_type() ? types_[i].tensor_type().elem_type()
                                                            : onnx::TensorProto::UNDEFINED;
  }

  void add(const std::string& text) { builder_.Add(text.c_str()); }
  void constant(const std::string& name, const Integers& values) { builder_.Const(name, values); }
  void scalar(const std::string& name, int64_t value) { builder_.Const(name, value); }
  /// A constant in the type of a value.
  void like(const std::string& name, float number, const std::string& value) {
    builder_.Const(name + "_f32", number);
    add(name + " = CastLike (" + name + "_f32, " + value + ")");
  }
  /// Sets an attribute of the last node, or copies an attribute of the call.
  void set(const std::string& name, float value) { last().mutable_attribute()->Add(onnx::MakeAttribute(name, value)); }
  void set(const std::string& name, int64_t value) {
    last().mutable_attribute()->Add(onnx::MakeAttribute(name, value));
  }
  void take(std::string_view name) {
    if (const auto* a = attribute(name)) *last().add_attribute() = *a;
  }
  void take_all() { last().mutable_attribute()->MergeFrom(call_.attribute()); }

 private:
  onnx::NodeProto& last() { return *body_.mutable_node(body_.node_size() - 1); }

  const onnx::NodeProto& call_;
  const std::vector<onnx::TypeProto>& types_;
  onnx::FunctionProto& body_;
  onnx::FunctionBuilder builder_;
};

/// The bodies of attention.cpp. False if the call has a form that has no body.
bool write_attention(Writer& w);
bool write_multi_head_attention(Writer& w);
bool write_group_query_attention(Writer& w);
bool write_rotary_embedding(Writer& w);

}  // namespace hoist::bodies
