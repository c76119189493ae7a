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

// Without the steps whose kernels are refused, which are found one by one where any is.
Result<Variant> compile(const TunedProgram& tuned, const LoweredVariant& variant) {
  const LoweredModel& lowered = variant.model;
  std::vector<size_t> steps = variant.steps;
  std::vector<std::vector<size_t>> owners = variant.subjects;
  Variant out;
  CompileOptions options;
  options.lower = tuned.options.lower;
  options.targets = tuned.options.targets;
  options.check_model = false;
  auto plan = make_plan(only_steps(lowered, steps), options, tuned.options.profile);
  if (!plan) {
    std::set<int> refused;
    for (const size_t i : steps) {
      const int kernel = lowered.steps[i].kernel;
      if (!emit_kernel(lowered.kernels[static_cast<size_t>(kernel)], tuned.options.profile, tuned.options.targets))
        refused.insert(kernel);
    }
    if (refused.empty()) return plan.errors();
    for (size_t i = steps.size(); i-- > 0;) {
      if (refused.count(lowered.steps[steps[i]].kernel) == 0) continue;
      out.refused.insert(owners[i].begin(), owners[i].end());
      steps.erase(steps.begin() + static_cast<ptrdiff_t>(i));
      owners.erase(owners.begin() + static_cast<ptrdiff_t>(i));
    }
    plan = make_plan(only_steps(lowered, steps), options, tuned.options.profile);
    if (!plan) return plan.errors();
  }
  if (steps.empty()) return out;
  RunOptions run = tuned.options.run;
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
  return out;
}

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
      const std::vector<WinogradChoice> choices = winograd_choices(definition.expression, tuned.options.profile);
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

Result<LoweredVariant> lower_variant(const TunedProgram& tuned, const std::vector<Subject>& subjects,
                                     const TuningRecords& fixed, const Assignment& assignment) {
  std::map<TuningTask, size_t> by_task;
  for (size_t i = 0; i < subjects.size(); ++i) by_task[subjects[i].task] = i;
  const TuningRecords records = [&](const TuningTask& task) -> KnobValues {
    KnobValues out = fixed ? fixed(task) : KnobValues();
    const auto subject = by_task.find(task);
    if (subject == by_task.end()) return out;
    const auto assigned = assignment.find(subject->second);
    const KnobValues& knobs = assigned == assignment.end() ? subjects[subject->second].usual : assigned->second;
    for (const auto& [name, value] : knobs) out[name] = value;
    return out;
  };
  LoweredVariant out;
  HOIST_TRY(out.model, lower_program(tuned.program, with_records(tuned.options.lower, records), tuned.options.profile));
  for (size_t i = 0; i < out.model.steps.size(); ++i) {
    if (!out.model.kernels[static_cast<size_t>(out.model.steps[i].kernel)].host.empty()) continue;
    std::vector<size_t> owners;
    const TuningTask task = tuning_task(out.model.groups[i].high);
    for (const auto& [subject, knobs] : assignment) {
      const Subject& one = subjects[subject];
      if (one.forms ? computes_any(one.layers, out.model.steps[i].layers) : one.task == task) owners.push_back(subject);
    }
    if (owners.empty()) continue;
    out.steps.push_back(i);
    out.subjects.push_back(std::move(owners));
  }
  return out;
}

struct VariantTimer::State {
  const TunedProgram& tuned;
  const std::vector<Subject>& subjects;
  TuningRecords fixed;
  std::map<Assignment, Variant> kept;

  Result<Variant> build(const Assignment& assignment) const {
    HOIST_TRY(const LoweredVariant lowered, lower_variant(tuned, subjects, fixed, assignment));
    return compile(tuned, lowered);
  }

  // What others are compared with. Kernels that come to their turn together do so again, so a few are enough.
  Result<Variant*> first(const Assignment& assignment) {
    constexpr size_t most_kept = 4;
    if (const auto found = kept.find(assignment); found != kept.end()) {
      if (found->second.opened) found->second.opened->samples.clear();
      return &found->second;
    }
    HOIST_TRY(Variant variant, build(assignment));
    if (kept.size() == most_kept) kept.clear();
    return &(kept[assignment] = std::move(variant));
  }
};

VariantTimer::VariantTimer(const TunedProgram& tuned, const std::vector<Subject>& subjects, TuningRecords fixed)
    : state_(std::make_unique<State>(State{tuned, subjects, std::move(fixed), {}})) {}
VariantTimer::~VariantTimer() = default;

Result<std::vector<VariantTimes>> VariantTimer::time(const std::vector<Assignment>& variants, const Turns& turns,
                                                     const std::function<bool()>& stop) {
  constexpr int warm_up = 2;
  std::vector<Variant> built(variants.size());
  std::vector<Variant*> all;
  for (size_t i = 0; i < variants.size() && !stop(); ++i) {
    all.push_back(&built[i]);
    const auto cannot = [](const Diagnostics& errors) {
      spdlog::warn("a variant cannot be measured: {}", errors.front().text());
    };
    if (i == 0) {
      auto first = state_->first(variants[0]);
      if (!first) cannot(first.errors());
      if (first) all[0] = *first;
    } else if (auto variant = state_->build(variants[i])) {
      built[i] = std::move(*variant);
    } else {
      cannot(variant.errors());
    }
  }
  const Stopwatch stopwatch;
  const double seconds = turns.seconds * static_cast<double>(variants.size());
  for (int turn = -warm_up; turn < turns.least || (turn < turns.most && stopwatch.seconds() < seconds); ++turn) {
    if (turn > 3 && stop()) break;
    for (const Variant* variant : all) {
      if (variant->opened) HOIST_TRY_VOID(time_once(*variant->opened, turn >= 0));
    }
  }
  std::vector<VariantTimes> out(variants.size());
  for (size_t i = 0; i < all.size(); ++i) {
    for (const size_t subject : all[i]->refused) out[i][subject] = failed;
    if (!all[i]->opened) continue;
    for (const auto& [subject, steps] : all[i]->opened->samples) {
      if (all[i]->refused.count(subject) != 0) continue;
      double sum = 0;
      for (const std::vector<double>& samples : steps) sum += quantile(samples, 0.25) + state_->tuned.launch_seconds;
      out[i][subject] = sum;
    }
  }
  return out;
}

}  // namespace hoist::tuning
