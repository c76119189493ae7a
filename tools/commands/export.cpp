// hoist export: a model, with neural rules or as it is, as ONNX for other engines.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "frontend/write_model.h"
#include "ir/text/counted.h"
#include "lowering/export/raise.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"
#include "neural_rules/calibration/site_statistics.h"
#include "neural_rules/choice/budget.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/functions/sums.h"
#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/terminal.h"
#include "tools/data/files.h"
#include "tools/data/media.h"
#include "tools/data/samples.h"
#include "tools/driver/opened_bundle.h"
#include "tools/inspection/derivation.h"
#include "tools/study/device_models.h"
#include "tools/study/record_json.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

struct ExportCommand {
  std::string model, output, source, calibration, record, budget, objective, json, scaling = "auto";
  const CLI::Option* output_option = nullptr;
  std::vector<std::string> rules;
  PictureOptions pictures;
  ModelOptions options;
  bool force = false;
};

// Checked before the long work.
Attempt<> check_output(const ExportCommand& command) {
  const fs::path file = command.output;
  std::error_code ignored;
  if (file.empty()) return usage_failure("--output", "is empty", "name a file for the model");
  if (fs::is_directory(file, ignored)) return input_failure(command.output, "is a folder", "name a file");
  const fs::path folder = file.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    return input_failure(command.output, folder.string() + " is not a folder", "make it first, or name another");
  if (fs::equivalent(file, command.model, ignored))
    return input_failure(command.output, "is the input model itself", "name another file");
  if (fs::is_regular_file(file, ignored) && !command.force)
    return input_failure(command.output, "exists", "use --force to replace it");
  return ExitCode::done;
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
Attempt<CalibratedProgram> calibrated(const ExportCommand& command, const Program& program,
                                      const std::vector<Site>& sites, const Assignment& assignment) {
  const bool needs_data = std::any_of(command.rules.begin(), command.rules.end(), [](const std::string& name) {
    const NeuralRule* rule = find_neural_rule(name);
    return rule != nullptr && rule->calibrated;
  });
  if (!needs_data) return CalibratedProgram{program, {}, {}};
  if (command.calibration.empty())
    return usage_failure("--rule", "names a rule that needs the range of values", "give data: --calibrate DATA");
  HOIST_ATTEMPT(StudiedModel model, open_for_study(command.model, command.options));
  HOIST_STEP(Samples samples, ExitCode::bad_input,
             read_samples(command.calibration, input_infos(program), {.numbers = true, .pictures = command.pictures}));
  const RoundingPlan plan = plan_rounding(program, sites, named_rules(sites, assignment), samples.runs.size(), 0);
  Progress progress;
  progress.show("calibrating");
  HOIST_STEP(ChannelScaling scaling, ExitCode::usage, parse_channel_scaling(command.scaling));
  HOIST_STEP(CalibratedProgram out, ExitCode::bad_input,
             calibrate(program, sites, samples, model.prepare, plan, scaling));
  return out;
}

// Rules that keep values are internal, so a misspelt name does not suggest them.
Attempt<> refuse_other_rules(const std::vector<std::string>& rules) {
  const auto refusal = [](const std::string& rule, RuleClass rule_class) {
    return input_failure(
        "rule " + rule,
        fmt::format("is {} and keeps values: it concerns kernels, and no model contains it", name_of(rule_class)),
        "name rules of the class neural; hoist rules lists them");
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
  return ExitCode::done;
}

Attempt<RewrittenModel> under_rules(const ExportCommand& command, const Program& program) {
  const std::vector<Site> sites = find_sites(program);
  HOIST_STEP(Assignment assignment, ExitCode::bad_input, uniform_assignment(program, sites, command.rules));
  HOIST_ATTEMPT(CalibratedProgram ready, calibrated(command, program, sites, assignment));
  HOIST_STEP(RewrittenModel model, ExitCode::bad_input, rewrite(ready.program, assignment, ready.statistics));
  return model;
}

// The choice for the budget and objective that are named.
Attempt<RecordedChoice> choice_of(const ExportCommand& command, const Record& record) {
  std::string budget;
  if (!command.budget.empty()) {
    HOIST_STEP(const Budget parsed, ExitCode::usage, parse_budget(command.budget));
    budget = parsed.text();
  }
  HOIST_STEP(RecordedChoice choice, ExitCode::bad_input,
             find_choice(record, budget, command.objective, command.record));
  const auto same = std::count_if(record.choices.begin(), record.choices.end(), [&](const RecordedChoice& other) {
    return other.budget == choice.budget && other.objective == choice.objective;
  });
  if (same > 1)
    complain("note", fmt::format("{} has {} choices for {} and {} under different preferences: the latest is taken",
                                 command.record, same, choice.budget, choice.objective));
  return choice;
}

Attempt<RewrittenModel> as_recorded(const ExportCommand& command, Program program) {
  HOIST_STEP(const Record record, ExitCode::bad_input, read_record(command.record));
  HOIST_STEP_VOID(ExitCode::bad_input,
                  check_origin(record, {.model_hash = fmt::format("{:016x}", program.hash)}, command.record));
  HOIST_ATTEMPT(const RecordedChoice choice, choice_of(command, record));
  HOIST_STEP_VOID(ExitCode::bad_input, scale_channels(program, record.factors));
  HOIST_STEP(RewrittenModel model, ExitCode::bad_input, rewrite(program, choice.chosen, record.statistics));
  return model;
}

// The computation of the bundle, as operators.
Attempt<RewrittenModel> of_bundle(const ExportCommand& command) {
  for (const auto& [option, given] : {std::pair{"--rule", !command.rules.empty()},
                                      {"--calibrate", !command.calibration.empty()},
                                      {"--record", !command.record.empty()},
                                      {"--budget", !command.budget.empty()},
                                      {"--objective", !command.objective.empty()},
                                      {"--dim", !command.options.dimensions.empty()}}) {
    if (given) return usage_failure(option, "applies to models: the rules of a bundle are fixed", "leave it out");
  }
  HOIST_ATTEMPT([[maybe_unused]] BundleInfo known, bundle_info(command.model));
  HOIST_STEP(const BundleInfo bundle, ExitCode::bad_input, read_bundle(command.model, true));
  if (command.source.empty()) return rewritten_model(bundle, nullptr);
  HOIST_ATTEMPT(const Program model,
                read_program_of(command.source, command.options.values, bundle, command.options.bounds));
  return rewritten_model(bundle, &model);
}

Attempt<> check_use(const ExportCommand& command) {
  if (!command.calibration.empty() && command.rules.empty())
    return usage_failure("--calibrate", "requires --rule", "name one: --rule RULE");
  if (!command.record.empty() && !command.rules.empty())
    return usage_failure("--rule", "excludes --record, which has the choice", "leave one of them out");
  if (!command.budget.empty() && command.record.empty())
    return usage_failure("--budget", "requires --record",
                         "hoist compile --budget " + command.budget + " --record FILE chooses, and writes it down");
  if (!command.objective.empty() && command.record.empty())
    return usage_failure("--objective", "requires --record", "it names a choice of a record");
  return ExitCode::done;
}

// A derivation names the row of a rule, of which some rules have several.
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

Attempt<> write_exported(const ExportCommand& command, const Program& written, const RewrittenModel& model) {
  HOIST_STEP(std::string bytes, ExitCode::bad_input, write_model(written, {HOIST_VERSION}));
  HOIST_STEP_VOID(ExitCode::bad_input, write_file(command.output, bytes));
  if (command.output != "-") {
    say_line("{}: {} layers, {} bytes{}", command.output, written.definitions.size(), bytes.size(), summary(model));
  }
  return answer_json(command.json, {{"file", command.output},
                                    {"layers", written.definitions.size()},
                                    {"bytes", bytes.size()},
                                    {"rules", rule_counts(model)}});
}

Attempt<> export_model(const ExportCommand& given) {
  ExportCommand command = given;
  if (command.output_option->count() == 0) command.output = output_named_after(command.model, ".exported.onnx");
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, check_output(command));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode fits, check_use(command));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode differ, refuse_two_outputs(command.json, "--output", command.output));
  RewrittenModel model;
  Program written;
  std::error_code ignored;
  if (fs::is_directory(command.model, ignored)) {
    HOIST_ATTEMPT(model, of_bundle(command));
    HOIST_STEP(written, ExitCode::bad_input, program_of_operators(model));
    return write_exported(command, written, model);
  }
  if (!command.source.empty())
    return usage_failure("--model", "applies to bundles: the model that the bundle comes from", "leave it out");
  HOIST_ATTEMPT([[maybe_unused]] ExitCode neural, refuse_other_rules(command.rules));
  HOIST_ATTEMPT(Program program, read_program(command.model, command.options));
  for (const std::string& note : program.notes) complain("note", note);
  written = program;
  if (!command.rules.empty() || !command.record.empty()) {
    HOIST_STEP(program, ExitCode::bad_input, prepared_program(std::move(program)));
    HOIST_ATTEMPT(model, command.record.empty() ? under_rules(command, program) : as_recorded(command, program));
    HOIST_STEP(written, ExitCode::bad_input, program_of_operators(model));
  }
  return write_exported(command, written, model);
}

}  // namespace

void add_export(CLI::App& program, Action& action) {
  auto options = std::make_shared<ExportCommand>();
  CLI::App& command = add_command(
      program, action, "export",
      "write a model as ONNX for other engines: unchanged, under neural rules, or with the rules of a bundle",
      "  hoist export models/digits_residual.onnx -o plain.onnx\n"
      "  hoist export models/digits_residual.onnx --rule u8 --rule w8a8 "
      "--calibrate models/digits_residual_calibration.npz -o q.onnx\n"
      "  hoist export models/digits_residual.onnx --record digits.json -o chosen.onnx\n"
      "  hoist export small.hoist --model models/digits_residual.onnx -o small.onnx",
      options, export_model);
  command.add_option("model", options->model, "an ONNX file, or a bundle")->required()->type_name("MODEL|DIR");
  options->output_option =
      command
          .add_option("-o,--output", options->output,
                      "the file, - for standard output (default: the model's name with .exported.onnx, here)")
          ->type_name("FILE");
  command.add_flag("--force", options->force, "replace an existing file");
  command
      .add_option("--model", options->source,
                  "for a bundle: the model that it comes from, for constants that the bundle has in another form")
      ->type_name("FILE");
  add_scaling_option(command, options->scaling);
  command.add_option("--rule", options->rules, "use this neural rule wherever it applies; may be given more than once")
      ->type_name("RULE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--calibrate", options->calibration, calibration_help)->type_name("DATA");
  add_picture_options(command, options->pictures);
  command
      .add_option("--record", options->record,
                  "the choice of compile --budget: its only choice, or the one of --budget and --objective")
      ->type_name("FILE");
  command.add_option("--budget", options->budget, "the record's choice for this budget")->type_name("BUDGET");
  command.add_option("--objective", options->objective, "the record's choice for this objective")
      ->check(CLI::IsMember({"time", "size"}));
  add_reading_options(command, options->options.dimensions, options->options.values);
  add_json_option(command, options->json, "what was written");
}

}  // namespace hoist
