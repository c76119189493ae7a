// hoist explain: the derivation of a layer's kernel, like a proof.
#include "ir/text.h"
#include "lowering/rules.h"
#include "tools/bundle.h"
#include "tools/command.h"
#include "tools/layers.h"
#include "tools/model.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct ExplainCommand {
  std::string subject, layer;
  bool steps = false;
  ModelOptions options;
};

struct RuleCounts {
  size_t exact = 0, rounding = 0, neural = 0;
  void add(std::string_view rule_class) {
    ++(rule_class == "exact" ? exact : rule_class == "rounding" ? rounding : neural);
  }
  std::string text() const { return fmt::format("{} exact, {} rounding, {} neural", exact, rounding, neural); }
};

// What is known of one kernel's derivation; a bundle keeps neither the first term nor those between.
struct Proof {
  std::string kernel;
  std::vector<std::string> layers;
  std::vector<PlanRuleUse> uses;
  std::string start, end;
  std::vector<std::string> terms;  // after each rule that applies to the term
};

void say_proof(const Proof& proof) {
  say_line("kernel {} computes {}", proof.kernel, joined_names(proof.layers));
  if (!proof.start.empty()) say("start:\n" + proof.start + "\n");
  RuleCounts counts;
  size_t number = 0, term = 0;
  for (const PlanRuleUse& use : proof.uses) {
    counts.add(use.rule_class);
    if (use.place.starts_with("layer ")) {
      const std::string note = use.parameters.empty() ? "" : "  " + use.parameters;
      say_line("{:4}. {} at {}  [{}]{}", ++number, use.rule, use.place, use.rule_class, note);
      continue;
    }
    const Rule* rule = lowering_rules().find(use.rule);
    const std::string meaning = rule == nullptr ? "" : std::string(row(*rule).meaning);
    say_line("{:4}. {}{} at {}  [{}]{}", ++number, use.rule, use.parameters.empty() ? "" : "(" + use.parameters + ")",
             use.place, use.rule_class, meaning.empty() ? "" : "  " + meaning);
    if (term < proof.terms.size()) say(proof.terms[term++] + "\n");
  }
  if (proof.terms.empty()) say("end:\n" + proof.end + "\n");
  say_line("rules applied: {}", counts.text());
}

std::vector<PlanRuleUse> uses_of(const std::vector<PlanRuleUse>& rules, size_t step) {
  std::vector<PlanRuleUse> out;
  for (const PlanRuleUse& use : rules) {
    if (use.step == static_cast<int>(step)) out.push_back(use);
  }
  return out;
}

Attempt<> explain_model(const ExplainCommand& command) {
  HOIST_ATTEMPT(OpenedModel model, open_model(command.subject, command.options));
  const LoweredModel& lowered = model.lowered;
  HOIST_ATTEMPT(std::vector<size_t> steps, steps_of(command.layer, lowered.layers, lowered.steps));
  if (steps.empty()) say_line("{}", absence_of(command.layer, lowered.layers));
  for (size_t step : steps) {
    const LoweredGroup& group = lowered.groups[step];
    Proof proof{lowered.kernels[static_cast<size_t>(group.kernel)].name,
                group.layers,
                uses_of(rules_of(lowered), step),
                print(group.derivation.start),
                print(group.low),
                {}};
    if (command.steps) {
      HOIST_STEP(std::vector<Expr> terms, ExitCode::bad_input, replay(lowering_rules(), group.derivation));
      for (size_t i = 1; i < terms.size(); ++i) proof.terms.push_back(print(terms[i]));
    }
    say_proof(proof);
  }
  return ExitCode::done;
}

Attempt<> explain_bundle(const ExplainCommand& command) {
  HOIST_ATTEMPT(BundleInfo info, bundle_info(command.subject));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, refuse_model_options(command.options));
  const Plan& plan = info.plan;
  if (command.steps)
    return usage_failure("--steps", "needs the model: a bundle keeps the rules, not the terms between them");
  HOIST_ATTEMPT(std::vector<size_t> steps, steps_of(command.layer, plan.layers, plan.steps));
  if (steps.empty()) say_line("{}", absence_of(command.layer, plan.layers));
  for (size_t step : steps) {
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(plan.steps[step].kernel)];
    say_proof({kernel.name, plan.steps[step].layers, uses_of(plan.rules, step), "", kernel.expression, {}});
  }
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
