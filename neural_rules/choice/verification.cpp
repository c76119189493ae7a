#include "neural_rules/choice/verification.h"

#include <algorithm>
#include <cmath>

#include "ir/base/stopwatch.h"

namespace hoist {
namespace {

// Sets the fields that the reference, compared with itself, has too.
void take_common(StudyPoint& point, const OutputMetrics& metrics) {
  point.verified = true;
  point.samples = metrics.samples;
  point.sqnr = metrics.sqnr;
  if (metrics.kind == OutputKind::values) point.psnr = metrics.psnr;
  point.agreement = metrics.agreement;
  point.top1 = metrics.top1;
  point.both_right = metrics.paired.both_right;
  point.both_wrong = metrics.paired.both_wrong;
}

}  // namespace

// All points are verified on the same samples.
size_t Verifier::runs() const {
  if (points.empty()) return runs_;
  const int64_t filled = (points[0].samples + samples_.samples_a_run - 1) / samples_.samples_a_run;
  return std::min(samples_.runs.size(), static_cast<size_t>(filled));
}

Result<size_t> Verifier::runs_that_fit(RunnableModel& runnable) const {
  constexpr size_t least_runs = 8;
  const size_t all = samples_.runs.size();
  if (all <= least_runs || options_.metric || std::isinf(options_.verification_seconds)) return all;
  HOIST_TRY_VOID(run_all(runnable, samples_, 1));  // the first run may include the start of a device
  const Stopwatch stopwatch;
  HOIST_TRY_VOID(run_all(runnable, samples_, 1));
  const double fitting = options_.verification_seconds / std::max(stopwatch.seconds(), 1e-9);
  return fitting >= static_cast<double>(all) ? all : std::max(least_runs, static_cast<size_t>(fitting));
}

// Runs the verification data; the user's metric is stored in the point.
Result<RunOutputs> Verifier::run(RunnableModel& runnable, StudyPoint& point) const {
  HOIST_TRY(RunOutputs outputs, run_all(runnable, samples_, runs()));
  point.user_metric = std::nan("");
  if (options_.metric) {
    HOIST_TRY(point.user_metric, options_.metric(outputs));
  }
  return outputs;
}

Result<Nothing> Verifier::add_reference(std::shared_ptr<RunnableModel> runnable) {
  StudyPoint point;
  point.name = "reference";
  HOIST_TRY(runs_, runs_that_fit(*runnable));
  HOIST_TRY(reference_, run(*runnable, point));
  if (!points.empty()) {
    models_.resize(points.size());
    models_[0] = std::move(runnable);
    return Nothing{};
  }
  HOIST_TRY(OutputMetrics metrics, compare_runs(kinds_, samples_, reference_, reference_));
  take_common(point, metrics);
  points.push_back(std::move(point));
  digests.push_back(digest_of(kinds_, samples_, reference_));
  models_.push_back(std::move(runnable));
  return Nothing{};
}

Result<std::shared_ptr<RunnableModel>> Verifier::prepared(const StudyPoint& point) const {
  HOIST_TRY(RewrittenModel model, rewrite(studied_.program, point.assignment, studied_.statistics));
  if (point.retraining != nullptr) HOIST_TRY_VOID(put_retrained(model.program, point.retraining->weights));
  HOIST_TRY(std::unique_ptr<RunnableModel> runnable, prepare_(model));
  return std::shared_ptr<RunnableModel>(std::move(runnable));
}

Result<size_t> Verifier::add(StudyPoint point, std::shared_ptr<RunnableModel> runnable) {
  if (runnable == nullptr) {
    HOIST_TRY(runnable, prepared(point));
  }
  HOIST_TRY(const RunOutputs changed, run(*runnable, point));
  HOIST_TRY(OutputMetrics metrics, compare_runs(kinds_, samples_, reference_, changed));
  take_common(point, metrics);
  point.error = metrics.mean_squared_error;
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

Result<Nothing> Verifier::prepare_untimed(const Wanted& wanted) {
  models_.resize(points.size());
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].is_timed() || models_[i] != nullptr || !wanted(i)) continue;
    HOIST_TRY(std::shared_ptr<RunnableModel> model, prepared(points[i]));
    HOIST_TRY_VOID(run_all(*model, samples_, 1));  // the inputs of the timed runs
    models_[i] = std::move(model);
  }
  return Nothing{};
}

Result<Nothing> Verifier::time_round(int runs, bool keeps, const Wanted& wanted) {
  std::vector<std::vector<double>> taken(models_.size());
  for (size_t i = 0; i < models_.size(); ++i) {
    if (models_[i] == nullptr || !wanted(i)) continue;
    HOIST_TRY(taken[i], models_[i]->run_times(runs));
  }
  for (size_t i = 0; keeps && i < taken.size(); ++i)
    seconds_[i].insert(seconds_[i].end(), taken[i].begin(), taken[i].end());
  return Nothing{};
}

Result<Nothing> Verifier::take_times(double least_seconds, const Wanted& wanted) {
  constexpr int warm_up_rounds = 2, runs_a_round = 3;
  constexpr int least_runs = 15;     // fewer runs have no interval
  constexpr int most_rounds = 2000;  // more rounds add nothing
  if (std::all_of(models_.begin(), models_.end(), [](const auto& model) { return model == nullptr; })) return Nothing{};
  const bool is_first = before_.empty();
  if (is_first) {
    for (const StudyPoint& point : points) before_.push_back(point.time);
    seconds_.resize(models_.size());
  }
  const Stopwatch stopwatch;
  const double left = options_.seconds_until(1);
  double longest = 0;  // duration of the longest round
  const auto is_late = [&] { return stopwatch.seconds() + longest > left; };
  int runs = runs_a_round;
  for (int round = is_first ? -warm_up_rounds : 0;; ++round) {
    const double begin = stopwatch.seconds();
    if (round >= most_rounds || (round != 0 && longest > 0 && is_late())) break;
    if (round >= options_.timing_rounds && begin >= least_seconds) break;
    if (round * runs >= least_runs && (options_.stopped() || begin >= options_.timing_seconds)) break;
    if (round * runs >= least_runs && !is_first && begin >= least_seconds) break;
    HOIST_TRY_VOID(time_round(round < 0 ? 1 : runs, round >= 0, wanted));
    const double took = stopwatch.seconds() - begin;
    // Slow models have few runs, whose times vary less.
    if (round < 0 && took * warm_up_rounds * least_runs > std::min(left, options_.timing_seconds)) {
      runs = 1;
      round = -1;
    }
    longest = round < 0 ? took * runs : std::max(longest, took);
  }
  return Nothing{};
}

namespace {

constexpr size_t runs_of_an_interval = 13;  // interval.h

// For few runs the minimum and the maximum, because intervals of order statistics would be unbounded.
Interval time_of_runs(const std::vector<double>& seconds) {
  const Interval out = summarise_times(seconds).lower_quartile;
  if (seconds.size() >= runs_of_an_interval) return out;
  const auto [low, high] = std::minmax_element(seconds.begin(), seconds.end());
  return {out.value, *low, *high};
}

}  // namespace

void Verifier::set_times(Rounds rounds) {
  for (size_t i = 0; i < seconds_.size(); ++i) {
    const std::vector<double>& all = seconds_[i];
    const auto half = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    const std::vector<double> part(rounds == Rounds::second_half ? half : all.begin(),
                                   rounds == Rounds::first_half ? half : all.end());
    if (!part.empty()) points[i].time = time_of_runs(part);
  }
  const double before = before_.empty() ? 0 : before_[0].value;
  const double change = before > 0 && points[0].is_timed() ? points[0].time.value / before : 1;
  for (size_t i = 0; i < seconds_.size(); ++i) {
    const Interval& known = before_[i];
    if (seconds_[i].empty()) points[i].time = {known.value * change, known.low * change, known.high * change};
  }
}

bool Verifier::can_halve() const {
  return std::none_of(seconds_.begin(), seconds_.end(),
                      [](const auto& runs) { return !runs.empty() && runs.size() < 2 * runs_of_an_interval; });
}

}  // namespace hoist
