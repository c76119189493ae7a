// The choice of a rule at each site under a budget: sensitivity and costs give a front of accuracy against time (or
// size), the solver walks it, and what it proposes is believed only after the true measure was taken on data that
// neither calibration nor the choice saw. Everything that was found on the way is in the study. Needs a device only
// through PrepareModel. Not for a choice that is made already: rewrite.h.
//
// The cost model orders, the clock decides: uniform models are verified with the solver's proposals, in one round of
// interleaved runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "neural_rules/calibration/sensitivity.h"
#include "neural_rules/choice/budget.h"
#include "neural_rules/choice/record.h"

namespace hoist {

/// A number for the outputs of each verification run, for budgets of the measure `metric`.
using UserMetric = std::function<Result<double>(const RunOutputs& outputs)>;

struct ChooseOptions {
  Budget budget;
  Objective objective = Objective::time;
  SensitivityOptions sensitivity;
  /// The share of the time for the whole search that is over; 0 where there is no limit. Sensitivity gets the first
  /// half, times of uniform models the next quarter. Takes the place of sensitivity.out_of_time.
  std::function<double()> spent = [] { return 0.0; };
  UserMetric metric;           ///< for a budget that is a command
  int verifications = 5;       ///< of proposals of the solver, at most
  int timing_rounds = 40;      ///< of all points by turns, at most
  double timing_seconds = 30;  ///< that these take, more where the least number of rounds wants it
};

struct Choosing {
  Study study;  ///< `points` has the reference first; the chosen one is marked
  Assignment chosen;
  ChannelFactors factors;  ///< to scale the model's channels by first
  Statistics statistics;   ///< to rewrite it by then, as it was chosen
  std::vector<RecordedConversion> conversions;
  OutputDigest reference_outputs, chosen_outputs;  ///< on the verification data
};

/// The cheapest assignment that was seen to keep the budget; where none was (pins can force that), the one with the
/// least error, and study.budget_met is false. Errors: those of sensitivity; data without labels for a budget in top1;
/// no output of scores for budgets of scores; what the metric says.
Result<Choosing> choose(const Program& program, const Samples& calibration, const Samples& verification,
                        const PrepareModel& prepare, const ChooseOptions& options);

}  // namespace hoist
