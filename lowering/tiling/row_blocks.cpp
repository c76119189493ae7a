#include "lowering/tiling/row_blocks.h"

#include <algorithm>
#include <limits>

#include "ir/properties/properties.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

constexpr int64_t f32_bytes = 4;
// Half of the smallest second-level cache of one core: operands pass through the other half.
constexpr int64_t cache_of_core = 256 << 10;
// A register tile has about so many rows; fewer load each operand more often.
constexpr int64_t least_rows = 8;
// More rows in a block reuse operands no further, and leave fewer blocks for the cores.
constexpr int64_t most_rows = 64;

int64_t rows_in_cache(int64_t row_bytes, const Profile& profile) {
  const int64_t cache = std::min(cache_of_core, profile.second_caches / profile.compute_units);
  return std::clamp<int64_t>(cache / std::max<int64_t>(row_bytes, 1), 1, most_rows);
}

CpuResults results_of_block(int64_t rows, int64_t columns, const Profile& profile) {
  return {.rows = rows, .columns = columns, .packed = columns % profile.vector_width == 0, .of_work_item = true};
}

}  // namespace

bool binds_materialised_row(Expr e) {
  return e->pattern == Pattern::let && e->children[0]->pattern == Pattern::materialise &&
         e->children[0]->memory == Memory::private_ && e->children[0]->type->is_array();
}

namespace {

// True for lets of materialised rows around a row, none of them an array of arrays.
bool computes_rows(Expr e) {
  const auto is_row = [](Type type) { return type->is_array() && type->element->is_scalar(); };
  for (; binds_materialised_row(e); e = e->children[1]->children[0]) {
    if (!is_row(e->children[0]->type)) return false;
  }
  return is_row(e->type);
}

}  // namespace

std::optional<RowNest> row_nest(Expr term, Path place) {
  RowNest out;
  for (;;) {
    const Expr e = at(term, place);
    switch (e->pattern) {
      case Pattern::map: {
        if (e->mode != Mode::view) return std::nullopt;
        if (moves_only(e->children[0])) {
          place.push_back(1);
          break;
        }
        if (binds_materialised_row(e->children[0]->children[0])) {
          if (!computes_rows(e->children[0]->children[0])) return std::nullopt;
          out.rows = place;
          return out;
        }
        out.around.push_back(place);
        place.insert(place.end(), {0, 0});
        break;
      }
      case Pattern::transpose:
      case Pattern::join:
      case Pattern::split:
      case Pattern::slice:
      case Pattern::pad:
        place.push_back(0);
        break;
      default:
        return std::nullopt;
    }
  }
}

Expr row_with_arrays(Expr term) {
  const auto nest = row_nest(term);
  return nest ? at(term, nest->rows)->children[0]->children[0] : nullptr;
}

int64_t materialised_bytes(Expr row, const Profile& profile, const OpenExtents& open) {
  int64_t bytes = 0;
  for (; binds_materialised_row(row); row = row->children[1]->children[0]) {
    const Type type = row->children[0]->type;
    bytes +=
        byte_size(leaf_of(type)->scalar, {round_up(open.typical(element_count(shape_of(type))), profile.vector_width)});
  }
  return bytes;
}

Tile tile_of_block(int64_t rows, int64_t columns, const Profile& profile) {
  return choose_tile(results_of_block(rows, columns, profile), profile);
}

int64_t rows_of_block(int64_t rows, int64_t row_bytes, const std::vector<SumsOfBlock>& sums, const Profile& profile) {
  const int64_t most = rows_in_cache(row_bytes, profile);
  int64_t operands = 0;  // bytes
  for (const SumsOfBlock& each : sums) operands += f32_bytes * each.columns * each.steps;
  int64_t best = std::min(rows, most);
  double least = std::numeric_limits<double>::infinity();
  for (int64_t blocks = (rows + most - 1) / most; blocks <= rows; ++blocks) {
    const int64_t together = (rows + blocks - 1) / blocks;
    if (blocks > 1 && together == (rows + blocks - 2) / (blocks - 1)) continue;
    double cycles = 0;
    for (const SumsOfBlock& each : sums) {
      // Each block loads the operand of the columns again, a vector in half a cycle.
      const double operand = static_cast<double>(each.columns) / static_cast<double>(profile.vector_width);
      cycles += static_cast<double>(each.steps) *
                (estimated_cycles(results_of_block(together, each.columns, profile), profile) + operand);
    }
    cycles *= static_cast<double>(blocks);
    if (cycles >= least) continue;
    least = cycles;
    best = together;
  }
  // The arrays have half of the first cache if the operands fit into the other half: blocks of 64 rows of 64 columns
  // take 1.07 times as long as blocks of 32 rows.
  while (2 * operands <= profile.first_cache && 2 * best * row_bytes > profile.first_cache && rows % best == 0 &&
         best % 2 == 0 && best > least_rows)
    best /= 2;
  return best;
}

bool gains_by_blocks(int64_t rows, int64_t row_bytes, int64_t stored_bytes, const Profile& profile) {
  return rows >= least_rows && rows_in_cache(row_bytes, profile) >= least_rows && stored_bytes > profile.first_cache;
}

}  // namespace hoist
