#include "neural_rules/model/constants.h"

#include <algorithm>

#include "neural_rules/model/definition.h"

namespace hoist {
namespace {

// True if the term has the elements of an array in the same order.
bool is_reshape(Expr e) {
  return e->type->is_array() && !any_node(e, [](Expr n) {
           return n->pattern != Pattern::parameter && n->pattern != Pattern::split && n->pattern != Pattern::join &&
                  n->pattern != Pattern::map && n->pattern != Pattern::function && n->pattern != Pattern::bound &&
                  n->pattern != Pattern::identity;
         });
}

}  // namespace

bool fold_constant_shape(Program& program, const std::string& value) {
  const auto found = std::find_if(program.definitions.begin(), program.definitions.end(),
                                  [&](const Definition& d) { return d.value == value; });
  if (found == program.definitions.end() || found->expression->pattern != Pattern::operator_call) return false;
  const Expr term = term_of(program, *found);
  if (!is_reshape(term)) return false;
  const std::vector<Expr> reads = parameters_of(term);
  const Tensor* data = reads.size() == 1 ? find_constant(program, reads[0]->name) : nullptr;
  const auto reads_value = [&](const Definition& d) {
    const std::vector<Expr> names = parameters_of(d.expression);
    return std::any_of(names.begin(), names.end(), [&](Expr p) { return p->name == value; });
  };
  const auto consumer = std::find_if(found, program.definitions.end(), reads_value);
  if (data == nullptr || is_output(program, value) || consumer == program.definitions.end()) return false;
  if (program.withheld.count(reads[0]->name) != 0)
    program.withheld[value];  // its hash becomes known when a step states it
  program.constants[value] = data->reshaped(shape_of(term->type));

  ProgramStep step = replayed_step(std::string(constant_shape_step), *found);
  step.layer = layer_name(*consumer);
  step.note = value + " is a constant";
  step.absorbed = found->layers;
  step.constants = {step_constant(program, value)};
  program.steps.push_back(std::move(step));
  consumer->layers.insert(consumer->layers.end(), found->layers.begin(), found->layers.end());
  program.definitions.erase(found);
  const std::string& from = reads[0]->name;
  if (use_counts(program).count(from) == 0) {
    program.constants.erase(from);
    program.withheld.erase(from);
  }
  return true;
}

void fold_constant_shapes(Program& program) {
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) values.push_back(definition.value);
  for (const std::string& value : values) fold_constant_shape(program, value);
}

}  // namespace hoist
