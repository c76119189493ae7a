// Scatters: every work-item writes a part of the result, first the initial elements and then the updates of that part,
// in order. Parts are the rows of the maps around the scatter, with adjacent columns in vectors if rows are strided in
// memory. If these parts are too few, each row is divided, and all parts check every update.
#include <algorithm>
#include <optional>

#include "ir/properties/properties.h"
#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"
#include "lowering/terms/arrangement.h"

namespace hoist {

using namespace loops;

namespace {

struct Scattered {
  Path place;
  std::vector<Path> maps;  // maps without a mode, outermost first
};

bool scatters_inside(Expr function) {
  return any_node(function, [](Expr e) { return scatter_form(e).has_value(); });
}

// The scatter that produces the elements of a value, below views, lets and maps.
std::optional<Scattered> find_scatter(Expr root, Path place) {
  Scattered out;
  for (;;) {
    const Expr e = at(root, place);
    switch (e->pattern) {
      case Pattern::scatter:
      case Pattern::fold:
        if (!scatter_form(e)) return std::nullopt;
        out.place = place;
        return out;
      case Pattern::join:
      case Pattern::split:
      case Pattern::transpose:
      case Pattern::untile:
        place.push_back(0);
        break;
      case Pattern::slice:
        if (e->integers[0] != 1) return std::nullopt;
        place.push_back(0);
        break;
      case Pattern::pad:
        if (e->border != Border::undefined) return std::nullopt;
        place.push_back(0);
        break;
      case Pattern::let:
        place.insert(place.end(), {1, 0});
        break;
      case Pattern::map:
        if (scatters_inside(e->children[0])) {
          if (e->mode == Mode::view) out.maps.push_back(place);
          place.insert(place.end(), {0, 0});
        } else if (e->mode == Mode::view && moves_only(e->children[0])) {
          place.push_back(1);
        } else {
          return std::nullopt;
        }
        break;
      default:
        return std::nullopt;
    }
  }
}

// Called after a rule that moved the scatter below its place.
Scattered found_again(Rewriter& r, const StrategyInput& input) {
  auto found = find_scatter(r.term(), input.inside);
  HOIST_CHECK(found.has_value(), "a loop outside the scatter hides it");
  return *found;
}

Path below(Path place, int child) {
  place.push_back(child);
  return place;
}

// The type of positions.
struct PartRules {
  const char *long_positions, *short_positions, *long_combined, *short_combined;
};
constexpr PartRules group_parts = {"scatter-parts-group", "scatter-parts-group-i32", "combined-parts-group",
                                   "combined-parts-group-i32"},
                    item_parts = {"scatter-parts-global", "scatter-parts-global-i32", "combined-parts-global",
                                  "combined-parts-global-i32"};

// Divides each row into `parts` parts, if it has that many elements.
void open_parts(Rewriter& r, const StrategyInput& input, const PartRules& rules, int64_t parts, int64_t multiple,
                int d) {
  const Path place = found_again(r, input).place;
  const int64_t n = extent(r.term(), place, 0);
  const int64_t k = ((n + parts - 1) / parts + multiple - 1) / multiple * multiple;
  if (parts < 2 || k >= n) return;
  const ScatterForm form = *scatter_form(at(r.term(), place));
  const bool is_long = leaf_of(form.positions->type)->scalar == Scalar::i64;
  const char* rule = form.combine ? is_long ? rules.long_combined : rules.short_combined
                     : is_long    ? rules.long_positions
                                  : rules.short_positions;
  r.apply(rule, place, {{"k", k}, {"c", (n + k - 1) / k * k - n}, {"d", d}});
}

// Opens loops over the elements of an array, the last dimension's in vectors.
void open_elements(Rewriter& r, Path place, const Profile& profile) {
  place = open_outermost(r, place, 1);
  open_columns(r, place, profile.vector_width);
}

void map_scatter_on_cpu(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  const bool across = rows_are_strided(at(r.term(), input.inside));
  Scattered scattered = found_again(r, input);
  int64_t rows = 1;
  bool in_columns = false;
  if (!scattered.maps.empty()) {
    const Path innermost = scattered.maps.back();
    const int64_t n = extent(r.term(), innermost, 0);
    const int64_t lanes = across ? lanes_of(n, profile.vector_width) : 1;
    in_columns = lanes > 1 && n % lanes == 0 && r.apply("vectorise-group", innermost, {{"k", lanes}, {"d", 0}});
    if (in_columns) rows = n / lanes;
    if (!in_columns || scattered.maps.size() > 1) {
      rows *= extent(r.term(), scattered.maps.front(), 0);
      r.apply("map-to-group", scattered.maps.front(), {{"d", 1}});
    }
  }
  open_parts(r, input, group_parts, (profile.compute_units + rows - 1) / rows, profile.vector_width, 2);
  const Path place = found_again(r, input).place;
  const bool of_rows = rank_at(r.term(), place) > 1;
  if (of_rows) open_elements(r, below(place, 1), profile);  // the updates
  const Path base = below(place, at(r.term(), place)->pattern == Pattern::scatter ? 2 : 1);
  if (in_columns)
    open_outermost(r, base, 0);
  else
    open_elements(r, base, profile);
}

void map_scatter_on_gpu(Rewriter& r, const StrategyInput& input, const Profile&) {
  constexpr int64_t wanted = 16384;  // number of work-items to aim for
  while (rank_at(r.term(), found_again(r, input).place) > 1) {
    if (!r.apply("scatter-of-rows", found_again(r, input).place)) break;
  }
  int64_t rows = 1;
  for (int d = 0; d < 2; ++d) {
    const Scattered scattered = found_again(r, input);
    if (scattered.maps.empty()) break;
    rows *= extent(r.term(), scattered.maps.back(), 0);
    r.apply("map-to-global", scattered.maps.back(), {{"d", d}});
  }
  open_parts(r, input, item_parts, wanted / std::min(rows, wanted), 1, rows == 1 ? 0 : 2);
}

}  // namespace

bool maps_scatter(Expr term, const Path& inside) {
  const auto found = find_scatter(term, inside);
  return found && leaf_of(at(term, found->place)->type)->is_scalar();
}

Strategy scatters() {
  return {"scatters",
          "a work-item for each part of the result, which starts with the old elements and applies updates in order",
          [](Expr term, const StrategyInput& input, const Profile&) {
            return input.materialised.empty() && maps_scatter(term, input.inside);
          },
          [](Rewriter& r, const StrategyInput& input, const Profile& profile) {
            return profile.gpu ? map_scatter_on_gpu(r, input, profile) : map_scatter_on_cpu(r, input, profile);
          }};
}

}  // namespace hoist
