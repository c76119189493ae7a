#include "frontend/model/input_value.h"

#include <cmath>

#include "frontend/file/bounded_size.h"
#include "frontend/file/tensor_proto.h"
#include "ir/program/onnx_type.h"

namespace hoist {
namespace {

// The numbers of a literal, i64 or f64, in the type that the model declares.
Result<Tensor> typed_value(const Tensor& literal, Scalar scalar, const std::string& where) {
  Tensor out(scalar, literal.shape());
  for (int64_t i = 0; i < literal.size(); ++i) {
    const bool integer = literal.scalar() == Scalar::i64;
    if (is_float(scalar)) {
      out.set_float(i, integer ? static_cast<double>(literal.integer_at(i)) : literal.float_at(i));
      continue;
    }
    const int64_t number = integer ? literal.integer_at(i) : 0;
    const bool boolean = scalar == Scalar::boolean && (number == 0 || number == 1);
    if (integer) out.set_integer(i, number);
    const bool negative = scalar == Scalar::u64 && number < 0;  // integer_at returns u64 as its bits
    if (!integer || negative || (!boolean && out.integer_at(i) != number)) {
      return Diagnostic{where,
                        "holds " + (integer ? std::to_string(number) : std::to_string(literal.float_at(i))) +
                            ", and the input is of " + std::string(row(scalar).name),
                        ""};
    }
  }
  return out;
}

}  // namespace

Result<Tensor> declared_value(const InputValue& value, const onnx::TypeProto::Tensor& declared) {
  const std::string where = "--value " + value.name;
  const std::optional<Scalar> scalar = scalar_of_onnx_type(declared.elem_type());
  if (!scalar) {
    return Diagnostic{where, "the input has values of " + onnx_type_name(declared.elem_type()) + ", which hoist lacks",
                      ""};
  }
  Tensor out = value.value;
  if (value.untyped) {
    HOIST_TRY(out, typed_value(value.value, *scalar, where));
  } else if (out.scalar() != *scalar) {
    return Diagnostic{
        where, "is of " + std::string(row(out.scalar()).name) + ", and the input of " + std::string(row(*scalar).name),
        ""};
  }
  if (!declared.has_shape()) return out;
  std::vector<int64_t> shape;
  for (const auto& dim : declared.shape().dim()) shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  const bool becomes_number = shape.empty() && out.size() == 1;
  if (becomes_number || (value.untyped && out.shape().empty() && shape.size() == 1)) {
    out = out.reshaped(std::vector<int64_t>(shape.size(), 1));
  }
  bool fits = shape.size() == out.shape().size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] < 0 || shape[i] == out.shape()[i];
  if (fits) return out;
  return Diagnostic{where, "has shape " + shape_text(out.shape()) + ", and the input " + shape_text(shape), ""};
}

}  // namespace hoist
