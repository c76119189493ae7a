#include "ir/language/nat.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/size_operations.h"

namespace hoist {

// A monomial maps atoms to powers, a polynomial maps monomials to non-zero coefficients.
using Monomial = std::map<uint32_t, int>;
using Terms = std::map<Monomial, int64_t>;

struct Polynomial {
  Terms terms;
};

namespace {

struct Atom {
  enum Kind : uint8_t { name, floor_division, remainder, minimum, maximum } kind = name;
  std::string text;  // text of a name
  Nat a, b;
};

struct Tables {
  std::mutex mutex;
  std::map<Terms, Polynomial> polynomials;  // node addresses are stable
  std::deque<Atom> atoms;
  std::map<std::string, uint32_t> by_name;
  std::map<std::string, uint32_t> by_text;  // compound atoms by their printed form
  std::map<std::string, SizeFacts> facts;
};

Tables& tables() {
  static auto* t = new Tables;  // never destroyed: sizes live as long as the process
  return *t;
}

int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t r = 0;
  HOIST_CHECK(!__builtin_mul_overflow(a, b, &r), "a size exceeds 64 bits");
  return r;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r = 0;
  HOIST_CHECK(!__builtin_add_overflow(a, b, &r), "a size exceeds 64 bits");
  return r;
}

int64_t floor_of(int64_t a, int64_t b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); }

Terms terms_of(const Nat& n) {
  if (n.polynomial() != nullptr) return n.polynomial()->terms;
  return n.value() == 0 ? Terms{} : Terms{{Monomial{}, n.value()}};
}

uint32_t atom_of(Atom atom, const std::string& text) {
  Tables& t = tables();
  std::lock_guard lock(t.mutex);
  auto& index = atom.kind == Atom::name ? t.by_name : t.by_text;
  auto [place, fresh] = index.emplace(text, static_cast<uint32_t>(t.atoms.size()));
  if (fresh) t.atoms.push_back(std::move(atom));
  return place->second;
}

const Atom& atom_at(uint32_t i) {
  Tables& t = tables();
  std::lock_guard lock(t.mutex);
  return t.atoms[i];
}

struct Interval {
  double low, high;
};

Interval interval_of(const Nat& n);

Interval interval_of_atom(uint32_t i) {
  const Atom& atom = atom_at(i);
  if (atom.kind == Atom::name) {
    SizeFacts f = size_facts(atom.text);
    return {static_cast<double>(f.low), static_cast<double>(f.high)};
  }
  Interval a = interval_of(atom.a), b = interval_of(atom.b);
  switch (atom.kind) {
    case Atom::floor_division:
      return {a.low >= 0 ? 0 : a.low, a.high >= 0 ? std::floor(a.high / std::max(1.0, b.low)) : 0};
    case Atom::remainder:
      return {0, b.high - 1};
    case Atom::minimum:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    default:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
  }
}

Interval interval_of(const Nat& n) {
  Interval sum{0, 0};
  for (const auto& [monomial, coefficient] : terms_of(n)) {
    Interval product{1, 1};
    for (auto [atom, power] : monomial) {
      Interval a = interval_of_atom(atom);
      for (int p = 0; p < power; ++p) {
        double c[] = {product.low * a.low, product.low * a.high, product.high * a.low, product.high * a.high};
        product = {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
      }
    }
    double x = product.low * static_cast<double>(coefficient), y = product.high * static_cast<double>(coefficient);
    sum = {sum.low + std::min(x, y), sum.high + std::max(x, y)};
  }
  return sum;
}

// coefficient * monomial / k, or nothing if the division is not provably exact.
std::optional<std::pair<Monomial, int64_t>> divide_term(const Monomial& m, int64_t c, const Monomial& km, int64_t kc) {
  Monomial quotient = m;
  for (auto [atom, power] : km) {
    auto found = quotient.find(atom);
    if (found == quotient.end() || found->second < power) return std::nullopt;
    if ((found->second -= power) == 0) quotient.erase(found);
  }
  if (c % kc != 0) return std::nullopt;
  return std::pair(quotient, c / kc);
}

// A provable divisor of a term: its coefficient times the known divisors of its names.
int64_t known_divisor(const Monomial& m, int64_t c) {
  int64_t d = c < 0 ? -c : c;
  for (auto [atom, power] : m) {
    const Atom& a = atom_at(atom);
    int64_t multiple = a.kind == Atom::name ? size_facts(a.text).multiple_of : 1;
    for (int p = 0; p < power && multiple > 1 && d < (int64_t{1} << 40); ++p) d *= multiple;
  }
  return d;
}

Nat compound(Atom::Kind kind, const Nat& a, const Nat& b) {
  static const char* const names[] = {"", "//", "%", "min", "max"};
  std::string text = std::string(names[kind]) + "(" + a.text() + "," + b.text() + ")";
  return Nat::name("\1" + std::to_string(atom_of(Atom{kind, "", a, b}, text)));
}

}  // namespace

Nat nat_of(const Terms& terms) {
  Nat n;
  if (terms.empty()) return n;
  if (terms.size() == 1 && terms.begin()->first.empty()) return Nat(terms.begin()->second);
  Tables& t = tables();
  std::lock_guard lock(t.mutex);
  n.polynomial_ = &t.polynomials.emplace(terms, Polynomial{terms}).first->second;
  return n;
}

Nat Nat::name(const std::string& name) {
  // "\1<index>" encodes a compound atom; no size in user text begins with this character.
  uint32_t atom = name.rfind('\1', 0) == 0 ? static_cast<uint32_t>(std::stoul(name.substr(1)))
                                           : atom_of(Atom{Atom::name, name, {}, {}}, name);
  return nat_of({{Monomial{{atom, 1}}, 1}});
}

int64_t Nat::value() const {
  HOIST_CHECK(is_constant(), "the size " + text() + " has to be a number");
  return constant_;
}

std::optional<std::string> Nat::as_name() const {
  if (polynomial_ == nullptr || polynomial_->terms.size() != 1) return std::nullopt;
  const auto& [monomial, coefficient] = *polynomial_->terms.begin();
  if (coefficient != 1 || monomial.size() != 1 || monomial.begin()->second != 1) return std::nullopt;
  const Atom& atom = atom_at(monomial.begin()->first);
  return atom.kind == Atom::name ? std::optional(atom.text) : std::nullopt;
}

size_t Nat::hash() const {
  return polynomial_ != nullptr ? std::hash<const void*>()(polynomial_) : std::hash<int64_t>()(constant_);
}

Nat operator+(const Nat& a, const Nat& b) {
  if (a.is_constant() && b.is_constant()) return checked_add(a.value(), b.value());
  Terms sum = terms_of(a);
  for (const auto& [monomial, coefficient] : terms_of(b)) {
    int64_t& c = sum[monomial];
    c = checked_add(c, coefficient);
    if (c == 0) sum.erase(monomial);
  }
  return nat_of(sum);
}

Nat operator*(const Nat& a, const Nat& b) {
  if (a.is_constant() && b.is_constant()) return checked_multiply(a.value(), b.value());
  Terms product;
  for (const auto& [ma, ca] : terms_of(a)) {
    for (const auto& [mb, cb] : terms_of(b)) {
      Monomial m = ma;
      for (auto [atom, power] : mb) m[atom] += power;
      int64_t& c = product[m];
      c = checked_add(c, checked_multiply(ca, cb));
      if (c == 0) product.erase(m);
    }
  }
  return nat_of(product);
}

Nat operator-(const Nat& a, const Nat& b) { return a + b * Nat(-1); }

double coefficient_bound(const Nat& n) {
  double sum = 0;
  for (const auto& [monomial, coefficient] : terms_of(n)) {
    sum += coefficient < 0 ? -static_cast<double>(coefficient) : static_cast<double>(coefficient);
  }
  return sum;
}

Nat floor_division(const Nat& a, const Nat& b) {
  if (a.is_constant() && b.is_constant()) {
    HOIST_CHECK(b.value() > 0, "division of a size by " + b.text());
    return floor_of(a.value(), b.value());
  }
  if (b == Nat(1)) return a;
  Terms divisor = terms_of(b), whole, rest;
  if (divisor.size() == 1) {
    const auto& [km, kc] = *divisor.begin();
    for (const auto& [m, c] : terms_of(a)) {
      if (auto q = divide_term(m, c, km, kc)) {
        int64_t& w = whole[q->first];
        if ((w = checked_add(w, q->second)) == 0) whole.erase(q->first);
      } else if (km.empty()) {  // (3m + 5) // 2 = m + 2 + (m + 1) // 2: equal quotients become one form
        int64_t& w = whole[m];
        if ((w = checked_add(w, floor_of(c, kc))) == 0) whole.erase(m);
        rest[m] = c - kc * floor_of(c, kc);
      } else {
        rest[m] = c;
      }
    }
  } else if (a == b) {
    return 1;
  } else {
    rest = terms_of(a);
  }
  if (rest.empty()) return nat_of(whole);
  Nat r = nat_of(rest);
  if (r.is_constant() && b.is_constant()) return nat_of(whole) + floor_of(r.value(), b.value());
  Interval ri = interval_of(r), bi = interval_of(b);
  if (ri.low >= 0 && ri.high < bi.low) return nat_of(whole);
  return nat_of(whole) + compound(Atom::floor_division, r, b);
}

Nat remainder(const Nat& a, const Nat& b) {
  if (a.is_constant() && b.is_constant()) return a - b * floor_division(a, b);
  if (divides(b, a) == Answer::yes) return 0;
  if (b.is_constant()) {  // coefficients are reduced modulo b
    HOIST_CHECK(b.value() > 0, "remainder of a size by " + b.text());
    Terms rest;
    for (const auto& [m, c] : terms_of(a)) {
      if (int64_t r = c - b.value() * floor_of(c, b.value()); r != 0) rest[m] = r;
    }
    Nat r = nat_of(rest);
    Interval i = interval_of(r);
    return i.low >= 0 && i.high < static_cast<double>(b.value()) ? r : compound(Atom::remainder, r, b);
  }
  Nat quotient = floor_division(a, b);
  if (quotient.is_constant()) return a - b * quotient;
  return compound(Atom::remainder, a, b);
}

Nat minimum(const Nat& a, const Nat& b) {
  if (at_most(a, b) == Answer::yes) return a;
  if (at_most(b, a) == Answer::yes) return b;
  return compound(Atom::minimum, a, b);
}

Nat maximum(const Nat& a, const Nat& b) {
  if (at_most(a, b) == Answer::yes) return b;
  if (at_most(b, a) == Answer::yes) return a;
  return compound(Atom::maximum, a, b);
}

Answer divides(const Nat& k, const Nat& n) {
  if (k.is_constant() && k.value() == 0) return n == Nat(0) ? Answer::yes : Answer::no;
  if (k.is_constant() && n.is_constant()) return n.value() % k.value() == 0 ? Answer::yes : Answer::no;
  if (k == n) return Answer::yes;
  Terms divisor = terms_of(k);
  if (divisor.size() != 1) return Answer::unknown;
  const auto& [km, kc] = *divisor.begin();
  for (const auto& [m, c] : terms_of(n)) {
    if (divide_term(m, c, km, kc)) continue;
    if (km.empty() && known_divisor(m, c) % kc == 0) continue;
    return Answer::unknown;
  }
  return Answer::yes;
}

Answer at_most(const Nat& a, const Nat& b) {
  if (a == b) return Answer::yes;
  Interval d = interval_of(b - a);
  if (d.low >= 0) return Answer::yes;
  return d.high < 0 ? Answer::no : Answer::unknown;
}

void declare_size(const std::string& name, SizeFacts facts) {
  Tables& t = tables();
  std::lock_guard lock(t.mutex);
  t.facts[name] = facts;
}

SizeFacts size_facts(const std::string& name) {
  Tables& t = tables();
  std::lock_guard lock(t.mutex);
  auto found = t.facts.find(name);
  return found == t.facts.end() ? SizeFacts{} : found->second;
}

Nat Nat::substitute(const std::map<std::string, Nat>& sizes) const {
  if (is_constant()) return *this;
  Nat sum = 0;
  for (const auto& [monomial, coefficient] : polynomial_->terms) {
    Nat product = coefficient;
    for (auto [index, power] : monomial) {
      const Atom& atom = atom_at(index);
      Nat factor;
      if (atom.kind == Atom::name) {
        auto found = sizes.find(atom.text);
        factor = found == sizes.end() ? Nat::name(atom.text) : found->second;
      } else {
        Nat a = atom.a.substitute(sizes), b = atom.b.substitute(sizes);
        factor = atom.kind == Atom::floor_division ? floor_division(a, b)
                 : atom.kind == Atom::remainder    ? remainder(a, b)
                 : atom.kind == Atom::minimum      ? minimum(a, b)
                                                   : maximum(a, b);
      }
      for (int p = 0; p < power; ++p) product = product * factor;
    }
    sum = sum + product;
  }
  return sum;
}

std::set<std::string> names_of(const Nat& n) {
  std::set<std::string> names;
  for (const auto& [monomial, coefficient] : terms_of(n)) {
    for (auto [index, power] : monomial) {
      const Atom& atom = atom_at(index);
      if (atom.kind == Atom::name) {
        names.insert(atom.text);
      } else {
        names.merge(names_of(atom.a));
        names.merge(names_of(atom.b));
      }
    }
  }
  return names;
}

std::optional<Nat> try_substitute(const Nat& n, const std::map<std::string, Nat>& sizes) {
  for (const auto& [monomial, coefficient] : terms_of(n)) {
    for (auto [index, power] : monomial) {
      const Atom& atom = atom_at(index);
      if (atom.kind == Atom::name) continue;
      auto a = try_substitute(atom.a, sizes), b = try_substitute(atom.b, sizes);
      if (!a || !b) return std::nullopt;
      bool divides = atom.kind == Atom::floor_division || atom.kind == Atom::remainder;
      if (divides && at_most(Nat(1), *b) == Answer::no) return std::nullopt;
    }
  }
  return n.substitute(sizes);
}

namespace {

void append_operations(const Nat& n, std::vector<SizeOperation>& out);

void append_atom(const Atom& atom, std::vector<SizeOperation>& out) {
  if (atom.kind == Atom::name) {
    out.push_back({SizeOperation::name, 0, atom.text});
    return;
  }
  append_operations(atom.a, out);
  append_operations(atom.b, out);
  out.push_back({atom.kind == Atom::floor_division ? SizeOperation::floor_division
                 : atom.kind == Atom::remainder    ? SizeOperation::remainder
                 : atom.kind == Atom::minimum      ? SizeOperation::minimum
                                                   : SizeOperation::maximum});
}

// Atoms have numbers in the order of their creation, so terms and factors are ordered by their text.
void append_operations(const Nat& n, std::vector<SizeOperation>& out) {
  if (n.is_constant()) {
    out.push_back({SizeOperation::constant, n.value()});
    return;
  }
  std::map<std::string, std::vector<SizeOperation>> terms;
  for (const auto& [monomial, coefficient] : terms_of(n)) {
    std::map<std::string, std::pair<const Atom*, int>> factors;
    for (auto [index, power] : monomial) {
      const Atom& atom = atom_at(index);
      factors[nat_of({{Monomial{{index, 1}}, 1}}).text()] = {&atom, power};
    }
    std::vector<SizeOperation> term;
    if (coefficient != 1 || factors.empty()) term.push_back({SizeOperation::constant, coefficient});
    for (const auto& [text, factor] : factors) {
      for (int p = 0; p < factor.second; ++p) {
        const bool is_first = term.empty();
        append_atom(*factor.first, term);
        if (!is_first) term.push_back({SizeOperation::multiply});
      }
    }
    terms[nat_of({{monomial, 1}}).text()] = std::move(term);
  }
  bool is_first = true;
  for (const auto& [text, term] : terms) {
    out.insert(out.end(), term.begin(), term.end());
    if (!is_first) out.push_back({SizeOperation::add});
    is_first = false;
  }
}

}  // namespace

std::vector<SizeOperation> operations_of(const Nat& n) {
  std::vector<SizeOperation> out;
  append_operations(n, out);
  return out;
}

int64_t upper_bound(const Nat& n) {
  if (n.is_constant()) return n.value();
  const double high = interval_of(n).high;
  HOIST_CHECK(high < 0x1p62, "the size " + n.text() + " has no bound");
  return static_cast<int64_t>(high);
}

std::string Nat::text() const {
  if (is_constant()) return std::to_string(constant_);
  // Atoms are ordered by their text, so that the output does not depend on the order of their creation.
  std::vector<std::pair<std::string, int64_t>> parts;
  for (const auto& [monomial, coefficient] : polynomial_->terms) {
    std::vector<std::string> factors;
    for (auto [index, power] : monomial) {
      const Atom& atom = atom_at(index);
      std::string text;
      switch (atom.kind) {
        case Atom::name:
          text = atom.text;
          break;
        case Atom::floor_division:
          text = "((" + atom.a.text() + ") // (" + atom.b.text() + "))";
          break;
        case Atom::remainder:
          text = "((" + atom.a.text() + ") % (" + atom.b.text() + "))";
          break;
        case Atom::minimum:
          text = "min(" + atom.a.text() + ", " + atom.b.text() + ")";
          break;
        case Atom::maximum:
          text = "max(" + atom.a.text() + ", " + atom.b.text() + ")";
          break;
      }
      for (int p = 0; p < power; ++p) factors.push_back(text);
    }
    std::sort(factors.begin(), factors.end());
    std::string product;
    for (const auto& f : factors) product += (product.empty() ? "" : "*") + f;
    parts.emplace_back(product, coefficient);
  }
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.first.empty() != b.first.empty() ? b.first.empty() : a.first < b.first;
  });
  std::string out;
  for (const auto& [product, coefficient] : parts) {
    int64_t magnitude = coefficient < 0 ? -coefficient : coefficient;
    std::string term = product.empty()  ? std::to_string(magnitude)
                       : magnitude == 1 ? product
                                        : std::to_string(magnitude) + "*" + product;
    if (out.empty())
      out = coefficient < 0 ? (product.empty() ? "-" + term : "0 - " + term) : term;
    else
      out += (coefficient < 0 ? " - " : " + ") + term;
  }
  return out;
}

}  // namespace hoist
