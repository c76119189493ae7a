// Compiles variants of kernels and times them against each other.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "backends/bundle/bundle.h"
#include "ir/base/stopwatch.h"
#include "lowering/cost/winograd.h"
#include "lowering/fusion/launches.h"
#include "lowering/layout/input_copies.h"
#include "lowering/layout/storage_plan.h"
#include "lowering/pipeline/passes.h"
#include "lowering/rules/rules.h"
#include "lowering/search/exploration.h"
#include "tools/driver/compile.h"
#include "tools/tuning/variants.h"

namespace hoist::tuning {
namespace {

constexpr double failed = std::numeric_limits<double>::infinity();

// The model reduced to these steps, in order. Their operands from other steps exist with undefined content.
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
  // Each step is launched as in the model, but alone. No kernel's name begins with hoist_.
  model.launches.clear();
  for (size_t i = 0; i < steps.size(); ++i) {
    if (kernels[static_cast<size_t>(steps[i].kernel)].is_fused)
      model.launches.push_back({fmt::format("hoist_launch_{}", i), static_cast<int>(i), 1});
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

// A variant, as a bundle of its steps.
struct Variant {
  std::set<size_t> refused;                   // subjects whose kernels cannot be emitted
  std::optional<WrittenModel> written;        // empty if no step is left
  std::vector<std::vector<size_t>> subjects;  // subjects of each step
  std::vector<std::string> kernels;           // kernels of each step, by name
};

Result<WrittenModel> written(const Plan& plan) {
  HOIST_TRY(TemporaryFolder folder, TemporaryFolder::make());
  std::filesystem::path bundle = folder.path() / "bundle";
  HOIST_TRY_VOID(write_bundle(plan, bundle));
  return WrittenModel{std::move(folder), std::move(bundle)};
}

// Compiles a variant without the steps whose kernels cannot be emitted; after a failure these are found one by one.
Result<Variant> compile(const TunedProgram& tuned, const LoweredVariant& variant) {
  const LoweredModel& lowered = variant.model;
  std::vector<size_t> steps = variant.steps;
  std::vector<std::vector<size_t>> owners = variant.subjects;
  Variant out;
  CompileOptions options;
  options.lower = tuned.options.lower;
  options.targets = tuned.options.targets;
  options.check_model = false;
  const auto plan_of_steps = [&] {
    LoweredModel kept = only_steps(lowered, steps);
    kept.is_serial = tuned.is_serial;
    return make_plan(std::move(kept), options, tuned.options.profile);
  };
  auto plan = plan_of_steps();
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
    plan = plan_of_steps();
    if (!plan) return plan.errors();
  }
  if (steps.empty()) return out;
  for (const PlanStep& step : plan->steps) out.kernels.push_back(plan->kernels[static_cast<size_t>(step.kernel)].name);
  out.subjects = std::move(owners);
  HOIST_TRY(WrittenModel model, written(*plan));
  out.written.emplace(std::move(model));
  return out;
}

// Variants that are timed together, with their results.
struct Group {
  std::vector<Assignment> assignments;
  std::vector<std::shared_ptr<const Variant>> variants;  // one per assignment; null if it cannot be compiled
  std::vector<VariantTimes> times;                       // one per assignment
  std::vector<size_t> asked;                             // the variants that have a bundle to be timed, including the
                                                         // first

  TimingQuestion question(const Turns& turns) const {
    TimingQuestion out;
    out.turns = turns;
    for (const size_t i : asked) out.bundles.push_back(variants[i]->written->bundle);
    return out;
  }
};

// Converts times from a group whose baseline took `there` to a group whose baseline took `here`.
VariantTimes scaled(const VariantTimes& times, const VariantTimes& there, const VariantTimes& here) {
  VariantTimes out = times;
  for (auto& [subject, seconds] : out) {
    const auto from = there.find(subject), to = here.find(subject);
    if (from != there.end() && to != here.end() && from->second > 0) seconds *= to->second / from->second;
  }
  return out;
}

void say_why(const Diagnostics& problems) { spdlog::warn("variants were not measured: {}", problems.front().text()); }

}  // namespace

Result<WrittenModel> written_model(const TunedProgram& tuned, LoweredModel lowered) {
  CompileOptions options;
  options.lower = tuned.options.lower;
  options.targets = tuned.options.targets;
  options.check_positions = 0;
  HOIST_TRY(const Plan plan, make_plan(std::move(lowered), options, tuned.options.profile));
  return written(plan);
}

struct VariantTimer::State {
  const TunedProgram& tuned;
  const std::vector<Subject>& subjects;
  TuningRecords fixed;
  std::map<Assignment, std::shared_ptr<const Variant>> kept = {};
  Turns turns = {};
  std::function<bool()> stop = {};

  Result<std::shared_ptr<const Variant>> build(const Assignment& assignment) const {
    HOIST_TRY(const LoweredVariant lowered, lower_variant(tuned, subjects, fixed, assignment));
    try {
      const FaultsAreErrors terms_may_be_anything;
      HOIST_TRY(Variant variant, compile(tuned, lowered));
      return std::make_shared<const Variant>(std::move(variant));
    } catch (const InternalFault& fault) {
      return Diagnostic{"", "a kernel of the variant is not emitted: " + fault.text, ""};
    }
  }

  // The baseline of a group. Kernels that are searched together stay together, so a small cache is enough.
  Result<std::shared_ptr<const Variant>> first(const Assignment& assignment) {
    constexpr size_t most_kept = 16;
    if (const auto found = kept.find(assignment); found != kept.end()) return found->second;
    HOIST_TRY(auto variant, build(assignment));
    if (kept.size() == most_kept) kept.clear();
    return kept[assignment] = std::move(variant);
  }

  Group make(const std::vector<Assignment>& assignments) {
    Group group;
    group.assignments = assignments;
    group.variants.resize(assignments.size());
    group.times.resize(assignments.size());
    for (size_t i = 0; i < assignments.size() && !stop(); ++i) {
      auto variant = i == 0 ? first(assignments[i]) : build(assignments[i]);
      if (!variant) {
        spdlog::warn("a variant cannot be measured: {}", variant.errors().front().text());
        if (i == 0) break;  // there is no baseline
        continue;
      }
      group.variants[i] = *variant;
      for (const size_t subject : (*variant)->refused) group.times[i][subject] = failed;
      if ((*variant)->written) group.asked.push_back(i);
    }
    if (!group.asked.empty() && group.asked.front() != 0) group.asked.clear();
    return group;
  }

  Result<VariantTimes> times_of(const Variant& variant, const BundleTimes& found) const {
    VariantTimes out;
    for (const size_t subject : variant.refused) out[subject] = failed;
    if (found.steps.size() != variant.subjects.size())
      return Diagnostic{"answer", "has times of other steps than requested", ""};
    for (const auto& [kernel, how] : found.differing)
      spdlog::warn("a variant of {} differs from the interpreter: {}", kernel, how);
    for (size_t i = 0; i < found.steps.size(); ++i) {
      const bool right = !found.differing.contains(variant.kernels[i]);
      for (const size_t subject : variant.subjects[i])
        out[subject] += right ? found.steps[i] + tuned.launch_seconds : failed;
    }
    return out;
  }

  // Stores the times of an answer; a failed variant gets none.
  Result<Nothing> take(Group& group, const std::vector<BundleTimes>& found) const {
    for (size_t i = 0; i < group.asked.size(); ++i) {
      const size_t variant = group.asked[i];
      if (!found[i].failed.empty()) {
        spdlog::warn("a variant cannot be run: {}", found[i].failed);
        continue;
      }
      HOIST_TRY(group.times[variant], times_of(*group.variants[variant], found[i]));
    }
    return Nothing{};
  }

  // Checks that the device still works, with the baseline that ran before.
  Result<Nothing> time_first(Group& group) const {
    TimingQuestion question = group.question(turns);
    question.bundles.resize(1);
    question.anew = true;
    TimingAnswer answer = tuned.time_bundles({question}, stop).front();
    if (!answer.ok()) return answer.errors();
    if (!group.times[0].empty()) return Nothing{};
    HOIST_TRY(group.times[0], times_of(*group.variants[0], answer->front()));
    return Nothing{};
  }

  // Times candidates with only the baseline of their group; false if the process fails.
  Result<bool> time_pair(Group& group, size_t variant, const Assignment& candidates) {
    Group pair = make({group.assignments[0], candidates});
    if (pair.asked.size() < 2) return true;  // a variant that failed to compile crashes no process
    TimingAnswer answer = tuned.time_bundles({pair.question(turns)}, stop).front();
    if (!answer.ok()) {
      say_why(answer.errors());
      return false;
    }
    HOIST_TRY_VOID(take(pair, *answer));
    if (!answer->back().failed.empty()) return false;
    group.times[variant].merge(scaled(pair.times[1], pair.times[0], group.times[0]));
    return true;
  }

  // Finds the kernels that make a variant fail that was not timed with its group; `alone` if the group has no other
  // variants.
  Result<Nothing> find_guilty(Group& group, size_t variant, bool alone) {
    const Assignment& candidates = group.assignments[variant];
    if (!alone) {
      HOIST_TRY(const bool innocent, time_pair(group, variant, candidates));
      if (innocent) return Nothing{};
    }
    std::vector<size_t> guilty;
    for (const auto& [subject, knobs] : candidates) {
      if (stop()) return Nothing{};
      if (candidates.size() > 1) {
        HOIST_TRY(const bool innocent, time_pair(group, variant, {{subject, knobs}}));
        if (innocent) continue;
      }
      guilty.push_back(subject);
    }
    if (stop()) return Nothing{};
    HOIST_TRY_VOID(time_first(group));
    for (const size_t subject : guilty) group.times[variant][subject] = failed;
    return Nothing{};
  }

  Result<Nothing> take_or_blame(Group& group, const TimingAnswer& answer) {
    std::vector<size_t> suspects;
    if (answer.ok()) {
      const std::vector<BundleTimes>& found = *answer;
      HOIST_TRY_VOID(take(group, found));
      for (size_t i = 1; i < group.asked.size(); ++i) {
        if (!found[i].failed.empty()) suspects.push_back(group.asked[i]);
      }
    } else if (!stop()) {
      say_why(answer.errors());
      HOIST_TRY_VOID(time_first(group));
      suspects.assign(group.asked.begin() + 1, group.asked.end());
    }
    for (const size_t variant : suspects) {
      if (!stop()) HOIST_TRY_VOID(find_guilty(group, variant, group.asked.size() == 2));
    }
    return Nothing{};
  }
};

VariantTimer::VariantTimer(const TunedProgram& tuned, const std::vector<Subject>& subjects, TuningRecords fixed)
    : state_(std::make_unique<State>(State{tuned, subjects, std::move(fixed)})) {}
VariantTimer::~VariantTimer() = default;

Result<std::vector<std::vector<VariantTimes>>> VariantTimer::time(const std::vector<std::vector<Assignment>>& groups,
                                                                  const Turns& turns,
                                                                  const std::function<bool()>& stop) {
  State& state = *state_;
  state.turns = turns;
  state.stop = stop;
  const Stopwatch making;
  std::vector<Group> all;
  for (const std::vector<Assignment>& assignments : groups) all.push_back(state.make(assignments));
  const double made = making.seconds();
  std::vector<Group*> asked;
  std::vector<TimingQuestion> questions;
  for (Group& group : all) {
    if (group.asked.empty() || stop()) continue;
    asked.push_back(&group);
    questions.push_back(group.question(turns));
  }
  const Stopwatch timing;
  const std::vector<TimingAnswer> answers =
      questions.empty() ? std::vector<TimingAnswer>() : state.tuned.time_bundles(questions, stop);
  spdlog::debug("variants made in {:.2f} s and timed in {:.2f} s, groups: {}", made, timing.seconds(), all.size());
  for (size_t i = 0; i < answers.size(); ++i) HOIST_TRY_VOID(state.take_or_blame(*asked[i], answers[i]));
  std::vector<std::vector<VariantTimes>> out;
  for (Group& group : all) out.push_back(std::move(group.times));
  return out;
}

}  // namespace hoist::tuning
