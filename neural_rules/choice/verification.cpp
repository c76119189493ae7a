#include "neural_rules/choice/verification.h"

#include <algorithm>
#include <cmath>

#include "ir/base/stopwatch.h"

namespace hoist {

// Runs all verification data; the user's metric goes into the point.
Result<RunOutputs> Verifier::run(RunnableModel& runnable, StudyPoint& point) const {
  HOIST_TRY(RunOutputs outputs, run_all(runnable, samples_, samples_.runs.size()));
  point.user_metric = std::nan("");
  if (options_.metric) {
    HOIST_TRY(point.user_metric, options_.metric(outputs));
  }
  return outputs;
}

Result<Nothing> Verifier::add_reference(std::shared_ptr<RunnableModel> runnable) {
  StudyPoint point;
  point.name = "reference";
  HOIST_TRY(reference_, run(*runnable, point));
  if (!points.empty()) {
    models_.resize(points.size());
    models_[0] = std::move(runnable);
    return Nothing{};
  }
  HOIST_TRY(OutputMetrics metrics, compare_runs(kinds_, samples_, reference_, reference_));
  point.samples = metrics.samples;
  point.verified = true;
  point.sqnr = metrics.sqnr;
  if (metrics.kind == OutputKind::values) point.psnr = metrics.psnr;
  point.agreement = metrics.agreement;
  point.top1 = metrics.top1;
  point.both_right = metrics.paired.both_right;
  point.both_wrong = metrics.paired.both_wrong;
  points.push_back(std::move(point));
  digests.push_back(digest_of(kinds_, samples_, reference_));
  models_.push_back(std::move(runnable));
  return Nothing{};
}

Result<size_t> Verifier::add(StudyPoint point, std::shared_ptr<RunnableModel> runnable) {
  if (runnable == nullptr) {
    HOIST_TRY(RewrittenModel model, rewrite(studied_.program, point.assignment, studied_.statistics));
    HOIST_TRY(std::unique_ptr<RunnableModel> prepared, prepare_(model));
    runnable = std::move(prepared);
  }
  HOIST_TRY(const RunOutputs changed, run(*runnable, point));
  HOIST_TRY(OutputMetrics metrics, compare_runs(kinds_, samples_, reference_, changed));
  point.verified = true;
  point.samples = metrics.samples;
  point.error = metrics.mean_squared_error;
  point.sqnr = metrics.sqnr;
  if (metrics.kind == OutputKind::values) point.psnr = metrics.psnr;
  point.agreement = metrics.agreement;
  point.top1 = metrics.top1;
  point.both_right = metrics.paired.both_right;
  point.both_wrong = metrics.paired.both_wrong;
  point.lost = metrics.paired.lost;
  point.gained = metrics.paired.gained;
  point.flips = metrics.flips;
  point.worst_class = metrics.worst_class;
  point.worst_class_drop = metrics.worst_class_drop;
  points.push_back(std::move(point));
  digests.push_back(digest_of(kinds_, samples_, changed));
  models_.push_back(std::move(runnable));
  return points.size() - 1;
}

BudgetEvidence Verifier::evidence(size_t index) const {
  const StudyPoint& point = points[index];
  BudgetEvidence out;
  out.samples = point.samples;
  out.labelled = point.both_right + point.lost + point.gained + point.both_wrong > 0;
  out.both_right = point.both_right;
  out.lost = point.lost;
  out.gained = point.gained;
  out.flips = point.flips;
  out.sqnr = point.sqnr;
  out.reference_metric = points[0].user_metric;
  out.metric = point.user_metric;
  return out;
}

Result<Nothing> Verifier::take_times() {
  constexpr int warm_up_rounds = 2, least_rounds = 5;  // fewer samples have no interval
  constexpr int most_rounds = 2000;                    // more would say the same
  if (std::all_of(models_.begin(), models_.end(), [](const auto& model) { return model == nullptr; })) return Nothing{};
  std::vector<std::vector<double>> times(models_.size());
  const Stopwatch stopwatch;
  const auto over = [&](int round) {
    const double seconds = stopwatch.seconds();
    if (round >= options_.timing_rounds && (seconds >= options_.least_timing_seconds || round >= most_rounds))
      return true;
    return round >= least_rounds && (options_.stopped() || seconds >= options_.timing_seconds);
  };
  for (int round = -warm_up_rounds; !over(round); ++round) {
    for (size_t i = 0; i < models_.size(); ++i) {
      if (models_[i] == nullptr) continue;
      HOIST_TRY(std::vector<double> seconds, models_[i]->run_times(3));
      if (round >= 0) times[i].insert(times[i].end(), seconds.begin(), seconds.end());
    }
  }
  const double before = points[0].time.value;
  for (size_t i = 0; i < models_.size(); ++i) {
    if (models_[i] != nullptr) points[i].time = summarise_times(times[i]).lower_quartile;
  }
  const double change = before > 0 ? points[0].time.value / before : 1;
  for (size_t i = 0; i < models_.size(); ++i) {
    Interval& time = points[i].time;
    if (models_[i] == nullptr) time = {time.value * change, time.low * change, time.high * change};
  }
  return Nothing{};
}

}  // namespace hoist
