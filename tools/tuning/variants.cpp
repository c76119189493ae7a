#include "tools/tuning/variants.h"

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

namespace hoist::tuning {
namespace {

constexpr double failed = std::numeric_limits<double>::infinity();

std::string first_layer(const Definition& definition) {
  return definition.layers.empty() ? definition.value : definition.layers.front();
}

// Terms that stand several times are one subject, of the largest space that any of them has.
class Subjects {
 public:
  explicit Subjects(ChoiceKind kind) : kind_(kind) {}

  /// `subject` has its knobs, and the layers that it concerns beside the definition's.
  void add(const Definition& definition, Subject subject) {
    subject.kind = kind_;
    subject.task = tuning_task(definition.expression);
    std::vector<std::string> layers = std::move(subject.layers);
    layers.insert(layers.begin(), first_layer(definition));
    const auto [place, fresh] = index_.emplace(subject.task, found_.size());
    if (fresh) found_.emplace_back();
    Subject& found = found_[place->second];
    if (fresh || count_points(subject.space) > count_points(found.space)) {
      subject.layers = std::move(found.layers);
      found = std::move(subject);
    }
    add_layers(found.layers, layers);
  }
  std::vector<Subject> take() { return std::move(found_); }

 private:
  ChoiceKind kind_;
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
  // As they are launched in the model, but each alone. No kernel's name begins with hoist_.
  model.launches.clear();
  for (size_t i = 0; i < steps.size(); ++i) {
    if (kernels[static_cast<size_t>(steps[i].kernel)].is_joined)
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

// A variant as a bundle of its steps.
struct Variant {
  std::set<size_t> refused;                   // subjects whose kernels cannot be emitted
  std::optional<WrittenModel> written;        // unless no step is left
  std::vector<std::vector<size_t>> subjects;  // of each step
  std::vector<std::string> kernels;           // of each step, by name
};

Result<WrittenModel> written(const Plan& plan) {
  HOIST_TRY(TemporaryFolder folder, TemporaryFolder::make());
  std::filesystem::path bundle = folder.path() / "bundle";
  HOIST_TRY_VOID(write_bundle(plan, bundle));
  return WrittenModel{std::move(folder), std::move(bundle)};
}

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

}  // namespace

Result<WrittenModel> written_model(const TunedProgram& tuned, LoweredModel lowered) {
  CompileOptions options;
  options.lower = tuned.options.lower;
  options.targets = tuned.options.targets;
  options.check_positions = 0;
  HOIST_TRY(const Plan plan, make_plan(std::move(lowered), options, tuned.options.profile));
  return written(plan);
}

namespace {

Knob choice_knob(std::string_view name, const std::vector<int64_t>& values) {
  Knob out{std::string(name), Knob::Kind::choice, {}};
  for (const int64_t value : values) out.values.push_back({value});
  return out;
}

const std::vector<int64_t> no_or_yes = {0, 1};

// What a definition may be, as passes find it: one of Winograd's forms, windows in memory, a random rewrite, or what it
// is. Where it has none of Winograd's forms, it stays what it is unless somebody asks.
Subject convolution_forms(const Program& program, const Definition& definition, const PassOptions& options,
                          size_t explored) {
  Subject out;
  std::vector<Knob>& knobs = out.space.knobs;
  if (has_known_weights(program, definition)) {
    std::map<int64_t, double> costs;
    for (const WinogradChoice& choice : winograd_choices(definition.expression, options)) {
      costs[choice.results] = choice.cost;
      costs[0] = clearly_less * choice.direct;
    }
    std::vector<int64_t> results;
    std::vector<double> estimates;
    for (const auto& [of_results, cost] : costs) {
      results.push_back(of_results);
      estimates.push_back(cost);
    }
    if (!results.empty()) knobs.push_back(choice_knob(winograd_knob, results));
    if (!results.empty() && estimates[0] > 0) {  // else nothing is known of the stencil
      out.space.estimate = [estimates](const Point& point) {
        const bool is_other_form = std::any_of(point.begin() + 1, point.end(), [](int value) { return value != 0; });
        return is_other_form ? std::numeric_limits<double>::infinity() : estimates[static_cast<size_t>(point[0])];
      };
    }
  }
  const bool pass_estimates = !knobs.empty();
  Rewriter windows(lowering_rules(), definition.expression);
  if (keep_windows(windows)) knobs.push_back(choice_knob(im2col_knob, no_or_yes));
  if (explored > 0) {
    std::vector<int64_t> walks = explorations(definition.expression, explored, options.strict);
    walks.insert(walks.begin(), 0);
    if (walks.size() > 1) knobs.push_back(choice_knob(exploration_knob, walks));
  }
  // The first value of each knob is none of it.
  out.space.is_legal = [](const Point& point) {
    return std::count_if(point.begin(), point.end(), [](int value) { return value != 0; }) <= 1;
  };
  if (!pass_estimates) out.usual = values_of(out.space, Point(knobs.size(), 0));
  return out;
}

void find_convolutions(Subjects& out, const Program& program, const PassOptions& options, size_t explored) {
  if (options.convolution != ConvolutionForm::automatic) return;
  for (const Definition& definition : program.definitions) {
    Subject subject = convolution_forms(program, definition, options, explored);
    if (!subject.space.knobs.empty()) out.add(definition, std::move(subject));
  }
}

// In how many blocks a long reduction is formed: the pass estimates that.
void find_reductions(Subjects& out, const Program& program, const PassOptions& options, size_t) {
  for (const Definition& definition : program.definitions) {
    std::vector<int64_t> counts = block_counts(definition.expression, options.profile);
    if (counts.empty()) continue;
    counts.insert(counts.begin(), 0);
    Subject subject;
    subject.space.knobs = {choice_knob(blocks_knob, counts)};
    out.add(definition, std::move(subject));
  }
}

// How many of the layers before it a launch takes in, the latest first; not beside launches that join kernels as they
// are, which is faster where it is done.
void find_launches(Subjects& out, const Program& program, const PassOptions& options, size_t) {
  if (options.fusion != LaunchFusion::none) return;
  for (const LaunchChain& chain : launch_chains(program, options.profile)) {
    Subject subject;
    Knob knob{std::string(launch_knob), Knob::Kind::ordered, {{0}}};
    for (const size_t producer : chain.producers) {
      knob.values.push_back({std::ssize(knob.values)});
      subject.layers.push_back(first_layer(program.definitions[producer]));
    }
    subject.usual = {{knob.name, 0}};
    subject.space.knobs = {std::move(knob)};
    out.add(program.definitions[chain.result], std::move(subject));
  }
}

struct PassChoices {
  ChoiceKind kind;
  std::string_view behind;  // the pass behind which the one that makes the choice finds the program
  void (*find)(Subjects& out, const Program& program, const PassOptions& options, size_t explored);
};

constexpr PassChoices pass_choices[] = {
    {ChoiceKind::convolutions, "merge-producers", find_convolutions},
    {ChoiceKind::reductions, "block-scans", find_reductions},
    {ChoiceKind::launches, "cut-kernels", find_launches},
};

// Whether pictures are read and written with channels innermost. A copy of an input is a step of the choice.
void find_layouts(Subjects& out, const LoweredModel& lowered) {
  for (const Definition& definition : lowered.program.definitions) {
    const auto found = lowered.storage.layouts.find(definition.value);
    if (found == lowered.storage.layouts.end()) continue;
    Subject subject;
    subject.usual = found->second;
    for (const auto& [name, value] : found->second) {
      subject.space.knobs.push_back(choice_knob(name, no_or_yes));
      if (name != input_layout_knob) continue;
      for (const auto& [input, type] : lowered.program.inputs) subject.layers.push_back(copy_name(input));
    }
    out.add(definition, std::move(subject));
  }
}

void find_tiles(Subjects& out, const LoweredModel& lowered, const Profile& profile) {
  for (const Definition& definition : lowered.program.definitions) {
    const auto results = lowered.storage.tiled.find(definition.value);
    if (results == lowered.storage.tiled.end()) continue;
    Subject subject;
    subject.space = tile_knobs(results->second, profile);
    subject.usual = knobs_of(choose_tile(results->second, profile), profile);
    out.add(definition, std::move(subject));
  }
}

}  // namespace

std::string_view name_of(ChoiceKind kind) {
  switch (kind) {
    case ChoiceKind::convolutions:
      return "forms of the term";
    case ChoiceKind::reductions:
      return "blocks of reductions";
    case ChoiceKind::launches:
      return "layers of the launch";
    case ChoiceKind::layouts:
      return "layouts of inputs and outputs";
    case ChoiceKind::tiles:
      return "tiles of the kernel";
  }
  return "";
}

Result<std::vector<Subject>> subjects_of(const TunedProgram& tuned, ChoiceKind kind, const TuningRecords& fixed,
                                         size_t explored) {
  const LowerOptions lower = with_records(tuned.options.lower, fixed);
  const Profile& profile = tuned.options.profile;
  Subjects out(kind);
  // Native code has no work-groups that keep arrays, and launches that cost next to nothing.
  if (kind == ChoiceKind::launches && !tuned.options.targets.empty()) return out.take();
  const auto* of_pass = std::find_if(std::begin(pass_choices), std::end(pass_choices),
                                     [&](const PassChoices& each) { return each.kind == kind; });
  if (of_pass != std::end(pass_choices)) {
    Program program = tuned.program;
    const PassOptions options = pass_options(lower, profile);
    HOIST_TRY_VOID(run_passes(program, Pass::terms, options, [&](const Pass& pass, const Program& now) {
      if (pass.name != of_pass->behind) return true;
      of_pass->find(out, now, options, explored);
      return false;
    }));
    return out.take();
  }
  HOIST_TRY(const LoweredModel lowered, lower_program(tuned.program, lower, profile));
  if (kind == ChoiceKind::layouts)
    find_layouts(out, lowered);
  else
    find_tiles(out, lowered, profile);
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
  try {
    // Rewrites that nobody chose may lead where no strategy of hoist ends.
    const FaultsAreErrors terms_may_be_anything;
    HOIST_TRY(out.model,
              lower_program(tuned.program, with_records(tuned.options.lower, records), tuned.options.profile));
  } catch (const InternalFault& fault) {
    return Diagnostic{"", "a kernel of the variant is not lowered: " + fault.text, ""};
  }
  for (size_t i = 0; i < out.model.steps.size(); ++i) {
    if (!out.model.kernels[static_cast<size_t>(out.model.steps[i].kernel)].host.empty()) continue;
    std::vector<size_t> owners;
    const TuningTask task = tuning_task(out.model.groups[i].high);
    for (const auto& [subject, knobs] : assignment) {
      const Subject& one = subjects[subject];
      const bool concerned =
          one.kind == ChoiceKind::tiles ? one.task == task : computes_any(one.layers, out.model.steps[i].layers);
      if (concerned) owners.push_back(subject);
    }
    if (owners.empty()) continue;
    out.steps.push_back(i);
    out.subjects.push_back(std::move(owners));
  }
  return out;
}

namespace {

// Variants that are timed together, and what is known of them.
struct Group {
  std::vector<Assignment> assignments;
  std::vector<std::shared_ptr<const Variant>> variants;  // as many; null where it cannot be made
  std::vector<VariantTimes> times;                       // as many
  std::vector<size_t> asked;                             // those that have a bundle to be timed, the first among them

  TimingQuestion question(const Turns& turns) const {
    TimingQuestion out;
    out.turns = turns;
    for (const size_t i : asked) out.bundles.push_back(variants[i]->written->bundle);
    return out;
  }
};

// A time in a group whose first took `there`, as it would be where the first took `here`.
VariantTimes scaled(const VariantTimes& times, const VariantTimes& there, const VariantTimes& here) {
  VariantTimes out = times;
  for (auto& [subject, seconds] : out) {
    const auto from = there.find(subject), to = here.find(subject);
    if (from != there.end() && to != here.end() && from->second > 0) seconds *= to->second / from->second;
  }
  return out;
}

void say_why(const Failure& failure) {
  spdlog::warn("variants were not measured: {}", failure.problems.front().text());
}

}  // namespace

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

  // What others are compared with. Kernels that come to their turn together do so again, so a few are enough.
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
        if (i == 0) break;  // there is nothing to compare with
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
      return Diagnostic{"answer", "has times of other steps than it was asked for", ""};
    for (const auto& [kernel, how] : found.differing)
      spdlog::warn("a variant of {} differs from the interpreter: {}", kernel, how);
    for (size_t i = 0; i < found.steps.size(); ++i) {
      const bool right = !found.differing.contains(variant.kernels[i]);
      for (const size_t subject : variant.subjects[i])
        out[subject] += right ? found.steps[i] + tuned.launch_seconds : failed;
    }
    return out;
  }

  // The times of an answer; a variant that failed stays without.
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

  // Whether the device is still there, by what ran before.
  Result<Nothing> time_first(Group& group) const {
    TimingQuestion question = group.question(turns);
    question.bundles.resize(1);
    question.anew = true;
    TimingAnswer answer = tuned.time_bundles({question}, stop).front();
    if (!answer.ok()) return answer.failure().problems;
    if (!group.times[0].empty()) return Nothing{};
    HOIST_TRY(group.times[0], times_of(*group.variants[0], answer->front()));
    return Nothing{};
  }

  // Times candidates beside the first of their group and nothing else; false where that does not end well.
  Result<bool> time_pair(Group& group, size_t variant, const Assignment& candidates) {
    Group pair = make({group.assignments[0], candidates});
    if (pair.asked.size() < 2) return true;  // what cannot be made ends no process
    TimingAnswer answer = tuned.time_bundles({pair.question(turns)}, stop).front();
    if (!answer.ok()) {
      say_why(answer.failure());
      return false;
    }
    HOIST_TRY_VOID(take(pair, *answer));
    if (!answer->back().failed.empty()) return false;
    group.times[variant].merge(scaled(pair.times[1], pair.times[0], group.times[0]));
    return true;
  }

  // Which kernels of a variant that was not timed among the others of its group are to blame; `alone` where there are
  // no others.
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
      say_why(answer.failure());
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
