#include "frontend/model/input_value.h"

#include <algorithm>
#include <cmath>

#include "frontend/file/bounded_size.h"
#include "frontend/file/tensor_proto.h"
#include "ir/program/onnx_type.h"
#include "ir/program/states.h"

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

Result<Program> with_states(Program program, const ReadOptions& options) {
  if (options.states.empty() && options.initial.empty()) return program;
  StateRequest request{options.states};
  Diagnostics problems;
  for (const InputValue& value : options.values) request.fixed.insert(value.name);
  const std::vector<ValueInfo> inputs = input_infos(program);
  for (const InputValue& value : options.initial) {
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [&](const ValueInfo& each) { return each.name == value.name; });
    onnx::TypeProto::Tensor declared;
    if (input != inputs.end()) {
      declared.set_elem_type(static_cast<int>(onnx_type(input->scalar)));
      for (int64_t extent : input->shape) declared.mutable_shape()->add_dim()->set_dim_value(extent);
    }
    auto fitting = input == inputs.end() ? Result<Tensor>(value.value) : declared_value(value, declared);
    if (!fitting) {
      for (Diagnostic problem : fitting.errors()) {
        problem.where = "--initial " + value.name;
        problems.push_back(std::move(problem));
      }
    } else if (!request.initial.emplace(value.name, std::move(*fitting)).second) {
      problems.push_back({"--initial " + value.name, "the state has an initial value already", ""});
    }
  }
  auto made = with_states(std::move(program), request);
  if (!made) problems.insert(problems.begin(), made.errors().begin(), made.errors().end());
  if (!problems.empty()) return problems;
  return made;
}

}  // namespace hoist
