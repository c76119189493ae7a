// GPUs: adjacent work-items compute adjacent elements.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "ir/properties/properties.h"
#include "ir/target/machine.h"
#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/element_reads.h"

namespace hoist {

using namespace loops;

namespace {

// The lanes of a work-item's vectors: one load of 16 bytes moves more than four of 4 bytes, if there are as many
// work-items as groups of the largest size on all units. A border would leave the stores unaligned.
int64_t lanes_of_item(Expr root, const Path& place, const Profile& profile) {
  const Expr value = at(root, place);
  const std::vector<int64_t> shape = shape_of(value->type);
  const int64_t width = profile.vector_width, elements = element_count(shape);
  const bool is_whole = elements == element_count(shape_of(root->type));
  const bool fills = elements / width >= profile.compute_units * profile.maximum_group;
  return is_whole && fills && shape.back() % width == 0 && reads_vectors(value, width) ? width : 1;
}

void map_elements_to_items(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  static const char* const vector_rules[] = {"open-global-vectors",
                                             "open-rows-global-vectors",
                                             "open-collapsed-global-vectors",
                                             "open-collapsed-3-global-vectors",
                                             "open-collapsed-4-global-vectors",
                                             "open-collapsed-5-global-vectors"};
  const int rank = rank_at(r.term(), input.inside);
  if (rank <= static_cast<int>(std::size(vector_rules))) {
    if (const int64_t lanes = lanes_of_item(r.term(), input.inside, profile); lanes > 1) {
      open(r, vector_rules[rank - 1], input.inside, {{"d", 0}, {"k", lanes}});
      return;
    }
  }
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

// The loops around a term: the number of maps, and of the elements that they visit.
struct Around {
  int maps = 0;
  int64_t elements = 1;
  auto operator<=>(const Around&) const = default;
};
using IsWanted = bool (*)(const Around& around, const std::vector<int64_t>& shape);

bool of_row(const Around& around, const std::vector<int64_t>& shape) { return around.maps == std::ssize(shape) - 1; }
bool of_element(const Around& around, const std::vector<int64_t>& shape) {
  return around.elements == element_count(shape);
}

// The terms that the search for folds has visited.
using Passed = std::set<std::pair<Expr, Around>>;

// The first fold of at least `least` steps inside the wanted loops.
std::optional<Path> long_fold(Expr e, const Around& around, const std::vector<int64_t>& shape, IsWanted wanted,
                              int64_t least, Path& here, Passed& passed) {
  if (!passed.insert({e, around}).second) return std::nullopt;
  if (e->pattern == Pattern::fold) {
    const bool is_long = wanted(around, shape) && folds_numbers(e) && e->children[2]->type->size.value() >= least;
    return is_long ? std::optional(here) : std::nullopt;
  }
  for (size_t i = 0; i < e->children.size(); ++i) {
    Around inside = around;
    if (e->pattern == Pattern::map && i == 0) {
      ++inside.maps;
      inside.elements *= e->type->size.value();
    }
    here.push_back(static_cast<int>(i));
    if (auto found = long_fold(e->children[i], inside, shape, wanted, least, here, passed)) return found;
    here.pop_back();
  }
  return std::nullopt;
}

int64_t least_steps(const Profile& profile) { return 2 * profile.costs.subgroup; }

// Each work-item folds a part; many parts are folded in two steps, the last by every work-item.
bool share_out(Rewriter& r, const Path& fold, int64_t most) {
  constexpr int64_t most_in_one_step = 32, last_parts = 16;
  const int64_t steps = at(r.term(), fold)->children[2]->type->size.value();
  for (int64_t parts = most; parts >= 8; parts /= 2) {
    if (4 * parts > steps) continue;
    for (const char* rule : {"work-group-fold", "work-group-fold-float", "work-group-sum"}) {
      if (!apply_to_all(r, rule, fold, {{"p", parts}})) continue;
      if (parts <= most_in_one_step) return true;
      Path combined = fold;
      combined.insert(combined.end(), {1, 0});
      share_out(r, combined, last_parts);
      return true;
    }
  }
  return false;
}

// More work-items than this leave none for other groups of the unit.
constexpr int64_t most_items = 256;

// The folds inside the wanted loops become folds of their group's work-items. Otherwise one work-item would compute the
// sum while the others of its group wait.
void share_folds(Rewriter& r, const StrategyInput& input, const Profile& profile, IsWanted wanted) {
  if (input.strict) return;
  const std::vector<int64_t> shape = shape_of(at(r.term(), input.inside)->type);
  for (Passed left;;) {
    Path here;
    Passed passed = left;
    const auto place = long_fold(r.term(), {}, shape, wanted, least_steps(profile), here, passed);
    if (!place) return;
    const Expr fold = at(r.term(), *place);
    if (share_out(r, *place, std::min(profile.maximum_group, most_items))) continue;
    for (const auto& [term, around] : passed) {
      if (term == fold) left.insert({term, around});
    }
  }
}

void share_row_folds(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  share_folds(r, input, profile, of_row);
}

void share_folds_of_elements(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  share_folds(r, input, profile, of_element);
}

// True if work-items share folds of the value.
bool has_shared_folds(Expr term, const Path& inside) {
  return any_node(at(term, inside), [](Expr e) { return e->pattern == Pattern::map && e->mode == Mode::local; });
}

// Folds whose steps no number of work-items divides stay with a work-item each.
void map_folds_to_groups(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  if (has_shared_folds(r.term(), input.inside))
    map_sums_to_groups(r, input, profile);
  else
    map_elements_to_items(r, input, profile);
}

// True for a long fold for each element, along adjacent elements of an array, or for so few elements that a work-item
// for each would leave most of the device idle.
bool folds_in_groups(Expr term, const StrategyInput& input, const Profile& profile) {
  if (!profile.gpu || input.strict) return false;
  const Expr value = at(term, input.inside);
  const std::vector<int64_t> shape = shape_of(value->type);
  Path here;
  Passed passed;
  return long_fold(term, {}, shape, of_element, least_steps(profile), here, passed) &&
         (element_count(shape) <= parallel_reductions(profile) / 4 || folds_along_rows(value));
}

void map_rows_to_groups(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  Path place = input.inside;
  if (rank_at(r.term(), place) == 1)
    place = open(r, "open-column-tiles", place, {{"C", extent(r.term(), place, 0)}, {"c", 0}});
  else
    place = open_leading(r, place, 1, 0);
  int64_t columns = extent(r.term(), place, 0), items = std::min({columns, profile.maximum_group, most_items});
  open(r, "open-local", place, {{"q", items}});
}

// The side of a tile that turns in local memory: a subgroup reads or writes a row of it at once.
constexpr int64_t turned_tile = 32, rows_of_item = 4;

// True if the result's rows are strided in memory along the dimension before them, or along channels before the rows of
// an image.
bool turns_rows(Expr term, const StrategyInput& input, const Profile& profile) {
  const Expr value = at(term, input.inside);
  const std::vector<int64_t> shape = shape_of(value->type);
  const size_t rank = shape.size();
  if (!profile.gpu || rank < 2 || rank > 6 || folds(value) || !rows_are_strided(value)) return false;
  const auto lines = dimension_in_lines(value);
  const bool is_near = lines && (*lines == rank - 2 || (rank == 4 && *lines == 1));
  return is_near && shape[*lines] >= turned_tile && shape[rank - 1] >= turned_tile &&
         profile.maximum_group >= turned_tile * turned_tile / rows_of_item;
}

void turn_tiles(Rewriter& r, const StrategyInput& input, const Profile&) {
  const Expr value = at(r.term(), input.inside);
  const bool of_channels = dimension_in_lines(value) != shape_of(value->type).size() - 2;
  const Path place =
      of_channels ? open(r, "open-lines-group", input.inside, {{"d", 2}}) : open_leading(r, input.inside, 2, 2);
  open(r, "open-turned-tiles", place, {{"i", turned_tile / rows_of_item}, {"p", rows_of_item}});
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
            return profile.gpu && has_shared_folds(term, input.inside);
          },
          map_sums_to_groups};
}

Strategy gpu_folds() {
  return {"group-folds", "GPU: a work-group for each element that is a long fold, which its work-items share",
          folds_in_groups, map_folds_to_groups, share_folds_of_elements};
}

Strategy gpu_turned_tiles() {
  return {"group-turned-tiles", "GPU: a work-group for each tile of a transposition, which turns in local memory",
          turns_rows, turn_tiles};
}

Strategy gpu_elements() {
  return {"work-items", "GPU: a work-item for each element",
          [](Expr, const StrategyInput&, const Profile& profile) { return profile.gpu; }, map_elements_to_items};
}

}  // namespace hoist
