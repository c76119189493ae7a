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

/// Evaluates definitions that read nothing but constants, shape arithmetic and weights that are computed from others.
Result<Nothing> fold_constants(Program& program, ConstantUse use);

/// Puts the definition of every operator call in its place. Exact.
Result<Nothing> unfold_operators(Program& program);

/// The graph as a program, through the passes over operator calls (passes.h). Reports all layers that cannot be
/// lowered, in one go. `strict` keeps to exact rules: batch-norm stays a layer of its own.
Result<Program> lower_graph(const Graph& graph, bool strict, const TableOptions& tables = {},
                            ConstantUse constants = ConstantUse::computed);

/// The graph with each BatchNormalization of constant statistics folded into the Conv before it: the pass of that name,
/// for studies, which look at layers.
Result<Graph> fold_batch_norm(const Graph& graph);

}  // namespace hoist
