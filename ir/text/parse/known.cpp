#include "ir/text/parse/known.h"

#include <algorithm>
#include <cmath>

namespace hoist {
namespace {

std::optional<Known> of_whole(Function function, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (function) {
    case Function::add:
      if (!__builtin_add_overflow(a, b, &result)) return result;
      return std::nullopt;
    case Function::subtract:
      if (!__builtin_sub_overflow(a, b, &result)) return result;
      return std::nullopt;
    case Function::multiply:
      if (!__builtin_mul_overflow(a, b, &result)) return result;
      return std::nullopt;
    case Function::modulo:
      if (b <= 0) return std::nullopt;
      return Known((a % b + b) % b);
    case Function::minimum:
      return std::min(a, b);
    case Function::maximum:
      return std::max(a, b);
    default:
      return std::nullopt;
  }
}

std::optional<Known> of_floats(Function function, double a, double b) {
  switch (function) {
    case Function::add:
      return a + b;
    case Function::subtract:
      return a - b;
    case Function::multiply:
      return a * b;
    case Function::divide:
      return a / b;
    case Function::minimum:
      return std::min(a, b);
    case Function::maximum:
      return std::max(a, b);
    default:
      return std::nullopt;
  }
}

template <class T>
std::optional<Known> compared(Function function, const T& a, const T& b) {
  switch (function) {
    case Function::equal:
      return int64_t{a == b};
    case Function::not_equal:
      return int64_t{!(a == b)};
    case Function::less:
      return int64_t{a < b};
    case Function::less_equal:
      return int64_t{!(b < a)};
    case Function::greater:
      return int64_t{b < a};
    case Function::greater_equal:
      return int64_t{!(a < b)};
    default:
      return std::nullopt;
  }
}

std::optional<Known> of_one(Function function, const Known& a) {
  const int64_t* whole = std::get_if<int64_t>(&a);
  const auto number = number_of(a);
  if (!number) return std::nullopt;
  if (function == Function::logical_not) return int64_t{*number == 0};
  if (function == Function::negate && whole != nullptr && *whole != INT64_MIN) return -*whole;
  if (function == Function::negate) return -*number;
  if (function == Function::sqrt) return std::sqrt(*number);
  if (function == Function::floor || function == Function::ceiling) {
    if (whole != nullptr) return a;
    const double rounded = function == Function::floor ? std::floor(*number) : std::ceil(*number);
    constexpr double exact = 0x1p53;
    if (rounded >= -exact && rounded <= exact) return static_cast<int64_t>(rounded);
    return rounded;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> number_of(const Known& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

std::optional<bool> truth_of(const Known& value) {
  const auto number = number_of(value);
  return number ? std::optional(*number != 0) : std::nullopt;
}

std::optional<Known> apply_known(Function function, const std::vector<Known>& arguments) {
  if (arguments.size() == 1) return of_one(function, arguments[0]);
  if (arguments.size() != 2) return std::nullopt;
  const Known &a = arguments[0], &b = arguments[1];
  if (std::holds_alternative<std::string>(a) && std::holds_alternative<std::string>(b))
    return compared(function, std::get<std::string>(a), std::get<std::string>(b));
  if (std::holds_alternative<Scalar>(a) && std::holds_alternative<Scalar>(b))
    return compared(function, std::get<Scalar>(a), std::get<Scalar>(b));
  if (std::holds_alternative<std::vector<int64_t>>(a) && std::holds_alternative<std::vector<int64_t>>(b))
    return compared(function, std::get<std::vector<int64_t>>(a), std::get<std::vector<int64_t>>(b));
  const auto x = number_of(a), y = number_of(b);
  if (!x || !y) return std::nullopt;
  if (function == Function::logical_and) return int64_t{*x != 0 && *y != 0};
  if (function == Function::logical_or) return int64_t{*x != 0 || *y != 0};
  const int64_t *i = std::get_if<int64_t>(&a), *k = std::get_if<int64_t>(&b);
  if (i != nullptr && k != nullptr) {
    if (auto order = compared(function, *i, *k)) return order;
    if (auto whole = of_whole(function, *i, *k)) return whole;
  }
  if (auto order = compared(function, *x, *y)) return order;
  return of_floats(function, *x, *y);
}

}  // namespace hoist
