#include "neural_rules/rewrite/retrained_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "neural_rules/model/definition.h"

namespace hoist {
namespace {

// An operand of the layer's call, by its number among the operator's operands; null if it is omitted.
Expr operand_of(const Program& program, const std::string& layer, int64_t number) {
  const Definition* definition = find_layer(program, layer);
  if (definition == nullptr || definition->expression->pattern != Pattern::operator_call) return nullptr;
  const std::vector<int64_t>& operands = definition->expression->operation->operands;
  const auto found = std::find(operands.begin(), operands.end(), number);
  return found == operands.end() ? nullptr
                                 : definition->expression->children[static_cast<size_t>(found - operands.begin())];
}

// A parameter of steps.
const std::string everywhere_key = "everywhere";

// A constant, and the value of the definition that reads it.
struct Read {
  std::string by, constant;
};

// The stored numbers of the layer's weights, which dequantising and reshaping layers read.
std::optional<Read> stored_weights(const Program& program, const std::string& layer) {
  Expr e = operand_of(program, layer, 1);
  Read out;
  while (e != nullptr && e->pattern == Pattern::parameter) {
    if (find_constant(program, e->name) != nullptr) {
      out.constant = e->name;
      break;
    }
    const Definition* made = find_definition(program, e->name);
    if (made == nullptr || made->expression->children.empty()) return std::nullopt;
    out.by = made->value;
    e = made->expression->children[0];
  }
  return out.by.empty() || out.constant.empty() ? std::nullopt : std::optional(out);
}

std::string name_of(RetrainedPart part) {
  switch (part) {
    case RetrainedPart::weights:
      return "weights";
    case RetrainedPart::scales:
      return "scales";
    case RetrainedPart::bias:
      return "bias";
    case RetrainedPart::range:
      return "range";
  }
  return "";
}

// The scale of values, and the first layer that rounds to it: its result has another type than the scale.
std::optional<Read> stored_scale(const Program& program, const std::string& scale) {
  if (find_constant(program, scale) == nullptr) return std::nullopt;
  for (const Definition& definition : program.definitions) {
    const std::vector<Expr>& operands = definition.expression->children;
    if (definition.expression->pattern == Pattern::operator_call && operands.size() > 1 &&
        operands[1]->pattern == Pattern::parameter && operands[1]->name == scale &&
        leaf_of(definition.expression->type) != leaf_of(operands[1]->type))
      return Read{definition.value, scale};
  }
  return std::nullopt;
}

// The constant that a retrained one replaces.
std::optional<Read> stored_part(const Program& program, const RetrainedConstant& retrained) {
  if (retrained.part == RetrainedPart::bias) {
    const auto bias = bias_of(program, retrained.layer);
    return bias ? std::optional(Read{find_layer(program, retrained.layer)->value, *bias}) : std::nullopt;
  }
  if (retrained.part == RetrainedPart::range) return stored_scale(program, retrained.layer);
  std::optional<Read> out = stored_weights(program, retrained.layer);
  if (retrained.part == RetrainedPart::weights || !out) return out;
  const std::vector<Expr>& operands = find_definition(program, out->by)->expression->children;
  if (operands.size() < 2 || operands[1]->pattern != Pattern::parameter) return std::nullopt;
  out->constant = operands[1]->name;
  return find_constant(program, out->constant) == nullptr ? std::nullopt : out;
}

// `everywhere`: for all layers that read the constant.
void replace(Program& program, const Read& old, const std::string& name, Tensor value, bool everywhere) {
  const Type type = type_of(value);
  program.constants.emplace(name, std::move(value));
  for (Definition& definition : program.definitions) {
    if (everywhere || definition.value == old.by)
      definition.expression = substitute_parameters(definition.expression, {{old.constant, parameter(name, type)}});
  }
  if (use_counts(program).count(old.constant) != 0) return;
  program.constants.erase(old.constant);
  program.withheld.erase(old.constant);
}

}  // namespace

std::optional<std::string> bias_of(const Program& program, const std::string& layer) {
  const Expr bias = operand_of(program, layer, 2);
  if (bias == nullptr || bias->pattern != Pattern::parameter) return std::nullopt;
  const Tensor* constant = find_constant(program, bias->name);
  return constant != nullptr && constant->scalar() == Scalar::f32 ? std::optional(bias->name) : std::nullopt;
}

Result<Nothing> put_retrained(Program& program, const RetrainedWeights& weights) {
  for (const RetrainedConstant& retrained : weights) {
    const std::optional<Read> old = stored_part(program, retrained);
    const std::string what = name_of(retrained.part);
    if (!old) return Diagnostic{retrained.layer, "has no stored " + what + " that retraining could replace", ""};
    const Tensor& before = program.constants.at(old->constant);
    const bool is_range = retrained.part == RetrainedPart::range;
    const bool is_flat =
        (is_range || retrained.part == RetrainedPart::scales) && retrained.value.size() == before.size();
    const Tensor value = is_flat ? retrained.value.reshaped(before.shape()) : retrained.value;
    if (type_of(before) != type_of(value))
      return Diagnostic{
          retrained.layer,
          fmt::format("its retrained {} are {}, expected {}", what, text(type_of(value)), text(type_of(before))),
          "compile without the record to make another one"};
    ProgramStep step = replayed_step(std::string(retraining_step), *find_definition(program, old->by));
    if (!is_range) step.layer = retrained.layer;
    step.rule_class = RuleClass::neural;
    step.note = fmt::format("the {} after training with the rounding of the rules", what);
    const std::string name = ValueNames(program).make(fmt::format("{}/retrained_{}", retrained.layer, what));
    step.parameters = {{"constant", old->constant}, {"by", name}};
    if (is_range) step.parameters[everywhere_key] = "yes";
    replace(program, *old, name, value, is_range);
    step.constants.push_back(step_constant(program, name));
    program.steps.push_back(std::move(step));
  }
  return Nothing{};
}

Result<Nothing> repeat_retraining(Program& program, const ProgramStep& step) {
  const auto constant = step.parameters.find("constant"), by = step.parameters.find("by");
  const Definition* definition = find_definition(program, step.value);
  if (constant == step.parameters.end() || by == step.parameters.end() || definition == nullptr)
    return Diagnostic{"", "the step does not state the constant that it replaces", ""};
  const Tensor* old = find_constant(program, constant->second);
  const auto made = std::find_if(step.constants.begin(), step.constants.end(),
                                 [&](const StepConstant& of) { return of.name == by->second; });
  if (old == nullptr || made == step.constants.end() || made->type != type_of(*old) ||
      program.constants.count(made->name) != 0)
    return Diagnostic{"", "the step replaces a constant by one that does not fit", ""};
  Tensor value = made->value ? *made->value : Tensor(leaf_of(made->type)->scalar, shape_of(made->type));
  if (type_of(value) != made->type) return Diagnostic{"", "the step states a constant of another type", ""};
  replace(program, {step.value, constant->second}, made->name, std::move(value),
          step.parameters.contains(everywhere_key));
  if (!made->value) program.withheld[made->name] = made->hash;
  program.steps.push_back(step);
  return Nothing{};
}

}  // namespace hoist
