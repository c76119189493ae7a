// hoist explain: the derivation of a layer's kernel, like a proof.
#include <nlohmann/json.hpp>

#include "ir/text/counted.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/driver/model.h"
#include "tools/driver/opened_bundle.h"
#include "tools/driver/sizes.h"
#include "tools/inspection/choices.h"
#include "tools/inspection/derivation.h"
#include "tools/inspection/explanation.h"
#include "tools/inspection/layers.h"

namespace hoist {
namespace {

struct RuleCounts {
  size_t exact = 0, rounding = 0, neural = 0;
  void add(RuleClass rule_class) {
    ++(rule_class == RuleClass::exact ? exact : rule_class == RuleClass::rounding ? rounding : neural);
  }
  std::string text() const { return fmt::format("{} exact, {} rounding, {} neural", exact, rounding, neural); }
};

std::string indented(const std::string& text, const std::string& first, const std::string& rest) {
  std::string out = first;
  for (char c : text) out += c == '\n' ? "\n" + rest : std::string(1, c);
  return out + "\n";
}

void print_step(const Options& command, const ExplainedStep& seen) {
  const ProgramStep& step = seen.step;
  std::string at = seen.layer.empty() ? "" : " at layer " + seen.layer;
  if (command.paths && !step.value.empty())
    at = fmt::format(" at {}{}", step.value, seen.place.empty() ? "" : ":" + seen.place);
  std::string note = seen.note;
  if (!seen.absorbed.empty())
    note += fmt::format(" ({} {} part of it)", joined_names(seen.absorbed), seen.absorbed.size() == 1 ? "is" : "are");
  print_line("{:4}. {}{}{}  [{}]{}", seen.number, step.rule, parameters_text(step), at, name_of(step.rule_class),
             note.empty() ? "" : "  " + note);
  // The layers that a rule inserts between a value and its consumers.
  for (const auto& [value, term] : seen.added)
    say(indented(fmt::format("{} = {}", value, term), "          ", "          "));
  for (const auto& [name, type] : seen.folded) print_line("        {} is a constant : {}", name, type);
  if (seen.before.empty()) return;
  say(indented(seen.before, "          ", "          "));
  say(indented(seen.after, "        = ", "          "));
  if (!seen.term.empty()) say("        all of it:\n" + indented(seen.term, "          ", "          "));
}

void print_proof(const Options& command, const std::vector<ExplainedStep>& steps) {
  RuleCounts counts;
  for (const ExplainedStep& seen : steps) {
    counts.add(seen.step.rule_class);
    print_step(command, seen);
  }
  print_line("rules applied: {}", counts.text());
}

Result<ExitCode> explain_derivation(const Options& command, const Derived& from, const std::vector<PlanLayer>& layers,
                                    const std::vector<PlanStep>& steps, const std::vector<std::string>& kernels) {
  HOIST_TRY(const Explanation found, explanation_of(command.layer, from, layers, steps, kernels, command.terms));
  if (!found.absence.empty()) print_line("{}", found.absence);
  if (!found.steps.empty()) print_proof(command, found.steps);
  for (const ExplainedKernel& kernel : found.kernels) {
    print_line("kernel {} computes {}{}", kernel.name, joined_names(kernel.layers),
               kernel.launches > 1 ? fmt::format(", in {} launches", kernel.launches) : "");
    print_proof(command, kernel.steps);
    say("end:\n" + indented(kernel.term, "  ", "  "));
  }
  return done(answer_json(command.json, to_json(found)));
}

// Without a layer: all layers, with their kernels and the number of steps.
Result<ExitCode> list_layers(const Options& command, const ProgramDerivation& derivation,
                             const std::vector<PlanLayer>& layers, const std::vector<PlanStep>& steps,
                             const std::vector<std::string>& kernels) {
  if (command.terms || command.paths)
    return usage_error(command.terms ? "--terms" : "--paths", "applies to the steps of one layer",
                       "hoist explain " + command.subject + " LAYER");
  RuleCounts counts;
  for (const ProgramStep& step : derivation.steps) counts.add(step.rule_class);
  say(layer_table(layers, steps, kernels));
  print_line("{} in {}, {}: {}", counted(layers.size(), "layer"), counted(kernels.size(), "kernel"),
             counted(derivation.steps.size(), "step"), counts.text());
  print_line("hoist explain {} LAYER prints the steps of one", command.subject);
  return done(
      answer_json(command.json,
                  {{"step_counts", {{"exact", counts.exact}, {"rounding", counts.rounding}, {"neural", counts.neural}}},
                   {"layers", layers_json(layers, steps, kernels)}}));
}

Result<ExitCode> explain_choices(const Options& command) {
  HOIST_TRY(Program program, read_program_and_prepare(command.subject, command.model));
  HOIST_TRY(const LayoutChoices choices, layout_choices(std::move(program), command.model, command.layer));
  say(choices_text(choices));
  return done(answer_json(command.json, to_json(choices)));
}

Result<ExitCode> explain_model(const Options& command) {
  if (command.choices) return explain_choices(command);
  HOIST_TRY(OpenedModel model, open_model(command.subject, command.model));
  LoweredModel& lowered = model.lowered;
  if (command.layer.empty())
    return list_layers(command, lowered.derivation, lowered.layers, lowered.steps, names_of(lowered.kernels));
  HOIST_TRY(const Derived from, derived(std::move(lowered.derivation), model.profile));
  return explain_derivation(command, from, lowered.layers, lowered.steps, names_of(lowered.kernels));
}

Result<ExitCode> explain_bundle(const Options& command) {
  if (command.choices)
    return usage_error("--choices", "needs a model, because a bundle has no alternatives",
                       "hoist explain MODEL.onnx --choices, with the options of the bundle");
  HOIST_TRY(const Sizes sizes, parse_sizes(command.model.dimensions));
  HOIST_TRY(BundleInfo info, bundle_info(command.subject, sizes));
  HOIST_TRY_VOID(refuse_given("explain", command, OptionNeeds::model));
  HOIST_TRY(const Derived from, derived(info.plan));
  if (command.layer.empty())
    return list_layers(command, from.derivation, info.plan.layers, info.plan.steps, names_of(info.plan.kernels));
  return explain_derivation(command, from, info.plan.layers, info.plan.steps, names_of(info.plan.kernels));
}

}  // namespace

Result<ExitCode> commands::explain(const Options& command) {
  std::error_code ignored;
  return std::filesystem::is_directory(command.subject, ignored) ? explain_bundle(command) : explain_model(command);
}

}  // namespace hoist
