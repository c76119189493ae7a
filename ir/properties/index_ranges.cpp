#include "ir/properties/index_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "ir/operators/operators.h"

namespace hoist {
namespace {

// The known bounds of a value: of all elements of an array, or of the parts of a tuple.
struct Bounds {
  IntegerRange range;         // of integers
  NumberRange number = {};    // of floats
  std::vector<Bounds> parts;  // parts of a tuple
};

IntegerRange range_of_type(Scalar scalar) {
  if (scalar == Scalar::boolean) return {0, 1};
  const auto bits = static_cast<unsigned>(row(scalar).bits);
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  if (!is_integer(scalar) || bits >= 64)
    return {least, most};  // u64 is treated as i64: values beyond its range count as negative
  if (row(scalar).is_signed) return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
  return {0, (int64_t{1} << bits) - 1};
}

Bounds anything(Type type) {
  while (type->is_array()) type = type->element;
  Bounds out;
  if (type->is_tuple()) {
    for (Type part : type->parts) out.parts.push_back(anything(part));
  } else {
    out.range = range_of_type(type->scalar);
  }
  return out;
}

Bounds joined(const Bounds& a, const Bounds& b) {
  Bounds out{{std::min(a.range.low, b.range.low), std::max(a.range.high, b.range.high)},
             {std::min(a.number.low, b.number.low), std::max(a.number.high, b.number.high)},
             {}};
  for (size_t i = 0; i < a.parts.size(); ++i) out.parts.push_back(joined(a.parts[i], b.parts[i]));
  return out;
}

// An operation that is monotone in each argument has its minimum and maximum at the ends of the arguments' ranges.
template <class Operation>
std::optional<IntegerRange> of_ends(const IntegerRange& a, const IntegerRange& b, Operation operation) {
  std::optional<IntegerRange> out;
  for (const int64_t x : {a.low, a.high}) {
    for (const int64_t y : {b.low, b.high}) {
      int64_t value = 0;
      if (operation(x, y, &value)) return std::nullopt;  // overflow
      out = out ? IntegerRange{std::min(out->low, value), std::max(out->high, value)} : IntegerRange{value, value};
    }
  }
  return out;
}

std::optional<IntegerRange> of_function(Function function, const IntegerRange& a, const IntegerRange& b) {
  switch (function) {
    case Function::add:
      return of_ends(a, b, [](int64_t x, int64_t y, int64_t* out) { return __builtin_add_overflow(x, y, out); });
    case Function::subtract:
      return of_ends(a, b, [](int64_t x, int64_t y, int64_t* out) { return __builtin_sub_overflow(x, y, out); });
    case Function::multiply:
      return of_ends(a, b, [](int64_t x, int64_t y, int64_t* out) { return __builtin_mul_overflow(x, y, out); });
    case Function::minimum:
      return IntegerRange{std::min(a.low, b.low), std::min(a.high, b.high)};
    case Function::maximum:
      return IntegerRange{std::max(a.low, b.low), std::max(a.high, b.high)};
    case Function::modulo:  // has the sign of the divisor
      if (b.low <= 0) return std::nullopt;
      return a.low >= 0 && a.high < b.low ? a : IntegerRange{0, b.high - 1};
    case Function::remainder:  // has the sign of the dividend
      if (b.low <= 0) return std::nullopt;
      return IntegerRange{std::max(std::min<int64_t>(a.low, 0), 1 - b.high),
                          std::min(std::max<int64_t>(a.high, 0), b.high - 1)};
    default:
      return std::nullopt;
  }
}

// A margin, since rewrite rules may round a sum or a product differently from the term.
NumberRange widened(const NumberRange& range) {
  constexpr double share = 0x1p-18;
  return {range.low - std::abs(range.low) * share, range.high + std::abs(range.high) * share};
}

template <class Operation>
NumberRange of_corners(const NumberRange& a, const NumberRange& b, Operation operation) {
  NumberRange out{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const double x : {a.low, a.high}) {
    for (const double y : {b.low, b.high}) {
      const double value = operation(x, y);
      if (std::isnan(value)) return {};
      out = {std::min(out.low, value), std::max(out.high, value)};
    }
  }
  return widened(out);
}

NumberRange of_function(Function function, const NumberRange& a, const NumberRange& b) {
  const auto each = [&](auto operation) { return NumberRange{operation(a.low), operation(a.high)}; };
  switch (function) {
    case Function::add:
      return of_corners(a, b, [](double x, double y) { return x + y; });
    case Function::subtract:
      return of_corners(a, b, [](double x, double y) { return x - y; });
    case Function::multiply:
      return of_corners(a, b, [](double x, double y) { return x * y; });
    case Function::divide:
      if (b.low <= 0 && b.high >= 0) return {};
      return of_corners(a, b, [](double x, double y) { return x / y; });
    case Function::minimum:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Function::maximum:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Function::negate:
      return {-a.high, -a.low};
    case Function::absolute:
      return {std::max({a.low, -a.high, 0.0}), std::max(std::abs(a.low), std::abs(a.high))};
    case Function::floor:
      return each([](double x) { return std::floor(x); });
    case Function::ceiling:
      return each([](double x) { return std::ceil(x); });
    case Function::round:
      return each([](double x) { return std::nearbyint(x); });
    case Function::truncate:
      return each([](double x) { return std::trunc(x); });
    case Function::sqrt:
      return widened(each([](double x) { return std::sqrt(std::max(x, 0.0)); }));
    case Function::exp:
      return widened(each([](double x) { return std::exp(x); }));
    case Function::tanh:
    case Function::erf:
    case Function::sin:
    case Function::cos:
      return widened({-1, 1});
    default:
      return {};
  }
}

class Ranges {
 public:
  explicit Ranges(const std::map<std::string, IntegerRange>& known) {
    for (const auto& [name, range] : known) variables_[name] = {range, {}, {}};
  }
  /// This mode does not check positions.
  explicit Ranges(std::function<NumberRange(Expr)> known) : known_(std::move(known)) {}

  std::vector<UnprovedPosition> found;

  Bounds of(Expr e) {
    if (auto found = values_.find(e); found != values_.end()) return found->second;
    return values_[e] = computed(e);
  }

 private:
  Bounds computed(Expr e) {
    switch (e->pattern) {
      case Pattern::parameter: {
        auto found = variables_.find(e->name);
        if (found != variables_.end()) return found->second;
        return known_ && leaf_of(e->type)->is_scalar() ? of_number(known_(e), leaf_of(e->type)->scalar)
                                                       : anything(e->type);
      }
      case Pattern::literal:
        return literal(e);
      case Pattern::constant:
        return constant(e);
      case Pattern::iota:
        return {{0, std::max<int64_t>(e->type->size.value() - 1, 0)}, {}, {}};
      case Pattern::call:
        return called(e);
      case Pattern::select: {
        visit(e->children[0]);
        return joined(of(e->children[1]), of(e->children[2]));
      }
      case Pattern::cast:
        return converted(of(e->children[0]), leaf_of(e->children[0]->type)->scalar, e);
      case Pattern::let:
        return inside(e->children[1], {of(e->children[0])});
      case Pattern::tuple:
      case Pattern::zip: {
        Bounds out;
        for (Expr c : e->children) out.parts.push_back(of(c));
        return out;
      }
      case Pattern::get:
        return of(e->children[0]).parts[static_cast<size_t>(e->integers[0])];
      case Pattern::map:
        return inside(e->children[0], {of(e->children[1])});
      case Pattern::reduce:
        if (known_) return reduced(e);
        [[fallthrough]];
      case Pattern::fold:
      case Pattern::scan:
      case Pattern::iterate:
        return stepped(e);
      case Pattern::concat: {
        Bounds out = of(e->children[0]);
        for (Expr c : e->children) out = joined(out, of(c));
        return out;
      }
      case Pattern::pad: {
        const Bounds array = of(e->children[0]);
        if (e->border == Border::undefined) return anything(e->type);
        return e->border == Border::value ? joined(array, of(e->children[1])) : array;
      }
      case Pattern::index:
        if (!known_) check(e->children[0], e->children[1]->type->size.value());
        return of(e->children[1]);
      case Pattern::scatter:  // out-of-range updates are dropped
        visit(e->children[0]);
        return joined(of(e->children[1]), of(e->children[2]));
      case Pattern::identity:
      case Pattern::materialise:
      case Pattern::split:
      case Pattern::join:
      case Pattern::transpose:
      case Pattern::slide:
      case Pattern::slice:
      case Pattern::tile:
      case Pattern::untile:
      case Pattern::repeat:
        return of(e->children[0]);
      default:
        for (Expr c : e->children) {
          if (c->pattern != Pattern::function) visit(c);
        }
        return anything(e->type);
    }
  }

  // Positions inside the steps are checked for any accumulator.
  Bounds stepped(Expr e) {
    if (known_) return anything(e->type);
    of(e->children[1]);
    std::vector<Bounds> arguments = {anything(e->children[1]->type)};
    if (e->pattern != Pattern::iterate) arguments.push_back(of(e->children[2]));
    inside(e->children[0], arguments);
    return anything(e->type);
  }

  // Checks the positions in subterms that do not affect the range.
  void visit(Expr e) {
    if (!known_) of(e);
  }

  // A range of doubles, given by the caller, as the bounds of a scalar type.
  static Bounds of_number(const NumberRange& range, Scalar scalar) {
    if (is_float(scalar)) return {range_of_type(scalar), range, {}};
    const IntegerRange whole = range_of_type(scalar);
    const auto bounded = [&](double x, int64_t otherwise) {
      return x > -0x1p62 && x < 0x1p62 ? std::clamp(static_cast<int64_t>(x), whole.low, whole.high) : otherwise;
    };
    return {{bounded(std::floor(range.low), whole.low), bounded(std::ceil(range.high), whole.high)}, {}, {}};
  }

  // The bounds of a reduction over the elements and the neutral element.
  Bounds reduced(Expr e) {
    const Expr body = e->children[0]->children[0];
    const Scalar scalar = leaf_of(e->type)->is_scalar() ? leaf_of(e->type)->scalar : Scalar::boolean;
    const bool simple = body->pattern == Pattern::call && e->type->is_scalar() && body->children.size() == 2 &&
                        body->children[0]->pattern == Pattern::bound && body->children[1]->pattern == Pattern::bound;
    const bool picks = simple && (body->function == Function::minimum || body->function == Function::maximum);
    if (!picks || e->children[2]->type->size.value() < 1) return anything(e->type);
    const Bounds neutral = of(e->children[1]), elements = of(e->children[2]);
    if (is_float(scalar))
      return {range_of_type(scalar), of_function(body->function, neutral.number, elements.number), {}};
    return {*of_function(body->function, neutral.range, elements.range), {}, {}};
  }

  Bounds literal(Expr e) const {
    const Scalar scalar = e->type->scalar;
    if (is_float(scalar)) {
      const double value = float_from_bits(scalar, e->bits);
      return std::isnan(value) ? anything(e->type) : Bounds{range_of_type(scalar), {value, value}, {}};
    }
    const auto value = static_cast<int64_t>(e->bits);
    return {{value, value}, {}, {}};
  }

  static Bounds constant(Expr e) {
    const Tensor& tensor = e->constant;
    if (tensor.size() == 0) return anything(e->type);
    if (is_float(tensor.scalar())) {
      NumberRange range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
      for (int64_t i = 0; i < tensor.size(); ++i) {
        const double value = tensor.float_at(i);
        range = {std::min(range.low, value), std::max(range.high, value)};
      }
      return {range_of_type(tensor.scalar()), range, {}};
    }
    IntegerRange out{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (int64_t i = 0; i < tensor.size(); ++i) {
      out.low = std::min(out.low, tensor.integer_at(i));
      out.high = std::max(out.high, tensor.integer_at(i));
    }
    return {out, {}, {}};
  }

  Bounds called(Expr e) {
    std::vector<Bounds> arguments;
    for (Expr c : e->children) arguments.push_back(of(c));
    const IntegerRange whole = range_of_type(e->type->scalar);
    if (is_float(e->type->scalar) && !arguments.empty())
      return {whole, of_function(e->function, arguments[0].number, arguments.back().number), {}};
    if (!is_integer(e->type->scalar) || arguments.empty()) return {whole, {}, {}};
    const IntegerRange a = arguments[0].range, b = arguments.size() > 1 ? arguments[1].range : IntegerRange{0, 0};
    std::optional<IntegerRange> out =
        e->function == Function::negate ? of_function(Function::subtract, {0, 0}, a) : of_function(e->function, a, b);
    if (!out || out->low < whole.low || out->high > whole.high) return {whole, {}, {}};  // it may wrap around
    return {*out, {}, {}};
  }

  Bounds converted(const Bounds& from, Scalar scalar, Expr e) const {
    const Scalar to = e->type->scalar;
    if (is_float(scalar) && is_float(to)) return {range_of_type(to), widened(from.number), {}};
    // A NaN may convert to any integer, and positions have to be in bounds even then.
    if (known_ && is_float(scalar) && is_integer(to)) return of_number(integers_in(from.number), to);
    if (!is_float(scalar) && is_float(to) && scalar != Scalar::u64)
      return {
          range_of_type(to), widened({static_cast<double>(from.range.low), static_cast<double>(from.range.high)}), {}};
    const IntegerRange whole = range_of_type(e->type->scalar);
    const bool keeps = !is_float(scalar) && !is_float(e->type->scalar) && from.range.low >= whole.low &&
                       from.range.high <= whole.high && (scalar != Scalar::u64 || from.range.low >= 0);
    return {keeps ? from.range : whole, {}, {}};
  }

  // Conversion of a float to an integer rounds towards zero.
  static NumberRange integers_in(const NumberRange& range) { return {std::trunc(range.low), std::trunc(range.high)}; }

  // The bounds of a function's body for given bounds of its variables.
  Bounds inside(Expr function, const std::vector<Bounds>& arguments) {
    std::vector<Expr> variables;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string name = "\2range" + std::to_string(count_++);
      variables_[name] = arguments[i];
      variables.push_back(parameter(name, function->parameters[i]));
    }
    return of(hoist::apply(function, variables));
  }

  void check(Expr position, int64_t size) {
    const IntegerRange range = of(position).range;
    if (range.low < 0 || range.high >= size || row(leaf_of(position->type)->scalar).is_float)
      found.push_back({position, range, size});
  }

  std::function<NumberRange(Expr)> known_;  // null if positions are checked
  std::map<std::string, Bounds> variables_;
  std::unordered_map<Expr, Bounds> values_;
  size_t count_ = 0;
};

}  // namespace

std::vector<UnprovedPosition> unproved_positions(Expr term, const std::map<std::string, IntegerRange>& known) {
  Ranges ranges(known);
  ranges.of(without_operator_calls(term));
  return std::move(ranges.found);
}

NumberRange range_of_elements(Expr term, const std::function<NumberRange(Expr parameter)>& known) {
  Ranges ranges(known);
  const Bounds bounds = ranges.of(without_operator_calls(term));
  if (!leaf_of(term->type)->is_scalar()) return {};
  if (is_float(leaf_of(term->type)->scalar)) return bounds.number;
  return {static_cast<double>(bounds.range.low), static_cast<double>(bounds.range.high)};
}

}  // namespace hoist
