#include "ir/operators/operators.h"
#include "lowering/graph/steps.h"
#include "lowering/passes/rows.h"

namespace hoist {

Result<Nothing> decompose_calls(Program& program, const PassOptions&) {
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) values.push_back(definition.value);
  for (const std::string& value : values) decompose_call(program, value);
  return Nothing{};
}

bool decompose_call(Program& program, const std::string& value) {
  Definition* definition = find_definition(program, value);
  if (definition == nullptr || definition->expression->pattern != Pattern::operator_call) return false;
  const OperatorCall& call = *definition->expression->operation;
  const OperatorRow* row = find_operator(call.domain, call.name, call.version);
  Expr calls = row == nullptr || row->decompose == nullptr ? nullptr : row->decompose(*definition->expression);
  if (calls == nullptr) return false;
  ProgramStep step = replayed_step("decompose-calls", *definition);
  step.rule_class = RuleClass::rounding;
  definition->expression = calls;
  name_calls(program, value);
  program.steps.push_back(std::move(step));
  return true;
}

Done replay_decompose_calls(Program& program, Definition&, const ProgramStep& step) {
  if (!decompose_call(program, step.value)) return Diagnostic{"", "the call does not decompose", ""};
  return Nothing{};
}

}  // namespace hoist
