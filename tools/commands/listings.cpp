// hoist devices, language, rules and operators: lists of devices and tables.
#include <nlohmann/json.hpp>

#include "backends/opencl/device.h"
#include "ir/language/pattern.h"
#include "ir/language/scalar.h"
#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/operators.h"
#include "ir/text/counted.h"
#include "ir/text/definitions.h"
#include "ir/text/parse/near_miss.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"
#include "lowering/strategies/strategy.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/functions/sums.h"
#include "neural_rules/neural_rules.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/driver/coverage.h"
#include "tools/driver/model.h"
#include "tools/driver/opened_bundle.h"
#include "tools/inspection/derivation.h"
#include "tools/inspection/device_rates.h"

namespace hoist {
namespace {

using Json = nlohmann::ordered_json;

// The description of an OpenCL device or of native code, with its measured rates.
Result<ExitCode> measure_device(const Options& command) {
  HOIST_TRY_VOID(refuse_unwritable(command.output));
  ModelOptions described = command.model;
  described.device = command.run.device;
  HOIST_TRY(Profile profile, choose_profile(described));
  constexpr double duration = 8;  // long enough for a moment without other work on the machine
  Progress progress;
  progress.show("measuring the device");
  const std::vector<std::string>& targets = command.model.targets;
  HOIST_TRY(const Peaks peaks, measure_peaks(command.run, profile, targets, duration));
  HOIST_TRY(profile.rates, measure_rates(peaks, command.run, profile, targets, duration));
  progress.show("");
  if (command.output.empty()) {
    say(print(profile));
  } else {
    HOIST_TRY_VOID(write_file(command.output, print(profile)));
    print_line("{}: rates of {} with {}; compile --target {} predicts times", command.output, profile.name,
               counted(static_cast<size_t>(profile.rates.threads), "thread"), command.output);
  }
  return ExitCode::done;
}

}  // namespace

Result<ExitCode> commands::devices(const Options& command) {
  if (command.print_profile) return measure_device(command);
  if (!command.output.empty() || !command.model.targets.empty())
    return usage_error("--output and --target", "apply to --profile", "add --profile, or leave them out");
  std::vector<Device> all;
  if (command.run.device.empty()) {
    HOIST_TRY(all, with_kind(ErrorKind::device, list_devices()));
  } else {
    HOIST_TRY(Device device, with_kind(ErrorKind::device, find_device(command.run.device)));
    all.push_back(std::move(device));
  }
  if (!command.json.empty()) {
    Json out = Json::array();
    for (const Device& d : all) {
      out.push_back({{"index", d.index},
                     {"name", d.name},
                     {"platform", d.platform},
                     {"vendor", d.vendor},
                     {"driver", d.driver},
                     {"kind", d.is_cpu ? "cpu" : "gpu"},
                     {"compute_units", d.compute_units},
                     {"global_memory", d.global_memory},
                     {"local_memory", d.local_memory},
                     {"maximum_group", d.maximum_group},
                     {"vector_width", d.vector_width},
                     {"half", d.half},
                     {"doubles", d.doubles},
                     {"computes_exactly", d.computes_exactly},
                     {"divides_exactly", d.divides_exactly},
                     {"extensions", d.extensions}});
    }
    HOIST_TRY_VOID(write_json(command.json, out));
    return ExitCode::done;
  }
  for (const Device& d : all) {
    print_line("{}: {}", d.index, d.name);
    print_line("   {}, driver {}", d.platform, d.driver);
    print_line("   {}, {} compute units, {:.1f} GB, {} kB local memory, {} float lanes{}{}", d.is_cpu ? "cpu" : "gpu",
               d.compute_units, static_cast<double>(d.global_memory) / 1e9, d.local_memory / 1024, d.vector_width,
               d.half ? ", half" : "", d.doubles ? ", double" : "");
    print_line("   floats {}",
               !d.computes_exactly ? "may round differently or flush subnormals: kernels are compared within bounds"
               : d.divides_exactly ? "are exact: kernels are compared bit for bit, with division and square root"
                                   : "are exact: kernels are compared bit for bit, except division and square root");
  }
  return ExitCode::done;
}

namespace {

// The number of applications of each rule and each pass in the derivations of bundles.
Result<ExitCode> used_rules(const Options& command) {
  if (!command.subject.empty())
    return usage_error("--used", "lists the rules of bundles, but a rule is named", "leave out the name or --used");
  std::map<std::string, int64_t> rules, steps_of_passes;
  for (const std::string& folder : command.used) {
    HOIST_TRY(const BundleInfo info, bundle_info(folder));
    HOIST_TRY(const Derived from, derived(info.plan));
    for (const ProgramStep& step : from.derivation.steps) {
      // The definition of each operator is a rule of its own.
      if (auto inlined = step.parameters.find("operator"); inlined != step.parameters.end())
        ++rules[step.rule + " " + inlined->second];
      else
        ++(find_pass(step.rule) != nullptr ? steps_of_passes : rules)[step.rule];
    }
  }
  const auto by_count = [](const std::map<std::string, int64_t>& counts) {
    std::vector<std::pair<std::string, int64_t>> out(counts.begin(), counts.end());
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
  };
  if (!command.json.empty()) {
    Json out = {{"bundles", command.used}, {"rules", Json::object()}, {"passes", Json::object()}};
    for (const auto& [name, count] : by_count(rules)) out["rules"][name] = count;
    for (const auto& [name, count] : by_count(steps_of_passes)) out["passes"][name] = count;
    HOIST_TRY_VOID(write_json(command.json, out));
    return ExitCode::done;
  }
  for (const auto& [name, count] : by_count(rules)) print_line("{:8}  {}", count, name);
  for (const auto& [name, count] : by_count(steps_of_passes)) print_line("{:8}  {}  (pass)", count, name);
  print_line("{} rules and {} passes are used by {}", rules.size(), steps_of_passes.size(),
             counted(command.used.size(), "bundle"));
  return ExitCode::done;
}

// The two sides of a rule, one per line, followed by the side conditions.
void print_rule(const RuleRow& r) {
  print_line("{}{}  {}", r.name, r.parameters.empty() ? "" : "(" + r.parameters + ")", name_of(r.rule_class));
  print_line("    {}", r.left);
  print_line("  = {}", r.right);
  if (!r.where.empty()) print_line("    where {}", r.where);
  if (!r.meaning.empty()) print_line("    {}", r.meaning);
  if (!r.library.empty()) print_line("    library: {}", r.library);
}

void print_rule(const ProgramRuleRow& r) {
  print_line("{}  {}", r.name, name_of(r.rule_class));
  print_line("    {}", r.left);
  print_line("  = {}", r.right);
  if (!r.where.empty()) print_line("    where {}", r.where);
  print_line("    {}", r.meaning);
}

// The requirements and guarantees of a rule that changes values.
void print_rule(const NeuralRule& r) {
  print_line("{}  neural", r.name);
  print_line("    {}", r.what);
  print_line("    family {}, at {} sites, error {}{}", name_of(r.family), name_of(r.kind),
             r.error == ErrorModel::bound ? "bounded" : name_of(r.error),
             r.calibrated ? ", needs calibration data" : "");
  if (const auto certificate = certificate_of(r.name)) {
    print_line("    {} error at most {:.3g} for arguments from {:g} to {:g}: {}",
               certificate->relative ? "relative" : "absolute", certificate->error, certificate->low, certificate->high,
               certificate->how);
  }
  if (!r.precondition.empty()) print_line("    where {}", r.precondition);
  if (!r.source.empty()) print_line("    {}", r.source);
}

Json json_of(const RuleRow& r) {
  return {{"name", r.name},
          {"parameters", r.parameters},
          {"given", r.given},
          {"left", r.left},
          {"right", r.right},
          {"where", r.where},
          {"class", name_of(r.rule_class)},
          {"meaning", r.meaning},
          {"library", r.library}};
}

Json json_of(const ProgramRuleRow& r) {
  return {{"name", r.name},
          {"parameters", ""},
          {"given", r.given},
          {"left", r.left},
          {"right", r.right},
          {"where", r.where},
          {"class", name_of(r.rule_class)},
          {"meaning", r.meaning}};
}

Json json_of(const NeuralRule& r) {
  return {{"name", r.name},
          {"class", name_of(RuleClass::neural)},
          {"family", name_of(r.family)},
          {"site", name_of(r.kind)},
          {"error", name_of(r.error)},
          {"calibrated", r.calibrated},
          {"where", r.precondition},
          {"meaning", r.what},
          {"source", r.source}};
}

Result<ExitCode> list_strategies(const Options& command) {
  if (!command.json.empty()) {
    Json out = Json::array();
    for (const Strategy& s : strategies()) out.push_back({{"name", s.name}, {"meaning", s.what}});
    HOIST_TRY_VOID(write_json(command.json, out));
    return ExitCode::done;
  }
  std::vector<std::vector<std::string>> rows = {{"strategy", "maps the loops of a kernel"}};
  for (const Strategy& s : strategies()) rows.push_back({std::string(s.name), std::string(s.what)});
  say(table(rows));
  return ExitCode::done;
}

// Rules between operator calls, rules over terms, and rules that change values: a rule for functions or sums is
// followed by a row of its engine.
}  // namespace

Result<ExitCode> commands::rules(const Options& command) {
  if (!command.used.empty()) return used_rules(command);
  if (command.strategies) return list_strategies(command);
  std::vector<const ProgramRuleRow*> between;
  std::vector<const RuleRow*> chosen;
  std::vector<const NeuralRule*> neural;
  std::vector<std::string> names;
  const std::string subject = with_present_name(command.subject);
  const auto wanted = [&](std::string_view name) {
    names.emplace_back(name);
    return subject.empty() || name == subject;
  };
  for (const ProgramRuleRow& r : operator_rule_rows()) {
    if (wanted(r.name)) between.push_back(&r);
  }
  for (const RuleRow& r : lowering_rule_rows()) {
    if (wanted(r.name)) chosen.push_back(&r);
  }
  for (const std::span<const RuleRow> rows : {function_rule_rows(), sum_rule_rows()}) {
    for (const RuleRow& r : rows) {
      if (wanted(r.name)) chosen.push_back(&r);
    }
  }
  for (const NeuralRule& r : neural_rules()) {
    if (wanted(r.name)) neural.push_back(&r);
  }
  if (between.empty() && chosen.empty() && neural.empty()) {
    return Diagnostic{"rule " + command.subject, "unknown rule",
                      did_you_mean(command.subject, names, "hoist rules lists them")};
  }
  if (!command.json.empty()) {
    Json out = Json::array();
    for (const ProgramRuleRow* r : between) out.push_back(json_of(*r));
    for (const RuleRow* r : chosen) out.push_back(json_of(*r));
    for (const NeuralRule* r : neural) out.push_back(json_of(*r));
    HOIST_TRY_VOID(write_json(command.json, out));
    return ExitCode::done;
  }
  for (const ProgramRuleRow* r : between) print_rule(*r);
  for (const RuleRow* r : chosen) print_rule(*r);
  for (const NeuralRule* r : neural) print_rule(*r);
  return ExitCode::done;
}

namespace {

// "floats, integers": the element types that a function takes.
std::string types_of(const FunctionRow& r) {
  std::vector<std::string_view> out;
  if (r.on_float) out.emplace_back("floats");
  if (r.on_integer) out.emplace_back("integers");
  if (r.on_boolean) out.emplace_back("booleans");
  return fmt::format("{}", fmt::join(out, ", "));
}

Json language_json() {
  Json out = {{"scalars", Json::array()},
              {"patterns", Json::array()},
              {"functions", Json::array()},
              {"definitions", Json::array()}};
  for (int i = 0; i < scalar_count; ++i) {
    const ScalarRow& r = row(static_cast<Scalar>(i));
    out["scalars"].push_back({{"name", r.name}, {"bits", r.bits}, {"float", r.is_float}, {"signed", r.is_signed}});
  }
  for (const PatternRow& r : pattern_table())
    out["patterns"].push_back({{"name", r.name}, {"type", r.scheme}, {"meaning", r.meaning}, {"view", r.is_view}});
  for (const FunctionRow& r : function_table()) {
    out["functions"].push_back({{"name", r.name},
                                {"symbol", r.symbol},
                                {"arguments", r.arity},
                                {"types", types_of(r)},
                                {"associative", r.associative},
                                {"commutative", r.commutative},
                                {"ulp", r.ulp},
                                {"meaning", r.meaning}});
  }
  for (const DefinitionRow& r : definition_table()) {
    out["definitions"].push_back(
        {{"name", r.name}, {"given", r.given}, {"definition", r.definition}, {"meaning", r.meaning}});
  }
  return out;
}

// The four vocabularies, a table each.
}  // namespace

Result<ExitCode> commands::language(const Options& command) {
  if (!command.json.empty()) return done(answer_json(command.json, language_json()));
  using Rows = std::vector<std::vector<std::string>>;
  const auto texts = [](std::initializer_list<std::string_view> views) {
    return std::vector<std::string>(views.begin(), views.end());
  };
  Rows scalars = {{"type", "bits", "what"}};
  for (int i = 0; i < scalar_count; ++i) {
    const ScalarRow& r = row(static_cast<Scalar>(i));
    const bool is_other = r.scalar == Scalar::boolean || r.scalar == Scalar::string;
    scalars.push_back({std::string(r.name), std::to_string(r.bits),
                       is_other      ? "true or false, or a string's handle"
                       : r.is_float  ? "float"
                       : r.is_signed ? "integer"
                                     : "unsigned integer"});
  }
  Rows patterns = {{"pattern", "type", "meaning"}};
  for (const PatternRow& r : pattern_table()) patterns.push_back(texts({r.name, r.scheme, r.meaning}));
  Rows functions = {{"function", "symbol", "on", "meaning"}};
  for (const FunctionRow& r : function_table()) functions.push_back(texts({r.name, r.symbol, types_of(r), r.meaning}));
  Rows definitions = {{"definition", "of", "is", "meaning"}};
  for (const DefinitionRow& r : definition_table())
    definitions.push_back(texts({r.name, r.given, r.definition, r.meaning}));
  say(table(patterns) + "\n" + table(functions) + "\n" + table(definitions) + "\n" + table(scalars));
  return ExitCode::done;
}

namespace {

// All operators of the standard and hoist's own, or the operators of a given name.
}  // namespace

Result<ExitCode> commands::operators(const Options& command) {
  std::vector<CoveredOperator> all = operator_coverage();
  if (command.print_page) {
    if (!command.subject.empty())
      return usage_error("--page", "covers all operators, but one is named", "leave out the name or --page");
    say(coverage_page(all));
    return ExitCode::done;
  }
  std::vector<std::string> names;
  for (const CoveredOperator& one : all) names.push_back(one.name);
  if (!command.subject.empty())
    std::erase_if(all, [&](const CoveredOperator& one) { return one.name != command.subject; });
  if (all.empty()) {
    return Diagnostic{"operator " + command.subject, "is neither an operator of the standard nor of hoist",
                      did_you_mean(command.subject, names, "hoist operators lists them")};
  }
  const auto row_of = [](const CoveredOperator& one) {
    return find_operator(one.domain, one.name, std::numeric_limits<int>::max());
  };
  if (!command.json.empty()) {
    Json out = Json::array();
    for (const CoveredOperator& one : all) {
      out.push_back({{"domain", one.domain},
                     {"name", one.name},
                     {"versions", one.versions},
                     {"types", one.types},
                     {"how", name_of(one.how)},
                     {"cases", one.cases},
                     {"passing", one.passing}});
      if (const OperatorRow* row = row_of(one)) {
        out.back()["since"] = row->since;
        out.back()["least_inputs"] = row->least_inputs;
        out.back()["most_inputs"] = row->most_inputs;
        out.back()["definition"] = row->source == nullptr ? "" : row->source->text;
        out.back()["meaning"] = row->meaning;
      }
    }
    HOIST_TRY_VOID(write_json(command.json, out));
    return ExitCode::done;
  }
  std::vector<std::vector<std::string>> rows = {{"operator", "versions", "types", "how", "cases", "passing"}};
  if (!command.subject.empty()) rows.back().emplace_back("definition");
  for (const CoveredOperator& one : all) {
    rows.push_back({full_name(one.domain, one.name), fmt::format("{}", fmt::join(one.versions, " ")), one.types,
                    std::string(name_of(one.how)), one.cases > 0 ? std::to_string(one.cases) : "",
                    one.cases > 0 ? std::to_string(one.passing) : ""});
    if (command.subject.empty()) continue;
    const OperatorRow* row = row_of(one);
    rows.back().emplace_back(row == nullptr ? "" : row->source == nullptr ? row->meaning : row->source->text);
  }
  say(table(rows));
  return ExitCode::done;
}

}  // namespace hoist
