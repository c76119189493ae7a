// Sizes of arrays: polynomials over named sizes with integer coefficients, kept in one normal form, so that equal
// polynomials are the same object. Floor division, remainder, minimum and maximum that do not simplify become atoms of
// the polynomial. Each name has a range and a known divisor (size_facts); without facts a name lies in [1, 2^31].
// Constants need no memory. Sizes are mathematical integers; constant arithmetic that leaves 64 bits is a broken
// invariant, since the frontend bounds every extent.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace hoist {

struct Polynomial;  // nat.cpp

class Nat {
 public:
  Nat(int64_t constant = 0) : constant_(constant) {}  // NOLINT: implicit by design
  static Nat name(const std::string& name);

  bool is_constant() const { return polynomial_ == nullptr; }
  /// The constant; aborts when the size is symbolic.
  int64_t value() const;
  std::optional<int64_t> constant() const { return is_constant() ? std::optional(constant_) : std::nullopt; }
  /// The name, if the size is a single name.
  std::optional<std::string> as_name() const;

  /// Replaces names; names that are not in the map stay.
  Nat substitute(const std::map<std::string, Nat>& sizes) const;
  std::string text() const;
  size_t hash() const;

  bool operator==(const Nat& other) const = default;
  const Polynomial* polynomial() const { return polynomial_; }

 private:
  friend Nat nat_of(const std::map<std::map<uint32_t, int>, int64_t>& terms);
  int64_t constant_ = 0;
  const Polynomial* polynomial_ = nullptr;
};

Nat operator+(const Nat& a, const Nat& b);
Nat operator-(const Nat& a, const Nat& b);
Nat operator*(const Nat& a, const Nat& b);
Nat floor_division(const Nat& a, const Nat& b);  ///< b > 0; rounds towards minus infinity; exact where b divides a
Nat remainder(const Nat& a, const Nat& b);       ///< a - b * floor_division(a, b)
Nat minimum(const Nat& a, const Nat& b);
Nat maximum(const Nat& a, const Nat& b);
/// The sum of the coefficients' magnitudes. The bound of a product is at most the product of the bounds, so a parser
/// can refuse sizes from untrusted input that would overflow 64 bits.
double coefficient_bound(const Nat& n);
inline Nat ceiling_division(const Nat& a, const Nat& b) { return floor_division(a + b - 1, b); }

enum class Answer : uint8_t { no, yes, unknown };
/// Decides if k divides n.
Answer divides(const Nat& k, const Nat& n);
/// Decides if a <= b, from the ranges of the names.
Answer at_most(const Nat& a, const Nat& b);

/// The names that a size mentions, also inside floor divisions, remainders, minima and maxima.
std::set<std::string> names_of(const Nat& n);
/// The same as substitute(), but empty if a divisor would be below 1.
std::optional<Nat> try_substitute(const Nat& n, const std::map<std::string, Nat>& sizes);

struct SizeFacts {
  int64_t low = 1, high = int64_t{1} << 31;
  int64_t multiple_of = 1;
};
/// Declares facts about a name; later facts replace earlier ones.
void declare_size(const std::string& name, SizeFacts facts);
SizeFacts size_facts(const std::string& name);

}  // namespace hoist

template <>
struct std::hash<hoist::Nat> {
  size_t operator()(const hoist::Nat& n) const { return n.hash(); }
};
