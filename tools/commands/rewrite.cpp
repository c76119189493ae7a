// hoist rewrite: passes and rules on a program, or rules on a single term, from a text file.
#include <nlohmann/json.hpp>

#include "frontend/frontend.h"
#include "ir/program/sizes.h"
#include "ir/rules/program_rule.h"
#include "ir/text/parse/near_miss.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/passes.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"
#include "lowering/rules/user_rules.h"
#include "tools/base/files.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/driver/program_file.h"

namespace hoist {
namespace {

const RuleTable& table_of(const Options& command) {
  return command.model.user_rules != nullptr ? command.model.user_rules->table : lowering_rules();
}

// The rule between operator calls that --rule names, hoist's or the user's; null if it is neither.
const ProgramRule* rule_between_calls(const Options& command) {
  const ProgramRule* own = operator_rule(command.rule);
  const UserRules* users = command.model.user_rules.get();
  return own != nullptr || users == nullptr ? own : users->find_between_calls(command.rule);
}

Result<Nothing> run_named_passes(const Options& command, Program& program) {
  PassOptions options;
  options.strict = command.model.strict;
  options.tables.use = TableUse::automatic;
  options.convolution = ConvolutionForm::winograd;  // a pass named by the user runs without an estimate of its gain
  options.layouts = LayoutChoice::cost;
  options.rules = command.model.user_rules.get();
  if (!command.passes.empty()) HOIST_TRY_VOID(check_sizes_known(program));
  for (const std::string& name : command.passes) {
    const Pass* pass = find_pass(name);
    if (pass == nullptr || pass->part == Pass::within) {
      std::vector<std::string> names;
      for (const Pass& known : passes()) names.emplace_back(known.name);
      return usage_error("--pass " + name, "unknown pass",
                         did_you_mean(name, names, "hoist rewrite --help lists them"));
    }
    HOIST_TRY_VOID(pass->run(program, options));
  }
  return Nothing{};
}

// Substitutes the numbers of --dim for the program's sizes.
Result<Nothing> put_sizes(const Options& command, Program& program) {
  std::map<std::string, int64_t> numbers;
  for (const std::string& text : command.model.dimensions) {
    HOIST_TRY(const DimensionValue value, with_kind(ErrorKind::usage, parse_dimension_value(text)));
    if (!numbers.emplace(value.name, value.extent).second)
      return usage_error("--dim " + text, "the size has a number already");
  }
  if (numbers.empty()) return Nothing{};
  HOIST_TRY(program, with_sizes(program, numbers));
  return Nothing{};
}

Result<const Rule*> find_rule(const RuleTable& table, const std::string& name) {
  if (const Rule* rule = table.find(name)) return rule;
  std::vector<std::string> names;
  for (const RuleRow& known : lowering_rule_rows()) names.emplace_back(known.name);
  for (const ProgramRuleRow& known : operator_rule_rows()) names.emplace_back(known.name);
  return usage_error("--rule " + name, "unknown rule", did_you_mean(name, names, "hoist rules lists them"));
}

// A rule within the term of a definition: at VALUE or at VALUE:0.1.2.
Result<Nothing> apply_in_term(const RuleTable& table, const std::string& step, Expr& term) {
  HOIST_TRY(const std::vector<Application> steps, with_kind(ErrorKind::usage, parse_steps(step)));
  for (Application application : steps) {
    HOIST_TRY(const Rule* rule, find_rule(table, application.rule));
    application.rule_class = row(*rule).rule_class;
    HOIST_TRY(const std::vector<Expr> terms, with_kind(ErrorKind::negative, replay(table, {term, {application}})));
    term = terms.back();
  }
  return Nothing{};
}

Result<ExitCode> rewrite_program(const Options& command) {
  HOIST_TRY(Program program, read_program(command.subject));
  HOIST_TRY_VOID(put_sizes(command, program));
  HOIST_TRY_VOID(run_named_passes(command, program));
  if (command.rule.empty()) return done(show_program(program, command.output, command.json));
  const ProgramRule* between_calls = rule_between_calls(command);
  if (between_calls == nullptr)
    HOIST_TRY_VOID(find_rule(table_of(command), command.rule.substr(0, command.rule.find('('))));
  const char* places = "write the value of a definition, followed by :0.1.2 for a place in its term";
  if (command.place.empty()) return usage_error("--rule " + command.rule, "needs a place: add --at", places);
  const size_t colon = command.place.rfind(':');
  const std::string value = command.place.substr(0, colon);
  auto definition = std::find_if(program.definitions.begin(), program.definitions.end(),
                                 [&](const Definition& d) { return d.value == value; });
  if (definition == program.definitions.end())
    return usage_error("--at " + command.place, "the program does not define the value " + value, places);
  if (between_calls != nullptr) {
    HOIST_TRY_VOID(with_kind(ErrorKind::usage, check_strict(*between_calls, command.model.strict)));
    HOIST_TRY_VOID(check_sizes_known(program));
    HOIST_TRY(const bool applied, with_kind(ErrorKind::negative, apply_program_rule(*between_calls, program, value)));
    if (!applied) return Diagnostic{command.rule, "does not apply at " + value, "", ErrorKind::negative};
    return done(show_program(program, command.output, command.json));
  }
  const std::string path = colon == std::string::npos ? "root" : command.place.substr(colon + 1);
  HOIST_TRY_VOID(apply_in_term(table_of(command), command.rule + " at " + path, definition->expression));
  return done(show_program(program, command.output, command.json));
}

Result<ExitCode> rewrite_term(const Options& command, const std::string& text) {
  for (const auto& [option, values] : {std::pair("--pass", &command.passes), {"--dim", &command.model.dimensions}}) {
    if (values->empty()) continue;
    return usage_error(option, "applies to programs, and this file holds a term",
                       "a program begins with the word program");
  }
  auto term = parse(text);
  if (!term.ok()) {
    Diagnostics problems = term.errors();
    for (Diagnostic& d : problems) d.where = command.subject + ":" + d.where;
    return problems;
  }
  Expr e = *term;
  if (!command.rule.empty()) {
    const std::string place = command.place.empty() ? "root" : command.place;
    HOIST_TRY_VOID(apply_in_term(table_of(command), command.rule + " at " + place, e));
  }
  const std::string printed = print(e) + "\n";
  if (command.output.empty()) {
    say(printed);
    return done(answer_json(command.json, {{"term", printed}}));
  }
  HOIST_TRY_VOID(refuse_two_outputs(command.json, "--output", command.output));
  HOIST_TRY_VOID(write_file(command.output, printed));
  return done(answer_json(command.json, {{"file", command.output}}));
}

}  // namespace

Result<ExitCode> commands::rewrite(const Options& given) {
  Options command = given;
  for (std::string& name : command.passes) name = with_present_name(name);
  const size_t parameters = std::min(command.rule.find('('), command.rule.size());
  command.rule = with_present_name(command.rule.substr(0, parameters)) + command.rule.substr(parameters);
  if (!command.model.rules.empty()) {
    HOIST_TRY(const std::string rules, read_file(command.model.rules, size_t{1} << 20));
    HOIST_TRY(UserRules read, read_user_rules(rules, command.model.rules));
    command.model.user_rules = std::make_shared<const UserRules>(std::move(read));
  }
  if (!command.place.empty() && command.rule.empty())
    return usage_error("--at", "states the place of a rule", "add --rule");
  HOIST_TRY(const std::string text, read_file(command.subject, size_t{256} << 20));
  const auto is_control = [](unsigned char c) { return c < '\t'; };
  if (std::any_of(text.begin(), text.end(), is_control))
    return Diagnostic{command.subject, "is no text of a program or a term",
                      "hoist inspect MODEL.onnx --stage graph -o FILE writes the program of a model as text"};
  // Comments may come before the first word.
  size_t start = 0;
  while ((start = text.find_first_not_of(" \t\r\n", start)) != std::string::npos && text.compare(start, 2, "--") == 0)
    start = std::min(text.find('\n', start), text.size());
  const bool is_program = start != std::string::npos && text.compare(start, 7, "program") == 0;
  // Attributes in the text may be choices that no pass makes.
  const FaultsAreErrors guard;
  try {
    return is_program ? rewrite_program(command) : rewrite_term(command, text);
  } catch (const InternalFault& fault) {
    return Diagnostic{command.subject, "leads to an invalid program: " + fault.text, ""};
  }
}

std::string pass_list() {
  std::vector<std::vector<std::string>> rows;
  for (const Pass& pass : passes()) rows.push_back({"  " + std::string(pass.name), std::string(pass.meaning)});
  return "Passes, in the order in which hoist compile runs them:\n" + table(rows);
}

}  // namespace hoist
