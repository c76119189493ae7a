// GPUs: adjacent work-items compute adjacent elements.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "ir/properties/properties.h"
#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"

namespace hoist {

using namespace loops;

namespace {

void map_elements_to_items(Rewriter& r, const StrategyInput& input, const Profile&) {
  static const char* const rules[] = {"open-global",
                                      "open-collapsed-global",
                                      "open-collapsed-3-global",
                                      "open-collapsed-4-global",
                                      "open-collapsed-5-global",
                                      "open-collapsed-6-global"};
  const Path place = open_outermost(r, input.inside, static_cast<int>(std::size(rules)));
  open(r, rules[rank_at(r.term(), place) - 1], place, {{"d", 0}});
}

// The innermost fold over pairs of scalars, which multiplies the operands of a contraction; empty if there is none.
std::optional<Path> innermost_product(Expr e, const Path& here) {
  // Local memory cannot be filled inside a loop of one work-item, except if that loop and the fold are a single
  // reduction: each step of the outer fold is the inner fold and passes on the accumulator.
  const bool loop = e->pattern == Pattern::fold || e->pattern == Pattern::scan || e->pattern == Pattern::iterate;
  const bool closed = loop && e->children[0]->children[0]->pattern != Pattern::fold;
  for (size_t i = closed ? 1 : 0; i < e->children.size(); ++i) {
    Path child = here;
    child.push_back(static_cast<int>(i));
    if (auto found = innermost_product(e->children[i], child)) return found;
  }
  if (e->pattern != Pattern::fold || e->children[2]->pattern != Pattern::zip) return std::nullopt;
  Type element = e->children[2]->type->element;
  bool scalars = std::all_of(element->parts.begin(), element->parts.end(), [](Type t) { return t->is_scalar(); });
  return scalars ? std::optional(here) : std::nullopt;
}

// Some steps of the fold are unrolled if their operands come directly from global memory.
void write_out_steps(Rewriter& r, const Path& fold) {
  Path steps = fold, inner = fold;
  steps.push_back(2);
  inner.insert(inner.end(), {0, 0});
  const int64_t n = extent(r.term(), steps, 0), together = steps_together(n);
  if (together == n) {
    apply_to_all(r, "fold-to-unroll", fold);
  } else if (together > 1 && apply_to_all(r, "fold-split", fold, {{"k", together}})) {
    apply_to_all(r, "fold-to-unroll", inner);
  }
}

void map_product_to_groups(Rewriter& r, const StrategyInput& input, const Profile&) {
  const Tile& tile = input.tile;
  Path place = collapse_columns(r, input.inside, tile.columns_collapsed);
  if (auto product = innermost_product(r.term(), {})) {
    if (tile.gpu().depth > 0)
      apply_to_all(r, "fold-blocks", *product, {{"k", tile.gpu().depth}});
    else
      write_out_steps(r, *product);
  }
  if (tile.channels_last) {
    static const char* const rules[] = {"open-channels-last-1d", "open-channels-last-2d", "open-channels-last-3d"};
    place = open(r, rules[tile.rows_collapsed], place, {{"d", 1}});
  } else {
    place = open_leading(r, place, 2 + static_cast<int>(tile.rows_collapsed), 1);
  }
  static const char* const rules[] = {"open-tiles", "open-collapsed-row-tiles", "open-collapsed-3-row-tiles"};
  place = open(r, rules[tile.rows_collapsed], place, {{"R", tile.rows}, {"C", tile.columns}});
  place = opened(r.term(), place);  // the second of the two group loops
  if (tile.width > 1) {
    open(r, "open-work-items", place, {{"p", tile.gpu().item_rows}, {"q", tile.gpu().items_across}, {"k", tile.width}});
  } else {
    open(r, "open-work-item-scalars", place, {{"p", tile.gpu().item_rows}, {"q", tile.gpu().items_across}});
  }
}

void map_sums_to_groups(Rewriter& r, const StrategyInput& input, const Profile&) {
  if (auto product = innermost_product(r.term(), {})) write_out_steps(r, *product);
  open_leading(r, input.inside, 0, 0);
}

// The terms that the search for folds has visited, each with the number of maps around it.
using Passed = std::set<std::pair<Expr, int>>;

// The first fold that all elements of a row share and that is long enough to be divided: `rows` maps are around it.
std::optional<Path> long_row_fold(Expr e, int maps, int rows, int64_t least, Path& here, Passed& passed) {
  if (!passed.insert({e, maps}).second) return std::nullopt;
  if (e->pattern == Pattern::fold) {
    const bool shared = maps == rows && folds_numbers(e) && e->children[2]->type->size.value() >= least;
    return shared ? std::optional(here) : std::nullopt;
  }
  for (size_t i = 0; i < e->children.size(); ++i) {
    const bool inside = e->pattern == Pattern::map && i == 0;
    here.push_back(static_cast<int>(i));
    if (auto found = long_row_fold(e->children[i], maps + (inside ? 1 : 0), rows, least, here, passed)) return found;
    here.pop_back();
  }
  return std::nullopt;
}

bool share_out(Rewriter& r, const Path& fold, int64_t most) {
  for (int64_t parts = most; parts >= 8; parts /= 2) {
    for (const char* rule : {"work-group-fold", "work-group-fold-float", "work-group-sum"}) {
      if (apply_to_all(r, rule, fold, {{"p", parts}})) return true;
    }
  }
  return false;
}

// Otherwise one work-item would compute a row's sum while the others of its group wait.
void share_row_folds(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  if (input.strict) return;
  const int rows = rank_at(r.term(), input.inside) - 1;
  const int64_t subgroup = profile.costs.subgroup;
  for (Passed left;;) {
    Path here;
    Passed passed = left;
    const auto place = long_row_fold(r.term(), 0, rows, 2 * subgroup, here, passed);
    if (!place) return;
    const Expr fold = at(r.term(), *place);
    if (!share_out(r, *place, subgroup)) left.insert({fold, rows});
  }
}

void map_rows_to_groups(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  Path place = input.inside;
  if (rank_at(r.term(), place) == 1)
    place = open(r, "open-column-tiles", place, {{"C", extent(r.term(), place, 0)}, {"c", 0}});
  else
    place = open_leading(r, place, 1, 0);
  int64_t columns = extent(r.term(), place, 0), items = std::min({columns, profile.maximum_group, int64_t{256}});
  open(r, "open-local", place, {{"q", items}});
}

}  // namespace

Strategy gpu_rows() {
  return {"group-rows", "GPU: a work-group for each row, whose elements its work-items share",
          [](Expr term, const StrategyInput&, const Profile& profile) { return profile.gpu && shares_folds(term); },
          map_rows_to_groups, share_row_folds};
}

Strategy gpu_tiles() {
  return {"group-tiles", "GPU: a work-group computes a tile of sums; its work-items share operands in local memory",
          [](Expr term, const StrategyInput& input, const Profile&) {
            const GpuTile* tile = input.tile.on_gpu();
            return tile != nullptr && input.folds && tile->items_across > 1 && rank_at(term, input.inside) >= 2;
          },
          map_product_to_groups};
}

Strategy gpu_sums() {
  return {"group-sums", "GPU: a work-group for each element; its work-items share the sum",
          [](Expr term, const StrategyInput& input, const Profile& profile) {
            const auto shared = [](Expr e) { return e->pattern == Pattern::map && e->mode == Mode::local; };
            return profile.gpu && any_node(at(term, input.inside), shared);
          },
          map_sums_to_groups};
}

Strategy gpu_elements() {
  return {"work-items", "GPU: a work-item for each element",
          [](Expr, const StrategyInput&, const Profile& profile) { return profile.gpu; }, map_elements_to_items};
}

}  // namespace hoist
