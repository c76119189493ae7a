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

std::string first_layer(const Definition& definition) {
  return definition.layers.empty() ? definition.value : definition.layers.front();
}

// Equal terms are one subject, with the largest space among them.
class Subjects {
 public:
  explicit Subjects(ChoiceKind kind) : kind_(kind) {}

  /// Adds the knobs of `subject`, and the layers that it concerns besides the definition's layers.
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

Knob choice_knob(std::string_view name, const std::vector<int64_t>& values) {
  Knob out{std::string(name), Knob::Kind::choice, {}};
  for (const int64_t value : values) out.values.push_back({value});
  return out;
}

const std::vector<int64_t> no_or_yes = {0, 1};

// The forms that a convolution may take: a Winograd form, materialised windows (im2col), a random rewrite, or
// unchanged. Without Winograd forms, it is unchanged unless a record says otherwise.
Subject convolution_forms(const Program& program, const Definition& definition, const PassOptions& options,
                          size_t explored) {
  Subject out;
  std::vector<Knob>& knobs = out.space.knobs;
  if (has_known_weights(program, definition)) {
    std::map<int64_t, double> costs;
    for (const WinogradChoice& choice : winograd_choices(definition.expression, options.profile, options.fuses_launches,
                                                         !options.strict && has_fit_filters(program, definition))) {
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
    if (!results.empty() && estimates[0] > 0) {  // otherwise there is no estimate for the direct form
      out.space.estimate = [estimates](const Point& point) {
        const bool is_other_form = std::any_of(point.begin() + 1, point.end(), [](int value) { return value != 0; });
        return is_other_form ? std::numeric_limits<double>::infinity() : estimates[static_cast<size_t>(point[0])];
      };
    }
  }
  const bool pass_estimates = !knobs.empty();
  Rewriter windows(lowering_rules(), definition.expression);
  if (materialise_windows(windows)) knobs.push_back(choice_knob(im2col_knob, no_or_yes));
  if (explored > 0) {
    std::vector<int64_t> walks = explorations(definition.expression, explored, options.strict);
    walks.insert(walks.begin(), 0);
    if (walks.size() > 1) knobs.push_back(choice_knob(exploration_knob, walks));
  }
  // Value 0 of each knob leaves the definition unchanged; at most one knob may be set.
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

// The number of blocks of a long reduction; the pass has an estimate for it.
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

// The number of preceding layers that are fused into a launch, the last first. Not combined with fused launches of
// unchanged kernels, which are faster where they are available.
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
  std::string_view behind;  // the pass after which the program contains the choice
  void (*find)(Subjects& out, const Program& program, const PassOptions& options, size_t explored);
};

constexpr PassChoices pass_choices[] = {
    {ChoiceKind::convolutions, "merge-producers", find_convolutions},
    {ChoiceKind::reductions, "block-scans", find_reductions},
    {ChoiceKind::launches, "outline-kernels", find_launches},
};

// The definition as choose-storage found it.
Definition high_definition(const LoweredModel& lowered, size_t i) {
  Definition out = lowered.program.definitions[i];
  out.expression = lowered.groups[i].high;
  return out;
}

// Choices to read and write images as NHWC. The copy of an input counts as a step of the choice.
void find_layouts(Subjects& out, const LoweredModel& lowered) {
  for (size_t i = 0; i < lowered.groups.size(); ++i) {
    const auto found = lowered.layouts.find(lowered.groups[i].value);
    if (found == lowered.layouts.end()) continue;
    Subject subject;
    subject.usual = found->second;
    for (const auto& [name, value] : found->second) {
      subject.space.knobs.push_back(choice_knob(name, no_or_yes));
      if (name != input_layout_knob) continue;
      for (const auto& [input, type] : lowered.program.inputs) subject.layers.push_back(copy_name(input));
    }
    out.add(high_definition(lowered, i), std::move(subject));
  }
}

void find_tiles(Subjects& out, const LoweredModel& lowered, const Profile& profile) {
  for (size_t i = 0; i < lowered.groups.size(); ++i) {
    const auto results = lowered.tiled.find(lowered.groups[i].value);
    if (results == lowered.tiled.end()) continue;
    Subject subject;
    subject.space = tile_knobs(results->second, profile);
    subject.usual = knobs_of(choose_tile(results->second, profile));
    out.add(high_definition(lowered, i), std::move(subject));
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
  // Native code has no work-group memory, and its launches cost next to nothing.
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
    // Random rewrites may lead to terms that no strategy can schedule.
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

}  // namespace hoist::tuning
