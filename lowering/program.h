// The first passes of lowering: from a graph of layers to a program of operator calls, and from calls to their
// definitions. Later passes over the program (grouping.h, storage.h) merge definitions and choose how values are
// stored.
#pragma once

#include "ir/graph.h"
#include "ir/program.h"
#include "ir/rewrite.h"
#include "lowering/integer_table.h"

namespace hoist {

/// Layers that make a larger array of constants alone, f32 of weights in 4 bits say: computed at compile time, which is
/// fast, or part of the kernels, so that the bundle has the constants as the model stores them.
enum class ConstantUse : uint8_t { computed, stored };

/// What layers may cost that are computed at compile time since all their inputs are known, over the whole model. What
/// exceeds it stays for the device, as if its inputs were not known.
struct FoldingBudget {
  int64_t operations = 2'000'000'000;  ///< calls, casts and selections, and elements that only move
  int64_t bytes = int64_t{4} << 30;    ///< of results together, and of the values in between of any one

  bool operator==(const FoldingBudget&) const = default;
};

/// Evaluates definitions that read nothing but constants, within the budget: shape arithmetic, and weights that are
/// computed from others.
Result<Nothing> fold_constants(Program& program, ConstantUse use, const FoldingBudget& budget);

/// Puts the definition of every operator call in its place, and evaluates sums over constants in it. Exact.
Result<Nothing> unfold_operators(Program& program, const FoldingBudget& budget);

/// The graph as a program, through the passes over operator calls (passes.h). Reports all layers that cannot be
/// lowered, in one go. `strict` keeps to exact rules: batch-norm stays a layer of its own.
Result<Program> lower_graph(const Graph& graph, bool strict, const TableOptions& tables = {},
                            ConstantUse constants = ConstantUse::computed, const FoldingBudget& folding = {});

/// The graph with each BatchNormalization of constant statistics folded into the Conv before it: the pass of that name,
/// for studies, which look at layers.
Result<Graph> fold_batch_norm(const Graph& graph);

}  // namespace hoist
