// CPUs: one work-item per group, with vectors and register tiles.
#include <iterator>
#include <optional>

#include "ir/properties/properties.h"
#include "lowering/cost/work.h"
#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/element_reads.h"

namespace hoist {

using namespace loops;

namespace {

int64_t missing(int64_t n, int64_t k) { return (n + k - 1) / k * k - n; }

// An NCHW image (a model's output) is computed in NHWC order and transposed in private memory: storing vectors lane by
// lane costs as much as the convolution (56x56x64).
void map_register_tiles(Rewriter& r, const StrategyInput& input, const Profile&) {
  static const char* const by_columns[] = {"open-tiles-by-columns", "open-tiles-by-columns-3d",
                                           "open-tiles-by-columns-4d", "open-tiles-by-columns-5d",
                                           "open-tiles-by-columns-6d"};
  static const char* const through_lines[] = {"open-collapsed-row-tiles", "open-collapsed-3-row-tiles"};
  const Tile& tile = input.tile;
  Path place = collapse_columns(r, input.inside, tile.columns_collapsed);
  const bool columns_inside = tile.cpu().loop_order == CpuTile::columns_inside;
  if (tile.cpu().loop_order == CpuTile::all_rows_outside) {
    place = open_outermost(r, place, 1 + static_cast<int>(std::size(by_columns)));
  } else if (tile.cpu().loop_order == CpuTile::planes_inside) {
    place = open_outermost(r, place, 4);
  } else if (tile.channels_last && tile.rows_collapsed > 0) {
    static const char* const rules[] = {"open-channels-last-2d", "open-channels-last-3d"};
    place = open(r, rules[tile.rows_collapsed - 1], place, {{"d", 1}});
  } else if (tile.channels_last) {
    static const char* const rules[] = {"open-channels-last-1d", "open-channels-last-2d-group",
                                        "open-channels-last-3d-group"};
    place = open(r, rules[rank_at(r.term(), place) - 3], place, {{"d", columns_inside ? 2 : 1}});
  } else {
    place = open_leading(r, place, 2 + static_cast<int>(tile.rows_collapsed), columns_inside ? 2 : 1);
  }
  if (const int rank = rank_at(r.term(), place); rank >= 2) {
    place = open(r,
                 tile.cpu().loop_order == CpuTile::planes_inside ? "open-tiles-planes-inside"
                 : tile.rows_collapsed > 0                       ? through_lines[tile.rows_collapsed - 1]
                 : tile.cpu().shifted                            ? "open-shifted-tiles"
                 : columns_inside                                ? "open-tiles-columns-inside"
                 : tile.cpu().loop_order > 0                     ? by_columns[rank - 2]
                                                                 : "open-tiles",
                 place, {{"R", tile.rows}, {"C", tile.columns}});
    const int loops = tile.rows_collapsed > 0 ? 2 : std::min(rank, 3);
    for (int i = 2; i <= loops; ++i) place = opened(r.term(), place);  // the innermost of the group loops
    if (tile.channels_last && tile.width > 1) {
      if (tile.cpu().matrix_rows > 0)
        open(r, "open-transposed-matrix-tile", place, {{"R", tile.cpu().matrix_rows}, {"k", tile.width}});
      else
        open(r, "open-transposed-tile", place, {{"k", tile.width}});
      return;
    }
    place = tile.cpu().matrix_rows > 0
                ? opened(r.term(), open(r, "open-matrix-rows", place, {{"R", tile.cpu().matrix_rows}}))
                : open(r, "open-unroll", place);
  } else {
    int64_t columns = extent(r.term(), place, 0);
    place = open(r, "open-column-tiles", place, {{"C", tile.columns}, {"c", missing(columns, tile.columns)}});
  }
  open_tile_columns(r, place, tile.width);
}

// The innermost folds of more than one step.
void innermost_folds(Expr e, Path& place, std::vector<Path>& out) {
  const size_t before = out.size();
  for (size_t i = 0; i < e->children.size(); ++i) {
    place.push_back(static_cast<int>(i));
    innermost_folds(e->children[i], place, out);
    place.pop_back();
  }
  const bool is_fold = e->pattern == Pattern::fold && e->children[2]->type->size.value() > 1;
  if (is_fold && out.size() == before) out.push_back(place);
}

// Words in sequence become one step of a matrix instruction's fold; the steps of windows along a row are unrolled. An
// activation may name the same sum twice; it is computed once as long as both are the same term.
void prepare_folds(Rewriter& r, const StrategyInput& input, const Profile&) {
  if (input.tile.cpu().matrix_words > 0 && input.interleaved) {
    const RuleArguments words = {{"k", input.tile.cpu().matrix_words}};
    if (!apply_to_all_of_first(r, "fold-matrix-words", words)) apply_to_all_of_first(r, "fold-matrix-pairs", words);
  }
  if (input.tile.cpu().window == 0) return;
  std::vector<Path> folds;
  Path place;
  innermost_folds(r.term(), place, folds);
  for (const Path& fold : folds) r.apply("fold-to-unroll", fold);
}

// The number of rows of `columns` columns that a work-group computes: a short row takes less time than the launch of
// its group, about 6 ns in PoCL.
int64_t rows_together(int64_t rows, int64_t columns, const OpenExtents& open) {
  constexpr int64_t most = 512;  // limit of elements per work-group: some tens of vectors
  if (open.contain(rows)) return open.block_rows(rows, most / open.typical(columns));
  int64_t together = std::clamp<int64_t>(most / open.typical(columns), 1, rows);
  while (rows % together != 0) --together;
  return together;
}

// True if a vector of at least the minimum useful width fits into the columns.
bool fills_a_vector(int64_t columns, int64_t width) {
  return lanes_of_columns(columns, width) >= std::min(few_lanes, width);
}

// Opens work-groups of `rows` whole rows each; returns the place of a group's rows.
Path open_whole_rows(Rewriter& r, const Path& place, int64_t rows) {
  return opened(r.term(), open(r, "open-tiles", place, {{"R", rows}, {"C", extent(r.term(), place, 1)}}));
}

Path open_row_groups(Rewriter& r, const Path& place, const OpenExtents& open_sizes) {
  const int64_t together = rows_together(extent(r.term(), place, 0), extent(r.term(), place, 1), open_sizes);
  if (together == 1) return open(r, "open-group", place, {{"d", 0}});
  return open(r, "open-seq", open_whole_rows(r, place, together));
}

// True if the lanes of a vector are elements of different rows, as many as a work-group computes.
bool rows_are_lanes(Expr term, const Path& place, const Profile& profile, const OpenExtents& open) {
  const int rank = rank_at(term, place);
  if (rank == 1) return false;
  const int64_t columns = extent(term, place, rank - 1);
  return !fills_a_vector(columns, profile.vector_width) &&
         rows_together(extent(term, place, rank - 2), columns, open) >= profile.vector_width;
}

// One work-group for each row, so that values shared by the row's elements are computed once. Each part of a short row
// depends on the previous part, so a work-group computes two adjacent rows.
void map_rows(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  constexpr int64_t short_row = 192;
  Path place = input.inside;
  const int rank = rank_at(r.term(), place);
  const int64_t columns = extent(r.term(), place, rank - 1);
  if (rank == 1) {
    place = open(r, "open-column-tiles", place, {{"C", columns}, {"c", 0}});
  } else if (const int64_t rows = rows_together(extent(r.term(), place, rank - 2), columns, input.open);
             rows_are_lanes(r.term(), place, profile, input.open)) {
    place = open(r, "open-columns", open_whole_rows(r, open_leading(r, place, 2, 1), rows));
  } else if (columns <= short_row && columns % profile.vector_width == 0 &&
             extent(r.term(), place, rank - 2) % 2 == 0) {
    place = open(r, "open-unroll", open_whole_rows(r, open_leading(r, place, 2, 1), 2));
  } else if (rows > 1) {
    place = open_row_groups(r, open_leading(r, place, 2, 1), input.open);
  } else {
    place = open_leading(r, place, 1, 0);
  }
  open_columns(r, place, profile.vector_width, input.open);
}

// True if the elements of a vector of the result share all their folds. They do if rows are stored in the order of
// computation; in a transposed result the lanes of a vector belong to different rows, so folds are folds of vectors
// already.
bool vectors_share_folds(Expr e) {
  const auto share = [](Expr part) { return !folds(part) || vectors_share_folds(part); };
  switch (e->pattern) {
    case Pattern::let:
      return folds(e->children[0]);
    case Pattern::map:
      if (shares_folds(e->children[0])) return vectors_share_folds(e->children[0]->children[0]);
      return !folds(e->children[0]) && std::all_of(e->children.begin() + 1, e->children.end(), share);
    case Pattern::zip:
    case Pattern::join:
    case Pattern::split:
    case Pattern::slice:
      return std::all_of(e->children.begin(), e->children.end(), share);
    default:
      return false;
  }
}

// The sum and the elements of a softmax share values, which are computed once, in whole vectors: element by element its
// exponentials would take longer than in two passes.
void materialise_exponentials(Rewriter& r, const Path& place, const Profile& profile) {
  const auto in_vectors = [&](const std::optional<Path>& let, int64_t lanes) {
    if (!let) return;
    Path loop = *let;
    loop.insert(loop.end(), {0, 0});
    open(r, "open-vector-loop", loop, {{"k", lanes}});
  };
  for (const int64_t lanes : {profile.vector_width, profile.vector_width / 2}) {
    if (lanes <= 1) continue;
    const RuleArguments k = {{"k", lanes}};
    if (r.apply_first("softmax-by-reciprocal", k, place))
      return in_vectors(r.apply_first("softmax-materialised", k, place), lanes);
    if (auto padded = r.apply_first("softmax-in-vectors", k, place)) {
      padded->insert(padded->end(), {1, 0});  // below the largest element
      return in_vectors(padded, lanes);
    }
  }
}

// The values that are computed once for each row of the result: scalars that lets name and, with `elements`, scalar
// results of maps. Vectors of any other values would be nested in the vectors of the row.
void values_of_rows(Expr e, bool elements, Path& place, std::vector<Path>& out) {
  const auto visit = [&](std::initializer_list<int> steps, Expr part, bool further) {
    place.insert(place.end(), steps);
    values_of_rows(part, further, place, out);
    place.resize(place.size() - steps.size());
  };
  if (!e->type->is_array()) {
    if (elements) out.push_back(place);
    return;
  }
  if (e->pattern == Pattern::let) {
    out.push_back(place);
    out.back().push_back(0);
    return visit({1, 0}, e->children[1]->children[0], elements);
  }
  const bool is_map = e->pattern == Pattern::map, opened = is_map && e->mode != Mode::view;
  for (size_t i = 0; i < e->children.size(); ++i) {
    const Expr part = e->children[i];
    if (part->pattern == Pattern::function) {
      if (is_map && !opened) visit({static_cast<int>(i), 0}, part->children[0], elements);
    } else if (part->type->is_array()) {
      visit({static_cast<int>(i)}, part, elements && !(is_map && !opened));
    }
  }
}

// True if adjacent elements of the array are adjacent in memory: its elements are stored, are the integers 0, 1, ...,
// or are each computed from one such element, through views that keep adjacent elements adjacent. `functions` are the
// arrays that the enclosing maps run over, or that lets name, outermost first; null for other binders.
bool lies_in_memory(Expr e, std::vector<Expr> functions) {
  std::vector<int64_t> components;  // for tuples: the components of e's array that are needed
  while (e != nullptr) {
    switch (e->pattern) {
      case Pattern::parameter:
      case Pattern::iota:
      case Pattern::literal:
        return true;
      case Pattern::call:
      case Pattern::select:
      case Pattern::cast:
      case Pattern::reinterpret:
        return components.empty() && std::all_of(e->children.begin(), e->children.end(),
                                                 [&](Expr part) { return lies_in_memory(part, functions); });
      case Pattern::bound: {
        const auto outwards = static_cast<size_t>(e->integers[0]);
        if (outwards >= functions.size()) return false;
        // A scalar bound by a let is the same for all elements.
        if (functions[functions.size() - 1 - outwards] == nullptr && e->type->is_scalar()) return true;
        e = functions[functions.size() - 1 - outwards];
        functions.resize(functions.size() - 1 - outwards);
        break;
      }
      case Pattern::map:
        if (e->mode != Mode::view || e->children[0]->parameters.size() != 1) return false;
        functions.push_back(e->children[1]);
        e = e->children[0]->children[0];
        break;
      case Pattern::get:
        components.push_back(e->integers[0]);
        e = e->children[0];
        break;
      case Pattern::zip:
        if (components.empty()) {  // one stored array, perhaps zipped with positions: two arrays would be read as tiles
          const auto is_stored = [](Expr part) { return part->pattern != Pattern::iota; };
          return std::count_if(e->children.begin(), e->children.end(), is_stored) <= 1 &&
                 std::all_of(e->children.begin(), e->children.end(),
                             [&](Expr part) { return lies_in_memory(part, functions); });
        }
        e = e->children[static_cast<size_t>(components.back())];
        components.pop_back();
        break;
      case Pattern::transpose:  // the bounds of the functions around the rows
        if (e->integers.size() == sizes_of(e->type).size() &&
            e->integers.back() + 1 != static_cast<int64_t>(e->integers.size()))
          return false;
        e = e->children[0];
        break;
      case Pattern::join:
      case Pattern::split:
      case Pattern::slice:
        e = e->children[0];
        break;
      default:
        return false;
    }
  }
  return false;
}

// True if all folds run over rows in their order in memory, at least two vectors long: then the lanes of a vector are
// adjacent elements of a row, and adjacent rows of the result would be read with a stride.
bool folds_stored_rows(Expr e, std::vector<Expr>& functions, int64_t width, bool& any) {
  if (e->pattern == Pattern::fold) {
    any = true;
    return folds_numbers(e) && e->children[2]->type->size.value() >= 2 * width &&
           lies_in_memory(e->children[2], functions);
  }
  for (Expr c : e->children) {
    const size_t before = functions.size();
    if (c->pattern == Pattern::function) {
      // A map passes its function of one argument an element of an array; a let passes the array itself.
      const bool element = e->pattern == Pattern::map && c->parameters.size() == 1;
      const bool named = e->pattern == Pattern::let && c->parameters.size() == 1 && e->children[0]->type->is_array();
      const Expr array = element ? e->children[1] : named ? e->children[0] : nullptr;
      for (size_t i = 0; i < c->parameters.size(); ++i) functions.push_back(array);
    }
    const bool holds = folds_stored_rows(c->pattern == Pattern::function ? c->children[0] : c, functions, width, any);
    functions.resize(before);
    if (!holds) return false;
  }
  return true;
}

bool folds_stored_rows(Expr term, int64_t width) {
  std::vector<Expr> functions;
  bool any = false;
  return folds_stored_rows(term, functions, width, any) && any;
}

void map_folded_rows(Rewriter& r, const StrategyInput& input, const Profile&) { open_leading(r, input.inside, 0, 0); }

// The dimension of a value that holds the elements of a scalar scan, if views leave them in one dimension. A loop over
// that dimension outside the scan would repeat the scan in each step.
std::optional<int> scanned_dimension(Expr e) {
  const auto inside = [](std::optional<int> found, int further) {
    return found ? std::optional<int>(*found + further) : found;
  };
  switch (e->pattern) {
    case Pattern::scan:
      return leaf_of(e->type)->is_scalar() && shape_of(e->type).size() == 1 ? std::optional<int>(0) : std::nullopt;
    case Pattern::let:
      return scanned_dimension(e->children[1]->children[0]);
    case Pattern::slice:
    case Pattern::pad:
      return scanned_dimension(e->children[0]);
    case Pattern::map: {
      if (e->mode != Mode::view) return std::nullopt;
      if (const auto found = scanned_dimension(e->children[0]->children[0])) return inside(found, 1);
      const auto found = e->children.size() == 2 ? scanned_dimension(e->children[1]) : std::nullopt;
      return found == 0 ? found : std::nullopt;
    }
    case Pattern::transpose: {
      const auto found = scanned_dimension(e->children[0]);
      for (size_t i = 0; found && i < e->integers.size(); ++i) {
        if (e->integers[i] == *found) return static_cast<int>(i);
      }
      return found && *found >= static_cast<int>(e->integers.size()) ? found : std::nullopt;
    }
    case Pattern::join: {
      const auto found = scanned_dimension(e->children[0]);
      return found && *found >= 2 ? inside(found, -1) : std::nullopt;
    }
    case Pattern::split: {
      const auto found = scanned_dimension(e->children[0]);
      return found && *found >= 1 ? inside(found, 1) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// A work-group computes each scan once: of one row, or of as many adjacent columns as a vector has lanes.
void map_scans(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  Path place = input.inside;
  const int behind = rank_at(r.term(), place) - 1 - *scanned_dimension(at(r.term(), place));
  if (behind == 0) return map_rows(r, input, profile);
  const int64_t lanes = lanes_of(extent(r.term(), place, rank_at(r.term(), place) - 1), profile.vector_width);
  if (lanes > 1) {
    // Rows in memory are read in pieces that are as long as possible while every core has a piece.
    const int64_t vectors = extent(r.term(), place, rank_at(r.term(), place) - 1) / lanes;
    int64_t together = std::clamp<int64_t>(vectors / (2 * profile.compute_units), 1, 16);
    while (vectors % together != 0) --together;
    if (r.apply("scan-columns", place, {{"k", lanes}, {"l", together}})) return;
    if (r.apply("scan-computed-columns", place, {{"k", lanes}})) return;
  }
  place = open_leading(r, place, behind + 1, 1);
  open(r, behind == 1 ? "open-scanned-columns" : "open-scanned-planes", place);
}

bool maps_scans(Expr term, const StrategyInput& input, const Profile& profile) {
  if (profile.gpu || !input.materialised.empty()) return false;
  const Expr inside = at(term, input.inside);
  const auto scanned = scanned_dimension(inside);
  return scanned && leaf_of(inside->type)->is_scalar() &&
         static_cast<int>(shape_of(inside->type).size()) - 1 - *scanned <= 2;
}

// The fold that changes rows of the result in place, inside maps without a mode, outermost first.
struct Steps {
  Path place;
  std::vector<Path> maps;
};

std::optional<Steps> find_steps(Expr term, Path place) {
  Steps out;
  for (Expr e = at(term, place); e->pattern == Pattern::map && e->mode == Mode::view; e = at(term, place)) {
    if (moves_only(e->children[0])) {  // the padding of rows
      place.push_back(1);
      continue;
    }
    out.maps.push_back(place);
    place.insert(place.end(), {0, 0});
  }
  if (out.maps.size() > 3 || !changes_in_place(at(term, place))) return std::nullopt;
  out.place = place;
  return out;
}

// A work-group runs all steps of a row. Each step changes an element once, so vectors do not overlap.
void map_steps(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  const Steps found = *find_steps(r.term(), input.inside);
  auto dimension = static_cast<int64_t>(found.maps.size());
  for (const Path& place : found.maps) r.apply("map-to-group", place, {{"d", --dimension}});
  Path start = found.place, body = found.place;
  start.push_back(1);
  open_columns(r, open_outermost(r, start, 1), profile.vector_width, input.open);
  body.insert(body.end(), {0, 0});
  while (at(r.term(), body)->pattern == Pattern::let) body.insert(body.end(), {1, 0});
  int64_t lanes = profile.vector_width;
  while (extent(r.term(), body, 0) % lanes != 0) lanes /= 2;
  if (lanes > 1)
    open(r, "open-vector-loop", body, {{"k", lanes}});
  else
    open(r, "open-seq", body);
}

// A row that is the whole result is divided into pieces, each large enough for a work-group.
Path open_column_groups(Rewriter& r, const Path& place, int64_t width, const OpenExtents& open_sizes) {
  constexpr int64_t least = 2048, most = 8192;
  const int64_t n = extent(r.term(), place, 0);
  if (open_sizes.typical(n) < 2 * least) return place;
  int64_t columns = most;  // whole vectors, and of equal size if possible
  for (int64_t k = most; k >= least; k -= width) {
    if (n % k != 0 || open_sizes.contain(n)) continue;
    columns = k;
    break;
  }
  return open(r, "open-column-tiles", place, {{"C", columns}, {"c", missing(n, columns)}});
}

// The number of lanes that fills a register with narrow integers, for kernels that read and write only such arrays: at
// most OpenCL's 16. Short floats are computed as f32.
int64_t lanes_of_elements(Expr term, const Profile& profile) {
  if (profile.vector_width == 1) return 1;
  const auto bits_of = [](Type type) {
    const Scalar scalar = leaf_of(type)->scalar;
    return is_float(scalar) ? 32 : int64_t{row(scalar).bits};
  };
  int64_t bits = std::max<int64_t>(8, bits_of(term->type));
  for (Expr p : parameters_of(term)) {
    if (p->type->is_array()) bits = std::max(bits, bits_of(p->type));
  }
  return bits > 16 ? profile.vector_width : std::min<int64_t>(16, profile.vector_width * 32 / bits);
}

// Vectors in the tail of a row are read and written lane by lane, which takes longer than shorter vectors.
int64_t lanes_of_block(int64_t columns, int64_t width, const OpenExtents& open) {
  if (open.contain(columns)) return width;
  for (int64_t lanes = width; lanes >= std::min(few_lanes, width); lanes /= 2) {
    if (columns % lanes == 0) return lanes;
  }
  return width;
}

// About as many rows as fill a cache line; the number divides all rows, since a tail needs guards.
int64_t rows_of_block(int64_t rows, int64_t width, const OpenExtents& open) {
  if (open.contain(rows)) return width;
  if (rows <= 2 * width) return rows;
  for (int64_t block = 2 * width; block > width / 2; --block) {
    if (rows % block == 0) return block;
  }
  return width;
}

// Fewer rows than a vector has lanes pay if the columns have no tail.
bool worth_blocks(int64_t rows, int64_t columns, int64_t width) {
  return rows >= width || (rows >= few_lanes && columns % few_lanes == 0);
}

// True for a copy that gathers the lanes of its vectors from a row of few, whole vectors, as a shuffle of channels
// does. Written out, the positions are constants instead of divisions for each lane: 0.8 ns an element instead of 2.5
// for 60 channels in three groups (one core of a Xeon).
bool computes_positions(Expr term, const Path& place, int64_t width, const OpenExtents& open) {
  constexpr int64_t most_vectors = 16;
  const Expr value = at(term, place);
  const int64_t columns = shape_of(value->type).back();
  return width > 1 && !open.contain(columns) && columns % width == 0 && columns <= most_vectors * width &&
         executed_work(value).arithmetic() == 0 && !reads_vectors(value, width);
}

void map_elements(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  Path place = input.inside;
  int rank = rank_at(r.term(), place);
  int64_t width = profile.vector_width;
  // Rows of a transposition are columns in memory: adjacent rows are computed together, while their operands are in the
  // cache.
  if (width > 1 && rank >= 2 && rows_are_strided(at(r.term(), place)) && extent(r.term(), place, rank - 1) >= width &&
      worth_blocks(extent(r.term(), place, rank - 2), extent(r.term(), place, rank - 1), width)) {
    const bool planes = rank == 4 && dimension_in_lines(at(r.term(), place)) == size_t{1} &&
                        worth_blocks(extent(r.term(), place, 1), extent(r.term(), place, 3), width);
    place = planes ? open(r, "open-lines-group", place, {{"d", 1}}) : open_leading(r, place, 2, 1);
    const int64_t rows = rows_of_block(extent(r.term(), place, 0), width, input.open);
    const int64_t columns = lanes_of_block(extent(r.term(), place, 1), width, input.open);
    open(r, "open-blocks", place, {{"R", rows}, {"C", columns}});
    return;
  }
  width = lanes_of_elements(r.term(), profile);
  const bool written_out = computes_positions(r.term(), place, width, input.open);
  int64_t leading = 1;
  for (int i = 0; i + 2 < rank; ++i) leading *= input.open.typical(extent(r.term(), place, i));
  place = open_leading(r, place, 2, 1);
  // Three colours do not fill a vector; the elements of the dimension before them do.
  if (leading >= 8 && !fills_a_vector(extent(r.term(), place, 1), width) &&
      fills_a_vector(extent(r.term(), place, 0), width))
    place = open(r, "open-columns", place);
  else if (rank == 1)
    place = open_column_groups(r, place, width, input.open);
  else if (rank >= 2)
    place = leading >= 8 ? open(r, "open-seq", place) : open_row_groups(r, place, input.open);
  if (written_out)
    open(r, "open-vectors", place, {{"k", width}});
  else
    open_columns(r, place, width, input.open);
}

}  // namespace

void loops::vectorise_shared_folds(Rewriter& r, const Path& place, const Profile& profile, const OpenExtents& open) {
  if (!vectors_share_folds(at(r.term(), place))) return;
  materialise_exponentials(r, place, profile);
  if (rows_are_lanes(r.term(), place, profile, open)) return;
  const int64_t columns = extent(r.term(), place, rank_at(r.term(), place) - 1);
  Path inside = place;
  std::vector<Path> values;
  values_of_rows(at(r.term(), inside), lanes_of_columns(columns, profile.vector_width) == 1, inside, values);
  for (const Path& value : values) vectorise_folds(r, profile.vector_width, open, value);
}

Strategy cpu_steps() {
  return {"steps", "CPU: a work-group runs all steps that change a row in place",
          [](Expr term, const StrategyInput& input, const Profile& profile) {
            return !profile.gpu && input.materialised.empty() && find_steps(term, input.inside).has_value();
          },
          map_steps,
          [](Rewriter& r, const StrategyInput& input, const Profile& profile) {
            if (!input.strict) vectorise_folds(r, profile.vector_width, input.open);
          }};
}

Strategy cpu_scans() { return {"scans", "CPU: a work-group computes each scan once", maps_scans, map_scans}; }

Strategy cpu_rows() {
  return {"rows", "CPU: a work-group computes a row and, once, the values that its elements share",
          [](Expr term, const StrategyInput&, const Profile& profile) { return !profile.gpu && shares_folds(term); },
          map_rows,
          [](Rewriter& r, const StrategyInput& input, const Profile& profile) {
            if (!input.strict) vectorise_shared_folds(r, input.inside, profile, input.open);
          }};
}

Strategy cpu_folded_rows() {
  return {"folded-rows", "CPU: a work-group folds a row in its order in memory, in vectors",
          [](Expr term, const StrategyInput& input, const Profile& profile) {
            return !profile.gpu && !input.strict && input.folds && input.materialised.empty() &&
                   profile.vector_width > 1 && folds_stored_rows(term, profile.vector_width);
          },
          map_folded_rows,
          [](Rewriter& r, const StrategyInput& input, const Profile& profile) {
            vectorise_folds(r, profile.vector_width, input.open);
          }};
}

Strategy cpu_register_tiles() {
  return {"register-tiles", "CPU: a work-group computes a tile of sums in registers",
          [](Expr, const StrategyInput& input, const Profile& profile) {
            return !profile.gpu && (input.folds || input.tile.channels_last);
          },
          map_register_tiles, prepare_folds};
}

Strategy cpu_elements() {
  return {"elements", "CPU: loops over elements, the innermost in vectors",
          [](Expr, const StrategyInput&, const Profile& profile) { return !profile.gpu; }, map_elements};
}

}  // namespace hoist
