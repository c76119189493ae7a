// hoist explain: the derivation of a layer's kernel, like a proof.
#include <nlohmann/json.hpp>
#include <set>

#include "ir/text/text.h"
#include "tools/command.h"
#include "tools/derivation.h"
#include "tools/json_answer.h"
#include "tools/layers.h"
#include "tools/model.h"
#include "tools/opened_bundle.h"
#include "tools/sizes.h"
#include "tools/terminal.h"

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

bool share(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& layer) { return holds(b, layer); });
}

std::string indented(const std::string& text, const std::string& first, const std::string& rest) {
  std::string out = first;
  for (char c : text) out += c == '\n' ? "\n" + rest : std::string(1, c);
  return out + "\n";
}

// Says it, and gives the same as JSON.
nlohmann::ordered_json say_step(const ExplainCommand& command, size_t number, const ReplayedStep& seen) {
  const ProgramStep& step = seen.step;
  nlohmann::ordered_json out = {{"number", number},
                                {"rule", step.rule},
                                {"parameters", step.parameters},
                                {"layer", seen.layer},
                                {"value", step.value},
                                {"place", step.value.empty() ? "" : text(step.place)},
                                {"class", name_of(step.rule_class)},
                                {"note", seen.note},
                                {"absorbed", seen.absorbed}};
  std::string at = seen.layer.empty() ? "" : " at layer " + seen.layer;
  if (command.paths && !step.value.empty())
    at = fmt::format(" at {}{}", step.value, step.place.empty() ? "" : ":" + text(step.place));
  std::string note = seen.note;
  if (!seen.absorbed.empty())
    note += fmt::format(" ({} {} part of it)", joined_names(seen.absorbed), seen.absorbed.size() == 1 ? "is" : "are");
  say_line("{:4}. {}{}{}  [{}]{}", number, step.rule, parameters_text(step), at, name_of(step.rule_class),
           note.empty() ? "" : "  " + note);
  // What a rule puts between a value and those that read it.
  if (step.rule_class == RuleClass::neural) {
    for (const auto& [value, term] : seen.added)
      say(indented(fmt::format("{} = {}", value, print(term, {.declare_parameters = false})), "          ",
                   "          "));
  }
  if (seen.before == nullptr) return out;
  if (seen.after == nullptr) {
    for (const StepConstant& constant : step.constants)
      say_line("        {} is a constant : {}", constant.name, text(constant.type));
    return out;
  }
  Expr before = hoist::at(seen.before, step.place), after = hoist::at(seen.after, step.place);
  if (before == nullptr || after == nullptr || before == after) return out;
  const auto [left, right] = sides_of_step(before, after);
  out["before"] = left;
  out["after"] = right;
  say(indented(left, "          ", "          "));
  say(indented(right, "        = ", "          "));
  if (command.terms) {
    const std::string whole = print(seen.after);
    say("        all of it:\n" + indented(whole, "          ", "          "));
    out["term"] = whole;
  }
  return out;
}

// The steps that led to the term of this definition: those at it and at what was merged into it, and those from before
// there was a term, which are known by the layers.
std::vector<const ReplayedStep*> steps_towards(const std::vector<ReplayedStep>& all, const std::string& value,
                                               const std::vector<std::string>& layers) {
  std::set<std::string> values = {value};
  std::vector<const ReplayedStep*> out;
  for (size_t i = all.size(); i-- > 0;) {
    const ReplayedStep& seen = all[i];
    const bool between_calls = seen.before == nullptr || seen.after == nullptr ||
                               seen.before->pattern == Pattern::operator_call ||
                               seen.step.rule_class == RuleClass::neural;
    const bool cut_from = std::any_of(seen.added.begin(), seen.added.end(),
                                      [&](const auto& added) { return values.count(added.first) != 0; });
    const bool concerns =
        cut_from || values.count(seen.step.value) != 0 || (between_calls && share(seen.layers, layers));
    if (!concerns) continue;
    // A kernel that was cut from another; what neural rules add only reads the value.
    if (cut_from && seen.after != seen.before) values.insert(seen.step.value);
    if (auto producer = seen.step.parameters.find("producer"); producer != seen.step.parameters.end())
      values.insert(producer->second);
    out.push_back(&seen);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

nlohmann::ordered_json say_proof(const ExplainCommand& command, const std::vector<const ReplayedStep*>& steps) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  RuleCounts counts;
  size_t number = 0;
  for (const ReplayedStep* seen : steps) {
    counts.add(seen->step.rule_class);
    out.push_back(say_step(command, ++number, *seen));
  }
  say_line("rules applied: {}", counts.text());
  return out;
}

// `steps` are the plan's, in the order of the kernels' definitions.
Attempt<> explain_derivation(const ExplainCommand& command, const Derived& from, const std::vector<PlanLayer>& layers,
                             const std::vector<PlanStep>& steps, const std::vector<std::string>& kernels) {
  HOIST_ATTEMPT(std::vector<size_t> wanted, steps_of(command.layer, layers, steps));
  std::vector<ReplayedStep> all;
  HOIST_STEP(const Replayed replayed, ExitCode::bad_input,
             replay(from.derivation, from.options, [&](const ReplayedStep& seen) { all.push_back(seen); }));
  nlohmann::ordered_json answer = {{"layer", command.layer}, {"kernels", nlohmann::ordered_json::array()}};
  if (wanted.empty()) {
    say_line("{}", absence_of(command.layer, layers));
    answer["absence"] = absence_of(command.layer, layers);
    std::vector<const ReplayedStep*> of_layer;
    for (const ReplayedStep& seen : all) {
      if (holds(seen.layers, command.layer)) of_layer.push_back(&seen);
    }
    if (!of_layer.empty()) answer["steps"] = say_proof(command, of_layer);
  }
  for (size_t step : wanted) {
    const Definition& definition = replayed.program.definitions.at(step);
    const std::string& name = kernels[static_cast<size_t>(steps[step].kernel)];
    say_line("kernel {} computes {}", name, joined_names(steps[step].layers));
    nlohmann::ordered_json proof = say_proof(command, steps_towards(all, definition.value, steps[step].layers));
    const std::string term = print(definition.expression);
    say("end:\n" + indented(term, "  ", "  "));
    answer["kernels"].push_back(
        {{"name", name}, {"layers", steps[step].layers}, {"steps", std::move(proof)}, {"term", term}});
  }
  return answer_json(command.json, answer);
}

Attempt<> explain_model(const ExplainCommand& command) {
  HOIST_ATTEMPT(OpenedModel model, open_model(command.subject, command.options));
  LoweredModel& lowered = model.lowered;
  HOIST_ATTEMPT(const Derived from, derived(std::move(lowered.derivation), model.profile));
  return explain_derivation(command, from, lowered.layers, lowered.steps, names_of(lowered.kernels));
}

Attempt<> explain_bundle(const ExplainCommand& command) {
  HOIST_ATTEMPT(const Sizes sizes, parse_sizes(command.options.dimensions));
  HOIST_ATTEMPT(BundleInfo info, bundle_info(command.subject, sizes));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, refuse_model_options(command.options));
  HOIST_ATTEMPT(const Derived from, derived(info.plan));
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
  command.add_option("layer", options->layer, "the layer's name")->required()->type_name("LAYER");
  command.add_flag("--terms", options->terms, "with the whole term after each step");
  command.add_flag("--paths", options->paths, "with the place of each step as a path");
  add_model_options(command, options->options);
  add_steering_options(command, options->options);
  add_json_option(command, options->json, "the steps");
}

}  // namespace hoist
