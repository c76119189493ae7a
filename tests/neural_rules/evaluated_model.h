// A model that runs without a device: its layers as terms, evaluated. For tests of code that takes a PrepareModel;
// times are computed from the bytes that layers read and write, so that they are the same everywhere.
#pragma once

#include <string>

#include "neural_rules/calibration/runner.h"
#include "neural_rules/choice/choose.h"
#include "neural_rules/rewrite/multi_variant.h"

namespace hoist {

/// Prepares models for the evaluator.
PrepareModel evaluated_models();

/// `count` samples of normal values for the inputs, one per run.
Samples normal_samples(const Program& program, int64_t count, uint64_t seed);

/// The options of a choice under this budget whose local errors are predicted from statistics where possible.
ChooseOptions options_for(const std::string& budget);

}  // namespace hoist
