#include "lowering/export/export_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "ir/program/onnx_type.h"

namespace hoist {
namespace {

// Functions that one operator computes, by element type; null if one operator does not suffice.
struct OperatorName {
  Function function;
  const char* on_numbers;
  const char* on_booleans = nullptr;
};
constexpr OperatorName names[] = {
    {Function::add, "Add"},
    {Function::subtract, "Sub"},
    {Function::multiply, "Mul"},
    {Function::divide, "Div"},
    {Function::minimum, "Min"},
    {Function::maximum, "Max"},
    {Function::power, "Pow"},
    {Function::negate, "Neg"},
    {Function::absolute, "Abs"},
    {Function::sign, "Sign"},
    {Function::floor, "Floor"},
    {Function::ceiling, "Ceil"},
    {Function::round, "Round"},
    {Function::sqrt, "Sqrt"},
    {Function::exp, "Exp"},
    {Function::log, "Log"},
    {Function::sin, "Sin"},
    {Function::cos, "Cos"},
    {Function::tan, "Tan"},
    {Function::asin, "Asin"},
    {Function::acos, "Acos"},
    {Function::atan, "Atan"},
    {Function::sinh, "Sinh"},
    {Function::cosh, "Cosh"},
    {Function::tanh, "Tanh"},
    {Function::asinh, "Asinh"},
    {Function::acosh, "Acosh"},
    {Function::atanh, "Atanh"},
    {Function::erf, "Erf"},
    {Function::equal, "Equal", "Equal"},
    {Function::less, "Less"},
    {Function::less_equal, "LessOrEqual"},
    {Function::greater, "Greater"},
    {Function::greater_equal, "GreaterOrEqual"},
    {Function::logical_and, "BitwiseAnd", "And"},
    {Function::logical_or, "BitwiseOr", "Or"},
    {Function::logical_xor, "BitwiseXor", "Xor"},
    {Function::logical_not, "BitwiseNot", "Not"},
    {Function::is_nan, "IsNaN"},
    {Function::is_infinite, "IsInf"},
};

constexpr std::pair<Function, const char*> reductions[] = {{Function::add, "ReduceSum"},
                                                           {Function::multiply, "ReduceProd"},
                                                           {Function::minimum, "ReduceMin"},
                                                           {Function::maximum, "ReduceMax"}};

const char* operator_for(Function function, Scalar scalar) {
  for (const OperatorName& name : names) {
    if (name.function == function) return scalar == Scalar::boolean ? name.on_booleans : name.on_numbers;
  }
  return nullptr;
}

Diagnostic no_operator(const std::string& what) {
  return {"", what + " has no ONNX operator", "leave out the rule that introduces it"};
}

// The type in which a shift is computed: BitShift accepts unsigned types only, and onnxruntime lacks the 16-bit case. A
// wider type is exact, since only the low bits of the result are used.
Scalar shifted_as(Scalar scalar) {
  switch (row(scalar).bits) {
    case 8:
      return Scalar::u8;
    case 64:
      return Scalar::u64;
    default:
      return Scalar::u32;
  }
}

// The type in which Where is computed: onnxruntime lacks some types, and the next wider type represents their values
// exactly.
Scalar selected_as(Scalar scalar) {
  switch (scalar) {
    case Scalar::bf16:
    case Scalar::f16:
      return Scalar::f32;
    case Scalar::i8:
    case Scalar::i16:
    case Scalar::u16:
      return Scalar::i32;
    case Scalar::u32:
      return Scalar::i64;
    default:
      return scalar;
  }
}

std::vector<int64_t> broadcast(const std::vector<NamedArray>& arrays) {
  std::vector<int64_t> out;
  for (const NamedArray& array : arrays) {
    if (array.shape.size() > out.size()) out.insert(out.begin(), array.shape.size() - out.size(), 1);
    const size_t offset = out.size() - array.shape.size();
    for (size_t i = 0; i < array.shape.size(); ++i) {
      if (array.shape[i] != 1) out[offset + i] = array.shape[i];
    }
  }
  return out;
}

// The builder only makes attributes that are integers, strings or lists of integers.
std::string content(const std::map<std::string, Attribute>& attributes) {
  std::string out;
  for (const auto& [name, value] : attributes) {
    if (const auto* number = std::get_if<int64_t>(&value)) out += fmt::format(" {}={}", name, *number);
    if (const auto* word = std::get_if<std::string>(&value)) out += fmt::format(" {}={}", name, *word);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value))
      out += fmt::format(" {}={}", name, fmt::join(*list, ","));
  }
  return out;
}

}  // namespace

std::string OperatorBuilder::fresh(const std::string& stem) { return fmt::format("{}/{}_{}", prefix_, stem, count_++); }

NamedArray OperatorBuilder::constant(const Tensor& tensor) {
  const std::string key = fmt::format("{} {} ", row(tensor.scalar()).name, fmt::join(tensor.shape(), ",")) +
                          std::string(reinterpret_cast<const char*>(tensor.data()), tensor.bytes().size());
  const auto [at, is_new] = constants_by_content_.try_emplace(key);
  if (is_new) {
    at->second = {fresh("constant"), tensor.scalar(), tensor.shape()};
    made_.constants[at->second.name] = tensor;
  }
  return at->second;
}

NamedArray OperatorBuilder::number(Scalar scalar, double value) {
  return constant(Tensor::of(scalar, {}, std::vector<double>{value}));
}

NamedArray OperatorBuilder::integers(const Shape& values) {
  return constant(Tensor::of(Scalar::i64, {static_cast<int64_t>(values.size())}, values));
}

NamedArray OperatorBuilder::layer(const std::string& operation, const std::vector<NamedArray>& inputs, Scalar scalar,
                                  const Shape& shape, const std::map<std::string, Attribute>& attributes) {
  std::string key = operation + content(attributes);
  for (const NamedArray& input : inputs) key += "\n" + input.name;
  const auto [at, is_new] = layers_by_content_.try_emplace(key);
  if (is_new) {
    const std::string name = fresh(operation);
    NamedCall layer{name, operation, "", attributes, {}, {name}};
    for (const NamedArray& input : inputs) layer.inputs.push_back(input.name);
    made_.layers.push_back(std::move(layer));
    at->second = {name, scalar, shape};
  }
  return at->second;
}

NamedArray OperatorBuilder::elementwise(const std::string& operation, const std::vector<NamedArray>& inputs,
                                        Scalar scalar, const std::map<std::string, Attribute>& attributes) {
  return layer(operation, inputs, scalar, broadcast(inputs), attributes);
}

// For a negative value the complement is shifted and complemented again, so that ones enter from the left.
NamedArray OperatorBuilder::shift(Function function, const NamedArray& x, const NamedArray& by) {
  const bool left = function == Function::shift_left;
  const Scalar bits = shifted_as(x.scalar);
  const auto shifted = [&](const NamedArray& value) {
    return cast(x.scalar, elementwise("BitShift", {cast(bits, value), cast(bits, by)}, bits,
                                      {{"direction", std::string(left ? "LEFT" : "RIGHT")}}));
  };
  if (left || !row(x.scalar).is_signed) return shifted(x);
  const NamedArray negative = elementwise("Less", {x, number(x.scalar, 0)}, Scalar::boolean);
  const auto flipped = [&](const NamedArray& value) {
    return select(negative, elementwise("BitwiseNot", {value}, x.scalar), value);
  };
  return flipped(shifted(flipped(x)));
}

Result<NamedArray> OperatorBuilder::call(Function function, const std::vector<NamedArray>& arguments) {
  const Scalar scalar = arguments[0].scalar;
  if (scalar == Scalar::bf16) {  // bf16 is computed in f32 and rounded, as the language defines; few engines implement
                                 // it directly
    std::vector<NamedArray> wide;
    for (const NamedArray& argument : arguments) wide.push_back(cast(Scalar::f32, argument));
    HOIST_TRY(const NamedArray out, call(function, wide));
    return out.scalar == Scalar::f32 ? cast(scalar, out) : out;
  }
  const bool is_boolean = hoist::row(function).result == ResultKind::boolean;
  if (const char* operation = operator_for(function, scalar))
    return elementwise(operation, arguments, is_boolean ? Scalar::boolean : scalar);
  switch (function) {
    case Function::fma: {
      HOIST_TRY(NamedArray product, call(Function::multiply, {arguments[0], arguments[1]}));
      return call(Function::add, {product, arguments[2]});
    }
    case Function::not_equal:
      return elementwise("Not", {elementwise("Equal", arguments, Scalar::boolean)}, Scalar::boolean);
    case Function::truncate: {  // multiplying by the sign restores it and keeps NaN and -0.0
      HOIST_TRY(NamedArray size, call(Function::floor, {elementwise("Abs", arguments, scalar)}));
      return call(Function::multiply, {elementwise("Sign", arguments, scalar), size});
    }
    case Function::modulo:
      if (is_integer(scalar)) return elementwise("Mod", arguments, scalar, {{"fmod", int64_t{0}}});
      break;
    case Function::remainder:
      return elementwise("Mod", arguments, scalar, {{"fmod", int64_t{1}}});
    case Function::shift_left:
    case Function::shift_right:
      return shift(function, arguments[0], arguments[1]);
    default:
      break;
  }
  return no_operator(fmt::format("function {} on {}", hoist::row(function).name, hoist::row(scalar).name));
}

NamedArray OperatorBuilder::select(const NamedArray& condition, const NamedArray& a, const NamedArray& b) {
  const Scalar wide = selected_as(a.scalar);
  return cast(a.scalar, elementwise("Where", {condition, cast(wide, a), cast(wide, b)}, wide));
}

NamedArray OperatorBuilder::cast(Scalar to, const NamedArray& x) {
  return x.scalar == to ? x : layer("Cast", {x}, to, x.shape, {{"to", onnx_type(to)}});
}

NamedArray OperatorBuilder::reinterpret(Scalar to, const NamedArray& x) {
  return x.scalar == to ? x : layer("BitCast", {x}, to, x.shape, {{"to", onnx_type(to)}});
}

Result<NamedArray> OperatorBuilder::reduce(Function function, const NamedArray& x, size_t axis) {
  Shape shape = x.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  for (const auto& [candidate, operation] : reductions) {
    if (candidate != function) continue;
    return layer(operation, {x, integers({static_cast<int64_t>(axis)})}, x.scalar, shape, {{"keepdims", int64_t{0}}});
  }
  return no_operator(fmt::format("reduction by {}", hoist::row(function).name));
}

NamedArray OperatorBuilder::reshape(const NamedArray& x, const Shape& shape) {
  if (x.shape == shape) return x;
  // With allowzero a zero is an extent; without it a zero copies the input's extent.
  return layer("Reshape", {x, integers(shape)}, x.scalar, shape, {{"allowzero", int64_t{1}}});
}

NamedArray OperatorBuilder::transpose(const NamedArray& x, const Shape& permutation) {
  Shape shape;
  for (const int64_t axis : permutation) shape.push_back(x.shape[static_cast<size_t>(axis)]);
  return layer("Transpose", {x}, x.scalar, shape, {{"perm", permutation}});
}

NamedArray OperatorBuilder::expand(const NamedArray& x, const Shape& shape) {
  return x.shape == shape ? x : layer("Expand", {x, integers(shape)}, x.scalar, shape);
}

NamedArray OperatorBuilder::slice(const NamedArray& x, size_t axis, int64_t start, int64_t count, int64_t step) {
  Shape shape = x.shape;
  shape[axis] = count;
  // With a negative step an end before the first element is written as a value below every index.
  int64_t end = start + count * step;
  if (end < 0) end = std::numeric_limits<int64_t>::min() + 1;
  return layer("Slice",
               {x, integers({start}), integers({end}), integers({static_cast<int64_t>(axis)}), integers({step})},
               x.scalar, shape);
}

NamedArray OperatorBuilder::concat(const std::vector<NamedArray>& parts, size_t axis) {
  Shape shape = parts[0].shape;
  for (size_t i = 1; i < parts.size(); ++i) shape[axis] += parts[i].shape[axis];
  return layer("Concat", parts, parts[0].scalar, shape, {{"axis", static_cast<int64_t>(axis)}});
}

NamedArray OperatorBuilder::gather(const NamedArray& x, const NamedArray& positions, size_t axis) {
  const auto at = static_cast<std::ptrdiff_t>(axis);
  Shape shape(x.shape.begin(), x.shape.begin() + at);
  shape.insert(shape.end(), positions.shape.begin(), positions.shape.end());
  shape.insert(shape.end(), x.shape.begin() + at + 1, x.shape.end());
  const bool takes = positions.scalar == Scalar::i32 || positions.scalar == Scalar::i64;
  return layer("Gather", {x, takes ? positions : cast(Scalar::i64, positions)}, x.scalar, shape,
               {{"axis", static_cast<int64_t>(axis)}});
}

ExportedLayers OperatorBuilder::finish(const NamedArray& result, const std::string& name) {
  ExportedLayers out;
  const auto made = std::find_if(made_.layers.begin(), made_.layers.end(),
                                 [&](const NamedCall& layer) { return layer.outputs[0] == result.name; });
  if (made == made_.layers.end()) {
    out.layers.push_back({fresh("Identity"), "Identity", "", {}, {result.name}, {name}});
  } else {
    made_.layers.erase(made + 1, made_.layers.end());  // later layers cannot contribute to the result
  }
  std::set<std::string> needed = {result.name};
  for (auto layer = made_.layers.rbegin(); layer != made_.layers.rend(); ++layer) {
    if (!needed.count(layer->outputs[0])) continue;
    needed.insert(layer->inputs.begin(), layer->inputs.end());
    if (layer->outputs[0] == result.name) layer->outputs[0] = name;
    out.layers.insert(out.layers.begin(), std::move(*layer));
  }
  for (auto& [constant, tensor] : made_.constants) {
    if (needed.count(constant)) out.constants[constant] = std::move(tensor);
  }
  return out;
}

}  // namespace hoist
