#include "lowering/tile.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "lowering/terms.h"

namespace hoist {
namespace {

int64_t pieces(int64_t n, int64_t k) { return round_up(n, k) / k; }

struct Choice {
  Tile tile;
  double cost = 0;  ///< half cycles of a step of the fold, for all tiles
};

Choice choose_registers(int64_t rows, int64_t columns, const Profile& profile) {
  // Vectors that come out even, unless they would be too short to be worth it: then the last one is guarded.
  int64_t width = profile.vector_width;
  while (width > 1 && columns % width != 0) width /= 2;
  if (width < 4 && columns > profile.vector_width) width = profile.vector_width;
  Choice best;
  for (int64_t vectors = 1; vectors <= 8; ++vectors) {
    int64_t tile_columns = vectors * width;
    if (vectors > 1 && tile_columns >= round_up(columns, width) + width) break;
    // A tile that sticks out of an array of whole vectors would guard every store for nothing.
    if (columns % width == 0 && columns % tile_columns != 0) continue;
    for (int64_t tile_rows = 1; tile_rows <= 14 && tile_rows <= rows; ++tile_rows) {
      // Accumulators, a row of the right operand, an element of the left one: one register more, and each step of the
      // fold writes an accumulator to memory and reads it back.
      if (tile_rows > 1 && tile_rows * vectors + vectors + 1 > profile.vector_registers) break;
      // Per step of the fold a tile issues one fused multiply-add per accumulator and loads its operands; two of
      // either go per cycle. A dependent chain of four cycles needs eight accumulators to hide. The right operand's row
      // comes from the second cache, half as fast.
      double work = std::max<double>(static_cast<double>(tile_rows * vectors), 8.0);
      double loads = static_cast<double>(vectors + tile_rows), fetched = static_cast<double>(4 * vectors);
      auto tiles = static_cast<double>(pieces(rows, tile_rows) * pieces(columns, tile_columns));
      double cost = tiles * (std::max({work, loads, fetched}) + 0.15 * loads + 0.05 * fetched);
      if (best.cost == 0 || cost < best.cost * 0.999) {
        best.cost = cost;
        best.tile = {tile_rows, tile_columns, width};
      }
    }
  }
  return best;
}

// The largest divisor that is no larger than `most`.
int64_t divisor(int64_t n, int64_t most) {
  int64_t k = std::min(n, most);
  while (n % k != 0) --k;
  return k;
}

}  // namespace

Tile choose_tile(int64_t rows, int64_t columns, const Profile& profile) {
  return choose_registers(rows, columns, profile).tile;
}

Tile choose_matrix_tile(int64_t rows, int64_t columns, int64_t terms, int64_t inner, const Profile& profile) {
  const auto [vectors, vector_cost] = choose_registers(rows, columns, profile);
  const int64_t most = profile.matrix_tile, width = profile.vector_width;
  if (most != width || inner % 4 != 0) return vectors;
  const int64_t words = divisor(inner / 4, most), all_words = terms / 4, steps = all_words / words;
  if (words == 1) return vectors;
  Tile best = vectors;
  double best_cost = vector_cost / 2 * static_cast<double>(all_words);
  // Of eight tiles in registers some hold operands: all of the left, and one of the right.
  for (const auto& [down, across] : {std::pair<int64_t, int64_t>{2, 2}, {1, 3}, {3, 1}, {1, 2}, {2, 1}, {1, 1}}) {
    if (rows % down != 0 || (across > 1 && (across - 1) * width >= columns)) continue;
    const int64_t matrix_rows = divisor(rows / down, most);
    if (matrix_rows == 1) continue;
    // In cycles: an instruction takes one a row, a load of a tile eight; sums are stored and read again once; a
    // work-group has its part of describing the tiles to the processor, once for each call of the kernel.
    const auto products = static_cast<double>(down * across);
    const double step = std::max(products * static_cast<double>(matrix_rows), 8.0 * static_cast<double>(down + across));
    const double ends = 4 * products * static_cast<double>(matrix_rows) + 200;
    const auto tiles = static_cast<double>(pieces(rows, down * matrix_rows) * pieces(columns, across * width));
    const double cost = tiles * ((step + 4 * products) * static_cast<double>(steps) + ends);
    if (cost >= best_cost * 0.999) continue;
    best_cost = cost;
    best = {down * matrix_rows, across * width, width};
    best.matrix_rows = matrix_rows;
    best.matrix_words = words;
  }
  return best;
}

namespace {

// Steps of a fold whose operands a work-group keeps at a time: the largest divisor that is worth a barrier and leaves
// no more than some thousand multiplications to be written out; 0 if there is none.
int64_t block_depth(int64_t steps, int64_t accumulators) {
  for (int64_t depth = 16; depth >= 4; --depth) {
    if (steps % depth == 0 && depth * accumulators <= 1024) return depth;
  }
  return 0;
}

double ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

// Cycles of a GPU's compute unit for one step of the fold in all work-items of a group, when `waves` groups come to a
// unit. What the device is stands in the profile; a quarter of the reads from local memory that do not overlap with
// arithmetic, 56 registers of a work-item for operands and addresses, and the price of other groups than the preferred
// ones belong to the kernels that hoist makes.
double cycles(const Tile& tile, int64_t items, int64_t item_columns, int64_t waves, const WorkGroupCosts& costs) {
  double arithmetic = ratio(tile.rows * tile.columns, costs.multiply_adds);
  double reads = ratio(items * (tile.item_rows + item_columns), costs.local_words);
  double fetched = tile.depth > 0 ? static_cast<double>(tile.rows + tile.columns)
                                  : static_cast<double>(items * (tile.item_rows + item_columns)) / 4;
  // Groups that share a unit work while others wait at a barrier; registers limit how many do.
  int64_t registers = items * (tile.item_rows * item_columns + 56);
  double resident =
      static_cast<double>(std::clamp<int64_t>(costs.unit_registers / registers, 1, std::min(costs.unit_groups, waves)));
  double subgroups = ratio(items, costs.subgroup);
  double barriers = tile.depth > 0 ? static_cast<double>(costs.barrier_cycles) * subgroups /
                                         (resident * static_cast<double>(tile.depth))
                                   : 0;
  bool preferred = items == costs.preferred_group;
  double shape = preferred && tile.items_across == costs.preferred_group_width ? 1 : preferred ? 1.1 : 1.2;
  return (std::max(arithmetic, reads) + 0.25 * reads + fetched / static_cast<double>(costs.global_words) + barriers) *
         std::max(1.0, static_cast<double>(costs.hiding_subgroups) / (subgroups * resident)) * shape;
}

}  // namespace

Tile choose_work_group(int64_t count, int64_t rows, int64_t columns, int64_t steps, const Profile& profile) {
  Tile best;
  double best_cost = 0;
  int64_t width = columns % profile.vector_width == 0 ? profile.vector_width : 1;
  for (int64_t item_rows : {1, 2, 4, 8, 16}) {
    for (int64_t vectors : {1, 2, 4, 8}) {
      int64_t item_columns = vectors * width;
      // Half of the registers are for operands and addresses: more accumulators are kept in memory.
      if (2 * item_rows * item_columns > profile.vector_registers + 1) continue;
      for (int64_t down : {1, 2, 4, 8, 16}) {
        for (int64_t across : {2, 4, 8, 16, 32, 64}) {
          int64_t items = down * across;
          if (items < 32 || items > std::min<int64_t>(256, profile.maximum_group)) continue;
          Tile tile;
          tile.rows = down * item_rows;
          tile.columns = across * item_columns;
          tile.width = width;
          tile.item_rows = item_rows;
          tile.items_across = across;
          tile.depth = block_depth(steps, item_rows * item_columns);
          if ((tile.rows + tile.columns) * tile.depth * 4 > profile.local_memory / 2) continue;
          int64_t groups = count * pieces(rows, tile.rows) * pieces(columns, tile.columns);
          int64_t waves = pieces(groups, profile.compute_units);
          double cost = static_cast<double>(waves) * cycles(tile, items, item_columns, waves, profile.costs);
          if (best_cost == 0 || cost < best_cost * 0.999) {
            best_cost = cost;
            best = tile;
          }
        }
      }
    }
  }
  return best;
}

}  // namespace hoist
