#include "ir/evaluate/evaluate_index.h"

#include <algorithm>

namespace hoist {

IndexId Indices::normal(Index index) {
  auto [place, is_new] =
      index_ids_.emplace(std::pair(index.constant, index.terms), static_cast<IndexId>(indices_.size()));
  if (is_new) {
    index.low = index.high = index.constant;
    index.scope = 0;
    for (auto [id, coefficient] : index.terms) {
      const Atom& a = atom(id);
      index.low += coefficient * (coefficient > 0 ? a.low : a.high);
      index.high += coefficient * (coefficient > 0 ? a.high : a.low);
      index.scope = deeper(index.scope, a.scope);
    }
    indices_.push_back(std::move(index));
  }
  return place->second;
}

IndexId Indices::of_atom(Atom atom) {
  auto id = static_cast<AtomId>(atoms_.size());
  if (atom.kind != Atom::variable) {
    auto [place, is_new] =
        atom_ids_.emplace(std::tuple(static_cast<int>(atom.kind), atom.argument, atom.a, atom.b), id);
    id = place->second;
    if (is_new) atoms_.push_back(atom);
  } else {
    atoms_.push_back(atom);
  }
  return normal({0, {{id, 1}}, 0, 0, 0});
}

int Indices::new_scope(int parent) {
  scopes_.push_back({parent, scope(parent).depth + 1});
  return static_cast<int>(scopes_.size()) - 1;
}

IndexId Indices::variable(int64_t extent, int scope) {
  if (extent == 1) return constant(0);
  return of_atom({Atom::variable, 0, 0, 0, 0, extent - 1, scope});
}

IndexId Indices::sum(const std::vector<std::pair<IndexId, int64_t>>& parts, int64_t constant) {
  Index out;
  out.constant = constant;
  std::map<AtomId, int64_t> terms;
  for (auto [id, factor] : parts) {
    const Index& part = (*this)[id];
    out.constant += factor * part.constant;
    for (auto [a, coefficient] : part.terms) terms[a] += factor * coefficient;
  }
  // k*c * (x / k) + c * (x % k) = c * x.
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [id, coefficient] : terms) {
      const Atom rest = atom(id);
      if (rest.kind != Atom::modulus || coefficient == 0) continue;
      auto partner = atom_ids_.find(std::tuple(static_cast<int>(Atom::quotient), rest.argument, rest.a, int64_t{0}));
      if (partner == atom_ids_.end()) continue;
      auto found = terms.find(partner->second);
      if (found == terms.end() || found->second != coefficient * rest.a) continue;
      const int64_t c = coefficient;
      terms[id] = 0;
      found->second = 0;
      const Index& whole = (*this)[rest.argument];
      out.constant += c * whole.constant;
      for (auto [a, inner] : whole.terms) terms[a] += c * inner;
      changed = true;
      break;
    }
  }
  for (auto [a, coefficient] : terms) {
    if (coefficient != 0) out.terms.emplace_back(a, coefficient);
  }
  return normal(std::move(out));
}

IndexId Indices::quotient(IndexId x, int64_t k) {
  if (k == 1) return x;
  // Multiples of k move out of the quotient; if the rest stays within one multiple of k, the quotient is complete.
  const Index index = (*this)[x];
  Index multiple, rest;
  multiple.constant = floor_quotient(index.constant, k);
  rest.constant = index.constant - multiple.constant * k;
  for (auto [a, c] : index.terms) {
    if (c % k == 0)
      multiple.terms.emplace_back(a, c / k);
    else
      rest.terms.emplace_back(a, c);
  }
  const IndexId rest_id = normal(rest), multiple_id = normal(multiple);
  const Index& r = (*this)[rest_id];
  const int64_t low = floor_quotient(r.low, k), high = floor_quotient(r.high, k);
  if (low == high) return sum({{multiple_id, 1}}, low);
  const IndexId inner = of_atom({Atom::quotient, rest_id, k, 0, low, high, r.scope});
  return sum({{multiple_id, 1}, {inner, 1}});
}

IndexId Indices::modulus(IndexId x, int64_t k) {
  const Index index = (*this)[x];
  Index rest;
  rest.constant = index.constant - floor_quotient(index.constant, k) * k;
  for (auto [a, c] : index.terms) {
    if (c % k != 0) rest.terms.emplace_back(a, c);
  }
  const IndexId rest_id = normal(rest);
  const Index& r = (*this)[rest_id];
  const int64_t low = floor_quotient(r.low, k), high = floor_quotient(r.high, k);
  if (low == high) return sum({{rest_id, 1}}, -low * k);
  return of_atom({Atom::modulus, rest_id, k, 0, 0, k - 1, r.scope});
}

IndexId Indices::clamp(IndexId x, int64_t low, int64_t high) {
  const Index index = (*this)[x];
  if (index.low >= low && index.high <= high) return x;
  if (index.high <= low) return constant(low);
  if (index.low >= high) return constant(high);
  return of_atom({Atom::clamped, x, low, high, std::max(low, index.low), std::min(high, index.high), index.scope});
}

IndexId Indices::mirror(IndexId x, int64_t n) {
  const Index index = (*this)[x];
  if (index.low >= 0 && index.high < n) return x;
  return of_atom({Atom::mirrored, x, n, 0, 0, n - 1, index.scope});
}

IndexId Indices::computed(int value, int64_t n, int scope) {
  return of_atom({Atom::computed, 0, value, n, 0, n - 1, scope});
}

}  // namespace hoist
