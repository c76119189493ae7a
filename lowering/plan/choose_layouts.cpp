// The pass "choose-layouts": orders of dimensions that differ from the rule for images become attributes of the
// program.
#include <algorithm>

#include "ir/target/machine.h"
#include "lowering/fusion/outline.h"
#include "lowering/layout/orders.h"
#include "lowering/plan/rows.h"
#include "lowering/terms/statements.h"

namespace hoist {
namespace {

bool has_order(const ScheduleScript& script) { return !script.order.empty(); }

// The reason why the value cannot be stored in a user's order; "" if it can.
std::string why_not_stored(const Program& program, const Definition& definition) {
  const std::string& value = definition.value;
  const Type type = definition.expression->type;
  if (is_output(program, value)) return "outputs of the model are stored as in ONNX";
  if (values_on_host(program).count(value) != 0) return "values that the host reads or writes are stored as in ONNX";
  if (!type->is_array() || !leaf_of(type)->is_scalar() || is_packed(leaf_of(type)->scalar))
    return "tuples, scalars and packed values have no order of dimensions";
  if (count_statements(definition.expression) > 0) return "a fused launch keeps the order that it was chosen for";
  for (const Definition& whole : program.definitions) {
    if (std::find(whole.parts.begin(), whole.parts.end(), value) != whole.parts.end())
      return "a part of a concatenation has the order of the whole, which the layer " + layer_name(whole) + " computes";
  }
  return {};
}

// Stores values in the orders of the user's steps, before the others are chosen; returns these values.
Result<std::set<std::string>> pin_orders(Program& program, const std::vector<ScheduleScript>& steps) {
  HOIST_TRY(const auto pinned, find_scripted(program, steps, has_order));
  Diagnostics problems;
  std::set<std::string> values;
  for (const auto& [value, script] : pinned) {
    values.insert(value);
    Definition& definition = *find_definition(program, value);
    const std::string where = script->where + ":" + std::to_string(script->order_line);
    if (const std::string reason = why_not_stored(program, definition); !reason.empty())
      problems.push_back({where, reason, "leave out the line `stored`"});
    else if (const auto stored = store_in_order(program, definition, script->order); !stored.ok())
      problems.push_back({where, stored.errors()[0].what, stored.errors()[0].hint});
  }
  if (!problems.empty()) return problems;
  return values;
}

}  // namespace

bool wants_layouts(const PassOptions& options) {
  return options.layouts == LayoutChoice::cost || std::any_of(options.steps.begin(), options.steps.end(), has_order);
}

Result<Nothing> choose_layouts(LoweredModel& model, const PassOptions& options) {
  Program& program = model.program;
  HOIST_TRY(const std::set<std::string> pinned, pin_orders(program, options.steps));
  if (options.layouts != LayoutChoice::cost || !has_load_costs(options.profile)) return Nothing{};
  const Orders chosen = choose_orders(program, options.profile, pinned);
  for (Definition& definition : program.definitions) {
    const ChosenOrder& choice = chosen.values.at(definition.value);
    if (!choice.is_by_rule) HOIST_TRY_VOID(store_in_order(program, definition, choice.order));
  }
  for (const auto& [reader, choice] : chosen.values) {
    for (const ChosenOrder::Copy& copy : choice.copies)
      HOIST_TRY_VOID(copy_in_order(program, reader, copy.operand, copy.order));
  }
  return Nothing{};
}

Result<Nothing> replay_choose_layouts(Program& program, Definition& definition, const ProgramStep& step) {
  const auto order = step.parameters.find("order");
  HOIST_TRY(const DimensionOrder dimensions, parse_order(order == step.parameters.end() ? "" : order->second));
  const auto copied = step.parameters.find("copied");
  if (copied == step.parameters.end()) return store_in_order(program, definition, dimensions);
  return copy_in_order(program, std::string(definition.value), copied->second, dimensions);
}

}  // namespace hoist
