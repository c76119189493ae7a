#include "tools/tuning/variants.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include "ir/stopwatch.h"
#include "lowering/passes.h"
#include "lowering/winograd.h"
#include "neural_rules/choice/interval.h"
#include "tools/compile.h"

namespace hoist::tuning {
namespace {

constexpr double failed = std::numeric_limits<double>::infinity();

// Terms that stand several times are one subject.
class Subjects {
 public:
  void add(const Definition& definition, Subject subject) {
    subject.task = tuning_task(definition.expression);
    const std::string& layer = definition.layers.empty() ? definition.value : definition.layers.front();
    const auto [place, fresh] = index_.emplace(subject.task, found_.size());
    if (fresh) found_.push_back(std::move(subject));
    found_[place->second].layers.push_back(layer);
  }
  std::vector<Subject> take() { return std::move(found_); }

 private:
  std::map<TuningTask, size_t> index_;
  std::vector<Subject> found_;
};

LowerOptions with_records(const LowerOptions& lower, TuningRecords records) {
  LowerOptions out = lower;
  out.records = std::move(records);
  return out;
}

bool computes_any(const std::vector<std::string>& layers, const std::vector<std::string>& of) {
  return std::any_of(layers.begin(), layers.end(),
                     [&](const std::string& layer) { return std::find(of.begin(), of.end(), layer) != of.end(); });
}

// Only these steps of the model, in order. What they read of others is there, whatever it holds.
LoweredModel only_steps(LoweredModel model, const std::vector<size_t>& kept) {
  std::vector<LoweredKernel> kernels;
  std::map<int, int> new_number;
  std::vector<PlanStep> steps;
  std::vector<LoweredGroup> groups;
  std::set<int> used(model.inputs.begin(), model.inputs.end());
  used.insert(model.outputs.begin(), model.outputs.end());
  for (const size_t i : kept) {
    PlanStep step = model.steps[i];
    const auto [place, fresh] = new_number.emplace(step.kernel, static_cast<int>(kernels.size()));
    if (fresh) kernels.push_back(model.kernels[static_cast<size_t>(step.kernel)]);
    step.kernel = place->second;
    used.insert(step.arguments.begin(), step.arguments.end());
    steps.push_back(std::move(step));
    groups.push_back(std::move(model.groups[i]));
    groups.back().kernel = place->second;
  }
  for (size_t i = 0; i < model.arrays.size(); ++i) {
    PlanArray& array = model.arrays[i];
    if (used.count(static_cast<int>(i)) != 0) continue;
    array = PlanArray{array.name, Scalar::u8, {}, Place::arena, 0, {}, 0};
  }
  model.kernels = std::move(kernels);
  model.steps = std::move(steps);
  model.groups = std::move(groups);
  model.controls.clear();
  model.items.clear();
  model.layers.clear();
  model.derivation = {};
  model.arena_bytes = std::max<int64_t>(model.arena_bytes, 4096);
  return model;
}

// A variant that is compiled and open.
struct Opened {
  ModelOnDevice model;
  std::vector<std::vector<size_t>> subjects;                        // of each step
  std::map<size_t, std::vector<std::vector<double>>> samples = {};  // by subject, of each of its steps
};

struct Variant {
  std::set<size_t> refused;  // subjects whose kernels are not there or wrong
  std::unique_ptr<Opened> opened;
};

class Builder {
 public:
  Builder(const TunedProgram& tuned, const std::vector<Subject>& subjects, const TuningRecords& fixed)
      : tuned_(tuned), subjects_(subjects), fixed_(fixed) {
    for (size_t i = 0; i < subjects.size(); ++i) by_task_[subjects[i].task] = i;
  }

  Result<Variant> build(const Assignment& assignment) {
    Variant out;
    HOIST_TRY(
        const LoweredModel lowered,
        lower_program(tuned_.program, with_records(tuned_.options.lower, records(assignment)), tuned_.options.profile));
    std::vector<size_t> steps;
    std::vector<std::vector<size_t>> owners;
    for (size_t i = 0; i < lowered.steps.size(); ++i) {
      if (!lowered.kernels[static_cast<size_t>(lowered.steps[i].kernel)].host.empty()) continue;
      const std::vector<size_t> owning = owners_of(lowered, i, assignment);
      if (owning.empty()) continue;
      steps.push_back(i);
      owners.push_back(owning);
    }
    HOIST_TRY_VOID(compile(lowered, steps, owners, out));
    return out;
  }

 private:
  TuningRecords records(const Assignment& assignment) const {
    return [this, &assignment](const TuningTask& task) -> KnobValues {
      KnobValues out = fixed_ ? fixed_(task) : KnobValues();
      const auto subject = by_task_.find(task);
      if (subject == by_task_.end()) return out;
      const auto assigned = assignment.find(subject->second);
      const KnobValues& knobs = assigned == assignment.end() ? subjects_[subject->second].usual : assigned->second;
      for (const auto& [name, value] : knobs) out[name] = value;
      return out;
    };
  }

  std::vector<size_t> owners_of(const LoweredModel& lowered, size_t step, const Assignment& assignment) const {
    std::vector<size_t> out;
    const TuningTask task = tuning_task(lowered.groups[step].high);
    for (const auto& [i, knobs] : assignment) {
      const Subject& subject = subjects_[i];
      if (subject.forms ? computes_any(subject.layers, lowered.steps[step].layers) : subject.task == task)
        out.push_back(i);
    }
    return out;
  }

  // Without the steps whose kernels are refused, which are found one by one where any is.
  Result<Nothing> compile(const LoweredModel& lowered, std::vector<size_t> steps,
                          std::vector<std::vector<size_t>> owners, Variant& out) const {
    CompileOptions options;
    options.lower = tuned_.options.lower;
    options.targets = tuned_.options.targets;
    options.check_model = false;
    auto plan = make_plan(only_steps(lowered, steps), options, tuned_.options.profile);
    if (!plan) {
      std::set<int> refused;
      for (const size_t i : steps) {
        const int kernel = lowered.steps[i].kernel;
        if (!emit_kernel(lowered.kernels[static_cast<size_t>(kernel)], tuned_.options.profile, tuned_.options.targets))
          refused.insert(kernel);
      }
      if (refused.empty()) return plan.errors();
      for (size_t i = steps.size(); i-- > 0;) {
        if (refused.count(lowered.steps[steps[i]].kernel) == 0) continue;
        out.refused.insert(owners[i].begin(), owners[i].end());
        steps.erase(steps.begin() + static_cast<ptrdiff_t>(i));
        owners.erase(owners.begin() + static_cast<ptrdiff_t>(i));
      }
      plan = make_plan(only_steps(lowered, steps), options, tuned_.options.profile);
      if (!plan) return plan.errors();
    }
    if (steps.empty()) return Nothing{};
    RunOptions run = tuned_.options.run;
    run.use_cache = false;
    HOIST_TRY(ModelOnDevice model, open_on_device(std::move(*plan), run));
    BundleRunner& runner = model.runner;
    HOIST_TRY(const std::vector<Finding> findings, runner.verify());
    for (const Finding& finding : findings) {
      if (finding.passed) continue;
      for (size_t i = 0; i < runner.steps().size(); ++i) {
        if (finding.subject == "kernel " + runner.steps()[i].kernel)
          out.refused.insert(owners[i].begin(), owners[i].end());
      }
      spdlog::warn("a variant of {} differs from the interpreter: {}", finding.subject, finding.message);
    }
    out.opened = std::make_unique<Opened>(Opened{std::move(model), std::move(owners)});
    return Nothing{};
  }

  const TunedProgram& tuned_;
  const std::vector<Subject>& subjects_;
  const TuningRecords& fixed_;
  std::map<TuningTask, size_t> by_task_;
};

Result<Nothing> time_once(Opened& variant, bool counts) {
  HOIST_TRY(const std::vector<double> seconds, variant.model.runner.profile());
  if (!counts) return Nothing{};
  std::map<size_t, size_t> next;
  for (size_t i = 0; i < seconds.size(); ++i) {
    for (const size_t subject : variant.subjects[i]) {
      auto& samples = variant.samples[subject];
      const size_t place = next[subject]++;
      if (samples.size() <= place) samples.resize(place + 1);
      samples[place].push_back(seconds[i]);
    }
  }
  return Nothing{};
}

}  // namespace

Result<std::vector<Subject>> form_subjects(const TunedProgram& tuned) {
  Subjects out;
  Program program = tuned.program;
  PassOptions options = pass_options(tuned.options.lower, tuned.options.profile);
  if (options.strict || options.convolution != ConvolutionForm::automatic) return out.take();
  // As the pass that chooses them finds the definitions.
  const auto observe = [&](const Pass& pass, const Program& now) {
    if (pass.name != "merge-producers") return true;
    for (const Definition& definition : now.definitions) {
      if (!has_known_weights(now, definition)) continue;
      const std::vector<WinogradChoice> choices = winograd_choices(definition.expression);
      if (choices.empty()) continue;
      Knob knob{std::string(winograd_knob), Knob::Kind::choice, {{0}}};
      for (const WinogradChoice& choice : choices) knob.values.push_back({choice.results});
      std::sort(knob.values.begin(), knob.values.end());
      knob.values.erase(std::unique(knob.values.begin(), knob.values.end()), knob.values.end());
      Subject subject;
      subject.forms = true;
      subject.space.knobs = {knob};
      out.add(definition, std::move(subject));
    }
    return false;
  };
  HOIST_TRY_VOID(run_passes(program, Pass::terms, options, observe));
  return out.take();
}

Result<std::vector<Subject>> tile_subjects(const TunedProgram& tuned, const TuningRecords& fixed) {
  Subjects out;
  HOIST_TRY(const LoweredModel lowered,
            lower_program(tuned.program, with_records(tuned.options.lower, fixed), tuned.options.profile));
  for (const Definition& definition : lowered.program.definitions) {
    const auto results = lowered.storage.tiled.find(definition.value);
    if (results == lowered.storage.tiled.end()) continue;
    Subject subject;
    subject.space = tile_knobs(results->second, tuned.options.profile);
    subject.usual = knobs_of(choose_tile(results->second, tuned.options.profile), tuned.options.profile);
    out.add(definition, std::move(subject));
  }
  return out.take();
}

Result<std::vector<VariantTimes>> time_variants(const TunedProgram& tuned, const std::vector<Subject>& subjects,
                                                const TuningRecords& fixed, const std::vector<Assignment>& variants,
                                                const Turns& turns, const std::function<bool()>& stop) {
  constexpr int warm_up = 2;
  Builder builder(tuned, subjects, fixed);
  std::vector<Variant> built(variants.size());
  for (size_t i = 0; i < variants.size() && !stop(); ++i) {
    if (auto variant = builder.build(variants[i]))
      built[i] = std::move(*variant);
    else
      spdlog::warn("a variant cannot be measured: {}", variant.errors().front().text());
  }
  const Stopwatch stopwatch;
  const double seconds = turns.seconds * static_cast<double>(variants.size());
  for (int turn = -warm_up; turn < turns.least || (turn < turns.most && stopwatch.seconds() < seconds); ++turn) {
    if (turn > 3 && stop()) break;
    for (Variant& variant : built) {
      if (variant.opened) HOIST_TRY_VOID(time_once(*variant.opened, turn >= 0));
    }
  }
  std::vector<VariantTimes> out(variants.size());
  for (size_t i = 0; i < built.size(); ++i) {
    for (const size_t subject : built[i].refused) out[i][subject] = failed;
    if (!built[i].opened) continue;
    for (auto& [subject, steps] : built[i].opened->samples) {
      if (built[i].refused.count(subject) != 0) continue;
      double all = 0;
      for (std::vector<double>& samples : steps) all += quantile(std::move(samples), 0.25) + tuned.launch_seconds;
      out[i][subject] = all;
    }
  }
  return out;
}

}  // namespace hoist::tuning
