// Which weights are rounded with data, as far as time and memory allow, and their numbers: second moments are large and
// rounding is slow, so that both are done once for each layer and rule, and what is kept are the numbers. Not for how a
// layer is rounded: rounding.h.
//
// Second moments of a layer take terms^2 numbers and its rounding up to seconds, while a choice rewrites the model
// dozens of times; so numbers are made right after calibration, moments dropped after predictions, and the record has
// the chosen numbers, since a second compilation has no data. What rounding may take is counted, not timed: 10^9
// multiplications are a second; 3 s a layer, 60 s in all (an eighth of the time limit), 128 MiB of moments, smallest
// layers first. Large layers look at fewer windows of a sample before they are left out. A clock would give other plans
// on other days.
#pragma once

#include <string>
#include <vector>

#include "neural_rules/choice/candidates.h"

namespace hoist {

/// Seconds that one layer's moments, rounding and predictions may take. All seconds here are of a core that does 10^9
/// multiplications in one: nobody looks at a clock, so that plans are the same everywhere.
inline constexpr double most_layer_seconds = 3;
/// Second moments of all layers that are kept at once: 128 MiB, and as much again while they are collected.
inline constexpr int64_t most_second_moments = int64_t{1} << 24;

struct PlannedRounding {
  std::string layer;
  int64_t windows = most_sample_windows;  ///< of a sample, at most, that second moments are collected from
  std::vector<std::string> rules;
};

struct RoundingPlan {
  std::vector<PlannedRounding> layers;
  std::vector<std::string> notes;  ///< what is left out
};

/// The layers at whose sites a rule that rounds with data is a candidate. The smallest come first until the `seconds`
/// or the memory are used up; a large one looks at fewer windows of a sample, but never at fewer vectors than its sums
/// have terms. Layers that have to take such a rule are there whatever they take. `runs` of calibration.
RoundingPlan plan_rounding(const Program& program, const std::vector<Site>& sites, const CandidateRules& candidates,
                           size_t runs, double seconds);

/// Rounds what is planned with the second moments in the statistics, and keeps the numbers there.
Result<Nothing> round_weights(const Program& program, const RoundingPlan& plan, Statistics& statistics);

/// Drops second moments: who rewrites a model needs the rounded numbers alone.
void drop_second_moments(Statistics& statistics);

/// Drops numbers that the assignment does not use.
void keep_rounded(const Assignment& assignment, Statistics& statistics);

}  // namespace hoist
