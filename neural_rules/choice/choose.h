// The choice of a rule at each site under a budget: sensitivity and costs give a front of accuracy against time (or
// size), the solver walks it, and a proposal counts only after it was measured on data that neither calibration nor the
// choice has used. The study holds all intermediate results. Needs a device only through PrepareModel. rewrite.h
// applies an existing choice.
//
// The cost model proposes, and measured times decide: uniform-precision baselines are verified with the solver's
// proposals, in one round of interleaved runs.
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
  /// The share of the time limit for the whole search that has passed; 0 without a limit. Uniform-precision baselines
  /// get the first half, sensitivities the rest up to three quarters. Replaces sensitivity.out_of_time.
  std::function<double()> spent = [] { return 0.0; };
  /// Seconds until this share of the time limit has passed; infinity without a limit. Unfinished work is dropped then.
  std::function<double(double share)> seconds_until = [](double) { return std::numeric_limits<double>::infinity(); };
  /// The limit in seconds for preparing the first model, since the chosen model takes as long after the search.
  std::function<double()> seconds_for_first = [] { return std::numeric_limits<double>::infinity(); };
  /// True if the user has asked to stop: no further measurement begins then, not even the first proposal.
  std::function<bool()> stopped = [] { return false; };
  /// Receives all measurements so far, after each longer part, and whether a point besides the unchanged model is known
  /// to keep the budget, so that an interrupted run has a result.
  std::function<void(const Measured&, bool has_choice)> keep = [](const Measured&, bool) {};
  UserMetric metric;  ///< the command of a metric budget, which receives all verification data
  /// Time for running one model on verification data: only as many samples are used as fit, and always the same ones.
  double verification_seconds = std::numeric_limits<double>::infinity();
  int verifications = 5;            ///< maximum number of verified proposals of the solver
  int timing_rounds = 40;           ///< number of interleaved runs; more within least_timing_seconds
  double least_timing_seconds = 1;  ///< on a busy machine times of shorter periods are meaningless
  double timing_seconds = 30;       ///< per round; more if the minimum number of rounds needs it
  /// Trains the weights of points with the rounding of their rules; empty: retrained points are not chosen either.
  Retrain retrain;
  int retrainings = 3;  ///< maximum number of retrained points that break the budget without it
  /// The earlier choice among the known points for the same budget and objective.
  std::optional<Assignment> decided;
  bool decided_retrained = false;
};

struct Choosing {
  Study study;  ///< `points` has the reference first; the chosen one is marked
  Assignment chosen;
  std::shared_ptr<const Retraining> retraining;    ///< of the chosen point; null if its weights are only rounded
  ChannelFactors factors;                          ///< factors by which the model's channels are scaled first
  Statistics statistics;                           ///< statistics for rewriting the scaled model as chosen
  Measured measured;                               ///< for further choices
  OutputDigest reference_outputs, chosen_outputs;  ///< digests of the outputs on the verification data
};

/// The cheapest assignment that was measured to keep the budget; among assignments whose times are equal within their
/// intervals, the one with the least error. If no assignment keeps the budget (pins can cause that), the one with the
/// least error, and study.budget_met is false. If the time limit ends before rules are known, the model stays
/// unchanged, and `measured` is empty; its point is not `verified` if it did not run in time. `known` holds earlier
/// measurements, none of which is repeated; without verification data only its points are candidates. Errors: errors of
/// sensitivity; data without labels for a budget in top1; no output of scores for budgets of scores; errors of the
/// metric and of retraining; preferences that leave no point, also if the time limit ends before a pinned rule is
/// measured; an end before any point was verified.
Result<Choosing> choose(const Program& program, const Samples& calibration, const Samples& verification,
                        const PrepareModel& prepare, const ChooseOptions& options, Measured known = {});

}  // namespace hoist
