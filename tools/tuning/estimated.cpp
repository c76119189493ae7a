#include "tools/tuning/estimated.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "lowering/tiling/tile.h"
#include "tools/tuning/search.h"

namespace hoist::tuning {
namespace {

struct Estimated {
  size_t index = 0;  // among the subjects
  std::unique_ptr<Search> search;
  std::vector<Point> proposed;
  double usual = 0;  // lowering's estimate for the point that it chooses; 0: none
  double least = 1;  // the least predicted ratio to the usual time
  KnobValues best;
};

double usual_estimate(const Subject& subject) {
  const KnobSpace& space = subject.space;
  if (!space.estimate) return 0;
  if (const auto usual = point_with(space, subject.usual)) return space.estimate(*usual);
  double least = std::numeric_limits<double>::infinity();
  for (const Point& point : every_point(space)) least = std::min(least, space.estimate(point));
  return least;
}

// The predicted ratio of a point to the usual one: the geometric mean of the cost model's ratio and the ratio of
// lowering's estimate, if there is one. Among many points, a single predictor is nearly always wrong about some point.
double judged(const Subject& subject, const Estimated& one, const Point& point, double by_model) {
  if (one.usual <= 0 || !std::isfinite(one.usual)) return by_model;
  return std::sqrt(by_model * subject.space.estimate(point) / one.usual);
}

class Estimator {
 public:
  Estimator(const TunedProgram& tuned, const CostModel& model, const Circumstances& circumstances,
            const EstimateOptions& options)
      : tuned_(tuned), model_(model), circumstances_(circumstances), options_(options) {}

  Result<EstimateOutcome> run() {
    HOIST_TRY_VOID(choose(ChoiceKind::convolutions));
    // Cost models with fused launches in their training data also predict fused launches of drivers.
    if (!circumstances_.native && model_.knows_layers()) HOIST_TRY_VOID(choose(ChoiceKind::launches));
    HOIST_TRY_VOID(choose(ChoiceKind::tiles));
    EstimateOutcome out;
    for (const auto& [task, choice] : chosen_) out.choices.push_back(choice);
    out.places = places_;
    out.outside = outside_;
    return out;
  }

 private:
  Result<Nothing> choose(ChoiceKind kind) {
    HOIST_TRY(const std::vector<Subject> subjects, subjects_of(tuned_, kind, records_in(chosen_)));
    if (subjects.empty()) return Nothing{};
    places_ += subjects.size();
    Assignment usual;
    for (size_t i = 0; i < subjects.size(); ++i) usual[i] = subjects[i].usual;
    HOIST_TRY(const VariantTimes before, times(subjects, usual));
    outside_ = subjects.size() - before.size();
    std::vector<Estimated> all;
    for (const auto& [subject, seconds] : before) {
      Estimated one;
      one.index = subject;
      one.usual = usual_estimate(subjects[subject]);
      // The model's features do not include the tile order, and no training kernel materialises windows, so both knobs
      // stay off.
      KnobSpace space = with_value(subjects[subject].space, order_knob, 0);
      space = with_value(std::move(space), std::string(im2col_knob), 0);
      one.search = search_strategies().front().make(space, options_.seed);
      if (const auto point = point_with(subjects[subject].space, subjects[subject].usual))
        one.search->observe({{*point, 1}});
      all.push_back(std::move(one));
    }
    constexpr size_t batch = 8;
    for (size_t done = 0; done < options_.points; done += batch) {
      for (Estimated& one : all) one.proposed = one.search->propose(batch);
      for (size_t i = 0; i < batch; ++i) HOIST_TRY_VOID(try_proposed(subjects, i, before, all));
    }
    for (const Estimated& one : all) {
      spdlog::debug("{} of {}: relative time {:.2f} with {}", name_of(kind), subjects[one.index].layers.front(),
                    one.least, knobs_text(one.best));
      if (one.least > 1 - options_.least_gain) continue;
      RecordedChoice& choice = chosen_[subjects[one.index].task];
      choice.task = subjects[one.index].task;
      choice.knobs.insert(one.best.begin(), one.best.end());
      choice.ratio *= one.least;
    }
    return Nothing{};
  }

  // Tries the candidate at this place of every kernel's proposals, all in one variant.
  Result<Nothing> try_proposed(const std::vector<Subject>& subjects, size_t place, const VariantTimes& before,
                               std::vector<Estimated>& all) {
    Assignment variant;
    for (const Estimated& one : all) {
      if (place < one.proposed.size()) variant[one.index] = values_of(subjects[one.index].space, one.proposed[place]);
    }
    if (variant.empty()) return Nothing{};
    HOIST_TRY(const VariantTimes now, times(subjects, variant));
    for (Estimated& one : all) {
      if (place >= one.proposed.size()) continue;
      const auto seconds = now.find(one.index);
      const double ratio = seconds == now.end() ? std::numeric_limits<double>::infinity()
                                                : judged(subjects[one.index], one, one.proposed[place],
                                                         seconds->second / before.at(one.index));
      one.search->observe({{one.proposed[place], ratio}});
      if (ratio < one.least) one.least = ratio, one.best = variant.at(one.index);
    }
    return Nothing{};
  }

  // Seconds of each assigned subject, without subjects that have a step outside of the model's knowledge.
  Result<VariantTimes> times(const std::vector<Subject>& subjects, const Assignment& assignment) {
    HOIST_TRY(const LoweredVariant variant, lower_variant(tuned_, subjects, records_in(chosen_), assignment));
    VariantTimes out;
    std::set<size_t> unknown;
    for (size_t i = 0; i < variant.steps.size(); ++i) {
      const auto kernel = static_cast<size_t>(variant.model.steps[variant.steps[i]].kernel);
      const std::optional<double> seconds = seconds_of(variant.model.kernels[kernel].expression);
      for (const size_t subject : variant.subjects[i]) {
        if (seconds)
          out[subject] += *seconds + model_.launch_seconds(circumstances_.native);
        else
          unknown.insert(subject);
      }
    }
    for (const size_t subject : unknown) out.erase(subject);
    return out;
  }

  std::optional<double> seconds_of(Expr term) {
    const auto [place, fresh] = known_.emplace(term, std::nullopt);
    if (fresh) place->second = model_.seconds(term, tuned_.options.profile, circumstances_);
    return place->second;
  }

  const TunedProgram& tuned_;
  const CostModel& model_;
  const Circumstances& circumstances_;
  const EstimateOptions& options_;
  std::unordered_map<Expr, std::optional<double>> known_;
  std::map<TuningTask, RecordedChoice> chosen_;
  size_t places_ = 0, outside_ = 0;
};

}  // namespace

Result<EstimateOutcome> estimate(const TunedProgram& tuned, std::span<const CostModel> models,
                                 const EstimateOptions& options) {
  // For drivers, the models' training data have launches of one kernel, each of which wakes threads. A step of a fused
  // launch is a function call, like native code.
  const bool fused = pass_options(tuned.options.lower, tuned.options.profile).fuses_launches;
  const Circumstances circumstances = {.native = !tuned.options.targets.empty() || fused};
  HOIST_TRY(const std::vector<Subject> tiles, subjects_of(tuned, ChoiceKind::tiles, {}));
  HOIST_TRY(const LoweredVariant usual, lower_variant(tuned, tiles, {}, {}));
  std::vector<Expr> kernels;
  for (const LoweredKernel& kernel : usual.model.kernels) kernels.push_back(kernel.expression);
  const CostModel& model = model_for(models, kernels, tuned.options.profile, circumstances);
  return Estimator(tuned, model, circumstances, options).run();
}

}  // namespace hoist::tuning
