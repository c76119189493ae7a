// States of programs: their declarations, and their values after a run.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/program/states.h"
#include "ir/text/parse/syntax.h"
#include "ir/text/text.h"

namespace hoist {

// state %NAME : TYPE = zeros, or = %CONSTANT, which may follow; the name is new.
Result<Nothing> SyntaxParser::program_state(Program& program) {
  const Token name = next();
  if (programs_ > 1) return fault_at(name, "a body has no states");
  HOIST_TRY_VOID(expect(":"));
  HOIST_TRY(const Type declared, type());
  if (!leaf_of(declared)->is_scalar() || leaf_of(declared)->scalar == Scalar::string)
    return fault_at(name, "%" + name.text + " is no array of numbers");
  HOIST_TRY_VOID(expect("="));
  StateValue state;
  state.name = name.text;
  if (peek().kind == Token::parameter)
    state.initial = next().text;
  else
    HOIST_TRY_VOID(expect("zeros"));
  program.inputs.emplace_back(name.text, declared);
  program.states.push_back(std::move(state));
  parameters_[name.text] = declared;
  return Nothing{};
}

// next %STATE is %VALUE; the value is defined before.
Result<Nothing> SyntaxParser::program_next(Program& program) {
  HOIST_TRY_VOID(expect("next"));
  const Token name = next();
  const auto state =
      std::find_if(program.states.begin(), program.states.end(), [&](const auto& s) { return s.name == name.text; });
  if (name.kind != Token::parameter || state == program.states.end()) return fault_at(name, "expected a state");
  if (!state->next.empty()) return fault_at(name, "%" + name.text + " has two values after a run");
  HOIST_TRY_VOID(expect("is"));
  const Token value = next();
  const auto found = parameters_.find(value.text);
  if (value.kind != Token::parameter || found == parameters_.end()) return fault_at(value, "expected a value");
  const bool is_input = std::any_of(program.inputs.begin(), program.inputs.end(),
                                    [&](const auto& input) { return input.first == value.text; });
  if (is_input) return fault_at(value, "%" + value.text + " is an input: define the next value as a copy of it");
  if (found->second != parameters_.at(name.text)) {
    return fault_at(value, fmt::format("%{} is {}, and %{} is {}", value.text, text(found->second), name.text,
                                       text(parameters_.at(name.text))));
  }
  state->next = value.text;
  program.outputs.push_back(value.text);
  if (!state->initial.empty()) program.outputs.push_back(state->initial);
  return Nothing{};
}

// Checks that initial values are constants, and that states come after the model's inputs and outputs, in order.
Result<Nothing> SyntaxParser::check_states(const Program& program) {
  for (const StateValue& state : program.states) {
    if (is_output(program, state.name))
      return fault_at(peek(), "%" + state.name + " is an output too: define the output as a copy of it");
    if (state.next.empty()) return fault_at(peek(), "%" + state.name + " has no value after a run: next is missing");
    if (state.initial.empty()) continue;
    const Tensor* initial = find_constant(program, state.initial);
    if (initial == nullptr || type_of(*initial) != parameters_.at(state.name))
      return fault_at(peek(), fmt::format("%{} is no constant of the type of %{}", state.initial, state.name));
  }
  const std::vector<std::string> outputs = state_outputs(program);
  std::set<std::string> counts;
  for (const DynamicExtent& extent : program.extents) counts.insert(extent.count);
  const size_t inputs = input_count(program), behind = output_count(program);
  bool good = inputs >= program.states.size() && behind >= counts.size() + outputs.size();
  for (size_t i = 0; good && i < program.states.size(); ++i)
    good = program.inputs[inputs - program.states.size() + i].first == program.states[i].name;
  for (size_t i = 0; good && i < outputs.size(); ++i)
    good = program.outputs[behind - counts.size() - outputs.size() + i] == outputs[i];
  if (good) return Nothing{};
  return fault_at(peek(),
                  "states come after the inputs of the model, and their next values after its outputs, in their order");
}

}  // namespace hoist
