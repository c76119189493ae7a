// Register tiles and work-groups: the number of results of a fold that a work-item keeps in registers and, on a GPU,
// the number of work-items that share operands through local memory. Every tile gives the same result. An estimate of
// time selects it, or the knobs of the definition (a record of measurements, lowering/search/tuning.h).
//
// The estimates are fitted to measurements. On CPUs accumulators, a row of the right operand and one element of the
// left one have to fit into the registers (28 accumulators spill as 7x4, which is 10 % slower, but not as 14x2). For
// GPUs 2,680 tiles of 19 layers were measured on an H100: the selected tiles take 1.10x the time of the fastest ones on
// average and at most 1.3x. Few results of long sums would leave most of a GPU idle, so the work-items of a group share
// each sum. The GPU properties of the estimate (registers and words per cycle of a compute unit, memory latency in
// cycles) come from the target description, with an H100's values as defaults; no driver reports them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "ir/base/result.h"
#include "ir/target/profile.h"
#include "lowering/tiling/knobs.h"

namespace hoist {

/// A tile on a CPU: a work-group is one work-item, and the tile is kept in its registers.
struct CpuTile {
  int64_t shifted = 0;  ///< 1: the last columns' tile overlaps the one before it instead of being a tail
  /// The order of the loops over work-groups, outermost first: 0 columns of tiles, arrays, bands of rows; 1 and 2
  /// bands, arrays, columns (by two different rules); 3 arrays, bands, columns, so that memory is accessed in order; 4
  /// columns of tiles, arrays, bands of rows that run through all lines of an image; 5 bands, columns, arrays.
  int64_t loop_order = 0;
  static constexpr int64_t rows_outside = 1, all_rows_outside = 2, columns_inside = 3, through_lines = 4,
                           planes_inside = 5;

  /// The number of unrolled steps of the fold along a line, so that adjacent rows share the overlap of their windows;
  /// 0: none.
  int64_t window = 0;

  int64_t matrix_rows = 0;   ///< rows of the tile per matrix instruction; 0: no matrix instructions
  int64_t matrix_words = 0;  ///< words (four bytes or two bf16 each) whose products a matrix instruction adds to a sum
};

/// A tile on a GPU: the work-items of a group share it.
struct GpuTile {
  int64_t item_rows = 1;     ///< rows of the tile per work-item
  int64_t items_across = 1;  ///< work-items along the columns
  int64_t depth = 0;         ///< steps of the fold whose operands are in local memory at a time; 0: none
  int64_t parts = 0;         ///< work-items that share each result's sum; 0: one work-item computes it
};

/// The largest rank of an array whose columns the rules collapse-columns collapse.
inline constexpr int64_t most_collapsed_rank = 6;

/// The rows by columns of the last two stored dimensions that a work-group computes; 1 by 1 without a fold.
struct Tile {
  int64_t rows = 1, columns = 1;
  int64_t width = 1;              ///< lanes of the vectors that the columns consist of
  int64_t channels_last = 0;      ///< 1: the loops run in NHWC although the array (a model output) is NCHW
  int64_t rows_collapsed = 0;     ///< dimensions before the rows that are collapsed with them
  int64_t columns_collapsed = 0;  ///< dimensions before the last one that are collapsed with it; the rows come before
  std::variant<CpuTile, GpuTile> machine = {};

  CpuTile& cpu() { return std::get<CpuTile>(machine); }
  const CpuTile& cpu() const { return std::get<CpuTile>(machine); }
  GpuTile& gpu() { return std::get<GpuTile>(machine); }
  const GpuTile& gpu() const { return std::get<GpuTile>(machine); }
  const GpuTile* on_gpu() const { return std::get_if<GpuTile>(&machine); }  ///< null on a CPU
};

/// The members of a tile that differ from the default, by name, as in a program's text.
std::map<std::string, int64_t> attributes_of(const Tile& tile);
/// The device's tile with these attributes, which may come from a text. Errors: another name, or a number that no tile
/// has.
Result<Tile> tile_of(const std::map<std::string, int64_t>& attributes, const Profile& profile);

/// The results of a fold on a CPU, which are divided into tiles.
struct CpuResults {
  int64_t count = 1;  ///< arrays of rows by columns
  int64_t rows = 1, columns = 1;
  int64_t lines = 1;    ///< consecutive arrays whose rows may count as rows of one array
  bool planes = false;  ///< the arrays are channel planes of an image, each computed from all planes of another image
  int64_t group = 0;    ///< columns that use the same part of a row of the left operand; 0: all columns do
  bool packed = false;  ///< the right operand is packed in tiles of columns, padded after the last column
  /// The columns of the right operand that stay in the second cache of a core from one tile of rows to the next; 0: any
  /// number does.
  int64_t columns_in_cache = 0;
  bool of_work_item = false;  ///< one work-item computes all tiles
  /// True if a loop over all rows of a column of tiles saves no loads: the right operand stays in the cache and the
  /// left one is larger than the results, or each column uses its own part of the left one.
  bool small_right = false;
  int64_t window = 0;       ///< steps of the fold along a line, if each column folds windows of its own; else 0
  int64_t window_step = 1;  ///< distance of the windows of adjacent rows
  /// True if the elements under a line of windows do not stay in the L1 cache until the next line, so that columns are
  /// computed line by line. Kernels of drivers take up to 1.5x the time in that order, native code 0.75x.
  bool crosses_lines = false;
  int64_t terms = 0;     ///< products per sum, if matrix instructions may compute the sums; else 0
  int64_t inner = 0;     ///< number of contiguous products among the terms
  int64_t word = 4;      ///< products per four-byte word of such an instruction
  bool in_words = true;  ///< vectors can sum the products of words too; otherwise only single products
};

/// The results of a fold on a GPU.
struct GpuResults {
  int64_t count = 1;  ///< arrays of rows by columns
  int64_t rows = 1, columns = 1;
  int64_t steps = 0;     ///< steps of the innermost fold; all results of a row share one operand, and all results of a
                         ///< column the other
  int64_t folds = 1;     ///< number of folds of `steps` steps each, whose sums are added to one result
  bool in_parts = true;  ///< sums may be reassociated
};
using TiledResults = std::variant<CpuResults, GpuResults>;

/// The number of unrolled steps whose loads from global memory are in flight together, for a fold over `steps` steps
/// (GPU).
int64_t steps_together(int64_t steps);

/// Cycles of a GPU's compute units for the best tile, without the launch; infinity if there is no tile.
double estimated_cycles(const GpuResults& results, const Profile& profile);
/// Half cycles of a step of the fold for the best tile, over all results; infinity if there is no tile.
double estimated_cycles(const CpuResults& results, const Profile& profile);
/// The tile with the least estimated time.
Tile choose_tile(const TiledResults& results, const Profile& profile);
/// The best tile with undivided sums, in place of a tile whose sums are in parts.
Tile with_whole_sums(const Tile& tile, GpuResults results, const Profile& profile);

/// The knob of CpuTile::loop_order.
inline constexpr char order_knob[] = "loop_order";
/// The components of a tile as knobs, with all combinations that fit the device, including tiles that are never the
/// default.
KnobSpace tile_knobs(const TiledResults& results, const Profile& profile);
/// The knobs of a tile of that space.
KnobValues knobs_of(const Tile& tile);
/// The tile with these knobs; empty if there is none. A missing knob is 0; unknown names are ignored.
std::optional<Tile> tile_with(const TiledResults& results, const KnobValues& knobs, const Profile& profile);

}  // namespace hoist
