// Register tiles and work-groups: how many results of a fold one work-item keeps in registers, and, on a GPU, how many
// work-items share operands through local memory. Only an estimate of time decides; every tile gives the same result.
//
// The estimates are fitted to measurements: on CPUs accumulators, a row of the right operand and one element of the
// left have to fit into the registers (28 accumulators as 7x4 spill and lose a tenth, as 14x2 they do not); on an H200
// work-groups of 128 work-items are fastest, 38 TFLOP/s for a product of 4096 where cuBLAS has 51
// (tools/compare/gpu.py). What the estimate knows of a GPU (registers and words a cycle of a compute unit, the price of
// a barrier, the fastest work-group) stands in the profile, which has an H200's numbers unless it says otherwise; no
// driver reports them.
#pragma once

#include <cstdint>

#include "ir/profile.h"

namespace hoist {

/// Rows by columns of the last two stored dimensions that a work-group computes. One row and column where nothing is
/// folded. On a CPU a work-group is one work-item, and the tile stands in its registers.
struct Tile {
  int64_t rows = 1, columns = 1;
  int64_t width = 1;           ///< lanes of the vectors that make up the columns
  bool channels_last = false;  ///< the loops have channels innermost although the array (a model output) does not

  int64_t matrix_rows = 0;   ///< of the tile's rows, those of one matrix instruction (CPU); 0: it computes none of it
  int64_t matrix_words = 0;  ///< of four bytes, whose products such an instruction adds to a sum

  int64_t rows_joined = 0;   ///< so many dimensions before the rows count as rows (GPU)
  int64_t item_rows = 1;     ///< of the tile's rows, those of one work-item (GPU)
  int64_t items_across = 1;  ///< work-items side by side along the columns (GPU)
  int64_t depth = 0;         ///< steps of the fold whose operands are in local memory at a time; 0: none (GPU)
};

/// The tile with the least estimated time for an array of `rows` x `columns` results of a fold, on a CPU.
Tile choose_tile(int64_t rows, int64_t columns, const Profile& profile);

/// The same where instructions for products of matrices may form the sums, each of `terms` products of bytes of which
/// `inner` lie side by side. Without such instructions, or where they are no faster, it is choose_tile's.
Tile choose_matrix_tile(int64_t rows, int64_t columns, int64_t terms, int64_t inner, const Profile& profile);

/// The same on a GPU for `count` such arrays. `steps` are those of the innermost fold if all results of a row share
/// one operand and all of a column the other, else 0.
Tile choose_work_group(int64_t count, int64_t rows, int64_t columns, int64_t steps, const Profile& profile);

}  // namespace hoist
