#include "tools/tuning/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "backends/bundle/bundle.h"
#include "neural_rules/choice/solver/interval.h"
#include "tools/inspection/prediction.h"

namespace hoist::tuning {
namespace {

// Smaller gains are not worth a choice, even on a quiet machine. Whole runs need a limit because two equal bundles
// differ by as much between processes.
constexpr double least_gain = 0.02, least_gain_of_runs = 0.01;
constexpr size_t finalists = 3, kernels_a_group = 8;

// The search for the knobs of one subject.
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
    for (const ChoiceKind kind : all_choices) {
      HOIST_TRY(const std::vector<Subject> subjects, subjects_of(tuned_, kind, records_in(chosen_), options_.explored));
      HOIST_TRY_VOID(search(subjects));
    }
    HOIST_TRY_VOID(compare_whole());
    std::sort(outcome_.kernels.begin(), outcome_.kernels.end(),
              [](const TunedKernel& a, const TunedKernel& b) { return a.share > b.share; });
    outcome_.stopped = options_.stop();
    return std::move(outcome_);
  }

 private:
  // Searches knobs for all of these subjects, in rounds: each round measures some candidates of every unfinished
  // search.
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

  // Times a run as a whole, and its part outside the kernels.
  Result<Nothing> time_whole() {
    options_.progress("timing the unchanged model");
    HOIST_TRY(LoweredModel usual, lowered({}));
    tuned_.is_serial = usual.is_serial;
    HOIST_TRY(usual_, whole(std::move(usual)));
    TimingQuestion question{{usual_->bundle}};
    question.runs = true;
    HOIST_TRY(const std::vector<BundleTimes> times, ask(question, options_.interrupted));
    const BundleTimes& found = times.front();
    const double kernels = std::accumulate(found.steps.begin(), found.steps.end(), 0.0);
    run_seconds_ = std::max(kernels, found.run);
    tuned_.launch_seconds = (run_seconds_ - kernels) / static_cast<double>(std::max<size_t>(1, found.steps.size()));
    return store(*usual_, found);
  }

  // Measures the usual times, and the noise: the difference between equal kernels.
  Result<VariantTimes> time_usual(const std::vector<Subject>& subjects, VariantTimer& timer) {
    options_.progress("timing the unchanged kernels");
    Assignment all;
    for (size_t i = 0; i < subjects.size(); ++i) all[i] = subjects[i].usual;
    HOIST_TRY(const auto groups, timer.time({{all, all}}, Turns(), options_.stop));
    const std::vector<VariantTimes>& times = groups.front();
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

  // Kernels with a large share of the run and few measured points come first, so that a stop at any time leaves little
  // undone.
  std::vector<Searched*> first_in_turn(std::vector<Searched>& searched, const VariantTimes& usual) const {
    std::vector<Searched*> out;
    for (Searched& one : searched) {
      if (!one.done) out.push_back(&one);
    }
    const auto urgency = [&](const Searched* one) {
      return usual.at(one->index) / static_cast<double>(1 + one->ratios.size());
    };
    std::stable_sort(out.begin(), out.end(), [&](auto* a, auto* b) { return urgency(a) > urgency(b); });
    if (out.size() > kernels_a_group * options_.groups) out.resize(kernels_a_group * options_.groups);
    return out;
  }

  // Variants that are timed together: first the usual kernels as the baseline; each further variant has one candidate
  // of each kernel.
  struct Proposed {
    std::vector<Assignment> variants = std::vector<Assignment>(1);
    std::vector<std::vector<std::pair<Searched*, Point>>> points = {{}};
    size_t kernels = 0;

    void add(const std::vector<Subject>& subjects, Searched& one, const std::vector<Point>& proposed) {
      ++kernels;
      const Subject& subject = subjects[one.index];
      variants[0][one.index] = subject.usual;
      for (size_t i = 0; i < proposed.size(); ++i) {
        if (variants.size() <= i + 1) {
          variants.emplace_back();
          points.emplace_back();
        }
        variants[i + 1][one.index] = values_of(subject.space, proposed[i]);
        points[i + 1].emplace_back(&one, proposed[i]);
      }
    }
  };

  Result<Nothing> measure_round(const std::vector<Subject>& subjects, std::vector<Searched>& searched,
                                const VariantTimes& usual, VariantTimer& timer) {
    std::vector<Proposed> proposed;
    for (Searched* next : first_in_turn(searched, usual)) {
      Searched& one = *next;
      const size_t left =
          static_cast<size_t>(options_.measurements) - std::min<size_t>(one.ratios.size(), options_.measurements);
      const std::vector<Point> points = one.search->propose(std::min(options_.batch, left));
      one.done = points.empty();
      if (one.done) continue;
      if (proposed.empty() || proposed.back().kernels == kernels_a_group) proposed.emplace_back();
      proposed.back().add(subjects, one, points);
    }
    if (proposed.empty()) return Nothing{};
    std::vector<std::vector<Assignment>> groups;
    for (const Proposed& each : proposed) groups.push_back(each.variants);
    HOIST_TRY(const auto times, timer.time(groups, Turns(), options_.stop));
    for (size_t i = 0; i < proposed.size(); ++i) HOIST_TRY_VOID(take(subjects, proposed[i], times[i]));
    return Nothing{};
  }

  Result<Nothing> take(const std::vector<Subject>& subjects, const Proposed& proposed,
                       const std::vector<VariantTimes>& times) {
    for (size_t i = 1; i < times.size(); ++i) {
      for (const auto& [one, point] : proposed.points[i]) {
        const auto before = times[0].find(one->index), now = times[i].find(one->index);
        if (before == times[0].end() || now == times[i].end() || !std::isfinite(before->second)) {
          one->done |= !options_.stop();  // otherwise it would be proposed again
          continue;
        }
        const KnobValues& knobs = proposed.variants[i].at(one->index);
        const double ratio = now->second / before->second;
        one->ratios[knobs] = ratio;
        one->search->observe({{point, ratio}});
        HOIST_TRY_VOID(database_.add(device_, subjects[one->index].task, {{knobs, ratio}}));
      }
    }
    return Nothing{};
  }

  // Times the best candidates of each kernel again, interleaved and for longer.
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
    options_.progress("timing the best points again");
    Turns longer;
    longer.least = 31;
    longer.seconds = 1;
    // Measured candidates get their final comparison even after the time limit.
    HOIST_TRY(const auto groups, timer.time({variants}, longer, [] { return false; }));
    const std::vector<VariantTimes>& times = groups.front();
    for (const Searched& one : searched) {
      TunedKernel kernel;
      kernel.task = subjects[one.index].task;
      kernel.layers = subjects[one.index].layers;
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

  Result<LoweredModel> lowered(const TuningRecords& records) const {
    LowerOptions lower = tuned_.options.lower;
    lower.records = records;
    return lower_program(tuned_.program, lower, tuned_.options.profile);
  }

  Result<std::shared_ptr<const WrittenModel>> whole(LoweredModel lowered) const {
    HOIST_TRY(WrittenModel written, written_model(tuned_, std::move(lowered)));
    return std::make_shared<const WrittenModel>(std::move(written));
  }

  // Times whole models, whose kernels have been timed before and so do not crash the process.
  Result<std::vector<BundleTimes>> ask(const TimingQuestion& question, const std::function<bool()>& stop) const {
    TimingAnswer answer = tuned_.time_bundles({question}, stop).front();
    if (!answer.ok()) return answer.errors();
    for (const BundleTimes& each : *answer) {
      if (!each.failed.empty()) return Diagnostic{"", "whole runs cannot be timed: " + each.failed, ""};
    }
    return std::move(*answer);
  }

  // Stores the times of the kernels of a model, from which its time is predicted.
  Result<Nothing> store(const WrittenModel& model, const BundleTimes& times) {
    HOIST_TRY(const BundleInfo info, read_bundle(model.bundle));
    return database_.add_times(device_, kernel_times(info.plan, times.steps, times.run));
  }

  // The final comparison: whole runs, interleaved.
  Result<Nothing> compare_whole() {
    if (chosen_.empty()) return Nothing{};
    options_.progress("timing whole runs");
    HOIST_TRY(LoweredModel chosen, lowered(records_in(chosen_)));
    HOIST_TRY(const auto tuned, whole(std::move(chosen)));
    TimingQuestion question{{usual_->bundle, tuned->bundle}, {31, 2000, 1.5}};
    question.runs = question.anew = true;
    HOIST_TRY(const std::vector<BundleTimes> times, ask(question, [] { return false; }));
    outcome_.before = times[0].run;
    outcome_.after = times[1].run;
    outcome_.kept = outcome_.after < (1 - least_gain_of_runs) * outcome_.before;
    HOIST_TRY_VOID(store(*usual_, times[0]));
    HOIST_TRY_VOID(store(*tuned, times[1]));
    if (!outcome_.kept) return Nothing{};
    for (const auto& [task, choice] : chosen_) outcome_.choices.push_back(choice);
    return database_.choose(device_, outcome_.choices);
  }

  TunedProgram tuned_;
  const TuneOptions& options_;
  TuningDatabase& database_;
  TunedDevice device_;
  std::map<TuningTask, RecordedChoice> chosen_;
  std::shared_ptr<const WrittenModel> usual_;  // the model with the estimate's knobs
  double run_seconds_ = 0;
  TuneOutcome outcome_;
};

}  // namespace

Result<TuneOutcome> tune(const TunedProgram& tuned, const TuneOptions& options, TuningDatabase& database) {
  return Tuner(tuned, options, database).run();
}

}  // namespace hoist::tuning
