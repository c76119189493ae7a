#include "ir/program/program_values.h"

#include "ir/language/expression.h"

namespace hoist {

Result<Bindings> program_values(const Program& program, Bindings inputs) {
  Bindings values = std::move(inputs);
  std::map<std::string, Expr> tuples;
  for (const auto& [name, tensor] : program.constants) values[name] = tensor;
  for (const Definition& definition : program.definitions) {
    const Expr e = substitute_parameters(definition.expression, tuples);
    if (e->type->is_tuple()) {
      tuples[definition.value] = e;
      continue;
    }
    HOIST_TRY(values[definition.value], evaluate(e, values));
  }
  return values;
}

Result<std::vector<Tensor>> program_outputs(const Program& program, const std::vector<Tensor>& inputs) {
  HOIST_CHECK(inputs.size() == program.inputs.size(), "one tensor for each input");
  Bindings given;
  for (size_t i = 0; i < inputs.size(); ++i) given[program.inputs[i].first] = inputs[i];
  HOIST_TRY(const Bindings values, program_values(program, std::move(given)));
  return program_outputs(program, values);
}

Result<std::vector<Tensor>> program_outputs(const Program& program, const Bindings& values) {
  std::vector<Tensor> outputs;
  for (const std::string& output : program.outputs) outputs.push_back(values.at(output));
  return cut_outputs(program, std::move(outputs));
}

}  // namespace hoist
