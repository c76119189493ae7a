#include "lowering/tiling/tile.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <set>
#include <utility>

#include "ir/target/machine.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/contractions.h"

namespace hoist {
namespace {

int64_t pieces(int64_t n, int64_t k) { return round_up(n, k) / k; }

double ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

// The cost of a correct tile that is never the default.
constexpr double left_aside = std::numeric_limits<double>::infinity();

struct Candidate {
  Tile tile;
  double cost = left_aside;
};
using Candidates = std::vector<Candidate>;

// The first candidate wins unless a later one is clearly cheaper.
const Candidate* cheapest(const Candidates& candidates) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (best == nullptr || candidate.cost < best->cost * 0.999) best = &candidate;
  }
  return best;
}

// True if the last tile may overlap the one before it (overlapping tail). Overlapping tiles belong to one work-group,
// since two would write the same elements, so there must be enough rows for all cores, unless the results belong to one
// work-item.
bool may_reach_back(const CpuResults& results, const Profile& profile) {
  return !results.packed && (results.of_work_item || results.count * results.rows >= 16 * profile.compute_units);
}

// The width that needs the fewest vectors, with a price for tails. With packed operands only the last vector has a
// tail, whose results are stored one by one; otherwise each lane of the tail is loaded alone in every loop. The lanes
// of a vector must use the same group of the left operand.
int64_t usual_width(const CpuResults& results, const Profile& profile) {
  if (results.group > 0) return lanes_dividing(results.group, profile.vector_width);
  const double uneven = may_reach_back(results, profile) ? 1.1 : 4;
  int64_t best = 1;
  auto least = static_cast<double>(results.columns);
  for (int64_t width = 2; width <= profile.vector_width; width *= 2) {
    const bool even = results.columns % width == 0;
    if (!even && !results.packed && width > results.columns) break;
    const auto whole = static_cast<double>(pieces(results.columns, width));
    const double vectors = even ? whole : results.packed ? whole + 0.25 : uneven * whole;
    if (vectors >= least) continue;
    least = vectors;
    best = width;
  }
  return best;
}

// True if a step's operands fit into the registers with the accumulators. With 32 vector registers the instructions
// broadcast an element from memory. With 16 the element occupies a register, and compilers load all operands of a step
// first: on a Zen 3 core 12 accumulators as 6x2 or 4x3 take twice as long as 10 as 5x2, which do not spill. With one
// vector of columns each element is used once.
bool holds_operands(int64_t rows, int64_t vectors, const Profile& profile) {
  return profile.vector_registers > 16 || vectors == 1 ||
         rows * vectors + rows + vectors - 1 <= profile.vector_registers;
}

// Half cycles of a step of the fold, for all tiles of `rows` rows.
double register_cost(const CpuResults& results, int64_t rows, const Tile& tile) {
  const int64_t columns = results.columns, vectors = tile.columns / tile.width;
  // A tile with a tail in an array of whole vectors would guard every store needlessly.
  if (columns % tile.width == 0 && columns % tile.columns != 0) return left_aside;
  // Per step of the fold a tile issues one fused multiply-add per accumulator and loads its operands; two of either go
  // per cycle. A dependent chain of four cycles needs eight accumulators to hide.
  const double work = std::max<double>(static_cast<double>(tile.rows * vectors), 8.0);
  const auto tiles = static_cast<double>(pieces(rows, tile.rows) * pieces(columns, tile.columns));
  if (results.window > 0) {
    // Each column has windows of its own. If the steps along a line are unrolled, an element of the line is loaded once
    // for all windows of the tile, and a column's weights once for all its rows.
    const double elements = tile.cpu().window == 0
                                ? static_cast<double>(tile.rows)
                                : ratio((tile.rows - 1) * results.window_step + tile.cpu().window, tile.cpu().window);
    const double loads = static_cast<double>(vectors) * (elements + 1);
    return tiles * (std::max(work, loads) + 0.15 * loads + 1);
  }
  // The right operand's row comes from the L2 cache, at half the speed, or, if its columns do not stay there, from the
  // L3 cache, at 9 bytes a cycle (two cores of a Xeon, 8,000 steps in columns of 80).
  const bool stays = results.columns_in_cache == 0 || tile.columns <= results.columns_in_cache ||
                     tile.rows >= results.rows * results.lines;
  const auto loads = static_cast<double>(vectors + tile.rows),
             fetched = static_cast<double>((stays ? 4 : 14) * vectors);
  return tiles * (std::max({work, loads, fetched}) + 0.15 * loads + 0.05 * fetched);
}

// True if the accumulators, the weights of a line of windows and the loaded elements fit into registers.
bool holds_windows(const CpuResults& results, int64_t rows, int64_t vectors, const Profile& profile) {
  return (rows + results.window + 1) * vectors + 1 <= profile.vector_registers;
}

// Adds one candidate per distinct loop order. The cost model covers only the first order, and the last one if columns
// have little reuse in the cache. Planes with the same operands, and lines whose windows overlap, are computed in
// succession while the operands are in the cache.
void add_orders(Candidates& candidates, const CpuResults& results, Candidate candidate) {
  const bool crosses_lines = candidate.tile.cpu().window > 0 && results.crosses_lines;
  if ((results.planes || crosses_lines) && results.columns % candidate.tile.columns == 0) {
    Candidate inside = candidate;
    inside.tile.cpu().loop_order = CpuTile::planes_inside;
    candidates.push_back(inside);
    candidate.cost = left_aside;
  }
  candidates.push_back(candidate);
  const double cost = candidate.cost;
  candidate.cost = left_aside;
  if (candidate.tile.cpu().shifted) return;
  const bool columns = candidate.tile.columns < results.columns, rows = candidate.tile.rows < results.rows;
  for (const int64_t order : {CpuTile::rows_outside, CpuTile::all_rows_outside, CpuTile::columns_inside}) {
    const bool other = order == CpuTile::rows_outside       ? rows
                       : order == CpuTile::all_rows_outside ? results.count > 1
                                                            : rows || results.count > 1;
    if (!columns || !other) continue;
    candidate.tile.cpu().loop_order = order;
    if (order == CpuTile::columns_inside && results.small_right && candidate.tile.cpu().matrix_rows == 0)
      candidate.cost = 0.99 * cost;
    candidates.push_back(candidate);
  }
}

// Adds the tile whose rows run through all lines of an image, for lines that fill no whole tiles: 7 rows leave three of
// ten idle, 49 rows one of fifty. Each row then needs its own address, which costs about as much as a step.
void add_through_lines(Candidates& candidates, const CpuResults& results, Candidate candidate, bool estimated) {
  if (results.lines == 1 || candidate.tile.cpu().shifted) return;
  candidate.tile.cpu().loop_order = CpuTile::through_lines;
  const double all = register_cost(results, results.rows * results.lines, candidate.tile);
  candidate.cost = estimated ? 1.03 * all / static_cast<double>(results.lines) : left_aside;
  candidates.push_back(candidate);
}

void add_register_tiles(Candidates& candidates, const CpuResults& results, const Profile& profile) {
  const int64_t rows = results.rows, columns = results.columns;
  constexpr int64_t most_rows = 24, most_estimated_rows = 14, most_vectors = 8;
  const int64_t usual = usual_width(results, profile);
  for (int64_t width = profile.vector_width; width >= 1; width /= 2) {
    for (int64_t vectors = 1; vectors <= most_vectors; ++vectors) {
      const int64_t tile_columns = vectors * width;
      if (vectors > 1 && tile_columns >= round_up(columns, width) + width) break;
      for (int64_t tile_rows = 1; tile_rows <= std::min(rows * results.lines, most_rows); ++tile_rows) {
        // Accumulators, a row of the right operand and an element of the left one: with one register more, each step of
        // the fold spills an accumulator.
        if (tile_rows > 1 && tile_rows * vectors + vectors + 1 > profile.vector_registers) break;
        Candidate candidate;
        candidate.tile = {tile_rows, tile_columns, width};
        candidate.tile.cpu().shifted =
            columns % width != 0 && tile_columns <= columns && may_reach_back(results, profile) ? 1 : 0;
        // Unpacked tails are loaded one by one, so an overlapping tail is preferred.
        const bool reaches_out =
            !candidate.tile.cpu().shifted && columns % width != 0 && may_reach_back(results, profile);
        const bool in_groups = results.group == 0 || results.group % tile_columns == 0;
        const bool estimated = width == usual && tile_rows <= most_estimated_rows && !reaches_out && in_groups &&
                               holds_operands(tile_rows, vectors, profile);
        if (estimated) candidate.cost = register_cost(results, rows, candidate.tile);
        if (tile_rows <= rows && results.window > 0 && holds_windows(results, tile_rows, vectors, profile)) {
          Candidate written_out = candidate;
          written_out.tile.cpu().window = results.window;
          if (estimated) written_out.cost = register_cost(results, rows, written_out.tile);
          add_orders(candidates, results, written_out);
        }
        if (tile_rows <= rows) add_orders(candidates, results, candidate);
        add_through_lines(candidates, results, candidate, estimated);
      }
    }
  }
}

// The largest divisor of n that is at most `most`.
int64_t divisor(int64_t n, int64_t most) {
  int64_t k = std::min(n, most);
  while (n % k != 0) --k;
  return k;
}

// Adds tiles of matrix instructions, if the device has them.
void add_matrix_tiles(Candidates& candidates, const CpuResults& results, const Profile& profile) {
  const int64_t most = profile.matrix_tile, width = profile.vector_width;
  if (most == 0 || most != width || results.inner == 0 || results.inner % results.word != 0) return;
  const int64_t words = divisor(results.inner / results.word, most), all_words = results.terms / results.word,
                steps = all_words / words;
  if (words == 1) return;
  // Converts half cycles per step to cycles in total.
  const int64_t vector_steps = results.in_words ? all_words : results.terms;
  for (Candidate& candidate : candidates) candidate.cost *= static_cast<double>(vector_steps) / 2;
  // Eight tile registers hold the sums and operands: all tiles of the left operand, and one of the right.
  for (const auto& [down, across] : {std::pair<int64_t, int64_t>{2, 2}, {1, 3}, {3, 1}, {1, 2}, {2, 1}, {1, 1}}) {
    if (results.rows % down != 0 || (across > 1 && (across - 1) * width >= results.columns)) continue;
    const int64_t matrix_rows = divisor(results.rows / down, most);
    if (matrix_rows == 1) continue;
    // In cycles: an instruction takes one per row, the load of a tile eight; sums are stored and loaded again once. A
    // work-group pays a share of configuring the tile registers, which happens once per kernel call.
    const auto products = static_cast<double>(down * across);
    const double step = std::max(products * static_cast<double>(matrix_rows), 8.0 * static_cast<double>(down + across));
    const double ends = 4 * products * static_cast<double>(matrix_rows) + 200;
    const auto tiles =
        static_cast<double>(pieces(results.rows, down * matrix_rows) * pieces(results.columns, across * width));
    Candidate candidate;
    candidate.tile = {down * matrix_rows, across * width, width};
    candidate.tile.cpu().matrix_rows = matrix_rows;
    candidate.tile.cpu().matrix_words = words;
    candidate.cost = tiles * ((step + 4 * products) * static_cast<double>(steps) + ends);
    add_orders(candidates, results, candidate);
  }
}

// The limit of steps whose loads are in flight together; more steps need more registers.
constexpr int64_t most_together = 8;

// The limit of unrolled multiplications per work-item of a GPU.
constexpr int64_t most_unrolled = 1024;

// The number of steps of a fold whose operands a work-group keeps in local memory: the largest divisor that is worth a
// barrier and unrolls to at most most_unrolled multiplications; 0 if there is none.
int64_t block_depth(int64_t steps, int64_t accumulators) {
  for (int64_t depth = 16; depth >= 4; --depth) {
    if (steps % depth == 0 && depth * accumulators <= most_unrolled) return depth;
  }
  return 0;
}

// The number of work-items of a group that share each sum.
int64_t sharers(const Tile& tile) { return std::max<int64_t>(1, tile.gpu().parts); }

int64_t items_of(const Tile& tile) {
  return tile.rows / tile.gpu().item_rows * tile.gpu().items_across * sharers(tile);
}

// True if a work-group has at least 32 work-items, and few enough to give each the maximum number of registers; drivers
// reject larger ones.
bool fills_group(const Tile& tile, const Profile& profile) {
  return items_of(tile) >= 32 && items_of(tile) <= std::min<int64_t>(256, profile.maximum_group);
}

// Bytes of the operands of `depth` steps for each part, and of the partial sums.
int64_t local_bytes(const Tile& tile) {
  const int64_t operands = (tile.rows + tile.columns) * tile.gpu().depth;
  return 4 * (operands * sharers(tile) + tile.rows * tile.columns * tile.gpu().parts);
}

// Cycles of a GPU's compute unit for its work-groups: the issue and load cycles of its subgroups in sequence, plus the
// memory latency, which the resident groups share. The device's properties come from the target description. The
// constants of generated kernels (two address instructions per step, 40 registers besides the accumulators, loads in
// flight) are fitted to 2,680 tiles of 19 layers on an H100.
double group_cost(const GpuResults& results, const Tile& tile, const Profile& profile) {
  const WorkGroupCosts& costs = profile.costs;
  const GpuTile& work = tile.gpu();
  const int64_t groups = results.count * pieces(results.rows, tile.rows) * pieces(results.columns, tile.columns);
  const int64_t waves = pieces(groups, profile.compute_units), parts = sharers(tile), items = items_of(tile);
  const int64_t accumulators = work.item_rows * tile.columns / work.items_across;
  const int64_t vectors = tile.columns / work.items_across / tile.width, operands = work.item_rows + vectors;
  const auto subgroups = static_cast<double>(pieces(items, costs.subgroup));
  const double steps = ratio(results.steps * results.folds, parts);

  const double issued = subgroups * ratio((accumulators + operands + 2) * costs.subgroup, costs.multiply_adds);
  // Parts within one subgroup load separate rows.
  const int64_t apart = std::min(parts, std::max<int64_t>(1, costs.subgroup * parts / items));
  const double row = ratio(std::min(work.items_across, costs.subgroup) * tile.width, costs.subgroup);
  const double reads = subgroups * static_cast<double>(vectors) * std::max(static_cast<double>(apart), row) *
                       ratio(costs.subgroup, costs.local_words);
  const double fetched = ratio(parts * (tile.rows + tile.columns), costs.global_words);

  const int64_t registers = items * (accumulators + 40);
  const auto resident =
      static_cast<double>(std::clamp<int64_t>(costs.unit_registers / registers, 1, std::min(costs.unit_groups, waves)));
  const auto memory = static_cast<double>(costs.memory_cycles);
  const double waiting = work.depth > 0 ? memory / static_cast<double>(work.depth)
                                        : memory * ratio(operands, 2 * steps_together(results.steps / parts));
  const double waits = steps * (waiting + 1.5 * static_cast<double>(accumulators));
  const double end = work.parts > 0 ? static_cast<double>(4 * parts * accumulators) : 0;
  // Barriers are not in the sum; they cost most if fewer than four groups can run meanwhile.
  const double barriers = (work.parts > 0 ? 1.15 : 1.0) * (work.depth > 0 ? 1.05 : 1.0);
  const double crowded = work.depth > 0 && costs.unit_registers / registers < 4 ? 1.25 : 1.0;
  return static_cast<double>(waves) * (steps * (issued + reads + fetched) + (waits + end) / resident) * barriers *
         crowded;
}

// The depths that a tile may have, the default first.
std::vector<int64_t> depths(int64_t steps, int64_t accumulators) {
  const int64_t usual = block_depth(steps, accumulators);
  std::vector<int64_t> out = {usual};
  for (const int64_t depth : {0, 2, 4, 8, 16, 32}) {
    if (depth == usual || (depth > 0 && (steps % depth != 0 || depth * accumulators > most_unrolled))) continue;
    out.push_back(depth);
  }
  return out;
}

// The numbers of parts into which a sum may be divided, each for one work-item; 0, undivided, first.
std::vector<int64_t> sum_parts(const GpuResults& results) {
  std::vector<int64_t> out = {0};
  for (const int64_t parts : {2, 4, 8, 16, 32}) {
    if (results.in_parts && results.steps % (4 * parts) == 0) out.push_back(parts);
  }
  return out;
}

void add_work_groups(Candidates& candidates, const GpuResults& results, const Profile& profile) {
  const int64_t width = results.columns % profile.vector_width == 0 ? profile.vector_width : 1;
  const std::vector<int64_t> all_parts = sum_parts(results);
  for (int64_t item_rows : {1, 2, 4, 8, 16}) {
    for (int64_t vectors : {1, 2, 4, 8}) {
      const int64_t item_columns = vectors * width;
      // Half of the registers hold operands and addresses: further accumulators would spill.
      if (2 * item_rows * item_columns > profile.vector_registers + 1) continue;
      for (int64_t down : {1, 2, 4, 8, 16}) {
        for (int64_t across : {2, 4, 8, 16, 32, 64}) {
          Candidate candidate;
          Tile& tile = candidate.tile;
          tile.rows = down * item_rows;
          tile.columns = across * item_columns;
          tile.width = width;
          GpuTile& items = tile.machine.emplace<GpuTile>();
          items.item_rows = item_rows;
          items.items_across = across;
          for (const int64_t parts : all_parts) {
            items.parts = parts;
            if (!fills_group(tile, profile)) continue;
            for (const int64_t depth : depths(results.steps / sharers(tile), item_rows * item_columns)) {
              items.depth = depth;
              if (local_bytes(tile) > profile.local_memory / 2) continue;
              candidate.cost = group_cost(results, tile, profile);
              candidates.push_back(candidate);
            }
          }
        }
      }
    }
  }
}

Candidates candidates_for(const TiledResults& results, const Profile& profile) {
  Candidates out;
  if (const GpuResults* on_gpu = std::get_if<GpuResults>(&results)) {
    add_work_groups(out, *on_gpu, profile);
  } else {
    add_register_tiles(out, std::get<CpuResults>(results), profile);
    add_matrix_tiles(out, std::get<CpuResults>(results), profile);
  }
  return out;
}

Candidate best_of(const TiledResults& results, const Profile& profile) {
  const Candidates candidates = candidates_for(results, profile);
  if (const Candidate* best = cheapest(candidates)) return *best;
  Candidate none;
  if (std::holds_alternative<GpuResults>(results)) none.tile.machine = GpuTile();
  return none;
}

// Visits the numbers of a tile with their names, default values (the smallest ones) and largest values.
template <typename TileOrConst, typename Visit>
void for_each_number(TileOrConst& tile, const Visit& visit) {
  constexpr int64_t any = int64_t{1} << 31;
  visit("rows", tile.rows, 1, any);
  visit("columns", tile.columns, 1, any);
  visit("width", tile.width, 1, any);
  visit("rows_collapsed", tile.rows_collapsed, 0, 2);
  visit("columns_collapsed", tile.columns_collapsed, 0, 4);
  visit("channels_last", tile.channels_last, 0, 1);
  if (tile.on_gpu() != nullptr) {
    auto& gpu = tile.gpu();
    visit("item_rows", gpu.item_rows, 1, any);
    visit("items_across", gpu.items_across, 1, any);
    visit("depth", gpu.depth, 0, any);
    visit("parts", gpu.parts, 0, any);
    return;
  }
  auto& cpu = tile.cpu();
  visit("loop_order", cpu.loop_order, 0, CpuTile::planes_inside);
  visit("window", cpu.window, 0, any);
  visit("matrix_rows", cpu.matrix_rows, 0, any);
  visit("matrix_words", cpu.matrix_words, 0, any);
  visit("shifted", cpu.shifted, 0, 1);
}

}  // namespace

std::map<std::string, int64_t> attributes_of(const Tile& tile) {
  std::map<std::string, int64_t> out;
  for_each_number(tile, [&](const char* name, int64_t number, int64_t usual, int64_t) {
    if (number != usual) out[name] = number;
  });
  return out;
}

Result<Tile> tile_of(const std::map<std::string, int64_t>& attributes, const Profile& profile) {
  Tile out;
  if (lanes_are_work_items(profile)) out.machine = GpuTile();
  size_t known = 0;
  for_each_number(out, [&](const char* name, int64_t& number, int64_t least, int64_t most) {
    const auto found = attributes.find(name);
    if (found == attributes.end() || found->second < least || found->second > most) return;
    number = found->second;
    ++known;
  });
  if (known != attributes.size() || out.columns % out.width != 0)
    return Diagnostic{"", "no kernel for the device has this tile", "choose-storage writes tiles"};
  return out;
}

int64_t steps_together(int64_t steps) {
  if (steps <= most_together) return steps;
  for (int64_t together = most_together; together > 1; together /= 2) {
    if (steps % together == 0) return together;
  }
  return 1;
}

Tile choose_tile(const TiledResults& results, const Profile& profile) { return best_of(results, profile).tile; }

double estimated_cycles(const GpuResults& results, const Profile& profile) { return best_of(results, profile).cost; }

double estimated_cycles(const CpuResults& results, const Profile& profile) { return best_of(results, profile).cost; }

Tile with_whole_sums(const Tile& tile, GpuResults results, const Profile& profile) {
  results.in_parts = false;
  Tile out = choose_tile(results, profile);
  out.channels_last = tile.channels_last;
  out.rows_collapsed = tile.rows_collapsed;
  out.columns_collapsed = tile.columns_collapsed;
  return out;
}

KnobValues knobs_of(const Tile& tile) {
  if (tile.on_gpu() == nullptr)
    return {
        {"rows", tile.rows},           {"vectors", tile.columns / tile.width},  {"width", tile.width},
        {"window", tile.cpu().window}, {"matrix_rows", tile.cpu().matrix_rows}, {order_knob, tile.cpu().loop_order}};
  return {{"item_rows", tile.gpu().item_rows},
          {"item_vectors", tile.columns / tile.gpu().items_across / tile.width},
          {"items_down", tile.rows / tile.gpu().item_rows},
          {"items_across", tile.gpu().items_across},
          {"depth", tile.gpu().depth},
          {"parts", tile.gpu().parts}};
}

KnobSpace tile_knobs(const TiledResults& results, const Profile& profile) {
  std::vector<KnobValues> all;
  std::vector<double> costs;
  for (const Candidate& candidate : candidates_for(results, profile)) {
    all.push_back(knobs_of(candidate.tile));
    costs.push_back(candidate.cost);
  }
  return space_of(all, costs);
}

std::optional<Tile> tile_with(const TiledResults& results, const KnobValues& knobs, const Profile& profile) {
  for (const Candidate& candidate : candidates_for(results, profile)) {
    const KnobValues own = knobs_of(candidate.tile);
    const bool same = std::all_of(own.begin(), own.end(), [&](const auto& knob) {
      const auto wanted = knobs.find(knob.first);
      return (wanted == knobs.end() ? 0 : wanted->second) == knob.second;
    });
    if (same) return candidate.tile;
  }
  return std::nullopt;
}

}  // namespace hoist
