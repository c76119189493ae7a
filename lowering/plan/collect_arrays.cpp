#include <algorithm>
#include <functional>

#include "ir/evaluate/evaluate.h"
#include "ir/text/program_text.h"
#include "lowering/plan/rows.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

PlanControl control_over(const Control& control, bool reads_number,
                         const std::function<int(const std::string&)>& array) {
  PlanControl out;
  const auto given = [&](const std::string& value) { return value.empty() ? -1 : array(value); };
  out.is_loop = control.kind == Control::Kind::loop;
  out.name = control.value;
  out.layers = control.layers;
  out.condition = given(control.condition);
  out.trips = given(control.trips);
  out.next = given(control.next);
  if (reads_number) out.number = array(control.number);
  out.most = control.most;
  out.fails = control.fails;
  out.count = given(control.count);
  // A row may be a value that the iteration received, so it moves before carried values are overwritten.
  for (const Control::Rows& rows : control.rows) out.after.push_back({array(rows.row), array(rows.result), true});
  for (const Control::Carried& carried : control.carried) {
    out.before.push_back({array(carried.initial), array(carried.result)});
    if (carried.after != carried.before) out.after.push_back({array(carried.after), array(carried.result)});
  }
  for (const Control::Choice& choice : control.choices) {
    out.after.push_back({array(choice.yes), array(choice.result)});
    out.otherwise.push_back({array(choice.no), array(choice.result)});
  }
  return out;
}

// An output that the model names twice is two outputs of the plan.
void add_extent(LoweredModel& model, const DynamicExtent& extent) {
  const std::vector<std::string>& names = model.program.outputs;
  const auto count = static_cast<int>(std::find(names.begin(), names.end(), extent.count) - names.begin());
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == extent.value)
      model.extents.push_back({static_cast<int>(i), static_cast<int>(extent.dimension), count});
  }
}

using StorageByArray = std::map<std::string, const Storage*>;

// A program from text may lack the storage of any value.
Result<Nothing> check_storage(const Program& program) {
  std::vector<std::string> values = program.outputs;
  for (const auto& [name, type] : program.inputs) values.push_back(name);
  for (const Definition& definition : program.definitions) values.push_back(definition.value);
  for (const std::string& value : values) {
    if (program.storage.count(value) == 0) return Diagnostic{value, "has no storage", "run choose-storage before it"};
  }
  return Nothing{};
}

// Large constants do not stay in memory together with the arrays that are packed from them.
bool is_large(const Tensor& constant) { return constant.bytes().size() >= size_t{1} << 20; }

void withhold(Program& program, const std::string& name, const std::string& hash) {
  Tensor& constant = program.constants.at(name);
  program.withheld.emplace(name, hash);
  constant = Tensor(constant.scalar(), constant.shape());  // zeros that take no memory
}

// Only the terms of this program are read from here on.
void withhold_constants(Program& original) {
  for (const auto& [name, constant] : original.constants) {
    if (is_large(constant)) withhold(original, name, "");
  }
}

// Constants as packed, consecutive arrays. Stored as they are in the model, they share its bytes.
Result<Nothing> pack_weights(LoweredModel& model, const StorageByArray& by_array, bool with_values) {
  if (with_values) withhold_constants(model.original);
  for (PlanArray& array : model.arrays) {
    if (array.place != Place::weights) continue;
    const Storage& s = *by_array.at(array.name);
    const Tensor& constant = model.program.constants.at(array.name);
    const Expr own = parameter("w", s.logical), packed = pack(s, own);
    if (packed == own) {
      array.constant = constant;
    } else if (with_values) {
      HOIST_TRY(array.constant, evaluate(packed, {{"w", constant}}));
      if (is_large(constant)) withhold(model.program, array.name, constant_hash(constant));
    } else {
      array.constant = Tensor(array.scalar, shape_of(packed->type));
    }
  }
  place_weights(model);
  return Nothing{};
}

}  // namespace

void place_weights(LoweredModel& model) {
  int64_t bytes = 0;
  for (PlanArray& array : model.arrays) {
    if (array.place != Place::weights) continue;
    array.offset = bytes;
    bytes += round_up(static_cast<int64_t>(array.constant.bytes().size()), 64);
  }
}

Result<Nothing> collect_arrays(LoweredModel& model, const PassOptions& options) {
  const Program& program = model.program;
  HOIST_TRY_VOID(check_storage(program));
  StorageByArray by_array;
  for (const auto& [value, storage] : program.storage) by_array.emplace(storage.array, &storage);
  std::map<std::string, int> index;
  // The first place that is given for an array counts.
  const auto add = [&](const std::string& name, Place place) {
    const auto [found, fresh] = index.emplace(name, static_cast<int>(model.arrays.size()));
    if (!fresh) return found->second;
    const Storage& s = *by_array.at(name);
    PlanArray array;
    array.name = name;
    array.scalar = leaf_of(s.logical)->scalar;
    array.shape = s.array_shape();
    array.place = place;
    if (place == Place::cleared) array.fill = *s.border;
    model.arrays.push_back(std::move(array));
    return found->second;
  };
  const auto is_constant = [&](const std::string& name) { return program.constants.count(name) != 0; };
  const auto argument = [&](const std::string& name, bool may_be_constant) {
    return add(name, may_be_constant && is_constant(name)    ? Place::weights
                     : by_array.at(name)->border.has_value() ? Place::cleared
                                                             : Place::arena);
  };
  for (size_t i = 0; i < input_count(program); ++i) model.inputs.push_back(add(program.inputs[i].first, Place::input));
  for (size_t i = 0; i < output_count(program); ++i) {
    const std::string& name = program.outputs[i];
    model.outputs.push_back(add(name, is_constant(name) ? Place::weights : Place::output));
  }
  for (const StateValue& state : program.states) {
    model.states.push_back({index.at(state.name), index.at(state.next), -1});
    if (!state.initial.empty()) model.states.back().initial = index.at(state.initial);
  }
  for (const DynamicExtent& extent : program.extents) add_extent(model, extent);
  for (size_t i = 0; i < model.steps.size(); ++i) {
    const Definition& kernel = program.definitions[i];
    for (Expr p : parameters_of(kernel.expression)) model.steps[i].arguments.push_back(argument(p->name, true));
    model.steps[i].arguments.push_back(argument(program.storage.at(kernel.value).array, false));
  }
  const std::map<std::string, int> uses = use_counts(program);
  for (const Control& control : program.controls) {
    model.controls.push_back(control_over(control, uses.count(control.number) != 0, [&](const std::string& value) {
      const std::string& array = program.storage.at(value).array;
      return add(array, is_constant(array) ? Place::weights : Place::arena);
    }));
  }
  return pack_weights(model, by_array, options.packs_weights);
}

}  // namespace hoist
