// hoist explain: the derivation of a layer's kernel, like a proof.
#include "backends/bundle/bundle.h"
#include "ir/text.h"
#include "lowering/rules.h"
#include "tools/command.h"
#include "tools/layers.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct ExplainCommand {
  std::string subject, layer;
  bool steps = false;
  ModelOptions options;
};

struct Counts {
  size_t exact = 0, rounding = 0, neural = 0;
  void add(std::string_view rule_class) {
    ++(rule_class == "exact" ? exact : rule_class == "rounding" ? rounding : neural);
  }
  std::string text() const { return fmt::format("{} exact, {} rounding, {} neural", exact, rounding, neural); }
};

std::string step_text(size_t number, const PlanRuleUse& use) {
  const std::string arguments = use.parameters.empty() || use.place == "graph" ? "" : "(" + use.parameters + ")";
  if (use.place == "graph") return fmt::format("{:4}. {}  [{}]: {}", number, use.rule, use.rule_class, use.parameters);
  return fmt::format("{:4}. {}{} at {}  [{}]", number, use.rule, arguments, use.place, use.rule_class);
}

Attempt<> explain_model(const ExplainCommand& command) {
  HOIST_ATTEMPT(CompiledModel model, compile_model(command.subject, command.options));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode found, check_layer(command.layer, layer_names(model)));
  const LoweredModel& lowered = model.compilation.lowered;
  const Plan& plan = model.compilation.plan;
  const auto index = group_of(lowered, command.layer);
  if (!index) {
    say_line("{}", fate(plan.rules, command.layer));
    return ExitCode::done;
  }
  const LoweredGroup& group = lowered.groups[*index];
  say_line("kernel {} computes {}", plan.kernels[static_cast<size_t>(group.kernel)].name, joined_names(group.layers));
  Counts counts;
  for (const GraphStep& step : lowered.graph_steps) {
    if (!holds(group.layers, step.layer)) continue;
    say_line("before: {}  [{}]: {}", step.rule, name_of(step.rule_class), step.note);
    counts.add(name_of(step.rule_class));
  }
  const Derivation& derivation = group.derivation;
  std::vector<Expr> terms;
  if (command.steps) {
    HOIST_STEP(terms, ExitCode::bad_input, replay(lowering_rules(), derivation));
  }
  say_line("start:\n{}", print(derivation.start));
  for (size_t i = 0; i < derivation.steps.size(); ++i) {
    const Application& step = derivation.steps[i];
    const Rule* rule = lowering_rules().find(step.rule);
    counts.add(name_of(step.rule_class));
    std::string arguments;
    for (const auto& [name, size] : step.arguments)
      arguments += (arguments.empty() ? "" : ", ") + name + " = " + size.text();
    say_line("{}{}",
             step_text(i + 1, {"", step.rule, text(step.place), arguments, std::string(name_of(step.rule_class))}),
             rule == nullptr || row(*rule).meaning.empty() ? "" : "  " + row(*rule).meaning);
    if (command.steps) say_line("{}", print(terms[i + 1]));
  }
  if (!command.steps) say_line("end:\n{}", print(group.low));
  say_line("rules applied: {}", counts.text());
  return ExitCode::done;
}

Attempt<> explain_bundle(const ExplainCommand& command) {
  HOIST_STEP(BundleInfo info, ExitCode::bad_input, read_bundle(command.subject));
  const Plan& plan = info.plan;
  if (command.steps)
    return usage_failure("--steps", "needs the model: a bundle keeps the rules, not the terms between them");
  HOIST_ATTEMPT([[maybe_unused]] ExitCode found, check_layer(command.layer, layer_names(plan)));
  const PlanStep& step = plan.steps[*step_of(plan.steps, command.layer)];
  say_line("kernel {} computes {}", plan.kernels[static_cast<size_t>(step.kernel)].name, joined_names(step.layers));
  Counts counts;
  size_t number = 0;
  for (const PlanRuleUse& use : plan.rules) {
    if (!holds(step.layers, use.layer)) continue;
    say_line("{}", step_text(++number, use));
    counts.add(use.rule_class);
  }
  say_line("end:\n{}", plan.kernels[static_cast<size_t>(step.kernel)].expression);
  say_line("rules applied: {}", counts.text());
  return ExitCode::done;
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
                  "print the derivation of a layer's kernel: every rule, its place, parameters and class",
                  "  hoist explain models/digits_residual.onnx conv1 --steps", options, explain);
  command.add_option("subject", options->subject, "an ONNX file, or a bundle")->required()->type_name("MODEL|DIR");
  command.add_option("layer", options->layer, "the layer's name")->required()->type_name("LAYER");
  command.add_flag("--steps", options->steps, "with the term after each step");
  add_model_options(command, options->options);
}

}  // namespace hoist
