// hoist rewrite: passes and rules on a program, or rules on a single term, from a text file.
#include <nlohmann/json.hpp>

#include "frontend/frontend.h"
#include "ir/program/sizes.h"
#include "ir/rules/program_rule.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/passes.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"
#include "lowering/rules/user_rules.h"
#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/terminal.h"
#include "tools/data/files.h"
#include "tools/driver/program_file.h"

namespace hoist {
namespace {

struct RewriteCommand {
  std::string file, output, json;
  std::vector<std::string> passes;
  std::vector<std::string> dimensions;  ///< NAME=N
  std::string rule, place, rules;
  std::shared_ptr<const UserRules> user_rules;
  bool strict = false;

  const RuleTable& table() const { return user_rules != nullptr ? user_rules->table : lowering_rules(); }
  /// The rule between operator calls that --rule names, hoist's or the user's; null if it is none of these.
  const ProgramRule* rule_between_calls() const {
    const ProgramRule* own = operator_rule(rule);
    return own != nullptr || user_rules == nullptr ? own : user_rules->find_between_calls(rule);
  }
};

Attempt<> run_named_passes(const RewriteCommand& command, Program& program) {
  PassOptions options;
  options.strict = command.strict;
  options.tables.use = TableUse::automatic;
  options.convolution = ConvolutionForm::winograd;  // a pass named by the user runs without an estimate of its gain
  options.rules = command.user_rules.get();
  if (!command.passes.empty()) HOIST_STEP_VOID(ExitCode::bad_input, check_sizes_known(program));
  for (const std::string& name : command.passes) {
    const Pass* pass = find_pass(name);
    if (pass == nullptr) return usage_failure("--pass " + name, "unknown pass", "hoist rewrite --help lists them");
    HOIST_STEP_VOID(ExitCode::bad_input, pass->run(program, options));
  }
  return ExitCode::done;
}

// Numbers in the place of the program's sizes, where --dim says any.
Attempt<> put_sizes(const RewriteCommand& command, Program& program) {
  std::map<std::string, int64_t> numbers;
  for (const std::string& text : command.dimensions) {
    HOIST_STEP(const DimensionValue value, ExitCode::usage, parse_dimension_value(text));
    if (!numbers.emplace(value.name, value.extent).second)
      return usage_failure("--dim " + text, "the size has a number already");
  }
  if (numbers.empty()) return ExitCode::done;
  HOIST_STEP(program, ExitCode::bad_input, with_sizes(program, numbers));
  return ExitCode::done;
}

// A rule within the term of a definition: at VALUE or at VALUE:0.1.2.
Attempt<> apply_in_term(const RuleTable& table, const std::string& step, Expr& term) {
  HOIST_STEP(const std::vector<Application> steps, ExitCode::usage, parse_steps(step));
  for (Application application : steps) {
    const Rule* rule = table.find(application.rule);
    if (rule == nullptr) return usage_failure("--rule " + application.rule, "unknown rule", "hoist rules lists them");
    application.rule_class = row(*rule).rule_class;
    HOIST_STEP(const std::vector<Expr> terms, ExitCode::no, replay(table, {term, {application}}));
    term = terms.back();
  }
  return ExitCode::done;
}

Attempt<> rewrite_program(const RewriteCommand& command) {
  HOIST_ATTEMPT(Program program, read_program(command.file));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode put, put_sizes(command, program));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode ran, run_named_passes(command, program));
  if (command.rule.empty()) return show_program(program, command.output, command.json);
  const size_t colon = command.place.rfind(':');
  const std::string value = command.place.substr(0, colon);
  auto definition = std::find_if(program.definitions.begin(), program.definitions.end(),
                                 [&](const Definition& d) { return d.value == value; });
  if (definition == program.definitions.end())
    return usage_failure("--at " + command.place, "the program does not define the value " + value,
                         "write the value, followed by :0.1.2 for a place in its term");
  if (const ProgramRule* rule = command.rule_between_calls()) {
    HOIST_STEP_VOID(ExitCode::usage, check_strict(*rule, command.strict));
    HOIST_STEP_VOID(ExitCode::bad_input, check_sizes_known(program));
    HOIST_STEP(const bool applied, ExitCode::no, apply_program_rule(*rule, program, value));
    if (!applied) return Failure{ExitCode::no, {{command.rule, "does not apply at " + value, ""}}};
    return show_program(program, command.output, command.json);
  }
  const std::string path = colon == std::string::npos ? "root" : command.place.substr(colon + 1);
  HOIST_ATTEMPT([[maybe_unused]] ExitCode applied,
                apply_in_term(command.table(), command.rule + " at " + path, definition->expression));
  return show_program(program, command.output, command.json);
}

Attempt<> rewrite_term(const RewriteCommand& command, const std::string& text) {
  for (const auto& [option, values] : {std::pair("--pass", &command.passes), {"--dim", &command.dimensions}}) {
    if (values->empty()) continue;
    return usage_failure(option, "applies to programs, and this file holds a term",
                         "a program begins with the word program");
  }
  auto term = parse(text);
  if (!term.ok()) {
    Diagnostics problems = term.errors();
    for (Diagnostic& d : problems) d.where = command.file + ":" + d.where;
    return Failure{ExitCode::bad_input, problems};
  }
  Expr e = *term;
  if (!command.rule.empty()) {
    const std::string place = command.place.empty() ? "root" : command.place;
    HOIST_ATTEMPT([[maybe_unused]] ExitCode applied, apply_in_term(command.table(), command.rule + " at " + place, e));
  }
  const std::string printed = print(e) + "\n";
  if (command.output.empty()) {
    say(printed);
    return answer_json(command.json, {{"term", printed}});
  }
  HOIST_ATTEMPT([[maybe_unused]] ExitCode differ, refuse_two_outputs(command.json, "--output", command.output));
  HOIST_STEP_VOID(ExitCode::bad_input, write_file(command.output, printed));
  return answer_json(command.json, {{"file", command.output}});
}

Attempt<> rewrite(const RewriteCommand& given) {
  RewriteCommand command = given;
  if (!command.rules.empty()) {
    HOIST_STEP(const std::string rules, ExitCode::bad_input, read_file(command.rules, size_t{1} << 20));
    HOIST_STEP(UserRules read, ExitCode::bad_input, read_user_rules(rules, command.rules));
    command.user_rules = std::make_shared<const UserRules>(std::move(read));
  }
  if (!command.place.empty() && command.rule.empty())
    return usage_failure("--at", "states the place of a rule", "add --rule");
  HOIST_STEP(const std::string text, ExitCode::bad_input, read_file(command.file, size_t{256} << 20));
  // Comments may come before the first word.
  size_t start = 0;
  while ((start = text.find_first_not_of(" \t\r\n", start)) != std::string::npos && text.compare(start, 2, "--") == 0)
    start = std::min(text.find('\n', start), text.size());
  const bool is_program = start != std::string::npos && text.compare(start, 7, "program") == 0;
  return is_program ? rewrite_program(command) : rewrite_term(command, text);
}

std::string pass_list() {
  std::vector<std::vector<std::string>> rows;
  for (const Pass& pass : passes()) rows.push_back({"  " + std::string(pass.name), std::string(pass.meaning)});
  return "Passes, in the order in which hoist compile runs them:\n" + table(rows);
}

}  // namespace

void add_rewrite(CLI::App& program, Action& action) {
  auto options = std::make_shared<RewriteCommand>();
  CLI::App& command =
      add_command(program, action, "rewrite", "run passes or a rule on a program, or a rule on a term, from text",
                  "  hoist inspect models/digits_residual.onnx --stage graph --output digits.lift\n"
                  "  hoist rewrite digits.lift --pass fold-batch-norm --pass fold-constants --pass unfold\n"
                  "  hoist rewrite term.lift --rule \"split-join(k = 4)\" --at root\n"
                  "  hoist rewrite open.lift --dim batch=4 -o four.lift\n" +
                      pass_list(),
                  options, rewrite);
  command.add_option("file", options->file, "a file with a program, or a single term")
      ->required()
      ->type_name("FILE.lift");
  command.add_option("--pass", options->passes, "run this pass; may be given several times")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--rule", options->rule, "apply this rule, with its parameters: split-join(k = 4)")
      ->type_name("RULE");
  command
      .add_option("--at", options->place,
                  "the place: the value of a definition, optionally with :0.1.2 after it for a place in its term; for "
                  "a term alone only the place")
      ->type_name("PLACE");
  command
      .add_option(
          "--rules", options->rules,
          "your own rules, for --rule and the pass user-rules: parsed, typed and tested on random data before use")
      ->type_name("FILE");
  command
      .add_option("--dim", options->dimensions, "replace a symbolic size of the program by a number, before any pass")
      ->type_name("NAME=N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--strict", options->strict, "only passes and rules that keep every bit");
  command.add_option("-o,--output", options->output, "write the result there instead of printing it")
      ->type_name("FILE");
  add_json_option(command, options->json, "the result");
}

}  // namespace hoist
