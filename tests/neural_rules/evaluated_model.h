// A model that runs without a device: its layers as expressions, evaluated. For tests of what neural rules do with a
// PrepareModel; times are made up from the bytes that layers read and write, so that they are the same everywhere.
#pragma once

#include "neural_rules/runner.h"
#include "neural_rules/switchboard.h"

namespace hoist {

/// Prepares models for the evaluator.
PrepareModel evaluated_models();

/// The graph with the type of every value in `types`.
Graph typed(Graph graph);

/// `count` samples of normal numbers for the inputs, one a run.
Samples normal_samples(const Graph& graph, int64_t count, uint64_t seed);

}  // namespace hoist
