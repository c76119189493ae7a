// Assignments as runnable models, measured on verification data and compared with the unchanged model: the change of
// the output, the user's metric, and run times in interleaved runs, so that a busy machine slows all models alike. For
// choose.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neural_rules/choice/budget.h"
#include "neural_rules/choice/choose.h"

namespace hoist {

class Verifier {
 public:
  /// `studied` may still be empty until points other than the reference are added. `points` and `digests` may come from
  /// an earlier run, the reference first.
  Verifier(const Sensitivity& studied, OutputKinds kinds, const Samples& samples, const PrepareModel& prepare,
           const ChooseOptions& options)
      : studied_(studied), kinds_(std::move(kinds)), samples_(samples), prepare_(prepare), options_(options) {}

  /// Call this first, with the unchanged model. If its results are known already, only its outputs are computed.
  Result<Nothing> add_reference(std::shared_ptr<RunnableModel> runnable);
  /// Runs the model (prepares it if `runnable` is null) and stores the point's measurements; returns its position.
  Result<size_t> add(StudyPoint point, std::shared_ptr<RunnableModel> runnable = nullptr);
  bool keeps_budget(size_t point) const { return met(options_.budget, evidence(point)); }
  BudgetEvidence evidence(size_t point) const;
  bool has_reference() const { return !reference_.empty(); }
  /// Points that are worth timing.
  using Wanted = std::function<bool(size_t point)>;
  /// Prepares points without times that did not run in this process for take_times(). The reference must have run.
  Result<Nothing> prepare_untimed(const Wanted& wanted);
  /// Interleaved runs of all requested points that are ready, for at least the seconds and rounds that ChooseOptions
  /// requires; fewer if the time limit ends first. Further calls add rounds. Earlier times are scaled by the change of
  /// the reference's time. Points that are not reached stay without a time.
  Result<Nothing> take_times(double least_seconds, const Wanted& wanted);
  /// Sets the times of points from some of the rounds.
  enum class Rounds : uint8_t { all, first_half, second_half };
  void set_times(Rounds rounds);
  /// True if each half of the rounds has enough runs for an interval.
  bool can_halve() const;

  std::vector<StudyPoint> points;
  std::vector<OutputDigest> digests;  ///< one per point

 private:
  Result<RunOutputs> run(RunnableModel& runnable, StudyPoint& point) const;
  Result<std::shared_ptr<RunnableModel>> prepared(const StudyPoint& point) const;
  size_t runs() const;
  Result<size_t> runs_that_fit(RunnableModel& runnable) const;

  const Sensitivity& studied_;
  const OutputKinds kinds_;
  const Samples& samples_;
  const PrepareModel& prepare_;
  const ChooseOptions& options_;
  size_t runs_ = samples_.runs.size();  ///< number of runs: all verification data, until points reduce it
  Result<Nothing> time_round(int runs, bool keeps, const Wanted& wanted);

  RunOutputs reference_;
  std::vector<std::shared_ptr<RunnableModel>> models_;
  std::vector<std::vector<double>> seconds_;  ///< seconds of runs, by point
  std::vector<Interval> before_;              ///< times known before the first round
};

}  // namespace hoist
