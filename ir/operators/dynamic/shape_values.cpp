#include "ir/operators/dynamic/shape_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/operators/definitions/support.h"
#include "ir/program/program_builder.h"

namespace hoist {
namespace operators {
namespace {

// Bounds are limited, so that no sum or product of two of them overflows 64 bits.
constexpr int64_t farthest = int64_t{1} << 62;

// Represents every integer up to 2^64; larger bounds are clamped.
using Wide = long double;

int64_t bounded(Wide value) {
  return static_cast<int64_t>(std::clamp<Wide>(value, -static_cast<Wide>(farthest), static_cast<Wide>(farthest)));
}

// An integer between these bounds that a call computes from two others; equal calls are made once.
ShapeValue made(ExtentComposer& c, const std::string& operation, const ShapeValue& a, const ShapeValue& b, Wide low,
                Wide high) {
  ShapeValue out{bounded(low), bounded(high)};
  if (low == high && -farthest < low && low < farthest) return out;
  const std::string one = scalar_value(c, a), other = scalar_value(c, b);
  out.value = c.once(fmt::format("{}({}, {})", operation, one, other), [&] {
    return c.add_bounded(operation, {}, {one, other})[0];
  });
  c.say_numbers(out.value, {out});
  return out;
}

}  // namespace

ShapeValue exactly(int64_t value) { return {value, value}; }

std::string scalar_value(ExtentComposer& c, const ShapeValue& number) {
  if (!number.is_known()) return number.value;
  return constant_number(c, Scalar::i64, number.low);
}

std::string constant_number(ExtentComposer& c, Scalar scalar, int64_t value) {
  return c.once(fmt::format("number {} {}", row(scalar).name, value),
                [&] { return c.constant(Tensor::of(scalar, {}, std::vector<int64_t>{value})); });
}

ShapeValue sum(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b) {
  if (b == exactly(0)) return a;
  if (a == exactly(0)) return b;
  return made(c, "Add", a, b, Wide(a.low) + b.low, Wide(a.high) + b.high);
}

ShapeValue difference(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b) {
  if (a == b) return exactly(0);
  if (b == exactly(0)) return a;
  return made(c, "Sub", a, b, Wide(a.low) - b.high, Wide(a.high) - b.low);
}

ShapeValue product(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b) {
  if (b == exactly(1)) return a;
  if (a == exactly(1)) return b;
  const Wide corners[] = {Wide(a.low) * b.low, Wide(a.low) * b.high, Wide(a.high) * b.low, Wide(a.high) * b.high};
  return made(c, "Mul", a, b, *std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

ShapeValue least(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b) {
  if (a == b || a.high <= b.low) return a;
  if (b.high <= a.low) return b;
  return made(c, "Min", a, b, std::min(a.low, b.low), std::min(a.high, b.high));
}

ShapeValue greatest(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b) {
  if (a == b || a.low >= b.high) return a;
  if (b.low >= a.high) return b;
  return made(c, "Max", a, b, std::max(a.low, b.low), std::max(a.high, b.high));
}

ShapeValue quotient(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b) {
  if (b == exactly(1)) return a;
  const int64_t low = a.low / b.high, high = a.high / b.low;
  return made(c, "Div", a, b, low, high);
}

ShapeValue remainder(ExtentComposer& c, const ShapeValue& a, const ShapeValue& b) {
  if (a == b) return exactly(0);
  if (a.is_known() && b.is_known()) return exactly(a.low % b.low);
  if (a.high < b.low) return a;
  return made(c, "Mod", a, b, 0, std::min(a.high, b.high - 1));
}

ShapeValue product(ExtentComposer& c, const ShapeValues& factors) {
  ShapeValue out = exactly(1);
  for (const ShapeValue& factor : factors) out = product(c, out, factor);
  return out;
}

Result<Nothing> check_bounds(const ShapeValues& extents) {
  int64_t room = 1;
  for (const ShapeValue& extent : extents) {
    if (extent.high > 0 && room > most_bounded_elements / extent.high)
      return fault(fmt::format("the number of elements of the result depends on data, and its upper bound is more than "
                               "{} (most_bounded_elements)",
                               most_bounded_elements),
                   "bound the values that decide it, for example by Min or TopK");
    room *= extent.high;
  }
  return Nothing{};
}

ShapeValues extents_of(ExtentComposer& c, const std::string& value) {
  ShapeValues out;
  for (const Nat& size : sizes_of(c.type(value))) out.push_back(exactly(size.value()));
  for (const auto& [dimension, count] : c.counts(value)) {
    ShapeValue& extent = out[static_cast<size_t>(dimension)];
    extent = {0, extent.high, count};
    // Narrows the bounds of the extent by the bounds of the count.
    if (const auto numbers = c.numbers(count); numbers.ok() && *numbers) {
      const ShapeValue& number = (**numbers)[0];
      extent.low = std::clamp<int64_t>(number.low, 0, extent.high);
      extent.high = std::clamp(number.high, extent.low, extent.high);
    } else {
      c.say_numbers(count, {extent});
    }
  }
  return out;
}

std::string list_value(ExtentComposer& c, const ShapeValues& numbers) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < numbers.size();) {
    std::vector<int64_t> known;
    for (; i < numbers.size() && numbers[i].is_known(); ++i) known.push_back(numbers[i].low);
    if (!known.empty()) {
      parts.push_back(c.constant(Tensor::of(Scalar::i64, {static_cast<int64_t>(known.size())}, known)));
      continue;
    }
    const std::string number = numbers[i++].value;
    parts.push_back(c.once("list of " + number, [&] {
      return c.add_bounded("Unsqueeze", {{"axes", std::vector<int64_t>{0}}}, {number})[0];
    }));
  }
  if (parts.empty()) return c.constant(Tensor(Scalar::i64, {0}));
  std::string list = parts.size() == 1 ? parts[0] : c.add_bounded("Concat", {{"axis", int64_t{0}}}, parts)[0];
  c.say_numbers(list, numbers);
  return list;
}

int64_t integer_of(const NamedCall& call, const std::string& name, int64_t otherwise) {
  const auto found = call.attributes.find(name);
  const auto* value = found == call.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value == nullptr ? otherwise : *value;
}

std::string text_of(const NamedCall& call, const std::string& name, const std::string& otherwise) {
  const auto found = call.attributes.find(name);
  const auto* value = found == call.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value == nullptr ? otherwise : *value;
}

std::optional<std::vector<int64_t>> known_list(ExtentComposer& c, const NamedCall& call, const std::string& name,
                                               size_t input) {
  if (const auto found = call.attributes.find(name); found != call.attributes.end()) {
    const auto* list = std::get_if<std::vector<int64_t>>(&found->second);
    return list == nullptr ? std::nullopt : std::optional(*list);
  }
  if (input >= call.inputs.size() || call.inputs[input].empty()) return std::nullopt;
  const auto value = c.known(call.inputs[input]);
  if (!value.ok() || *value == nullptr || !is_integer((*value)->scalar())) return std::nullopt;
  return (*value)->as_integers();
}

// ---- What calls make of numbers ----------------------------------------------------------------------------------
namespace {

using Maybe = std::optional<ShapeValues>;

// The comparison's result if it does not depend on unknown integers; -1 if it is undecided.
int compared(const std::string& operation, const ShapeValue& a, const ShapeValue& b) {
  const bool below = a.high < b.low;
  const bool above = a.low > b.high;
  const bool at_most = a.high <= b.low;
  const bool at_least = a.low >= b.high;
  const bool same = a == b;
  const auto decided = [](bool yes, bool no) { return yes ? 1 : no ? 0 : -1; };
  if (operation == "Equal") return decided(same, below || above);
  if (operation == "Less") return decided(below, at_least || same);
  if (operation == "Greater") return decided(above, at_most || same);
  if (operation == "LessOrEqual") return decided(at_most || same, above);
  return decided(at_least || same, below);  // GreaterOrEqual
}

std::optional<ShapeValue> combined(ExtentComposer& c, const std::string& operation, const ShapeValue& a,
                                   const ShapeValue& b) {
  if (operation == "Add") return sum(c, a, b);
  if (operation == "Sub") return difference(c, a, b);
  if (operation == "Mul") return product(c, a, b);
  if (operation == "Min" || operation == "ReduceMin") return least(c, a, b);
  if (operation == "Max" || operation == "ReduceMax") return greatest(c, a, b);
  if (operation == "ReduceSum") return sum(c, a, b);
  if (operation == "ReduceProd") return product(c, a, b);
  if (operation == "Div" || operation == "Mod") {
    if (a.low < 0 || b.low < 1) return std::nullopt;
    return operation == "Div" ? quotient(c, a, b) : remainder(c, a, b);
  }
  if (operation == "And" || operation == "Or" || operation == "Xor") {
    if (!a.is_known() || !b.is_known()) return std::nullopt;
    const bool p = a.low != 0, q = b.low != 0;
    return exactly(static_cast<int64_t>(operation == "And" ? p && q : operation == "Or" ? p || q : p != q));
  }
  const int decided = compared(operation, a, b);
  return decided < 0 ? std::nullopt : std::optional(exactly(decided));
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

// Element i of operands that broadcast to `count` elements; supports operands with one element and with all.
const ShapeValue* broadcast_at(const ShapeValues& numbers, size_t i, size_t count) {
  if (numbers.size() == 1) return numbers.data();
  return numbers.size() == count ? &numbers[i] : nullptr;
}

Maybe element_by_element(ExtentComposer& c, const std::string& operation, const std::vector<ShapeValues>& operands,
                         size_t count) {
  ShapeValues out;
  for (size_t i = 0; i < count; ++i) {
    std::optional<ShapeValue> number;
    if (operation == "Where") {
      const ShapeValue* condition = broadcast_at(operands[0], i, count);
      const ShapeValue *a = broadcast_at(operands[1], i, count), *b = broadcast_at(operands[2], i, count);
      if (condition == nullptr || a == nullptr || b == nullptr) return std::nullopt;
      if (condition->is_known())
        number = condition->low != 0 ? *a : *b;
      else if (*a == *b)
        number = *a;
    } else {
      for (size_t k = 0; k < operands.size(); ++k) {
        const ShapeValue* own = broadcast_at(operands[k], i, count);
        if (own == nullptr) return std::nullopt;
        number = k == 0 ? *own : combined(c, operation, *number, *own);
        if (!number) return std::nullopt;
      }
    }
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

Maybe gathered(ExtentComposer& c, const NamedCall& call, const ShapeValues& numbers, size_t rank) {
  if (rank != 1) return std::nullopt;
  const auto places = known_list(c, call, "indices", 1);
  if (!places) return std::nullopt;
  ShapeValues out;
  const auto n = static_cast<int64_t>(numbers.size());
  for (int64_t place : *places) {
    if (place < 0) place += n;
    if (place < 0 || place >= n) return std::nullopt;
    out.push_back(numbers[static_cast<size_t>(place)]);
  }
  return out;
}

// A part of a list, as a slice of one dimension; nothing if its bounds or its step are unknown.
Maybe cut(ExtentComposer& c, const NamedCall& call, const ShapeValues& numbers, size_t rank) {
  const auto starts = known_list(c, call, "starts", 1), ends = known_list(c, call, "ends", 2);
  const auto steps = known_list(c, call, "steps", 4).value_or(std::vector<int64_t>{1});
  if (rank != 1 || !starts || !ends || starts->size() != 1 || ends->size() != 1 || steps.size() != 1 || steps[0] == 0)
    return std::nullopt;
  const auto n = static_cast<int64_t>(numbers.size());
  const int64_t step = std::clamp<int64_t>(steps[0], -n - 1, n + 1);
  const auto place = [&](int64_t at) {
    if (at < 0) at += n;
    return step > 0 ? std::clamp<int64_t>(at, 0, n) : std::clamp<int64_t>(at, -1, n - 1);
  };
  ShapeValues out;
  const int64_t end = place((*ends)[0]);
  for (int64_t i = place((*starts)[0]); step > 0 ? i < end : i > end; i += step)
    out.push_back(numbers[static_cast<size_t>(i)]);
  return out;
}

// A data-dependent integer, an element of a list or a scalar; a value out of range (NaN, for example) is clamped.
ShapeValue number_from_data(ExtentComposer& c, const std::string& value, std::optional<int64_t> element) {
  const NumberRange range = c.range(value);
  ShapeValue out{bounded(std::ceil(range.low)), bounded(std::floor(range.high))};
  if (out.low >= out.high) return exactly(out.low);
  out.value = c.once(fmt::format("number {} of {}", element.value_or(-1), value), [&] {
    const auto called = [&](const std::string& operation, std::vector<std::string> inputs, Attributes attributes) {
      return c.add_bounded(operation, std::move(attributes), std::move(inputs))[0];
    };
    std::string number = value;
    if (leaf_of(c.type(number))->scalar != Scalar::i64) number = called("Cast", {number}, {{"to", int64_t{7}}});
    if (element) number = called("Gather", {number, constant_number(c, Scalar::i64, *element)}, {});
    if (out.high < farthest) number = called("Min", {number, constant_number(c, Scalar::i64, out.high)}, {});
    if (out.low > -farthest) number = called("Max", {number, constant_number(c, Scalar::i64, out.low)}, {});
    return number;
  });
  c.say_numbers(out.value, {out});
  return out;
}

Result<Maybe> from_data(ExtentComposer& c, const std::string& value, int depth) {
  constexpr int64_t most_numbers = 16;
  constexpr int deepest = 32;
  HOIST_TRY(Maybe numbers, c.numbers(value));
  if (numbers) return numbers;
  const Maybe none;
  const Type type = c.type(value);
  if (!leaf_of(type)->is_scalar()) return none;
  const Scalar scalar = leaf_of(type)->scalar;
  const std::vector<Nat> sizes = sizes_of(type);
  if ((scalar != Scalar::i64 && scalar != Scalar::i32) || sizes.size() > 1 || !c.counts(value).empty()) return none;
  const int64_t count = sizes.empty() ? 1 : sizes[0].value();
  if (count > most_numbers) return none;
  // A concatenated list is followed to the source of each of its integers.
  const auto maker = c.maker(value);
  if (maker && depth < deepest &&
      is_one_of(maker->operation,
                {"Concat", "Cast", "Unsqueeze", "Squeeze", "Identity", "Reshape", "Gather", "Slice"})) {
    bool all = !maker->inputs.empty();
    for (size_t i = 0; all && i < (maker->operation == "Concat" ? maker->inputs.size() : 1); ++i) {
      HOIST_TRY(const Maybe part, from_data(c, maker->inputs[i], depth + 1));
      all = part.has_value();
    }
    if (all) {
      HOIST_TRY(numbers, numbers_of_call(c, *maker));
    }
  }
  if (!numbers) {
    numbers.emplace();
    for (int64_t i = 0; i < count; ++i)
      numbers->push_back(number_from_data(c, value, sizes.empty() ? std::nullopt : std::optional(i)));
  }
  c.say_numbers(value, *numbers);
  return numbers;
}

}  // namespace
}  // namespace operators

Result<std::optional<ShapeValues>> numbers_from_data(ExtentComposer& composer, const std::string& value) {
  return operators::from_data(composer, value, 0);
}

bool decides_extents(const NumberRange& range) {
  constexpr auto most = static_cast<double>(operators::most_bounded_elements);
  return range.low >= -most && range.high <= most;
}

Result<std::optional<ShapeValues>> numbers_of_call(ExtentComposer& c, const NamedCall& call) {
  using namespace operators;
  const Maybe none;
  const std::string& operation = call.operation;
  if (!call.domain.empty() && call.domain != "ai.onnx") return none;
  if (call.inputs.empty() || call.outputs.size() != 1 || !call.bodies.empty()) return none;
  const Type type = c.type(call.outputs[0]);
  const size_t rank = sizes_of(type).size();
  if (rank > 1) return none;
  const size_t count = rank == 0 ? 1 : static_cast<size_t>(sizes_of(type)[0].value());
  const bool by_elements =
      is_one_of(operation, {"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Equal", "Less", "Greater", "LessOrEqual",
                            "GreaterOrEqual", "And", "Or", "Xor", "Where"});
  const bool joins = operation == "Concat";
  std::vector<ShapeValues> operands;
  for (size_t i = 0; i < (by_elements || joins ? call.inputs.size() : 1); ++i) {
    HOIST_TRY(Maybe numbers, c.numbers(call.inputs[i]));
    if (!numbers) return none;
    operands.push_back(std::move(*numbers));
  }
  const size_t rank_before = sizes_of(c.type(call.inputs[0])).size();
  if (by_elements) return element_by_element(c, operation, operands, count);
  if (joins) {
    ShapeValues all;
    for (const ShapeValues& part : operands) all.insert(all.end(), part.begin(), part.end());
    return Maybe(all);
  }
  if (operation == "Gather") return gathered(c, call, operands[0], rank_before);
  if (operation == "Slice") return cut(c, call, operands[0], rank_before);
  if (is_one_of(operation, {"ReduceMin", "ReduceMax", "ReduceSum", "ReduceProd"})) {
    if (rank_before != 1 || count != 1 || operands[0].empty()) return none;
    ShapeValue all = operands[0][0];
    for (size_t i = 1; i < operands[0].size(); ++i) all = *combined(c, operation, all, operands[0][i]);
    return Maybe({all});
  }
  if (operation == "Not") {
    for (ShapeValue& number : operands[0]) {
      if (!number.is_known()) return none;
      number = exactly(number.low == 0 ? 1 : 0);
    }
    return Maybe(operands[0]);
  }
  if (operation == "Cast") {
    // Integers beyond 64 bits are known, or are not parts of shapes.
    const Scalar to = leaf_of(type)->scalar;
    for (ShapeValue& number : operands[0]) {
      const bool kept = to == Scalar::i64 || (to == Scalar::i32 && number.low >= INT32_MIN && number.high <= INT32_MAX);
      if (kept) continue;
      if (!number.is_known() || to == Scalar::string) return none;
      if (to == Scalar::boolean)
        number = exactly(number.low != 0 ? 1 : 0);
      else if (std::abs(number.low) > 256)
        return none;
    }
    return Maybe(operands[0]);
  }
  if (is_one_of(operation, {"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"}) && operands[0].size() == count)
    return Maybe(operands[0]);
  return none;
}

}  // namespace hoist
