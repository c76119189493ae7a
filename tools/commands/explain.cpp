// hoist explain: the derivation of a layer's kernel, like a proof.
#include <nlohmann/json.hpp>

#include "ir/text/counted.h"
#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/terminal.h"
#include "tools/driver/model.h"
#include "tools/driver/opened_bundle.h"
#include "tools/driver/sizes.h"
#include "tools/inspection/derivation.h"
#include "tools/inspection/explanation.h"
#include "tools/inspection/layers.h"

namespace hoist {
namespace {

struct ExplainCommand {
  std::string subject, layer, json;
  bool terms = false, paths = false;
  ModelOptions options;
};

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

void say_step(const ExplainCommand& command, const ExplainedStep& seen) {
  const ProgramStep& step = seen.step;
  std::string at = seen.layer.empty() ? "" : " at layer " + seen.layer;
  if (command.paths && !step.value.empty())
    at = fmt::format(" at {}{}", step.value, seen.place.empty() ? "" : ":" + seen.place);
  std::string note = seen.note;
  if (!seen.absorbed.empty())
    note += fmt::format(" ({} {} part of it)", joined_names(seen.absorbed), seen.absorbed.size() == 1 ? "is" : "are");
  say_line("{:4}. {}{}{}  [{}]{}", seen.number, step.rule, parameters_text(step), at, name_of(step.rule_class),
           note.empty() ? "" : "  " + note);
  // The layers that a rule inserts between a value and its consumers.
  for (const auto& [value, term] : seen.added)
    say(indented(fmt::format("{} = {}", value, term), "          ", "          "));
  for (const auto& [name, type] : seen.folded) say_line("        {} is a constant : {}", name, type);
  if (seen.before.empty()) return;
  say(indented(seen.before, "          ", "          "));
  say(indented(seen.after, "        = ", "          "));
  if (!seen.term.empty()) say("        all of it:\n" + indented(seen.term, "          ", "          "));
}

void say_proof(const ExplainCommand& command, const std::vector<ExplainedStep>& steps) {
  RuleCounts counts;
  for (const ExplainedStep& seen : steps) {
    counts.add(seen.step.rule_class);
    say_step(command, seen);
  }
  say_line("rules applied: {}", counts.text());
}

Attempt<> explain_derivation(const ExplainCommand& command, const Derived& from, const std::vector<PlanLayer>& layers,
                             const std::vector<PlanStep>& steps, const std::vector<std::string>& kernels) {
  HOIST_ATTEMPT(const Explanation found, explanation_of(command.layer, from, layers, steps, kernels, command.terms));
  if (!found.absence.empty()) say_line("{}", found.absence);
  if (!found.steps.empty()) say_proof(command, found.steps);
  for (const ExplainedKernel& kernel : found.kernels) {
    say_line("kernel {} computes {}{}", kernel.name, joined_names(kernel.layers),
             kernel.launches > 1 ? fmt::format(", in {} launches", kernel.launches) : "");
    say_proof(command, kernel.steps);
    say("end:\n" + indented(kernel.term, "  ", "  "));
  }
  return answer_json(command.json, to_json(found));
}

// Without a layer: all layers, with their kernels and the number of steps.
Attempt<> list_layers(const ExplainCommand& command, const ProgramDerivation& derivation,
                      const std::vector<PlanLayer>& layers, const std::vector<PlanStep>& steps,
                      const std::vector<std::string>& kernels) {
  if (command.terms || command.paths)
    return usage_failure(command.terms ? "--terms" : "--paths", "applies to the steps of one layer",
                         "hoist explain " + command.subject + " LAYER");
  RuleCounts counts;
  for (const ProgramStep& step : derivation.steps) counts.add(step.rule_class);
  say(layer_table(layers, steps, kernels));
  say_line("{} in {}, {}: {}", counted(layers.size(), "layer"), counted(kernels.size(), "kernel"),
           counted(derivation.steps.size(), "step"), counts.text());
  say_line("hoist explain {} LAYER prints the steps of one", command.subject);
  return answer_json(
      command.json,
      {{"step_counts", {{"exact", counts.exact}, {"rounding", counts.rounding}, {"neural", counts.neural}}},
       {"layers", layers_json(layers, steps, kernels)}});
}

Attempt<> explain_model(const ExplainCommand& command) {
  HOIST_ATTEMPT(OpenedModel model, open_model(command.subject, command.options));
  LoweredModel& lowered = model.lowered;
  if (command.layer.empty())
    return list_layers(command, lowered.derivation, lowered.layers, lowered.steps, names_of(lowered.kernels));
  HOIST_ATTEMPT(const Derived from, derived(std::move(lowered.derivation), model.profile));
  return explain_derivation(command, from, lowered.layers, lowered.steps, names_of(lowered.kernels));
}

Attempt<> explain_bundle(const ExplainCommand& command) {
  HOIST_ATTEMPT(const Sizes sizes, parse_sizes(command.options.dimensions));
  HOIST_ATTEMPT(BundleInfo info, bundle_info(command.subject, sizes));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, refuse_model_options(command.options));
  HOIST_ATTEMPT(const Derived from, derived(info.plan));
  if (command.layer.empty())
    return list_layers(command, from.derivation, info.plan.layers, info.plan.steps, names_of(info.plan.kernels));
  return explain_derivation(command, from, info.plan.layers, info.plan.steps, names_of(info.plan.kernels));
}

Attempt<> explain(const ExplainCommand& command) {
  std::error_code ignored;
  return std::filesystem::is_directory(command.subject, ignored) ? explain_bundle(command) : explain_model(command);
}

}  // namespace

void add_explain(CLI::App& program, Action& action) {
  auto options = std::make_shared<ExplainCommand>();
  CLI::App& command =
      add_command(program, action, "explain",
                  "print the derivation of a layer's kernel: every step with its rule, its class and the term before "
                  "and after; %A, %B, ... stand for what both sides share, %x0, %x1, ... for variables around",
                  "  hoist explain models/digits_residual.onnx conv1 --paths", options, explain);
  command.add_option("subject", options->subject, "an ONNX file, or a bundle")->required()->type_name("MODEL|DIR");
  command.add_option("layer", options->layer, "the layer's name; without it all layers are listed")->type_name("LAYER");
  command.add_flag("--terms", options->terms, "print the whole term after each step");
  command.add_flag("--paths", options->paths, "print the place of each step as a path");
  add_model_options(command, options->options);
  add_steering_options(command, options->options);
  add_json_option(command, options->json, "the steps");
}

}  // namespace hoist
