// The accuracy that may be lost, in the syntax of the command line, and the check of a measured model. The check is
// exact and concerns the verification data alone: counts are compared with counts. Intervals state how far the answer
// extends to other data (interval.h). The solver chooses assignments (solver.h).
//
// A share is a number of samples: top1=0.5% of 1,000 samples is five of them, exactly.
#pragma once

#include <cstdint>
#include <string>

#include "ir/base/result.h"

namespace hoist {

/// top1: drop of the share of right answers, in points. sqnr: of the output, in dB. agreement: share of samples whose
/// top class is unchanged. metric: a command's number for an output folder.
enum class BudgetMeasure : uint8_t { top1, sqnr, agreement, metric };
enum class Objective : uint8_t { time, size };

struct Budget {
  BudgetMeasure measure = BudgetMeasure::sqnr;
  double limit = 30;          ///< top1, agreement, metric: per cent; sqnr: dB
  bool lower_better = false;  ///< metric: a rise does harm instead of a fall
  std::string command;        ///< metric

  std::string text() const;  ///< in the syntax of the command line; parse_budget(text()) is the same budget
  bool operator==(const Budget&) const = default;
};

/// "top1=0.5%", "sqnr=30dB", "agreement=99%", "metric=CMD" (CMD's number may fall by 1 % of the reference model's),
/// "metric=-2%:CMD" (fall by 2 %), "metric=+2%:CMD" (rise by 2 %: lower is better). Errors: an unknown measure (with
/// the near miss), a number without its unit, one that makes no sense (negative, above 100 %, not a number), no
/// command.
Result<Budget> parse_budget(const std::string& text);
Result<Objective> parse_objective(const std::string& text);
std::string name_of(Objective objective);

/// Measured on the verification data, for the changed model and the reference. Fields that the budget does not need are
/// unset.
struct BudgetEvidence {
  int64_t samples = 0;
  bool labelled = false;
  int64_t lost = 0, gained = 0;  ///< samples that were right and are now wrong, and the reverse
  int64_t both_right = 0;
  int64_t flips = 0;  ///< samples whose top class changed
  double sqnr = 0;    ///< dB; infinity where nothing changed
  double reference_metric = 0, metric = 0;
};

/// The number of samples out of `samples` that a budget in samples allows to lose: for top1 the largest lost - gained,
/// for agreement the most flips: limit * samples, rounded down. Precondition: the measure is one of the two.
int64_t samples_allowed(const Budget& budget, int64_t samples);

/// top1: lost - gained <= samples_allowed; agreement: flips <= samples_allowed; sqnr: at least the limit; metric: the
/// harmful change is at most limit per cent of the reference's magnitude. Never met without samples, with NaN, or
/// (top1) without labels.
bool met(const Budget& budget, const BudgetEvidence& evidence);

/// The question and the result in one line: "lost 3 of 1000, allowed 5".
std::string verdict(const Budget& budget, const BudgetEvidence& evidence);

/// The evidence beyond these samples, in words: if the budget is met on them, the limit of the 95 % interval (of the
/// share of lost answers, or of changed classes), and, if the samples prove too little, the number of samples with the
/// same shares that would prove the budget.
std::string confidence(const Budget& budget, const BudgetEvidence& evidence);

/// The reason why `samples` samples are too few: one sample is 1/samples, so a smaller budget allows nothing at all. ""
/// if the budget is at least one sample or is not counted in samples.
std::string resolution_note(const Budget& budget, int64_t samples);

}  // namespace hoist
