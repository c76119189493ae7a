// Assignments as models that run, measured on verification data beside the unchanged model: what changed at the output,
// the user's metric, and run times taken in turns so that a busy machine slows all of them alike. For choose.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neural_rules/choice/budget.h"
#include "neural_rules/choice/choose.h"

namespace hoist {

class Verifier {
 public:
  /// `studied` may still be empty until points other than the reference are added. `points` and `digests` may be known
  /// from before, the reference first.
  Verifier(const Sensitivity& studied, OutputKinds kinds, const Samples& samples, const PrepareModel& prepare,
           const ChooseOptions& options)
      : studied_(studied), kinds_(std::move(kinds)), samples_(samples), prepare_(prepare), options_(options) {}

  /// Has to come before any other: the model as it was before anything was done to it. Where it is known already, only
  /// its outputs are taken.
  Result<Nothing> add_reference(std::shared_ptr<RunnableModel> runnable);
  /// Runs the model (prepares it where `runnable` is null) and fills in what the point measures; its position.
  Result<size_t> add(StudyPoint point, std::shared_ptr<RunnableModel> runnable = nullptr);
  bool keeps_budget(size_t point) const { return met(options_.budget, evidence(point)); }
  BudgetEvidence evidence(size_t point) const;
  bool has_reference() const { return !reference_.empty(); }
  /// Interleaved runs of all points that ran here. Times from before are scaled as that of the reference has changed.
  Result<Nothing> take_times();

  std::vector<StudyPoint> points;
  std::vector<OutputDigest> digests;  ///< a point each

 private:
  Result<RunOutputs> run(RunnableModel& runnable, StudyPoint& point) const;

  const Sensitivity& studied_;
  const OutputKinds kinds_;
  const Samples& samples_;
  const PrepareModel& prepare_;
  const ChooseOptions& options_;
  RunOutputs reference_;
  std::vector<std::shared_ptr<RunnableModel>> models_;
};

}  // namespace hoist
