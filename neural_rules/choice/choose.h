// The choice of a rule at each site under a budget: sensitivity and costs give a front of accuracy against time (or
// size), the solver walks it, and what it proposes is believed only after the true measure was taken on data that
// neither calibration nor the choice saw. Everything that was found on the way is in the study. Needs a device only
// through PrepareModel. Not for a choice that is made already: rewrite.h.
//
// The cost model orders, the clock decides: uniform models are verified with the solver's proposals, in one round of
// interleaved runs.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "neural_rules/calibration/sensitivity.h"
#include "neural_rules/choice/budget.h"
#include "neural_rules/choice/measured.h"

namespace hoist {

/// A number for the outputs of each verification run, for budgets of the measure `metric`.
using UserMetric = std::function<Result<double>(const RunOutputs& outputs)>;

struct ChooseOptions {
  Budget budget;
  Objective objective = Objective::time;
  SensitivityOptions sensitivity;
  /// The share of the time for the whole search that is over; 0 where there is no limit. Uniform models get the first
  /// half, sensitivities what is left up to three quarters. Takes the place of sensitivity.out_of_time.
  std::function<double()> spent = [] { return 0.0; };
  /// Seconds from now until this share of the time is over; infinity without a limit. Unfinished work is dropped then.
  std::function<double(double share)> seconds_until = [](double) { return std::numeric_limits<double>::infinity(); };
  /// Seconds that the first model may take to get ready: the chosen one takes as long after the search.
  std::function<double()> seconds_for_first = [] { return std::numeric_limits<double>::infinity(); };
  /// Whether somebody waits for an end: no further measurement is begun then, not even the first proposal.
  std::function<bool()> stopped = [] { return false; };
  /// Gets all that is measured so far, after each part that took a while, and whether a point beside the model as it is
  /// is known to keep the budget, so that an end would have something to show.
  std::function<void(const Measured&, bool has_choice)> keep = [](const Measured&, bool) {};
  UserMetric metric;  ///< for a budget that is a command; it gets all verification data
  /// Time for running one model on verification data: only as many samples are used as fit, and always the same ones.
  double verification_seconds = std::numeric_limits<double>::infinity();
  int verifications = 5;              ///< of proposals of the solver, at most
  int timing_rounds = 40;             ///< of all points by turns, more where these take less than least_timing_seconds
  double least_timing_seconds = 1;    ///< a busy machine makes times of shorter periods say nothing
  double timing_seconds = 30;         ///< that rounds take, more where the least number of them wants it
  std::optional<Assignment> decided;  ///< of the known points: what was chosen before for the same question
};

struct Choosing {
  Study study;  ///< `points` has the reference first; the chosen one is marked
  Assignment chosen;
  ChannelFactors factors;                          ///< to scale the model's channels by first
  Statistics statistics;                           ///< to rewrite it by then, as it was chosen
  Measured measured;                               ///< for further choices
  OutputDigest reference_outputs, chosen_outputs;  ///< on the verification data
};

/// The cheapest assignment that was seen to keep the budget, and of those that are as quick within the intervals of
/// their times the one with the least error; where none keeps it (pins can force that), the one with the least error,
/// and study.budget_met is false. If the time ends before rules are known, the model stays as it is, and `measured` is
/// empty; its point is not `verified` if the time was over before it ran. `known` is what was measured before: nothing
/// of it is measured again. Without verification data only its points are chosen from. Errors: those of sensitivity;
/// data without labels for a budget in top1; no output of scores for budgets of scores; what the metric says;
/// preferences that leave no point, also since the time is over before a pinned rule is measured; an end before any was
/// verified.
Result<Choosing> choose(const Program& program, const Samples& calibration, const Samples& verification,
                        const PrepareModel& prepare, const ChooseOptions& options, Measured known = {});

}  // namespace hoist
