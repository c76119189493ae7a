#include "lowering/fusion/shared_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/properties/properties.h"
#include "lowering/cost/work.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// The element of an array of one element, in a form that reads no array if possible.
Expr only_element(Expr array) {
  switch (array->pattern) {
    case Pattern::map:
      if (array->mode == Mode::view) return apply(array->children[0], {only_element(array->children[1])});
      break;
    case Pattern::repeat:
      return array->children[0];
    case Pattern::split:
      if (array->children[0]->type->size == array->sizes[0]) return array->children[0];
      break;
    case Pattern::zip: {
      std::vector<Expr> parts;
      for (Expr part : array->children) parts.push_back(only_element(part));
      return tuple(std::move(parts));
    }
    default:
      break;
  }
  return index(literal_integer(Scalar::i32, 0), array);
}

bool materialises(Expr e) {
  return any_node(e, [](Expr part) { return part->pattern == Pattern::materialise; });
}

// One dimension of a term: arrays that it reads element by element, and parameters in place of their elements.
class SharedDimension {
 public:
  explicit SharedDimension(int depth) : depth_(depth) {}

  // True if elements of such a term are functions of elements of its parts.
  static bool opens(Expr e) {
    switch (e->pattern) {
      case Pattern::map:
        return e->mode == Mode::view;
      case Pattern::zip:
      case Pattern::repeat:
        return true;
      case Pattern::split:
        return e->sizes[0] == Nat(1);
      case Pattern::join:
        return e->children[0]->type->element->size == Nat(1);
      default:
        return false;
    }
  }

  // The element of an array at the index common to all arrays.
  Expr element(Expr e) {
    if (auto found = known_.find(e); found != known_.end()) return found->second;
    return known_[e] = opens(e) ? part_of(e) : leaf(e);
  }

  // The map over the arrays whose function is this body.
  Expr around(Expr body, const Nat& extent) const {
    if (arrays_.empty()) return repeat(extent, body);
    if (arrays_.size() == 1)
      return map([&](Expr v) { return substitute_parameters(body, {{names_[0], v}}); }, arrays_[0]);
    return map(
        [&](Expr v) {
          std::map<std::string, Expr> values;
          for (size_t i = 0; i < names_.size(); ++i) values[names_[i]] = get(static_cast<int64_t>(i), v);
          return substitute_parameters(body, values);
        },
        zip(arrays_));
  }

  bool is_element(Expr parameter) const {
    return std::find(names_.begin(), names_.end(), parameter->name) != names_.end();
  }
  bool reads_folds() const { return std::any_of(arrays_.begin(), arrays_.end(), folds); }
  bool computes_arrays() const {
    return std::any_of(arrays_.begin(), arrays_.end(), [](Expr array) { return folds(array) || materialises(array); });
  }

 private:
  Expr part_of(Expr e) {
    const Expr first = e->children[0];
    switch (e->pattern) {
      case Pattern::map:
        return apply(first, {element(e->children[1])});
      case Pattern::zip: {
        std::vector<Expr> parts;
        for (Expr array : e->children) parts.push_back(element(array));
        return tuple(std::move(parts));
      }
      case Pattern::split:
        return repeat(1, element(first));
      case Pattern::join: {
        return only_element(element(first));
      }
      default:
        return first;  // an element of a repetition
    }
  }

  Expr leaf(Expr array) {
    arrays_.push_back(array);
    names_.push_back(fmt::format("\2{}.{}", depth_, arrays_.size()));
    return parameter(names_.back(), array->type->element);
  }

  int depth_;
  std::vector<Expr> arrays_;
  std::vector<std::string> names_;
  std::unordered_map<Expr, Expr> known_;
};

bool is_scalar(Expr e) { return e->type->is_scalar(); }

bool is_materialised_row(Expr e) {
  return e->pattern == Pattern::materialise && e->memory == Memory::private_ && e->type->is_array();
}

// Inlines the let-bound values that the test selects, and replaces an index into an array of one element by the
// element. RowLets then adds the lets that the whole nest needs.
class Inlined {
 public:
  explicit Inlined(bool (*inlines)(Expr) = is_scalar) : inlines_(inlines) {}

  Expr of(Expr e) {
    if (e->children.empty()) return e;
    if (auto found = known_.find(e); found != known_.end()) return found->second;
    std::vector<Expr> children;
    for (Expr c : e->children) children.push_back(of(c));
    const auto made = with_children(e, std::move(children));
    HOIST_CHECK(made.ok(), made.errors()[0].text());
    Expr out = *made;
    if (out->pattern == Pattern::let && inlines_(out->children[0]))
      out = of(apply(out->children[1], {out->children[0]}));
    else if (out->pattern == Pattern::index && out->children[1]->type->size == Nat(1))
      out = only_element(out->children[1]);
    return known_[e] = out;
  }

 private:
  bool (*inlines_)(Expr);
  std::unordered_map<Expr, Expr> known_;
};

// Folds that the elements of a row share, or its materialised arrays; lets around the row bind them.
class RowLets {
 public:
  enum Kind : uint8_t { sums, arrays };
  explicit RowLets(const SharedDimension& rows, Kind kind = sums) : rows_(rows), kind_(kind) {}

  Expr around(Expr row) {
    find(row, false);
    Expr out = replaced(row, shared_.size());
    for (size_t i = shared_.size(); i-- > 0;) {
      const Expr rest = out;
      out = let(replaced(shared_[i], i), [&](Expr v) { return substitute_parameters(rest, {{name(i), v}}); });
    }
    return out;
  }

 private:
  static std::string name(size_t i) { return fmt::format("\2let{}", i); }

  // A closed scalar that folds elements of these rows, or a closed materialised array.
  bool is_shared(Expr e) const {
    if (e->pattern == Pattern::function || e->free > 0) return false;
    if (kind_ == arrays) return is_materialised_row(e);
    if (!e->type->is_scalar() || !folds(e)) return false;
    const std::vector<Expr> reads = parameters_of(e);
    return std::any_of(reads.begin(), reads.end(), [&](Expr p) { return rows_.is_element(p); });
  }

  // In dependency order; a part of a shared scalar is shared if a function inside reads it, a part of an array always.
  void find(Expr e, bool inside_shared) {
    if (!seen_.emplace(e, inside_shared).second) return;
    const bool shared = is_shared(e);
    for (Expr c : e->children) find(c, kind_ == sums && shared && c->pattern != Pattern::function);
    if (shared && !inside_shared && std::find(shared_.begin(), shared_.end(), e) == shared_.end()) shared_.push_back(e);
  }

  // The term with parameters for the first of the shared scalars.
  Expr replaced(Expr e, size_t first) const {
    return replace_closed(e, [&](Expr part) -> Expr {
      const auto end = shared_.begin() + static_cast<ptrdiff_t>(first);
      const auto found = std::find(shared_.begin(), end, part);
      return found == end ? nullptr : parameter(name(static_cast<size_t>(found - shared_.begin())), part->type);
    });
  }

  const SharedDimension& rows_;
  Kind kind_;
  std::vector<Expr> shared_;
  std::set<std::pair<Expr, bool>> seen_;
};

// `reads_folds` becomes true if an array of the nest is computed by folds.
Expr shared_nest(Expr term, int depth, bool by_rows, bool& reads_folds) {
  if (!term->type->is_array() || !SharedDimension::opens(term)) return term;
  SharedDimension dimension(depth);
  const Expr element = dimension.element(term);
  Expr body = shared_nest(by_rows ? Inlined().of(element) : element, depth + 1, by_rows, reads_folds);
  reads_folds |= dimension.reads_folds();
  if (by_rows && body->type->is_array()) body = RowLets(dimension).around(body);
  return dimension.around(body, term->type->size);
}

// The nest over the outermost `rows` dimensions of the term with materialised arrays in lets; null if there is none.
Expr nest_of_rows(Expr term, int depth, int rows) {
  if (!term->type->is_array() || !SharedDimension::opens(term)) return nullptr;
  SharedDimension dimension(depth);
  const Expr element = dimension.element(term);
  Expr body = nullptr;
  if (depth + 1 < rows) {
    body = nest_of_rows(element, depth + 1, rows);
  } else if (element->type->is_array()) {
    body = RowLets(dimension, RowLets::arrays).around(Inlined(is_materialised_row).of(element));
  }
  if (body == nullptr || dimension.computes_arrays()) return nullptr;
  return dimension.around(body, term->type->size);
}

// True if the nest materialises anything but the rows that lets around its rows bind.
bool materialises_elsewhere(Expr nest, int rows) {
  for (int i = 0; i < rows; ++i) {
    if (nest->pattern != Pattern::map) return true;
    nest = nest->children[0]->children[0];
  }
  for (; nest->pattern == Pattern::let && is_materialised_row(nest->children[0]);
       nest = nest->children[1]->children[0]) {
    if (materialises(nest->children[0]->children[0])) return true;
  }
  return materialises(nest);
}

// True if a scan, a scatter or another fold has arrays in its result: it computes a row as a whole.
bool folds_arrays(Expr term) {
  return any_usual_node(term, [](Expr e) { return is_fold(e) && holds_arrays(e->type); });
}

// The largest number of elements that share a fold.
int64_t elements_of_rows(Expr term) {
  int64_t out = 0;
  any_node(term, [&](Expr e) {
    if (e->pattern == Pattern::let && e->children[0]->type->is_scalar() && folds(e->children[0])) {
      const Type shared_by = e->children[1]->children[0]->type;
      if (leaf_of(shared_by)->is_scalar()) out = std::max(out, element_count(shape_of(shared_by)));
    }
    return false;
  });
  return out;
}

}  // namespace

Expr with_shared_elements(Expr term) {
  bool reads_folds = false;
  return shared_nest(term, 0, false, reads_folds);
}

Expr merged_rows(Expr producer, const std::string& value, Expr consumer) {
  bool reads_folds = false;
  const Expr term = Inlined().of(substitute_parameters(consumer, {{value, producer}}));
  const Expr out = shared_nest(term, 0, true, reads_folds);
  return reads_folds || folds_arrays(out) ? nullptr : out;
}

Expr materialised_rows(Expr producer, const std::string& value, Expr consumer) {
  const int dimensions = static_cast<int>(sizes_of(producer->type).size());
  if (dimensions < 2) return nullptr;
  const Expr materialised = map_at(
      dimensions - 1, [](Expr row) { return materialise(Memory::private_, row); }, producer);
  // A join of one array is that array: masks of shifted windows have a dimension of images before that of windows.
  const Expr term = replace_closed(substitute_parameters(consumer, {{value, materialised}}), [](Expr part) -> Expr {
    return part->pattern == Pattern::join && part->children[0]->type->size == Nat(1) ? only_element(part->children[0])
                                                                                     : nullptr;
  });
  const int rows = static_cast<int>(sizes_of(consumer->type).size()) - 1;
  const Expr nest = nest_of_rows(term, 0, rows);
  return nest == nullptr || materialises_elsewhere(nest, rows) ? nullptr : nest;
}

bool gains_by_rows(Expr merged, Expr producer, Expr consumer) {
  // The length of a row of f32 that stays in the L1 and L2 caches; longer reductions are divided among threads
  // (block-reductions).
  constexpr int64_t longest_row = 16384 - 1;
  if (elements_of_rows(merged) > longest_row) return false;
  const int64_t stored = element_count(shape_of(producer->type));
  // Copies of a fold gain a launch, and compute it once for each copy if they are stored apart.
  if (executed_work(consumer).arithmetic() == 0 && element_count(shape_of(consumer->type)) > stored) return false;
  const int64_t more = executed_work(merged).instructions() - executed_work(producer).instructions() -
                       executed_work(consumer).instructions();
  return more <= instructions_of_element * stored;
}

size_t count_reads(Expr term, const std::string& name) {
  constexpr size_t most = size_t{1} << 40;
  std::unordered_map<Expr, size_t> known;
  const std::function<size_t(Expr)> count = [&](Expr e) {
    if (auto found = known.find(e); found != known.end()) return found->second;
    size_t reads = e->pattern == Pattern::parameter && e->name == name ? 1 : 0;
    for (Expr c : e->children) reads = std::min(most, reads + count(c));
    return known[e] = reads;
  };
  return count(term);
}

Expr merged_term(Expr producer, const std::string& value, Expr consumer, bool is_costly) {
  if (is_costly && count_reads(consumer, value) > 1) {
    const Expr shared = with_shared_elements(consumer);
    if (count_reads(shared, value) < count_reads(consumer, value)) consumer = shared;
  }
  return substitute_parameters(consumer, {{value, producer}});
}

bool conserves_work(Expr merged, Expr producer, Expr consumer) {
  // The number of operations that take as long as the launch of another kernel.
  constexpr int64_t launch_operations = 1 << 14;
  const int64_t apart = executed_work(producer).arithmetic() + executed_work(consumer).arithmetic();
  return executed_work(merged).arithmetic() - apart <= launch_operations;
}

}  // namespace hoist
