// Operators that combine elements of arrays with data-dependent extents: reductions, running sums, contractions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ir/base/strings.h"
#include "ir/operators/dynamic/dynamic_arrays.h"

namespace hoist::operators {
namespace {

// ---- Reductions --------------------------------------------------------------------------------------------------
// The neutral element of a reduction.
std::string neutral_of(ExtentComposer& c, const std::string& operation, Scalar scalar) {
  if (operation == "ReduceMax" || operation == "ReduceLogSumExp") return extreme_number(c, scalar, true);
  if (operation == "ReduceMin") return extreme_number(c, scalar, false);
  return constant_number(c, scalar, operation == "ReduceProd" ? 1 : 0);
}

Done reduced_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  DynamicArray x = operand(c, 0);
  const auto rank = static_cast<int64_t>(x.extents.size());
  const auto named = known_list(c, c.call(), "axes", 1);
  if (c.has(1) && !named) return false;
  std::set<int64_t> axes;
  if (named && !named->empty()) {
    HOIST_TRY(const Shape normal, normalise_axes(*named, rank));
    axes.insert(normal.begin(), normal.end());
  } else if (integer_of(c.call(), "noop_with_empty_axes", 0) == 0) {
    axes = all_dimensions(x);
  }
  const bool keeps = integer_of(c.call(), "keepdims", 1) != 0;
  ShapeValues extents, reduced;
  for (int64_t d = 0; d < rank; ++d) {
    const ShapeValue& own = x.extents[static_cast<size_t>(d)];
    if (axes.count(d) == 0)
      extents.push_back(own);
    else if (reduced.push_back(own); keeps)
      extents.push_back(exactly(1));
  }
  std::string operation = c.call().operation;
  const Scalar scalar = scalar_of(c, x.value);
  const bool means = operation == "ReduceMean" && !are_all_known(reduced);
  const bool narrow = means && wide_float(scalar) != scalar;
  if (narrow) x.value = call(c, "Cast", {x.value}, {{"to", int64_t{1}}});
  const Scalar formed = narrow ? Scalar::f32 : scalar;
  if (means) operation = "ReduceSum";
  Attributes attributes = attributes_without(c, {"axes"});
  attributes["axes"] = Shape(axes.begin(), axes.end());
  std::string out = call(c, operation, {filled(c, x, axes, neutral_of(c, operation, formed))}, attributes);
  if (means) {
    const std::string count = scalar_value(c, product(c, reduced));
    out = call(c, "Div", {out, call(c, "CastLike", {count, out})});
    if (narrow) out = call(c, "CastLike", {out, input_name(c, 0)});
  }
  c.give(0, out, extents);
  return true;
}

Done place_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray x = operand(c, 0);
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", 0, x.extents.size()));
  if (!x.extents[static_cast<size_t>(axis)].is_known() && integer_of(c.call(), "select_last_index", 0) != 0)
    return fault("select_last_index needs a known number of elements");
  const bool largest = c.call().operation == "ArgMax";
  const std::string all = filled(c, x, {axis}, extreme_number(c, scalar_of(c, x.value), largest));
  ShapeValues extents = x.extents;
  if (integer_of(c.call(), "keepdims", 1) != 0)
    extents[static_cast<size_t>(axis)] = exactly(1);
  else
    extents.erase(extents.begin() + axis);
  c.give(0, call(c, c.call().operation, {all}, c.call().attributes), extents);
  return true;
}

Done softmax_call(ExtentComposer& c) {
  const DynamicArray x = operand(c, 0);
  if (!reads_dynamic(c) || c.version() < 13) return false;
  HOIST_TRY(const int64_t axis, axis_of(c, "axis", -1, x.extents.size()));
  const std::string all = filled(c, x, {axis}, extreme_number(c, scalar_of(c, x.value), true));
  c.give(0, call(c, c.call().operation, {all}, c.call().attributes), x.extents);
  return true;
}

Done running_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray x = operand(c, 0);
  const bool backwards = integer_of(c.call(), "reverse", 0) != 0;
  const int64_t neutral = c.call().operation == "CumProd" ? 1 : 0;
  const std::string all =
      backwards ? filled(c, x, all_dimensions(x), constant_number(c, scalar_of(c, x.value), neutral)) : x.value;
  std::vector<std::string> inputs = c.call().inputs;
  inputs[0] = all;
  c.give(0, call(c, c.call().operation, inputs, c.call().attributes), x.extents);
  return true;
}

Done multiplied_call(ExtentComposer& c) {
  const DynamicArray a = operand(c, 0), b = operand(c, 1);
  const size_t p = a.extents.size(), q = b.extents.size();
  if (!reads_dynamic(c) || p < 2 || q < 2) return false;
  // The sum covers the positions that both operands have.
  const int64_t room = std::min(room_of(c, a.value)[p - 1], room_of(c, b.value)[q - 2]);
  const std::string zero = constant_number(c, scalar_of(c, a.value), 0);
  const auto last = static_cast<int64_t>(p) - 1, before_last = static_cast<int64_t>(q) - 2;
  const std::string left = slice_capacity(c, filled(c, a, {last}, zero), p - 1, 0, room);
  const std::string right = slice_capacity(c, filled(c, b, {before_last}, zero), q - 2, 0, room);
  ShapeValues extents(std::max(p, q), exactly(1));
  for (size_t d = 0; d + 2 < extents.size(); ++d) {
    for (const DynamicArray* side : {&a, &b}) {
      const size_t missing = extents.size() - side->extents.size();
      if (d >= missing && side->extents[d - missing] != exactly(1)) extents[d] = side->extents[d - missing];
    }
  }
  extents[extents.size() - 2] = a.extents[p - 2];
  extents.back() = b.extents[q - 1];
  c.give(0, call(c, "MatMul", {left, right}), extents);
  return true;
}

// A token that appears in none of the sequences that a TfIdfVectorizer counts.
Result<Tensor> foreign_token(const Attributes& attributes, Scalar scalar) {
  if (scalar == Scalar::string) {
    const auto pool = attributes.find("pool_strings");
    std::string longer = "-";
    if (pool != attributes.end() && std::holds_alternative<std::vector<std::string>>(pool->second)) {
      for (const std::string& token : std::get<std::vector<std::string>>(pool->second))
        longer.resize(std::max(longer.size(), token.size() + 1), '-');
    }
    return tensor_of_strings({}, {longer});
  }
  const auto pool = attributes.find("pool_int64s");
  std::set<int64_t> tokens;
  if (pool != attributes.end() && std::holds_alternative<Shape>(pool->second))
    tokens.insert(std::get<Shape>(pool->second).begin(), std::get<Shape>(pool->second).end());
  int64_t least = 0;
  while (tokens.count(least) != 0) ++least;
  return Tensor::of(scalar, {}, Shape{least});
}

// Invalid elements belong to no sequence, and no sequence crosses them.
Done sequences_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray x = operand(c, 0);
  HOIST_TRY(const Tensor token, foreign_token(c.call().attributes, scalar_of(c, x.value)));
  const auto last = static_cast<int64_t>(x.extents.size()) - 1;
  const std::string all = filled(c, x, {last}, c.constant(token));
  const std::string out = call(c, c.call().operation, {all}, c.call().attributes);
  ShapeValues extents = x.extents;
  extents.back() = exactly(room_of(c, out).back());
  c.give(0, out, extents);
  return true;
}

constexpr auto rows_of_sums = std::to_array<ExtentMeaningRow>({
    {"ArgMax", place_call},
    {"ArgMin", place_call},
    {"CumProd", running_call},
    {"CumSum", running_call},
    {"Hardmax", softmax_call},
    {"LogSoftmax", softmax_call},
    {"MatMul", multiplied_call},
    {"ReduceL1", reduced_call},
    {"ReduceL2", reduced_call},
    {"ReduceLogSum", reduced_call},
    {"ReduceLogSumExp", reduced_call},
    {"ReduceMax", reduced_call},
    {"ReduceMean", reduced_call},
    {"ReduceMin", reduced_call},
    {"ReduceProd", reduced_call},
    {"ReduceSum", reduced_call},
    {"ReduceSumSquare", reduced_call},
    {"Softmax", softmax_call},
    {"TfIdfVectorizer", sequences_call},
});

}  // namespace

std::span<const ExtentMeaningRow> dynamic_sums() { return rows_of_sums; }

}  // namespace hoist::operators
