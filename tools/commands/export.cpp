// hoist export: a model as ONNX for other engines, unchanged or with neural rules.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "frontend/write_model.h"
#include "ir/text/counted.h"
#include "lowering/export/export_terms.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"
#include "neural_rules/calibration/site_statistics.h"
#include "neural_rules/choice/budget.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/functions/sums.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/data/media.h"
#include "tools/data/samples.h"
#include "tools/driver/opened_bundle.h"
#include "tools/inspection/derivation.h"
#include "tools/study/device_models.h"
#include "tools/study/record_json.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

// Checked before the long work.
Result<Nothing> check_file(const Options& command) {
  const fs::path file = command.output;
  std::error_code ignored;
  if (file.empty()) return usage_error("--output", "is empty", "name a file for the model");
  if (fs::is_directory(file, ignored)) return Diagnostic{command.output, "is a folder", "name a file"};
  const fs::path folder = file.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    return Diagnostic{command.output, folder.string() + " is not a folder", "make it first, or name another"};
  if (fs::equivalent(file, command.subject, ignored))
    return Diagnostic{command.output, "is the input model itself", "name another file"};
  if (fs::is_regular_file(file, ignored) && !command.force)
    return Diagnostic{command.output, "exists", "use --force to replace it"};
  return Nothing{};
}

// Every named value has to exist.
CandidateRules named_rules(const std::vector<Site>& sites, const Assignment& assignment) {
  CandidateRules out;
  for (const Site& site : sites) {
    const auto named = assignment.find(site.key());
    out.may_stay.push_back(named == assignment.end());
    out.rules.emplace_back();
    if (named != assignment.end()) out.rules.back().push_back({named->second, {}});
  }
  return out;
}

// Data are read and a device is used only if a rule needs the range of values.
Result<CalibratedProgram> calibrated(const Options& command, const Program& program, const std::vector<Site>& sites,
                                     const Assignment& assignment) {
  const bool needs_data =
      std::any_of(command.neural_rules.begin(), command.neural_rules.end(), [](const std::string& name) {
        const NeuralRule* rule = find_neural_rule(name);
        return rule != nullptr && rule->calibrated;
      });
  if (!needs_data) return CalibratedProgram{program, {}, {}};
  if (command.budget.calibration.empty())
    return usage_error("--rule", "names a rule that needs the range of values", "give data: --calibrate DATA");
  HOIST_TRY(StudiedModel model, open_for_study(command.subject, command.model));
  HOIST_TRY(Samples samples, read_samples(command.budget.calibration, input_infos(program),
                                          {.numbers = true, .images = command.images}));
  const RoundingPlan plan = plan_rounding(program, sites, named_rules(sites, assignment), samples.runs.size(), 0);
  Progress progress;
  progress.show("calibrating");
  HOIST_TRY(ChannelScaling scaling, with_kind(ErrorKind::usage, parse_channel_scaling(command.budget.scaling)));
  HOIST_TRY(CalibratedProgram out, calibrate(program, sites, samples, model.prepare, plan, scaling));
  return out;
}

// Rules that keep values are internal, so a misspelt name does not suggest them.
Result<Nothing> refuse_other_rules(const std::vector<std::string>& rules) {
  const auto refusal = [](const std::string& rule, RuleClass rule_class) {
    return Diagnostic{
        "rule " + rule,
        fmt::format("is {} and keeps values: it concerns kernels, and no model contains it", name_of(rule_class)),
        "name rules of the class neural; hoist rules lists them"};
  };
  for (const std::string& rule : rules) {
    if (find_neural_rule(rule) != nullptr) continue;
    for (const RuleRow& r : lowering_rule_rows()) {
      if (r.name == rule) return refusal(rule, r.rule_class);
    }
    for (const ProgramRuleRow& r : operator_rule_rows()) {
      if (r.name == rule) return refusal(rule, r.rule_class);
    }
  }
  return Nothing{};
}

Result<RewrittenModel> under_rules(const Options& command, const Program& program) {
  const std::vector<Site> sites = find_sites(program);
  HOIST_TRY(Assignment assignment, uniform_assignment(program, sites, command.neural_rules));
  HOIST_TRY(CalibratedProgram ready, calibrated(command, program, sites, assignment));
  HOIST_TRY(RewrittenModel model, rewrite(ready.program, assignment, ready.statistics));
  return model;
}

// The choice for the given budget and objective.
Result<RecordedChoice> choice_of(const Options& command, const Record& record) {
  std::string budget;
  if (!command.budget.budget.empty()) {
    HOIST_TRY(const Budget parsed, with_kind(ErrorKind::usage, parse_budget(command.budget.budget)));
    budget = parsed.text();
  }
  HOIST_TRY(RecordedChoice choice,
            find_choice(record, budget, command.is_given("--objective") ? command.budget.objective : "",
                        command.budget.record));
  const auto same = std::count_if(record.choices.begin(), record.choices.end(), [&](const RecordedChoice& other) {
    return other.budget == choice.budget && other.objective == choice.objective;
  });
  if (same > 1)
    print_message("note",
                  fmt::format("{} has {} choices for {} and {} under different preferences: the latest is taken",
                              command.budget.record, same, choice.budget, choice.objective));
  return choice;
}

Result<RewrittenModel> as_recorded(const Options& command, Program program) {
  HOIST_TRY(const Record record, read_record(command.budget.record));
  HOIST_TRY_VOID(check_origin(record, {.model_hash = fmt::format("{:016x}", program.hash)}, command.budget.record));
  HOIST_TRY(const RecordedChoice choice, choice_of(command, record));
  HOIST_TRY_VOID(scale_channels(program, record.factors));
  HOIST_TRY(RewrittenModel model, rewrite(program, choice.chosen, record.statistics));
  if (!choice.retrained) return model;
  HOIST_TRY_VOID(put_retrained(model.program, chosen_point(record, choice)->point.retraining->weights));
  return model;
}

// The computation of the bundle, as operators.
Result<RewrittenModel> of_bundle(const Options& command) {
  for (const auto& [option, given] : {std::pair{"--rule", !command.neural_rules.empty()},
                                      {"--calibrate", !command.budget.calibration.empty()},
                                      {"--budget", !command.budget.budget.empty()},
                                      {"--objective", command.is_given("--objective")},
                                      {"--dim", !command.model.dimensions.empty()}}) {
    if (given) return usage_error(option, "applies to models: the rules of a bundle are fixed", "leave it out");
  }
  const bool has_record = !command.budget.record.empty();
  if (has_record && command.source.empty())
    return usage_error("--record", "of a bundle requires the model that it is made from", "add --model FILE");
  HOIST_TRY([[maybe_unused]] BundleInfo known, bundle_info(command.subject));
  HOIST_TRY(const BundleInfo bundle, read_bundle(command.subject, true));
  if (command.source.empty()) return rewritten_model(bundle, nullptr);
  HOIST_TRY(Program model, read_program_of(command.source, command.model.values, bundle, command.model.bounds));
  if (!has_record) return rewritten_model(bundle, &model);
  // The record has the constants of the choice in the model's form; a bundle has them as its kernels need them.
  if (model.hash != bundle.plan.model_hash)
    return Diagnostic{command.source, "is not the model that the bundle is made from"};
  const auto certificate = nlohmann::json::parse(bundle.plan.certificate, nullptr, false);
  if (!certificate.is_object())
    return Diagnostic{command.subject, "is compiled without a budget, so that no record has its choice",
                      "leave --record out"};
  Options chosen = command;
  chosen.budget.budget = certificate.value("budget", "");
  chosen.budget.objective = certificate.value("objective", "time");
  chosen.given.insert("--objective");
  HOIST_TRY(model, prepared_program(std::move(model)));
  return as_recorded(chosen, std::move(model));
}

Result<Nothing> check_use(const Options& command) {
  if (!command.budget.calibration.empty() && command.neural_rules.empty())
    return usage_error("--calibrate", "requires --rule", "name one: --rule RULE");
  if (!command.budget.record.empty() && !command.neural_rules.empty())
    return usage_error("--rule", "excludes --record, which has the choice", "leave one of them out");
  if (!command.budget.budget.empty() && command.budget.record.empty())
    return usage_error(
        "--budget", "requires --record",
        "hoist compile --budget " + command.budget.budget + " --record FILE chooses, and writes it down");
  if (command.is_given("--objective") && command.budget.record.empty())
    return usage_error("--objective", "requires --record", "it names a choice of a record");
  return Nothing{};
}

// A derivation names a row, and some rules have several rows.
Result<Expr> approximated_by(Expr e, const std::string& rule_or_row) {
  if (find_neural_rule(rule_or_row) != nullptr) {
    HOIST_TRY(const Approximated approximated, approximate(e, rule_or_row));
    return approximated.term;
  }
  for (const NeuralRule& rule : neural_rules()) {
    if (rule.kind != SiteKind::function) continue;
    auto approximated = approximate(e, std::string(rule.name));
    if (!approximated.ok()) continue;
    const auto& steps = approximated->derivation.steps;
    if (std::any_of(steps.begin(), steps.end(), [&](const Application& step) { return step.rule == rule_or_row; }))
      return approximated->term;
  }
  return Diagnostic{rule_or_row, "names no rule that applies to the layer", ""};
}

// Layers under function rules as the operators that compute the approximation, products in f16 between casts.
Result<Program> program_of_operators(const RewrittenModel& model) {
  std::vector<std::string> layers, products;
  for (const auto& [layer, rule] : model.functions) (find_scheme(rule) != nullptr ? products : layers).push_back(layer);
  HOIST_TRY(const Program program, with_half_products(model.program, products));
  return replace_by_expressions(program, layers, [&](const std::string& layer, Expr e) -> Result<Expr> {
    return approximated_by(e, model.functions.at(layer));
  });
}

std::map<std::string, int> rule_counts(const RewrittenModel& model) {
  std::map<std::string, int> out;
  for (const RuleUse& use : model.uses) ++out[use.rule];
  return out;
}

std::string summary(const RewrittenModel& model) {
  std::string out;
  for (const auto& [rule, count] : rule_counts(model)) out += fmt::format(", {} at {}", rule, counted(count, "site"));
  return out;
}

Result<ExitCode> write_exported(const Options& command, const Program& written, const RewrittenModel& model) {
  HOIST_TRY(std::string bytes, write_model(written, {HOIST_VERSION}));
  HOIST_TRY_VOID(write_file(command.output, bytes));
  if (command.output != "-") {
    print_summary("{}: {}, {} bytes{}", command.output, counted(written.definitions.size(), "layer"), bytes.size(),
                  summary(model));
  }
  return done(answer_json(command.json, {{"file", command.output},
                                         {"layers", written.definitions.size()},
                                         {"bytes", bytes.size()},
                                         {"rules", rule_counts(model)}}));
}

}  // namespace

Result<ExitCode> commands::export_model(const Options& given) {
  Options command = given;
  if (!command.is_given("--output")) command.output = output_named_after(command.subject, ".exported.onnx");
  HOIST_TRY_VOID(check_file(command));
  HOIST_TRY_VOID(check_use(command));
  HOIST_TRY_VOID(refuse_two_outputs(command.json, "--output", command.output));
  RewrittenModel model;
  Program written;
  std::error_code ignored;
  if (fs::is_directory(command.subject, ignored)) {
    HOIST_TRY(model, of_bundle(command));
    HOIST_TRY(written, program_of_operators(model));
    return write_exported(command, written, model);
  }
  if (!command.source.empty())
    return usage_error("--model", "applies to bundles: the model that the bundle comes from", "leave it out");
  HOIST_TRY_VOID(refuse_other_rules(command.neural_rules));
  HOIST_TRY(Program program, read_program(command.subject, command.model));
  for (const std::string& note : program.notes) print_message("note", note);
  written = program;
  if (!command.neural_rules.empty() || !command.budget.record.empty()) {
    HOIST_TRY(program, prepared_program(std::move(program)));
    HOIST_TRY(model, command.budget.record.empty() ? under_rules(command, program) : as_recorded(command, program));
    HOIST_TRY(written, program_of_operators(model));
  }
  return write_exported(command, written, model);
}

}  // namespace hoist
