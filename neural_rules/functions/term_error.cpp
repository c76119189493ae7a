#include "neural_rules/functions/term_error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "ir/base/special_values.h"

namespace hoist {
namespace {

constexpr double unit = 0x1p-24;      // relative error of one rounding to f32
constexpr double tiny = 0x1p-126;     // absolute error of one rounding near zero, also if a device flushes denormals
constexpr double slack = 0x1p-50;     // exceeds the rounding of an interval's ends in double
constexpr double host_error = 4e-16;  // relative error of a known function's value
constexpr int most_parts = 1 << 20;

struct Enclosure {
  double low = 0, high = 0;
};

Enclosure outward(double low, double high) { return {low - std::fabs(low) * slack, high + std::fabs(high) * slack}; }
constexpr Enclosure everything = {-infinity, infinity};
double magnitude(Enclosure a) { return std::max(std::fabs(a.low), std::fabs(a.high)); }
Enclosure operator+(Enclosure a, Enclosure b) { return outward(a.low + b.low, a.high + b.high); }
Enclosure operator-(Enclosure a, Enclosure b) { return outward(a.low - b.high, a.high - b.low); }
Enclosure operator-(Enclosure a) { return {-a.high, -a.low}; }
Enclosure operator*(Enclosure a, Enclosure b) {
  auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return outward(low, high);
}
Enclosure operator/(Enclosure a, Enclosure b) {
  if (b.low <= 0 && b.high >= 0) return everything;
  return a * outward(1 / b.high, 1 / b.low);
}
bool is_power_of_two(Enclosure a) {
  int exponent = 0;
  return a.low == a.high && std::fabs(std::frexp(a.low, &exponent)) == 0.5;
}
Enclosure twice(Enclosure a) { return {2 * a.low, 2 * a.high}; }

// The enclosure of a term on a part of the range: its value in real arithmetic with two derivatives, and a bound of the
// error of its f32 value.
struct Known {
  Enclosure value, slope, curvature;
  double rounding = 0;
  std::optional<bool> truth;  // truth of a comparison
};

// A result that is rounded once, with the relative error `relative`.
Known rounded(Known k, double inherited, double relative = unit) {
  k.rounding = inherited + relative * (magnitude(k.value) + inherited) + tiny;
  return k;
}

Known sum(const Known& a, const Known& b) {
  return {a.value + b.value, a.slope + b.slope, a.curvature + b.curvature, a.rounding + b.rounding, {}};
}
Known negated(const Known& a) { return {-a.value, -a.slope, -a.curvature, a.rounding, {}}; }
Known product_of_terms(const Known& a, const Known& b) {
  double inherited = magnitude(a.value) * b.rounding + magnitude(b.value) * a.rounding + a.rounding * b.rounding;
  return {a.value * b.value,
          a.slope * b.value + a.value * b.slope,
          a.curvature * b.value + twice(a.slope * b.slope) + a.value * b.curvature,
          inherited,
          {}};
}
Known quotient(const Known& a, const Known& b) {
  Known q;
  q.value = a.value / b.value;
  q.slope = (a.slope - q.value * b.slope) / b.value;
  q.curvature = (a.curvature - twice(q.slope * b.slope) - q.value * b.curvature) / b.value;
  double least = std::min(std::fabs(b.value.low), std::fabs(b.value.high)) - b.rounding;
  bool has_zero = least <= 0 || (b.value.low <= 0 && b.value.high >= 0);
  q.rounding = has_zero ? infinity : (a.rounding + magnitude(q.value) * b.rounding) / least;
  return q;
}

// True or false if the comparison has one result on the whole part, otherwise nothing.
std::optional<bool> is_less(const Known& a, const Known& b) {
  if (a.value.high + a.rounding < b.value.low - b.rounding) return true;
  if (a.value.low - a.rounding >= b.value.high + b.rounding) return false;
  return std::nullopt;
}

class Walker {
 public:
  explicit Walker(Enclosure x) : x_(x) {}

  Known of(Expr e) {
    switch (e->pattern) {
      case Pattern::parameter:
      case Pattern::meta:
        return {x_, {1, 1}, {0, 0}, 0, {}};
      case Pattern::literal: {
        double v = float_from_bits(e->type->scalar, e->bits);
        return {{v, v}, {0, 0}, {0, 0}, 0, {}};
      }
      case Pattern::bound:
        return bound_[bound_.size() - 1 - static_cast<size_t>(e->integers[0])];
      case Pattern::let: {
        bound_.push_back(of(e->children[0]));
        Known body = of(e->children[1]->children[0]);
        bound_.pop_back();
        return body;
      }
      case Pattern::select: {
        Known condition = of(e->children[0]);
        HOIST_CHECK(condition.truth.has_value(),
                    "a select has no constant condition over the range of the error bound");
        return of(e->children[*condition.truth ? 1 : 2]);
      }
      case Pattern::call:
        return call(e);
      default:
        HOIST_CHECK(false, "an error bound of a term with " + std::string(row(e->pattern).name));
        std::abort();
    }
  }

 private:
  Known call(Expr e) {
    Known a = of(e->children[0]), b = e->children.size() > 1 ? of(e->children[1]) : Known{};
    auto once = [](const Known& k) { return rounded(k, k.rounding); };
    switch (e->function) {
      case Function::add:
        return once(sum(a, b));
      case Function::subtract:
        return once(sum(a, negated(b)));
      case Function::multiply: {
        Known p = product_of_terms(a, b);
        return is_power_of_two(a.value) || is_power_of_two(b.value) ? rounded(p, p.rounding, 0) : once(p);
      }
      case Function::fma:
        return once(sum(product_of_terms(a, b), of(e->children[2])));
      case Function::divide: {
        Known q = quotient(a, b);
        return rounded(q, q.rounding, 2 * unit * row(Function::divide).ulp);
      }
      case Function::negate:
        return negated(a);
      case Function::absolute:
        if (a.value.low >= 0) return a;
        if (a.value.high <= 0) return negated(a);
        return {{0, magnitude(a.value)}, everything, everything, a.rounding, {}};  // not differentiable at 0
      case Function::sign: {
        HOIST_CHECK(a.value.low > a.rounding || a.value.high < -a.rounding, "an error bound of sign around zero");
        double s = a.value.low > 0 ? 1 : -1;
        return {{s, s}, {0, 0}, {0, 0}, 0, {}};
      }
      case Function::less:
        return {{}, {}, {}, 0, is_less(a, b)};
      default:
        HOIST_CHECK(false, "an error bound of a term with " + std::string(row(e->function).name));
        std::abort();
    }
  }

  Enclosure x_;
  std::vector<Known> bound_;
};

class Division {
 public:
  Division(const ErrorQuestion& question, const KnownFunction& function) : q_(question), f_(function) {}

  double run() {
    divide(q_.low, q_.high);
    return bound_;
  }

 private:
  double scale(double low, double high) const {
    return q_.relative ? std::min(std::fabs(f_.value(low)), std::fabs(f_.value(high))) * (1 - host_error) : 1;
  }

  // The error at the centre, its variation towards the ends, and the rounding. The difference of the term and the
  // function is expanded as a whole, since its slope is small even if the slopes of both are not.
  void divide(double low, double high) {
    const double middle = low + (high - low) / 2, half = (high - low) / 2 * (1 + slack);
    const Known part = Walker({low, high}).of(q_.term), point = Walker({middle, middle}).of(q_.term);
    auto distance = [](Enclosure a, double v) { return std::max(std::fabs(a.low - v), std::fabs(a.high - v)); };
    const double value = f_.value(middle);
    const double here = distance(point.value, value) + host_error * std::fabs(value);
    const double change = half * (distance(point.slope, f_.slope(middle)) + host_error) +
                          half * half / 2 * (magnitude(part.curvature) + f_.largest_curvature);
    const double divisor = scale(low, high);
    const double seen = (here + point.rounding) / scale(middle, middle);
    double bound = (here + change + part.rounding) / divisor;
    if (std::isnan(bound)) bound = infinity;  // 0 times an unbounded derivative
    if (std::isfinite(seen)) largest_seen_ = std::max(largest_seen_, seen);
    const bool is_last = ++parts_ > most_parts || middle <= low || middle >= high;
    if (is_last || !(bound > largest_seen_ * 1.01) || bound <= bound_) {
      bound_ = std::max(bound_, bound);
      return;
    }
    divide(low, middle);
    divide(middle, high);
  }

  const ErrorQuestion& q_;
  const KnownFunction& f_;
  double bound_ = 0, largest_seen_ = 0;
  int parts_ = 0;
};

}  // namespace

double error_bound(const ErrorQuestion& question, const KnownFunction& function) {
  return Division(question, function).run();
}

}  // namespace hoist
