// Register tiles and work-groups: how many results of a fold one work-item keeps in registers, and, on a GPU, how many
// work-items share operands through local memory. Every tile gives the same result: an estimate of time decides, or the
// knobs that were chosen for the definition (a record of measurements, lowering/search/tuning.h).
//
// The estimates are fitted to measurements: on CPUs accumulators, a row of the right operand and one element of the
// left have to fit into the registers (28 accumulators as 7x4 spill and lose a tenth, as 14x2 they do not); on GPUs
// to 2,680 tiles of 19 layers on an H100, where the tiles that are chosen take 1.10 of the fastest one's time in the
// mean, 1.3 at most. Few results of long sums would leave most of a GPU idle, so the work-items of a group share each
// sum. What the estimate knows of a GPU (registers and words a cycle of a compute unit, cycles that it waits for
// memory) stands in the profile, which has an H100's numbers unless it says otherwise; no driver reports them.
#pragma once

#include <cstdint>

#include "ir/target/profile.h"
#include "lowering/tiling/knobs.h"

namespace hoist {

/// Rows by columns of the last two stored dimensions that a work-group computes. One row and column where nothing is
/// folded. On a CPU a work-group is one work-item, and the tile stands in its registers.
struct Tile {
  int64_t rows = 1, columns = 1;
  int64_t width = 1;           ///< lanes of the vectors that make up the columns
  bool shifted = false;        ///< the last columns' tile reaches back over the one before it, for nothing is cut (CPU)
  bool channels_last = false;  ///< the loops have channels innermost although the array (a model output) does not
  /// The order of the loops over work-groups, outermost first (CPU): 0 columns of tiles, arrays, bands of rows; 1 and 2
  /// bands, arrays, columns, by different rules; 3 arrays, bands, columns, so that memory is read and written in order;
  /// 4 columns of tiles, arrays, bands of rows that run through all lines of a picture; 5 bands, columns, arrays.
  int64_t loop_order = 0;
  static constexpr int64_t rows_outside = 1, all_rows_outside = 2, columns_inside = 3, through_lines = 4,
                           planes_inside = 5;

  /// So many steps of the fold, those along a line, are written out, so that rows side by side share what their windows
  /// have in common; 0: none (CPU).
  int64_t window = 0;

  int64_t matrix_rows = 0;   ///< of the tile's rows, those of one matrix instruction (CPU); 0: it computes none of it
  int64_t matrix_words = 0;  ///< of four bytes or two bf16 each, whose products such an instruction adds to a sum

  int64_t rows_joined = 0;   ///< so many dimensions before the rows count as rows (GPU, and the order through_lines)
  int64_t item_rows = 1;     ///< of the tile's rows, those of one work-item (GPU)
  int64_t items_across = 1;  ///< work-items side by side along the columns (GPU)
  int64_t depth = 0;         ///< steps of the fold whose operands are in local memory at a time; 0: none (GPU)
  int64_t parts = 0;         ///< so many work-items share a result's sum, each a part of it; 0: one does (GPU)
};

/// What is cut into tiles: results of a fold.
struct TiledResults {
  int64_t count = 1;  ///< arrays of them
  int64_t rows = 1, columns = 1;
  int64_t lines = 1;    ///< so many of those arrays follow on one another, and their rows may count as one's (CPU)
  bool planes = false;  ///< the arrays are planes of a picture, each computed from all planes of another one (CPU)
  int64_t group = 0;    ///< columns that read the same part of a row of the left operand; 0: all do (CPU)
  bool packed = false;  ///< the right operand is packed in tiles of columns, with nothing behind the last column (CPU)
  /// The right operand stays in the cache and the left one is larger than the results, or each column reads its own
  /// part of the left one: nothing is gained by all rows of a column of tiles one after the other (CPU).
  bool small_right = false;
  int64_t window = 0;  ///< steps of the fold along a line, where each column folds windows of its own; else 0 (CPU)
  int64_t window_step = 1;  ///< from the window of a row to that of the next
  /// What the windows of a line cover does not stay in the cache next to the core until the next line, so columns are
  /// gone down line by line. Drivers take up to 1.5 times as long for groups in that order, native code 0.75.
  bool crosses_lines = false;
  int64_t terms = 0;     ///< products that each sums, where matrix instructions may form the sums; else 0
  int64_t inner = 0;     ///< of those, how many lie side by side
  int64_t word = 4;      ///< of those, how many such an instruction takes in a word of four bytes
  bool in_words = true;  ///< vectors sum the products of words, too; else one at a time
  int64_t steps = 0;     ///< of the innermost fold, where all results of a row share one operand and all of a column
                         ///< the other (GPU); else 0
  int64_t folds = 1;     ///< of so many steps each, whose sums are one result (GPU)
  bool in_parts = true;  ///< sums may be regrouped (GPU)
};

/// Of a fold over so many steps whose operands come straight from global memory, how many are written out, to wait for
/// it together (GPU).
int64_t steps_together(int64_t steps);

/// Cycles of a GPU's compute units that the best tile takes, beside the launch; infinity where there is none.
double estimated_cycles(const TiledResults& results, const Profile& profile);
/// The tile with the least estimated time.
Tile choose_tile(const TiledResults& results, const Profile& profile);
/// In the place of a tile whose sums are in parts, the best one whose sums are whole.
Tile with_whole_sums(const Tile& tile, TiledResults results, const Profile& profile);

/// The knob for Tile::loop_order.
inline constexpr char order_knob[] = "loop_order";
/// What a tile is made of, as knobs, and which of them go together: all that fit the device, also those that the
/// estimate leaves aside.
KnobSpace tile_knobs(const TiledResults& results, const Profile& profile);
/// The knobs of a tile that is one of those.
KnobValues knobs_of(const Tile& tile, const Profile& profile);
/// The tile with these knobs; nothing where there is none. One that is not named is 0; other names mean nothing.
std::optional<Tile> tile_with(const TiledResults& results, const KnobValues& knobs, const Profile& profile);

}  // namespace hoist
