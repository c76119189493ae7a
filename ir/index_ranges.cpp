#include "ir/index_ranges.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "ir/operators/operators.h"

namespace hoist {
namespace {

// What is known of a value: of an array that of all its elements, of a tuple that of its parts.
struct Bounds {
  IntegerRange range;
  std::vector<Bounds> parts;
};

IntegerRange range_of_type(Scalar scalar) {
  if (scalar == Scalar::boolean) return {0, 1};
  const auto bits = static_cast<unsigned>(row(scalar).bits);
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  if (!is_integer(scalar) || bits >= 64) return {least, most};  // u64 counts as i64: what is beyond is negative there
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
  Bounds out{{std::min(a.range.low, b.range.low), std::max(a.range.high, b.range.high)}, {}};
  for (size_t i = 0; i < a.parts.size(); ++i) out.parts.push_back(joined(a.parts[i], b.parts[i]));
  return out;
}

// An operation that is monotone in each argument has its extremes at the ends of theirs.
template <class Operation>
std::optional<IntegerRange> of_ends(const IntegerRange& a, const IntegerRange& b, Operation operation) {
  std::optional<IntegerRange> out;
  for (const int64_t x : {a.low, a.high}) {
    for (const int64_t y : {b.low, b.high}) {
      int64_t value = 0;
      if (operation(x, y, &value)) return std::nullopt;  // it overflows
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

class Ranges {
 public:
  explicit Ranges(const std::map<std::string, IntegerRange>& known) {
    for (const auto& [name, range] : known) variables_[name] = {range, {}};
  }

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
        return found == variables_.end() ? anything(e->type) : found->second;
      }
      case Pattern::literal:
        return literal(e);
      case Pattern::constant:
        return constant(e);
      case Pattern::iota:
        return {{0, std::max<int64_t>(e->type->size.value() - 1, 0)}, {}};
      case Pattern::call:
        return called(e);
      case Pattern::select: {
        of(e->children[0]);
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
      case Pattern::fold:
      case Pattern::scan:
        of(e->children[1]);
        inside(e->children[0], {anything(e->children[1]->type), of(e->children[2])});
        return anything(e->type);
      case Pattern::iterate:
        of(e->children[1]);
        inside(e->children[0], {anything(e->children[1]->type)});
        return anything(e->type);
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
        check(e->children[0], e->children[1]->type->size.value());
        return of(e->children[1]);
      case Pattern::scatter:  // what would go elsewhere is left out
        of(e->children[0]);
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
          if (c->pattern != Pattern::function) of(c);
        }
        return anything(e->type);
    }
  }

  Bounds literal(Expr e) const {
    const Scalar scalar = e->type->scalar;
    if (is_float(scalar)) return anything(e->type);
    const auto value = static_cast<int64_t>(e->bits);
    return {{value, value}, {}};
  }

  static Bounds constant(Expr e) {
    const Tensor& tensor = e->constant;
    if (is_float(tensor.scalar()) || tensor.size() == 0) return anything(e->type);
    IntegerRange out{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (int64_t i = 0; i < tensor.size(); ++i) {
      out.low = std::min(out.low, tensor.integer_at(i));
      out.high = std::max(out.high, tensor.integer_at(i));
    }
    return {out, {}};
  }

  Bounds called(Expr e) {
    std::vector<Bounds> arguments;
    for (Expr c : e->children) arguments.push_back(of(c));
    const IntegerRange whole = range_of_type(e->type->scalar);
    if (!is_integer(e->type->scalar) || arguments.empty()) return {whole, {}};
    const IntegerRange a = arguments[0].range, b = arguments.size() > 1 ? arguments[1].range : IntegerRange{0, 0};
    std::optional<IntegerRange> out =
        e->function == Function::negate ? of_function(Function::subtract, {0, 0}, a) : of_function(e->function, a, b);
    if (!out || out->low < whole.low || out->high > whole.high) return {whole, {}};  // it may wrap around
    return {*out, {}};
  }

  static Bounds converted(const Bounds& from, Scalar scalar, Expr e) {
    const IntegerRange whole = range_of_type(e->type->scalar);
    const bool keeps = !is_float(scalar) && !is_float(e->type->scalar) && from.range.low >= whole.low &&
                       from.range.high <= whole.high && (scalar != Scalar::u64 || from.range.low >= 0);
    return {keeps ? from.range : whole, {}};
  }

  // A function's body, with that of its variables.
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

}  // namespace hoist
