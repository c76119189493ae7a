// Operators about shapes whose attributes or values of inputs decide the result; shape.op has the others.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

Lowered reshaped(Expr x, const Shape& to) {
  HOIST_TRY_VOID(check_extents(to));
  if (product(to) != product(extents(x))) {
    return fault(fmt::format("{} has {} elements, the new shape {} has {}", text(extents(x)), product(extents(x)),
                             text(to), product(to)));
  }
  return one(reshape(x, to));
}

Lowered lower_reshape(const OperatorContext& c) {
  HOIST_TRY(auto wanted, integers_of(c, "shape", 1));
  HOIST_TRY(int64_t allow_zero, integer_attribute(c, "allowzero", 0));
  if (!wanted) return fault("the new shape is missing");
  Shape from = extents(c.inputs[0]), to = *wanted;
  int64_t open = -1, known = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && allow_zero == 0) {
      if (i >= from.size())
        return fault(
            fmt::format("extent {} of the new shape is 0, but the input {} has no such dimension", i, text(from)));
      to[i] = from[i];
    }
    if (to[i] == -1) {
      if (open >= 0) return fault("the new shape leaves two extents open");
      open = static_cast<int64_t>(i);
      continue;
    }
    if (to[i] < 0 || (to[i] > 0 && known > most_elements / to[i]))
      return fault(fmt::format("extent {} of the new shape is {}", i, to[i]));
    known *= to[i];
  }
  if (open >= 0) {
    int64_t total = product(from);
    if (known == 0 || total % known != 0) {
      return fault(fmt::format("{} elements do not fill rows of {} of the new shape", total, known));
    }
    to[static_cast<size_t>(open)] = total / known;
  }
  return reshaped(c.inputs[0], to);
}

bool are_numbers(const Sizes& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const Nat& n) { return n.is_constant(); });
}

Lowered lower_squeeze(const OperatorContext& c) {
  const Sizes shape = sizes_of(c.inputs[0]->type);
  Sizes to;
  HOIST_TRY(auto named, integers_of(c, "axes", 1));
  HOIST_TRY(Shape axes, normalise_axes(named.value_or(Shape{}), rank_of(c.inputs[0])));
  for (size_t i = 0; i < shape.size(); ++i) {
    bool chosen =
        named ? std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end() : shape[i].value() == 1;
    if (!chosen)
      to.push_back(shape[i]);
    else if (shape[i] != Nat(1))
      return fault(fmt::format("dimension {} of {} is {}, only 1 can be squeezed", i, text(shape), shape[i].text()));
  }
  if (are_numbers(shape)) return one(reshape_to(c.inputs[0], to));
  Expr x = c.inputs[0];
  for (size_t i = axes.size(); i-- > 0;) {
    x = map_at(
        static_cast<int>(axes[i]), [](Expr block) { return at_position(0, block); }, x);
  }
  return one(x);
}

Lowered lower_unsqueeze(const OperatorContext& c) {
  const Sizes shape = sizes_of(c.inputs[0]->type);
  Sizes to;
  HOIST_TRY(auto named, integers_of(c, "axes", 1));
  if (!named) return fault("the axes are missing");
  int64_t rank = rank_of(c.inputs[0]) + static_cast<int64_t>(named->size());
  HOIST_TRY(Shape axes, normalise_axes(*named, rank));
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i) {
    bool added = std::find(axes.begin(), axes.end(), i) != axes.end();
    to.push_back(added ? Nat(1) : shape[next++]);
  }
  if (are_numbers(shape)) return one(reshape_to(c.inputs[0], to));
  Expr x = c.inputs[0];
  for (const int64_t axis : axes) {
    x = map_at(
        static_cast<int>(axis), [](Expr block) { return repeat(1, block); }, x);
  }
  return one(x);
}

Expr constant_of(const Tensor& t) {
  if (!t.shape().empty()) return constant(t);
  return is_float(t.scalar()) ? literal(t.scalar(), t.float_at(0)) : literal_integer(t.scalar(), t.integer_at(0));
}

Lowered lower_constant(const OperatorContext& c) {
  if (c.call.attributes.size() != 1) return fault("a constant has one attribute, its value");
  const auto& [name, value] = *c.call.attributes.begin();
  auto count = [](const auto& list) { return Shape{static_cast<int64_t>(list.size())}; };
  if (const auto* t = std::get_if<Tensor>(&value); t != nullptr && name == "value") return one(constant_of(*t));
  if (const auto* i = std::get_if<int64_t>(&value); i != nullptr && name == "value_int")
    return one(literal_integer(Scalar::i64, *i));
  if (const auto* f = std::get_if<double>(&value); f != nullptr && name == "value_float")
    return one(literal(Scalar::f32, *f));
  if (const auto* list = std::get_if<Shape>(&value); list != nullptr && name == "value_ints") {
    return one(constant(Tensor::of(Scalar::i64, count(*list), *list)));
  }
  if (const auto* list = std::get_if<std::vector<double>>(&value); list != nullptr && name == "value_floats") {
    return one(constant(Tensor::of(Scalar::f32, count(*list), *list)));
  }
  return fault("attribute " + name + " of a constant is not supported");
}

Lowered lower_constant_of_shape(const OperatorContext& c) {
  HOIST_TRY(Shape shape, constant_integers(c, 0, "input"));
  HOIST_TRY_VOID(check_extents(shape));
  Expr value = literal(Scalar::f32, 0);
  if (auto found = c.call.attributes.find("value"); found != c.call.attributes.end()) {
    const Tensor* t = std::get_if<Tensor>(&found->second);
    if (t == nullptr || t->size() != 1) return fault("attribute value has to be a tensor of one element");
    value = constant_of(t->reshaped({}));
  }
  return one(repeat(std::vector<Nat>(shape.begin(), shape.end()), value));
}

Lowered lower_range(const OperatorContext& c) {
  HOIST_TRY_VOID(check_same_element(c));
  std::array<Tensor, 3> parts;  // start, limit, delta
  const char* roles[] = {"start", "limit", "delta"};
  for (size_t i = 0; i < 3; ++i) {
    HOIST_TRY(parts[i], constant_input(c, i, roles[i]));
    if (parts[i].size() != 1) return fault(fmt::format("{} has to be one number", roles[i]));
  }
  Scalar scalar = parts[0].scalar();
  int64_t n = 0;
  if (is_float(scalar)) {
    double start = parts[0].float_at(0), limit = parts[1].float_at(0), delta = parts[2].float_at(0);
    double count = std::ceil((limit - start) / delta);
    if (!(std::abs(count) <= static_cast<double>(most_elements)))
      return fault(fmt::format("from {} to {} by {} has no length", start, limit, delta));
    n = std::max<int64_t>(static_cast<int64_t>(count), 0);
  } else {
    int64_t start = parts[0].integer_at(0), limit = parts[1].integer_at(0), delta = parts[2].integer_at(0);
    if (delta == 0) return fault("delta is 0");
    auto low = static_cast<uint64_t>(std::min(start, limit)), high = static_cast<uint64_t>(std::max(start, limit));
    uint64_t stride = delta > 0 ? static_cast<uint64_t>(delta) : -static_cast<uint64_t>(delta);
    uint64_t count = (delta > 0) == (start < limit) && start != limit ? (high - low - 1) / stride + 1 : 0;
    n = static_cast<int64_t>(std::min(count, static_cast<uint64_t>(most_elements) + 1));
  }
  HOIST_TRY_VOID(check_extents({n}));
  Expr start = constant_of(parts[0].reshaped({})), delta = constant_of(parts[2].reshaped({}));
  return one(map([&](Expr i) { return (Number(start) + Number(convert(scalar, i)) * delta).e; }, iota(n, Scalar::i64)));
}

// clang-format off
constexpr auto shape_rows = std::to_array<OperatorRow>({
  {"", "Reshape", 1, 1, 2, Takes::anything, lower_reshape, "the same elements in another shape; in C++, since one extent may follow from the others", -2, 2, "1 shape", 21},
  {"", "Squeeze", 1, 1, 2, Takes::anything, lower_squeeze, "without dimensions of extent 1; in C++, since the rank decides the extents", -2, 2, "1 axes", 21},
  {"", "Unsqueeze", 1, 1, 2, Takes::anything, lower_unsqueeze, "with new dimensions of extent 1; in C++, since the rank decides the extents", -2, 2, "1 axes", 21},
  {"", "Constant", 1, 0, 0, Takes::anything, lower_constant, "the attribute's value; in C++, since attributes of five kinds become a constant"},
  {"", "ConstantOfShape", 9, 1, 1, Takes::integers, lower_constant_of_shape, "a constant array; in C++, since the value of an input is the shape", -2, 2, "0 input"},
  {"", "Range", 11, 3, 3, Takes::numbers, lower_range, "start + i * delta; in C++, since the values of the inputs decide the number of elements", -2, 2, "0 start, 1 limit, 2 delta"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> shape_operators() { return shape_rows; }

}  // namespace hoist::operators
