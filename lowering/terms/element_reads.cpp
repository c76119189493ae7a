#include "lowering/terms/element_reads.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "ir/properties/properties.h"

namespace hoist {
namespace {

void note_atom(std::vector<int>& by_atom, AtomId atom, size_t number) {
  by_atom.resize(std::max(by_atom.size(), static_cast<size_t>(atom) + 1), -1);
  by_atom[static_cast<size_t>(atom)] = static_cast<int>(number);
}

int number_of_atom(const std::vector<int>& by_atom, AtomId atom) {
  return static_cast<size_t>(atom) < by_atom.size() ? by_atom[static_cast<size_t>(atom)] : -1;
}

}  // namespace

std::unique_ptr<ElementReads> ElementReads::of(Expr term) {
  if (!leaf_of(term->type)->is_scalar()) return nullptr;
  auto formula = element_formula(term);
  if (formula == nullptr) return nullptr;
  return std::unique_ptr<ElementReads>(new ElementReads(std::move(formula)));
}

FormulaPositions::FormulaPositions(const ElementFormula& formula) : formula_(&formula) {
  const Indices& indices = formula.parts.indices;
  for (size_t d = 0; d < formula.position.size(); ++d) {
    const Index& index = indices[formula.position[d]];
    if (!index.terms.empty()) note_atom(dimension_of_, index.terms[0].first, d);
  }
  for (size_t i = 0; i < formula.parts.loops.size(); ++i) {
    const Loop& loop = formula.parts.loops[i];
    if (loop.variable >= 0 && !indices[loop.variable].terms.empty())
      note_atom(loop_of_, indices[loop.variable].terms[0].first, i);
  }
}

std::optional<int64_t> FormulaPositions::stated(const Atom& atom) const {
  const Value& value = formula_->parts.values[static_cast<size_t>(atom.a)];
  if (value.kind != Value::literal) return std::nullopt;
  if (value.scalar == Scalar::i64) return static_cast<int64_t>(value.low);
  if (value.scalar == Scalar::i32) return static_cast<int32_t>(value.low);
  return std::nullopt;
}

int FormulaPositions::loop_of(AtomId atom) const { return number_of_atom(loop_of_, atom); }

ElementReads::ElementReads(std::unique_ptr<ElementFormula> formula)
    : formula_(std::move(formula)), positions_(*formula_) {
  const Indices& indices = formula_->parts.indices;
  for (const Loop& loop : formula_->parts.loops) counts_.push_back(loop.count);
  const auto depth = [&](size_t loop) { return indices.scope(formula_->parts.loops[loop].scope).depth; };
  for (const auto& [value, found] : formula_->reads) {
    ElementRead read;
    read.parameter = found.parameter;
    read.at = found.at;
    for (IndexId id : found.at) find_loops(id, read);
    std::stable_sort(read.loops.begin(), read.loops.end(), [&](size_t a, size_t b) { return depth(a) < depth(b); });
    reads_.push_back(std::move(read));
  }
}

void ElementReads::find_loops(IndexId id, ElementRead& read) const {
  const Indices& indices = formula_->parts.indices;
  for (const auto& [atom_id, coefficient] : indices[id].terms) {
    const Atom& atom = indices.atom(atom_id);
    if (atom.kind == Atom::computed) {
      read.depends_on_data = true;
    } else if (atom.kind != Atom::variable) {
      find_loops(atom.argument, read);
    } else if (const int loop = positions_.loop_of(atom_id); loop >= 0) {
      if (std::find(read.loops.begin(), read.loops.end(), static_cast<size_t>(loop)) == read.loops.end())
        read.loops.push_back(static_cast<size_t>(loop));
    }
  }
}

int64_t FormulaPositions::at(IndexId id, const std::vector<int64_t>& element, const std::vector<int64_t>& steps) const {
  const Indices& indices = formula_->parts.indices;
  int64_t sum = indices[id].constant;
  for (const auto& [atom_id, coefficient] : indices[id].terms) {
    const Atom& atom = indices.atom(atom_id);
    int64_t part = 0;
    if (atom.kind == Atom::variable) {
      const int dimension = number_of_atom(dimension_of_, atom_id), loop = number_of_atom(loop_of_, atom_id);
      if (dimension >= 0)
        part = element[static_cast<size_t>(dimension)];
      else if (loop >= 0)
        part = steps[static_cast<size_t>(loop)];
    } else if (atom.kind == Atom::computed) {
      part = stated(atom).value_or(0);
    } else {
      part = at(atom.argument, element, steps);
      if (atom.kind == Atom::quotient) part = floor_quotient(part, atom.a);
      if (atom.kind == Atom::modulus) part -= floor_quotient(part, atom.a) * atom.a;
    }
    sum += coefficient * part;
  }
  return sum;
}

std::vector<int64_t> ElementReads::position(const ElementRead& read, const std::vector<int64_t>& element,
                                            const std::vector<int64_t>& steps) const {
  std::vector<int64_t> out;
  for (IndexId id : read.at) out.push_back(positions_.at(id, element, steps));
  return out;
}

std::vector<int64_t> strides_in(const std::vector<int64_t>& shape, const std::vector<int64_t>& stored) {
  std::vector<int64_t> out(shape.size(), 0);
  int64_t stride = 1;
  for (size_t i = stored.size(); i-- > 0;) {
    out[static_cast<size_t>(stored[i])] = stride;
    stride *= shape[static_cast<size_t>(stored[i])];
  }
  return out;
}

int64_t address_of(const std::vector<int64_t>& position, const std::vector<int64_t>& strides) {
  return std::inner_product(position.begin(), position.end(), strides.begin(), int64_t{0});
}

namespace {

// True if at most every second step along a dimension of tiles reads another position.
bool serves_neighbours(const ElementReads& reads, const ElementRead& read, const std::vector<int64_t>& shape) {
  constexpr int64_t most_steps = 64;
  const std::vector<int64_t> first_step(reads.loop_counts().size(), 0);
  int dimensions_of_tiles = 2;
  for (size_t d = shape.size(); d-- > 0 && dimensions_of_tiles > 0;) {
    if (shape[d] == 1) continue;
    --dimensions_of_tiles;
    std::vector<int64_t> element;
    for (int64_t extent : shape) element.push_back(extent / 2);
    const int64_t steps = std::min(shape[d] - 1, most_steps);
    int64_t changes = 0;
    element[d] = 0;
    std::vector<int64_t> before = reads.position(read, element, first_step);
    for (int64_t i = 0; i < steps; ++i) {
      ++element[d];
      std::vector<int64_t> position = reads.position(read, element, first_step);
      if (position != before) ++changes;
      before = std::move(position);
    }
    if (steps > 0 && 2 * changes <= steps) return true;
  }
  return false;
}

}  // namespace

bool shares_operands(Expr term) {
  const auto reads = ElementReads::of(term);
  if (reads == nullptr) return false;
  const std::vector<int64_t> shape = shape_of(term->type);
  bool has_operands = false;
  for (const ElementRead& read : reads->reads()) {
    if (read.loops.empty()) continue;
    if (!serves_neighbours(*reads, read, shape)) return false;
    has_operands = true;
  }
  return has_operands;
}

namespace {

std::unordered_map<std::string, std::vector<int64_t>> strides_by_parameter(Expr term) {
  std::unordered_map<std::string, std::vector<int64_t>> out;
  for (const Expr p : parameters_of(term)) {
    const std::vector<int64_t> shape = shape_of(p->type);
    std::vector<int64_t> stored(shape.size());
    std::iota(stored.begin(), stored.end(), int64_t{0});
    out.emplace(p->name, strides_in(shape, stored));
  }
  return out;
}

}  // namespace

bool reads_vectors(Expr term, int64_t count) {
  const auto reads = ElementReads::of(term);
  if (reads == nullptr) return false;
  const std::vector<int64_t> shape = shape_of(term->type), steps(reads->loop_counts().size(), 0);
  const auto strides = strides_by_parameter(term);
  const auto are_vectors = [&](const ElementRead& read, std::vector<int64_t> element) {
    element.back() = element.back() / count * count;
    const auto here = [&] { return address_of(reads->position(read, element, steps), strides.at(read.parameter)); };
    const int64_t first = here();
    int64_t distance = 0;
    for (int64_t i = 1; i < count; ++i) {
      ++element.back();
      if (i == 1) distance = here() - first;
      if (here() != first + i * distance) return false;
    }
    return distance == 0 || distance == 1;
  };
  std::vector<int64_t> middle, last;
  for (const int64_t extent : shape) {
    middle.push_back(extent / 2);
    last.push_back(extent - 1);
  }
  return std::all_of(reads->reads().begin(), reads->reads().end(), [&](const ElementRead& read) {
    return !read.depends_on_data && are_vectors(read, std::vector<int64_t>(shape.size(), 0)) &&
           are_vectors(read, middle) && are_vectors(read, last);
  });
}

bool folds_along_rows(Expr term) {
  const auto reads = ElementReads::of(term);
  if (reads == nullptr) return false;
  const std::vector<int64_t> shape = shape_of(term->type), first_step(reads->loop_counts().size(), 0);
  const auto strides = strides_by_parameter(term);
  return std::any_of(reads->reads().begin(), reads->reads().end(), [&](const ElementRead& read) {
    if (read.loops.empty() || read.depends_on_data || reads->loop_counts()[read.loops.back()] < 2) return false;
    std::vector<int64_t> element(shape.size(), 0), steps = first_step;
    const auto here = [&] { return address_of(reads->position(read, element, steps), strides.at(read.parameter)); };
    const int64_t first = here();
    steps[read.loops.back()] = 1;
    const bool along = std::abs(here() - first) == 1;
    steps = first_step;
    for (size_t d = shape.size(); d-- > 0;) {
      if (shape[d] == 1) continue;
      element[d] = 1;
      return along && std::abs(here() - first) > 1;
    }
    return along;
  });
}

}  // namespace hoist
