// GPUs: work-items side by side, neighbours at neighbouring elements.
#include <algorithm>
#include <iterator>
#include <optional>

#include "ir/properties.h"
#include "lowering/grouping.h"
#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"

namespace hoist {

using namespace loops;

namespace {

void map_elements_to_items(Rewriter& r, const StrategyInput& input, const Profile&) {
  static const char* const rules[] = {"open-global",          "open-joined-global",   "open-joined-3-global",
                                      "open-joined-4-global", "open-joined-5-global", "open-joined-6-global"};
  const Path place = open_outermost(r, input.inside, static_cast<int>(std::size(rules)));
  open(r, rules[rank_at(r.term(), place) - 1], place, {{"d", 0}});
}

// The innermost fold over pairs of numbers, where the operands of a product meet; empty if there is none.
std::optional<Path> innermost_product(Expr e, const Path& here) {
  // Local memory cannot be filled inside a loop of one work-item, unless that is one loop with the fold: an outer fold
  // whose steps are the inner one hands its accumulator on.
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

void map_product_to_groups(Rewriter& r, const StrategyInput& input, const Profile&) {
  Path place = input.inside;
  const Tile& tile = input.tile;
  if (tile.depth > 0) {
    if (auto product = innermost_product(r.term(), {})) r.apply("fold-blocks", *product, {{"k", tile.depth}});
  }
  if (tile.channels_last) {
    static const char* const rules[] = {"open-channels-last-1d", "open-channels-last-2d", "open-channels-last-3d"};
    place = open(r, rules[tile.rows_joined], place, {{"d", 1}});
  } else {
    place = open_leading(r, place, 2 + static_cast<int>(tile.rows_joined), 1);
  }
  static const char* const rules[] = {"open-tiles", "open-joined-row-tiles", "open-joined-3-row-tiles"};
  place = open(r, rules[tile.rows_joined], place, {{"R", tile.rows}, {"C", tile.columns}});
  place = opened(r.term(), place);  // the second of the two group loops
  if (tile.width > 1) {
    open(r, "open-work-items", place, {{"p", tile.item_rows}, {"q", tile.items_across}, {"k", tile.width}});
  } else {
    open(r, "open-work-item-scalars", place, {{"p", tile.item_rows}, {"q", tile.items_across}});
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
  return {"group-rows", "GPU: a work-group a row, its elements among the work-items",
          [](Expr term, const StrategyInput&, const Profile& profile) { return profile.gpu && shares_folds(term); },
          map_rows_to_groups};
}

Strategy gpu_tiles() {
  return {"group-tiles", "GPU: a work-group computes a tile of sums, its work-items share operands in local memory",
          [](Expr term, const StrategyInput& input, const Profile& profile) {
            return profile.gpu && input.folds && input.tile.items_across > 1 && rank_at(term, input.inside) >= 2;
          },
          map_product_to_groups};
}

Strategy gpu_elements() {
  return {"work-items", "GPU: a work-item an element",
          [](Expr, const StrategyInput&, const Profile& profile) { return profile.gpu; }, map_elements_to_items};
}

}  // namespace hoist
