#include "backends/halide/index_form.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace hoist::emission {
namespace {

namespace H = Halide;
namespace I = Halide::Internal;

// Far below the overflow of a sum of two products; indices are 32-bit integers.
constexpr int64_t most = int64_t{1} << 40;

// No product of two of these leaves it. (The pedantic compiler is told that it is an extension.)
__extension__ using Wide = __int128;

struct OutOfRange {};

int64_t checked(Wide n) {
  if (n > most || n < -most) throw OutOfRange{};
  return static_cast<int64_t>(n);
}

int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// constant + sum of factor * atom; atoms by their number, no factor is 0.
struct Sum {
  int64_t constant = 0;
  std::map<size_t, int64_t> factors;

  bool operator==(const Sum&) const = default;

  void add(const Sum& other, int64_t times) {
    constant = checked(static_cast<Wide>(constant) + static_cast<Wide>(other.constant) * times);
    for (const auto& [atom, factor] : other.factors) {
      int64_t& mine = factors[atom];
      mine = checked(static_cast<Wide>(mine) + static_cast<Wide>(factor) * times);
      if (mine == 0) factors.erase(atom);
    }
  }
};

struct Range {
  int64_t low, high;
};

// A variable, the quotient of a sum by a constant, or an expression of any other form.
struct Atom {
  std::string variable;
  Range range{-most, most};
  Sum dividend;
  int64_t divisor = 0;  // divisor of a quotient
  H::Expr other;
};

class IndexForm {
 public:
  explicit IndexForm(const std::map<std::string, int64_t>& extents) : extents_(extents) {}

  Sum of(const H::Expr& e) {
    if (auto constant = I::as_const_int(e)) return {checked(*constant), {}};
    if (const auto* v = e.as<I::Variable>()) return variable(v->name);
    if (const auto* op = e.as<I::Add>()) return plus(of(op->a), of(op->b), 1);
    if (const auto* op = e.as<I::Sub>()) return plus(of(op->a), of(op->b), -1);
    if (const auto* op = e.as<I::Mul>()) {
      const Sum a = of(op->a), b = of(op->b);
      if (b.factors.empty()) return plus({}, a, b.constant);
      if (a.factors.empty()) return plus({}, b, a.constant);
    }
    if (const auto* op = e.as<I::Div>()) {
      const Sum by = of(op->b);
      if (by.factors.empty() && by.constant > 0) return quotient(of(op->a), by.constant);
    }
    if (const auto* op = e.as<I::Mod>()) {
      const Sum by = of(op->b);
      if (by.factors.empty() && by.constant > 0) {
        const Sum a = of(op->a);
        return plus(a, quotient(a, by.constant), -by.constant);
      }
    }
    if (const auto* op = e.as<I::Min>()) {
      if (auto chosen = smaller(of(op->a), of(op->b))) return *chosen;
    }
    if (const auto* op = e.as<I::Max>()) {
      const Sum a = of(op->a), b = of(op->b);
      if (auto chosen = smaller(a, b)) return *chosen == a ? b : a;
    }
    return as_it_is(e);
  }

 private:
  static Sum plus(Sum a, const Sum& b, int64_t times) {
    a.add(b, times);
    return a;
  }

  static Sum single(size_t atom) { return {0, {{atom, 1}}}; }

  size_t add_atom(Atom atom) {
    atoms_.push_back(std::move(atom));
    return atoms_.size() - 1;
  }

  Sum variable(const std::string& name) {
    for (size_t i = 0; i < atoms_.size(); ++i) {
      if (atoms_[i].variable == name) return single(i);
    }
    Atom atom;
    atom.variable = name;
    auto extent = extents_.find(name);
    if (extent != extents_.end()) atom.range = {0, extent->second - 1};
    if (extent != extents_.end() && extent->second == 1) return {};
    return single(add_atom(atom));
  }

  Sum as_it_is(const H::Expr& e) {
    for (size_t i = 0; i < atoms_.size(); ++i) {
      if (atoms_[i].other.defined() && I::equal(atoms_[i].other, e)) return single(i);
    }
    Atom atom;
    atom.other = e;
    return single(add_atom(atom));
  }

  // floor(a / by)
  Sum quotient(const Sum& a, int64_t by) {
    if (by == 1) return a;
    // Removes the terms that the divisor divides, and multiples of it in the rest, so that equal quotients become the
    // same atom.
    Sum whole, rest;
    whole.constant = floor_of(a.constant, by);
    rest.constant = a.constant - whole.constant * by;
    for (const auto& [atom, factor] : a.factors) {
      if (factor % by == 0)
        whole.factors[atom] = factor / by;
      else
        rest.factors[atom] = factor;
    }
    if (fits(rest, by)) return whole;
    for (auto& [atom, factor] : rest.factors) {
      const int64_t n = floor_of(factor, by);
      if (n != 0) whole.factors[atom] = n;
      factor -= n * by;
    }
    if (fits(rest, by)) return whole;
    // floor((g * r + s) / (g * k)) = floor(r / k) where 0 <= s < g
    for (int64_t g = by - 1; g > 1; --g) {
      if (by % g != 0) continue;
      Sum multiples, below;
      multiples.constant = floor_of(rest.constant, g);
      below.constant = rest.constant - multiples.constant * g;
      for (const auto& [atom, factor] : rest.factors) {
        const int64_t n = floor_of(factor, g);
        if (n != 0) multiples.factors[atom] = n;
        if (factor != n * g) below.factors[atom] = factor - n * g;
      }
      if (fits(below, g)) return plus(whole, quotient(multiples, by / g), 1);
    }
    // floor((floor(r / k) + s) / n) = floor((r + k * s) / (k * n)), for the outermost such quotient
    for (auto factor = rest.factors.rbegin(); factor != rest.factors.rend(); ++factor) {
      const Atom inner = atoms_[factor->first];
      if (inner.divisor == 0 || factor->second != 1) continue;
      Sum dividend = inner.dividend;
      rest.factors.erase(factor->first);
      dividend.add(rest, inner.divisor);
      return plus(whole, quotient(dividend, checked(static_cast<Wide>(inner.divisor) * by)), 1);
    }
    for (size_t i = 0; i < atoms_.size(); ++i) {
      if (atoms_[i].divisor == by && atoms_[i].dividend == rest) return plus(whole, single(i), 1);
    }
    const Range range = range_of(rest);
    Atom atom;
    atom.range = {floor_of(range.low, by), floor_of(range.high, by)};
    atom.dividend = rest;
    atom.divisor = by;
    return plus(whole, single(add_atom(atom)), 1);
  }

  bool fits(const Sum& s, int64_t below) const {
    const Range r = range_of(s);
    return r.low >= 0 && r.high < below;
  }

  std::optional<Sum> smaller(const Sum& a, const Sum& b) const {
    const Range difference = range_of(plus(a, b, -1));
    if (difference.high <= 0) return a;
    if (difference.low >= 0) return b;
    return std::nullopt;
  }

  // Bounds; beyond `most` there are none.
  Range range_of(const Sum& s, int depth = 4) const {
    Range out = bounds(s);
    if (depth == 0) return out;
    // m * d - m * k * floor(d / k) lies in m * [0, k - 1]; bounding both parts together is tighter than bounding each
    // alone.
    for (const auto& [atom, factor] : s.factors) {
      const Atom& quotient = atoms_[atom];
      if (quotient.divisor == 0 || factor % quotient.divisor != 0) continue;
      const int64_t m = -factor / quotient.divisor;
      Sum rest = s;
      rest.add(quotient.dividend, -m);
      rest.add(single(atom), -factor);
      const Range without = range_of(rest, depth - 1);
      const int64_t end = checked(static_cast<Wide>(m) * (quotient.divisor - 1));
      out.low = std::max(out.low, limited(static_cast<Wide>(without.low) + std::min<int64_t>(end, 0)));
      out.high = std::min(out.high, limited(static_cast<Wide>(without.high) + std::max<int64_t>(end, 0)));
    }
    return out;
  }

  Range bounds(const Sum& s) const {
    Wide low = s.constant, high = s.constant;
    for (const auto& [atom, factor] : s.factors) {
      const Range& r = atoms_[atom].range;
      const Wide a = static_cast<Wide>(factor) * r.low, b = static_cast<Wide>(factor) * r.high;
      low += std::min(a, b);
      high += std::max(a, b);
    }
    return {limited(low), limited(high)};
  }

  static int64_t limited(Wide n) { return static_cast<int64_t>(std::clamp<Wide>(n, -static_cast<Wide>(most), most)); }

  const std::map<std::string, int64_t>& extents_;
  std::vector<Atom> atoms_;
};

}  // namespace

bool is_always_zero(const H::Expr& e, const std::map<std::string, int64_t>& extents) {
  try {
    return IndexForm(extents).of(I::simplify(I::substitute_in_all_lets(e))) == Sum{};
  } catch (const OutOfRange&) {
    return false;
  }
}

}  // namespace hoist::emission
