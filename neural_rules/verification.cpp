#include "neural_rules/verification.h"

#include <cmath>

#include "ir/stopwatch.h"

namespace hoist {

OutputDigest digest_of(OutputKind kind, const Samples& samples, const std::vector<Tensor>& outputs) {
  OutputDigest out;
  double sum = 0;
  int64_t values = 0, sample = 0;
  for (const Tensor& output : outputs) {
    for (int64_t i = 0; i < output.size(); ++i) {
      const double value = is_integer(output.scalar()) ? static_cast<double>(output.integer_at(i)) : output.float_at(i);
      sum += value * value;
    }
    values += output.size();
    if (kind == OutputKind::values) continue;
    const int64_t classes = output.size() / samples.samples_a_run;
    for (int64_t i = 0; i < samples.samples_a_run && sample < samples.count; ++i, ++sample)
      out.classes.push_back(top_class(output, i * classes, classes));
  }
  out.mean_square = values == 0 ? 0 : sum / static_cast<double>(values);
  return out;
}

// The outputs of each run where a metric wants them, else the first one only.
Result<double> Verifier::run(RunnableModel& runnable, std::vector<Tensor>& first_outputs) const {
  std::vector<std::vector<Tensor>> all;
  for (const std::vector<Tensor>& inputs : samples_.runs) {
    HOIST_TRY(std::vector<Tensor> outputs, runnable.run(inputs));
    first_outputs.push_back(outputs[0]);
    if (options_.metric) all.push_back(std::move(outputs));
  }
  if (!options_.metric) return std::nan("");
  return options_.metric(all);
}

Result<Nothing> Verifier::add_reference(std::shared_ptr<RunnableModel> runnable) {
  StudyPoint point;
  point.name = "reference";
  HOIST_TRY(point.user_metric, run(*runnable, reference_));
  HOIST_TRY(OutputMetrics metrics, compare_runs(options_.sensitivity.kind, samples_, reference_, reference_));
  point.samples = metrics.samples;
  point.verified = true;
  point.sqnr = metrics.sqnr;
  point.agreement = metrics.agreement;
  point.top1 = metrics.top1;
  point.both_right = metrics.paired.both_right;
  point.both_wrong = metrics.paired.both_wrong;
  points.push_back(std::move(point));
  digests.push_back(digest_of(options_.sensitivity.kind, samples_, reference_));
  models_.push_back(std::move(runnable));
  return Nothing{};
}

Result<size_t> Verifier::add(StudyPoint point, std::shared_ptr<RunnableModel> runnable) {
  if (runnable == nullptr) {
    HOIST_TRY(RewrittenModel model, rewrite(graph_, point.assignment, statistics_));
    HOIST_TRY(std::unique_ptr<RunnableModel> prepared, prepare_(model));
    runnable = std::move(prepared);
  }
  std::vector<Tensor> changed;
  HOIST_TRY(point.user_metric, run(*runnable, changed));
  HOIST_TRY(OutputMetrics metrics, compare_runs(options_.sensitivity.kind, samples_, reference_, changed));
  point.verified = true;
  point.samples = metrics.samples;
  point.error = metrics.mean_squared_error;
  point.sqnr = metrics.sqnr;
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
  digests.push_back(digest_of(options_.sensitivity.kind, samples_, changed));
  models_.push_back(std::move(runnable));
  return points.size() - 1;
}

BudgetEvidence Verifier::evidence(size_t index) const {
  const StudyPoint& point = points[index];
  BudgetEvidence out;
  out.samples = point.samples;
  out.labelled = !samples_.labels.empty();
  out.lost = point.lost;
  out.gained = point.gained;
  out.flips = point.flips;
  out.sqnr = point.sqnr;
  out.reference_metric = points[0].user_metric;
  out.metric = point.user_metric;
  return out;
}

Result<Nothing> Verifier::take_times() {
  constexpr int warm_up_rounds = 2, least_rounds = 7;
  std::vector<std::vector<double>> times(models_.size());
  const Stopwatch stopwatch;
  const auto over = [&] { return stopwatch.seconds() >= options_.timing_seconds; };
  for (int round = -warm_up_rounds; round < options_.timing_rounds && !(round >= least_rounds && over()); ++round) {
    for (size_t i = 0; i < models_.size(); ++i) {
      HOIST_TRY(std::vector<double> seconds, models_[i]->run_times(3));
      if (round >= 0) times[i].insert(times[i].end(), seconds.begin(), seconds.end());
    }
  }
  for (size_t i = 0; i < models_.size(); ++i) points[i].time = summarise_times(times[i]).lower_quartile;
  return Nothing{};
}

}  // namespace hoist
