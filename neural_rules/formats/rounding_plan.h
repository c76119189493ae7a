// The choice of weights that are rounded with data within limits of time and memory, and the rounded weights: second
// moments are large and rounding is slow, so both are computed once per layer and rule, and only the rounded weights
// are stored. rounding.h defines the rounding of a layer.
//
// The second moments of a layer take terms^2 elements and its rounding up to seconds, while a choice rewrites the model
// dozens of times; so rounded weights are computed directly after calibration, moments are dropped after predictions,
// and the record contains the chosen weights, since a second compilation has no data. The cost of rounding is counted,
// not timed: 10^9 multiplications count as a second; the limits are 3 s per layer, 60 s in all (1/8 of the search's
// time limit) and 128 MiB of moments, smallest layers first. Large layers use fewer windows per sample before they are
// left out. A clock would make plans differ between runs.
#pragma once

#include <string>
#include <vector>

#include "neural_rules/choice/candidates.h"

namespace hoist {

/// Limit in seconds of one layer's moments, rounding and predictions; a second is 10^9 multiplications.
inline constexpr double most_layer_seconds = 3;
/// The maximum number of elements of all layers' second moments in memory: 128 MiB, and as much again during
/// collection.
inline constexpr int64_t most_second_moments = int64_t{1} << 24;

struct PlannedRounding {
  std::string layer;
  int64_t windows = most_sample_windows;  ///< maximum per sample for collecting second moments
  std::vector<std::string> rules;
};

struct RoundingPlan {
  std::vector<PlannedRounding> layers;
  std::vector<std::string> notes;  ///< layers and rules that are left out
};

/// The layers with a candidate rule that rounds with data. The smallest layers come first until `seconds` or the memory
/// are used up; a large layer uses fewer windows per sample, but never fewer vectors than its sums have terms. Layers
/// that must take such a rule are included whatever their cost. `runs` is the number of runs of calibration.
RoundingPlan plan_rounding(const Program& program, const std::vector<Site>& sites, const CandidateRules& candidates,
                           size_t runs, double seconds);

/// Rounds the planned weights with the second moments in the statistics and stores the results there.
Result<Nothing> round_weights(const Program& program, const RoundingPlan& plan, Statistics& statistics);

/// Drops second moments: rewriting a model only needs the rounded weights.
void drop_second_moments(Statistics& statistics);

/// Drops rounded weights that the assignment does not use.
void keep_rounded(const Assignment& assignment, Statistics& statistics);

}  // namespace hoist
