#include "ir/operators/operators.h"
#include "lowering/graph/steps.h"
#include "lowering/passes/rows.h"

namespace hoist {

Result<Nothing> decompose_calls(Program& program, const PassOptions&) {
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) values.push_back(definition.value);
  ProgramIndex index(program);
  for (const std::string& value : values) decompose_call(index, value);
  return Nothing{};
}

bool decompose_call(ProgramIndex& index, const std::string& value) {
  Definition* definition = index.find(value);
  if (definition == nullptr || definition->expression->pattern != Pattern::operator_call) return false;
  const OperatorCall& call = *definition->expression->operation;
  const OperatorRow* row = find_operator(call.domain, call.name, call.version);
  Expr calls = row == nullptr || row->decompose == nullptr ? nullptr : row->decompose(*definition->expression);
  if (calls == nullptr) return false;
  ProgramStep step = replayed_step("decompose-calls", *definition);
  step.rule_class = RuleClass::rounding;
  index.set_term(*definition, calls);
  name_calls(index, value);
  index.program().steps.push_back(std::move(step));
  return true;
}

Done replay_decompose_calls(Program& program, Definition&, const ProgramStep& step) {
  ProgramIndex index(program);
  if (!decompose_call(index, step.value)) return Diagnostic{"", "the call does not decompose", ""};
  return Nothing{};
}

}  // namespace hoist
