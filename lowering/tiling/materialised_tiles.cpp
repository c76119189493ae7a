#include "lowering/tiling/materialised_tiles.h"

#include <algorithm>
#include <memory>

#include "ir/properties/properties.h"

namespace hoist {
namespace {

// (position in the dimension / step) % extent; dimension -1 for any other computation.
struct IndexPart {
  int dimension = -1;
  int64_t step = 1, extent = 1;
};
using IndexParts = std::vector<IndexPart>;

// The value of a bound variable: `value`, or its element at `index`, inside the functions of `around`.
struct BoundValue {
  Expr value;
  IndexParts index, around;
  std::shared_ptr<const BoundValue> environment, outer;
};
using BoundValues = std::shared_ptr<const BoundValue>;

IndexPart quotient(const IndexPart& p, int64_t k) {
  return p.dimension < 0 ? p : IndexPart{p.dimension, p.step * k, (p.extent + k - 1) / k};
}
IndexPart remainder(const IndexPart& p, int64_t k) { return p.dimension < 0 ? p : IndexPart{p.dimension, p.step, k}; }
// The part outer * k + inner.
IndexPart together(const IndexPart& outer, const IndexPart& inner, int64_t k) {
  if (k == 1) return outer;
  if (outer.dimension < 0 || outer.dimension != inner.dimension || outer.step != inner.step * k) return {};
  return {inner.dimension, inner.step, outer.extent * k};
}

class MaterialisedArrays {
 public:
  // The index parts that the enclosing functions receive, for each materialised array.
  std::optional<std::vector<IndexParts>> of(Expr term, const IndexParts& index) {
    read(term, index, {}, nullptr, {});
    return known_ && !found_.empty() ? std::optional(found_) : std::nullopt;
  }

 private:
  using Components = std::vector<int64_t>;
  static constexpr int most_reads = 10000;  // a term is a graph, and this recursion visits the tree

  bool known_ = true;
  int reads_ = 0;
  std::vector<IndexParts> found_;

  static IndexParts with_first(IndexParts first, const IndexParts& index, size_t from) {
    first.insert(first.end(), index.begin() + static_cast<std::ptrdiff_t>(from), index.end());
    return first;
  }

  void read_all(Expr e, const IndexParts& index, const Components& components, const BoundValues& env,
                const IndexParts& around) {
    for (Expr c : e->children) read(c, index, components, env, around);
  }

  void read_bound(Expr e, const IndexParts& index, const Components& components, const BoundValues& env) {
    const BoundValue* frame = env.get();
    for (int64_t i = 0; i < e->integers[0]; ++i) frame = frame->outer.get();
    read(frame->value, with_first(frame->index, index, 0), components, frame->environment, frame->around);
  }

  static BoundValues bind(Expr value, const IndexParts& index, const BoundValues& env, const IndexParts& around) {
    return std::make_shared<const BoundValue>(BoundValue{value, index, around, env, env});
  }

  // For a view the index in the viewed array.
  static std::optional<IndexParts> index_in_viewed(Expr e, const IndexParts& index) {
    const auto size = [&](size_t i) { return e->sizes[i].value(); };
    switch (e->pattern) {
      case Pattern::identity:
        return index;
      case Pattern::transpose: {
        IndexParts before = index;
        for (size_t i = 0; i < e->integers.size(); ++i) before[static_cast<size_t>(e->integers[i])] = index[i];
        return before;
      }
      case Pattern::join: {
        const int64_t k = e->children[0]->type->element->size.value();
        return with_first({quotient(index[0], k), remainder(index[0], k)}, index, 1);
      }
      case Pattern::split:
        return with_first({together(index[0], index[1], size(0))}, index, 2);
      case Pattern::pad:
        return with_first({size(0) == 0 ? index[0] : IndexPart{}}, index, 1);
      case Pattern::slice:
        return with_first({size(0) == 0 && e->integers[0] == 1 ? index[0] : IndexPart{}}, index, 1);
      case Pattern::slide:
      case Pattern::tile:
        return with_first({IndexPart{}}, index, 2);
      case Pattern::untile:
        return with_first({IndexPart{}, IndexPart{}}, index, 1);
      case Pattern::repeat:
        return with_first({}, index, 1);
      default:
        return std::nullopt;
    }
  }

  // Visits the element at the index. `components` selects from tuples, the innermost last.
  void read(Expr e, const IndexParts& index, const Components& components, const BoundValues& env,
            const IndexParts& around) {
    if (!known_ || ++reads_ > most_reads) {
      known_ = false;
      return;
    }
    switch (e->pattern) {
      case Pattern::bound:
        return read_bound(e, index, components, env);
      case Pattern::map: {
        IndexParts inside = around;
        inside.push_back(index[0]);
        return read(e->children[0]->children[0], with_first({}, index, 1), components,
                    bind(e->children[1], {index[0]}, env, around), inside);
      }
      case Pattern::reduce:
      case Pattern::fold: {  // the steps have their own index
        IndexParts inside = around;
        inside.push_back({});
        read(e->children[1], index, components, env, around);
        const BoundValues accumulator = bind(e->children[1], {}, env, around);
        return read(
            e->children[0]->children[0], index, components,
            std::make_shared<const BoundValue>(BoundValue{e->children[2], {IndexPart{}}, around, env, accumulator}),
            inside);
      }
      case Pattern::let:
        return read(e->children[1]->children[0], index, components, bind(e->children[0], {}, env, around), around);
      case Pattern::materialise:
        if (e->memory != Memory::private_) return read(e->children[0], index, components, env, around);
        found_.push_back(around);
        return;
      case Pattern::call:
      case Pattern::cast:
      case Pattern::reinterpret:
        return read_all(e, {}, {}, env, around);
      case Pattern::select:
        read(e->children[0], {}, {}, env, around);
        if (!is_rare(e)) read(e->children[1], index, components, env, around);
        return read(e->children[2], index, components, env, around);
      case Pattern::zip:
      case Pattern::tuple: {
        if (components.empty()) break;  // all components are used, in an unknown way
        const Expr wanted = e->children[static_cast<size_t>(components.back())];
        return read(wanted, index, Components(components.begin(), components.end() - 1), env, around);
      }
      case Pattern::get: {
        Components inside = components;
        inside.push_back(e->integers[0]);
        return read(e->children[0], index, inside, env, around);
      }
      case Pattern::concat:
        return read_all(e, with_first({IndexPart{}}, index, 1), components, env, around);
      case Pattern::index:
        read(e->children[0], {}, {}, env, around);
        return read(e->children[1], with_first({IndexPart{}}, index, 0), components, env, around);
      default:
        if (auto before = index_in_viewed(e, index)) return read(e->children[0], *before, components, env, around);
        break;
    }
    known_ &= e->children.empty();
  }
};

// The number of adjacent elements, along a dimension of extent n, for which all parts of the index are equal. This is
// the smallest step if the parts cover the rest of the dimension without a gap; otherwise nothing.
std::optional<int64_t> adjacent_elements(int dimension, int64_t n, IndexParts parts) {
  std::erase_if(parts, [&](const IndexPart& p) { return p.dimension != dimension; });
  std::sort(parts.begin(), parts.end(), [](const IndexPart& a, const IndexPart& b) { return a.step < b.step; });
  if (parts.empty()) return n;
  int64_t covered = parts[0].step;
  for (const IndexPart& p : parts) {
    if (p.step > covered) return std::nullopt;
    covered = std::max(covered, p.step * p.extent);
  }
  return covered >= n ? std::optional(parts[0].step) : std::nullopt;
}

}  // namespace

std::optional<std::vector<int64_t>> materialised_tile(Expr term) {
  const auto keeps = [](Expr e) { return e->pattern == Pattern::materialise && e->memory == Memory::private_; };
  if (!any_node(term, keeps)) return std::nullopt;
  const std::vector<int64_t> shape = shape_of(term->type);
  IndexParts index;
  for (size_t i = 0; i < shape.size(); ++i) index.push_back({static_cast<int>(i), 1, shape[i]});
  const auto materialised = MaterialisedArrays().of(term, index);
  if (!materialised) return std::nullopt;
  std::optional<std::vector<int64_t>> out;
  for (const IndexParts& parts : *materialised) {
    if (std::any_of(parts.begin(), parts.end(), [](const IndexPart& p) { return p.dimension < 0; }))
      return std::nullopt;
    std::vector<int64_t> tile;
    for (size_t i = 0; i < shape.size(); ++i) {
      const auto n = adjacent_elements(static_cast<int>(i), shape[i], parts);
      if (!n) return std::nullopt;
      tile.push_back(*n);
    }
    if (out && *out != tile) return std::nullopt;
    out = tile;
  }
  return out;
}

}  // namespace hoist
