// A model that runs without a device: its layers as expressions, evaluated. For tests of what neural rules do with a
// PrepareModel; times are made up from the bytes that layers read and write, so that they are the same everywhere.
#pragma once

#include "neural_rules/calibration/runner.h"
#include "neural_rules/rewrite/multi_variant.h"

namespace hoist {

/// Prepares models for the evaluator.
PrepareModel evaluated_models();

/// `count` samples of normal numbers for the inputs, one a run.
Samples normal_samples(const Program& program, int64_t count, uint64_t seed);

}  // namespace hoist
