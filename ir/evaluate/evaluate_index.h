// Positions during compilation in the evaluator: sums of atoms with integer coefficients, in one normal form, so that
// equal positions have equal ids. An atom is a variable (a dimension of the result or the counter of a loop) or a
// position that is not a sum: a quotient, a remainder, a clamped, mirrored or computed position. Every position has a
// range, which allows the simplification of (i*k + j) / k to i for 0 <= j < k. Positions live during one call of
// evaluate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace hoist {

using IndexId = int32_t;
using AtomId = int32_t;

/// The quotient for a positive b, rounded down.
inline int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/// The place of a computation: 0 outside all loops, otherwise inside a loop. The scopes of a value's operands form one
/// chain.
struct Scope {
  int parent = 0;
  int depth = 0;
};

struct Atom {
  enum Kind : uint8_t { variable, quotient, modulus, clamped, mirrored, computed } kind;
  IndexId argument = 0;
  int64_t a = 0, b = 0;  ///< divisor; least and largest; number of elements; the value that computes the position
  int64_t low = 0, high = 0;
  int scope = 0;
};

struct Index {
  int64_t constant = 0;
  std::vector<std::pair<AtomId, int64_t>> terms;  ///< by atom
  int64_t low = 0, high = 0;
  int scope = 0;
};

class Indices {
 public:
  IndexId constant(int64_t value) { return normal({value, {}, value, value, 0}); }
  /// A new variable with the range 0 .. extent - 1.
  IndexId variable(int64_t extent, int scope);
  /// constant + sum of coefficient * position
  IndexId sum(const std::vector<std::pair<IndexId, int64_t>>& parts, int64_t constant = 0);
  IndexId quotient(IndexId x, int64_t k);
  IndexId modulus(IndexId x, int64_t k);
  IndexId clamp(IndexId x, int64_t low, int64_t high);
  IndexId mirror(IndexId x, int64_t n);
  IndexId computed(int value, int64_t n, int scope);

  int new_scope(int parent);
  int deeper(int a, int b) const {
    return scopes_[static_cast<size_t>(a)].depth >= scopes_[static_cast<size_t>(b)].depth ? a : b;
  }
  const Scope& scope(int id) const { return scopes_[static_cast<size_t>(id)]; }

  const Index& operator[](IndexId id) const { return indices_[static_cast<size_t>(id)]; }
  const Atom& atom(AtomId id) const { return atoms_[static_cast<size_t>(id)]; }
  IndexId normal(Index index);

 private:
  IndexId of_atom(Atom atom);

  std::vector<Index> indices_;
  std::map<std::pair<int64_t, std::vector<std::pair<AtomId, int64_t>>>, IndexId> index_ids_;
  std::vector<Atom> atoms_;
  std::map<std::tuple<int, IndexId, int64_t, int64_t>, AtomId> atom_ids_;
  std::vector<Scope> scopes_ = {{}};
};

}  // namespace hoist
