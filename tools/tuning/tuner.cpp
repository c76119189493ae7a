#include "tools/tuning/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ir/stopwatch.h"
#include "neural_rules/choice/interval.h"

namespace hoist::tuning {
namespace {

// Differences below that are not worth a choice, however quiet the machine is.
constexpr double least_gain = 0.02;
constexpr size_t finalists = 3;

// A subject while its knobs are searched.
struct Searched {
  size_t index = 0;  // among the subjects
  std::unique_ptr<Search> search;
  std::map<KnobValues, double> ratios;
  bool done = false;

  size_t refused() const {
    return static_cast<size_t>(
        std::count_if(ratios.begin(), ratios.end(), [](const auto& entry) { return std::isinf(entry.second); }));
  }
};

class Tuner {
 public:
  Tuner(const TunedProgram& tuned, const TuneOptions& options, TuningDatabase& database)
      : tuned_(tuned), options_(options), database_(database) {
    device_ = tuned_device(tuned.options.profile, tuned.options.targets);
  }

  Result<TuneOutcome> run() {
    HOIST_TRY_VOID(time_whole());
    HOIST_TRY(const std::vector<Subject> forms, form_subjects(tuned_));
    HOIST_TRY_VOID(search(forms));
    HOIST_TRY(const std::vector<Subject> tiles, tile_subjects(tuned_, records_in(chosen_)));
    HOIST_TRY_VOID(search(tiles));
    HOIST_TRY_VOID(compare_whole());
    std::sort(outcome_.kernels.begin(), outcome_.kernels.end(),
              [](const TunedKernel& a, const TunedKernel& b) { return a.share > b.share; });
    outcome_.stopped = options_.stop();
    return std::move(outcome_);
  }

 private:
  // Knobs for all of these subjects, in rounds: in each every one that still searches has some candidates.
  Result<Nothing> search(const std::vector<Subject>& subjects) {
    if (subjects.empty() || options_.stop()) return Nothing{};
    VariantTimer timer(tuned_, subjects, records_in(chosen_));
    HOIST_TRY(const VariantTimes usual, time_usual(subjects, timer));
    HOIST_TRY(std::vector<Searched> searched, begin(subjects, usual));
    const auto measured_all = [&] {
      return std::all_of(searched.begin(), searched.end(), [](const Searched& each) { return each.done; });
    };
    for (int round = 1; !measured_all() && !options_.stop(); ++round) {
      const auto left =
          std::count_if(searched.begin(), searched.end(), [](const Searched& each) { return !each.done; });
      options_.progress(fmt::format("round {}, {} kernels", round, left));
      HOIST_TRY_VOID(measure_round(subjects, searched, usual, timer));
    }
    return choose(subjects, searched, usual, timer);
  }

  // What a run takes, in all its kernels and beside them.
  Result<Nothing> time_whole() {
    options_.progress("timing the model as it is");
    HOIST_TRY(usual_, whole({}));
    HOIST_TRY(const std::vector<StepTime> steps, usual_->step_times());
    double kernels = 0;
    for (const StepTime& step : steps) kernels += step.seconds;
    HOIST_TRY(const std::vector<double> runs, usual_->run_times(Turns().least));
    run_seconds_ = std::max(kernels, quantile(runs, 0.25));
    tuned_.launch_seconds = (run_seconds_ - kernels) / static_cast<double>(std::max<size_t>(1, steps.size()));
    return Nothing{};
  }

  // Shares of the run, and how far equal kernels are apart.
  Result<VariantTimes> time_usual(const std::vector<Subject>& subjects, VariantTimer& timer) {
    options_.progress("timing the kernels as they are");
    Assignment all;
    for (size_t i = 0; i < subjects.size(); ++i) all[i] = subjects[i].usual;
    HOIST_TRY(const std::vector<VariantTimes> times, timer.time({all, all}, Turns(), options_.stop));
    std::vector<double> differences;
    for (const auto& [subject, seconds] : times[0]) {
      const auto other = times[1].find(subject);
      if (other != times[1].end() && seconds > 0 && std::isfinite(seconds) && std::isfinite(other->second))
        differences.push_back(std::abs(std::log(other->second / seconds)));
    }
    if (!differences.empty()) outcome_.noise = std::max(outcome_.noise, std::expm1(quantile(differences, 0.95)));
    return times[0];
  }

  Result<std::vector<Searched>> begin(const std::vector<Subject>& subjects, const VariantTimes& usual) {
    const SearchStrategy& strategy = options_.strategy != nullptr ? *options_.strategy : search_strategies().front();
    std::vector<Searched> out;
    for (const auto& [subject, seconds] : usual) {
      if (!std::isfinite(seconds) || seconds < options_.least_share * run_seconds_) continue;
      Searched one;
      one.index = subject;
      const KnobSpace& space = subjects[subject].space;
      one.search = strategy.make(space, options_.seed);
      HOIST_TRY(const std::vector<Measurement> known, database_.measurements(device_, subjects[subject].task));
      std::vector<Observation> observations;
      if (const auto point = point_with(space, subjects[subject].usual)) observations.push_back({*point, 1});
      for (const Measurement& measurement : known) {
        const auto point = point_with(space, measurement.knobs);
        if (!point) continue;
        one.ratios[measurement.knobs] = measurement.ratio;
        if (measurement.knobs != subjects[subject].usual) observations.push_back({*point, measurement.ratio});
      }
      one.search->observe(observations);
      out.push_back(std::move(one));
    }
    return out;
  }

  // Kernels that take much of the run, and those that few points are known of, come first; so an end at any time leaves
  // little undone.
  static std::vector<Searched*> first_in_turn(std::vector<Searched>& searched, const VariantTimes& usual) {
    constexpr size_t most = 8;
    std::vector<Searched*> out;
    for (Searched& one : searched) {
      if (!one.done) out.push_back(&one);
    }
    const auto urgency = [&](const Searched* one) {
      return usual.at(one->index) / static_cast<double>(1 + one->ratios.size());
    };
    std::stable_sort(out.begin(), out.end(), [&](auto* a, auto* b) { return urgency(a) > urgency(b); });
    if (out.size() > most) out.resize(most);
    return out;
  }

  Result<Nothing> measure_round(const std::vector<Subject>& subjects, std::vector<Searched>& searched,
                                const VariantTimes& usual, VariantTimer& timer) {
    // The kernels as they are first, to compare with; then one candidate of each in every variant.
    std::vector<Assignment> variants(1);
    std::vector<std::vector<std::pair<Searched*, Point>>> proposed(1);
    for (Searched* next : first_in_turn(searched, usual)) {
      Searched& one = *next;
      const size_t left =
          static_cast<size_t>(options_.measurements) - std::min<size_t>(one.ratios.size(), options_.measurements);
      const std::vector<Point> points = one.search->propose(std::min(options_.batch, left));
      one.done = points.empty();
      if (one.done) continue;
      variants[0][one.index] = subjects[one.index].usual;
      for (size_t i = 0; i < points.size(); ++i) {
        if (variants.size() <= i + 1) {
          variants.emplace_back();
          proposed.emplace_back();
        }
        variants[i + 1][one.index] = values_of(subjects[one.index].space, points[i]);
        proposed[i + 1].emplace_back(&one, points[i]);
      }
    }
    if (variants.size() == 1) return Nothing{};
    HOIST_TRY(const std::vector<VariantTimes> times, timer.time(variants, Turns(), options_.stop));
    for (size_t i = 1; i < times.size(); ++i) {
      for (const auto& [one, point] : proposed[i]) {
        const auto before = times[0].find(one->index), now = times[i].find(one->index);
        if (before == times[0].end() || now == times[i].end() || !std::isfinite(before->second)) {
          one->done |= !options_.stop();  // it would be proposed again
          continue;
        }
        const KnobValues& knobs = variants[i].at(one->index);
        const double ratio = now->second / before->second;
        one->ratios[knobs] = ratio;
        one->search->observe({{point, ratio}});
        HOIST_TRY_VOID(database_.add(device_, subjects[one->index].task, {{knobs, ratio}}));
      }
    }
    return Nothing{};
  }

  // The best of each once more, by turns and longer.
  Result<Nothing> choose(const std::vector<Subject>& subjects, const std::vector<Searched>& searched,
                         const VariantTimes& usual, VariantTimer& timer) {
    std::vector<Assignment> variants(1 + finalists);
    for (const Searched& one : searched) {
      variants[0][one.index] = subjects[one.index].usual;
      std::vector<std::pair<double, const KnobValues*>> order;
      for (const auto& [knobs, ratio] : one.ratios) {
        if (ratio < 1) order.emplace_back(ratio, &knobs);
      }
      std::sort(order.begin(), order.end());
      for (size_t i = 0; i < std::min(order.size(), finalists); ++i) variants[i + 1][one.index] = *order[i].second;
    }
    while (variants.size() > 1 && variants.back().empty()) variants.pop_back();
    options_.progress("timing the best once more");
    Turns longer;
    longer.least = 31;
    longer.seconds = 1;
    // What was measured is worth its choice, also where time is over.
    HOIST_TRY(const std::vector<VariantTimes> times, timer.time(variants, longer, [] { return false; }));
    for (const Searched& one : searched) {
      TunedKernel kernel;
      kernel.task = subjects[one.index].task;
      kernel.layers = subjects[one.index].layers;
      kernel.forms = subjects[one.index].forms;
      kernel.usual = subjects[one.index].usual;
      kernel.points = std::min<int64_t>(count_points(subjects[one.index].space), std::int64_t{1} << 40);
      kernel.seconds = usual.at(one.index);
      kernel.share = kernel.seconds / run_seconds_;
      kernel.measured = one.ratios.size();
      kernel.refused = one.refused();
      const auto before = times[0].find(one.index);
      for (size_t i = 1; before != times[0].end() && i < times.size(); ++i) {
        const auto now = times[i].find(one.index);
        if (now == times[i].end()) continue;
        const double ratio = now->second / before->second;
        if (ratio >= 1 - least_gain || ratio >= kernel.ratio) continue;
        kernel.ratio = ratio;
        kernel.chosen = variants[i].at(one.index);
      }
      if (!kernel.chosen.empty()) {
        RecordedChoice& choice = chosen_[kernel.task];
        choice.task = kernel.task;
        choice.knobs.insert(kernel.chosen.begin(), kernel.chosen.end());
        choice.ratio = choice.ratio * kernel.ratio;
      }
      outcome_.kernels.push_back(std::move(kernel));
    }
    return Nothing{};
  }

  Result<std::unique_ptr<RunnableModel>> whole(const TuningRecords& records) {
    LowerOptions lower = tuned_.options.lower;
    lower.records = records;
    HOIST_TRY(LoweredModel lowered, lower_program(tuned_.program, lower, tuned_.options.profile));
    return runnable_on_device(std::move(lowered), tuned_.options, tuned_.options.profile);
  }

  // The last word: whole runs by turns.
  Result<Nothing> compare_whole() {
    if (chosen_.empty()) return Nothing{};
    options_.progress("timing whole runs");
    HOIST_TRY(const auto tuned, whole(records_in(chosen_)));
    constexpr int warm_up = 3, least = 31, most = 2000;
    constexpr double enough = 3;
    std::vector<double> before, after;
    const Stopwatch stopwatch;
    for (int turn = -warm_up; turn < least || (turn < most && stopwatch.seconds() < enough); ++turn) {
      for (const auto& [model, seconds] : {std::pair(usual_.get(), &before), std::pair(tuned.get(), &after)}) {
        HOIST_TRY(const std::vector<double> run, model->run_times(1));
        if (turn >= 0) seconds->push_back(run[0]);
      }
    }
    outcome_.before = quantile(before, 0.25);
    outcome_.after = quantile(after, 0.25);
    outcome_.kept = outcome_.after < outcome_.before;
    if (!outcome_.kept) return Nothing{};
    for (const auto& [task, choice] : chosen_) outcome_.choices.push_back(choice);
    return database_.choose(device_, outcome_.choices);
  }

  TunedProgram tuned_;
  const TuneOptions& options_;
  TuningDatabase& database_;
  TunedDevice device_;
  std::map<TuningTask, RecordedChoice> chosen_;
  std::unique_ptr<RunnableModel> usual_;  // the whole as estimates make it
  double run_seconds_ = 0;
  TuneOutcome outcome_;
};

}  // namespace

Result<TuneOutcome> tune(const TunedProgram& tuned, const TuneOptions& options, TuningDatabase& database) {
  return Tuner(tuned, options, database).run();
}

}  // namespace hoist::tuning
