#include "ir/program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/text/program_text.h"

namespace hoist {
namespace {

Type defined_type(const Program& program, const Definition& d) {
  return d.reads ? program.storage.at(d.value).logical : d.expression->type;
}

}  // namespace

bool same_program(const Program& a, const Program& b) {
  auto same_control = [](const Control& x, const Control& y) {
    return x.kind == y.kind && x.value == y.value && x.layers == y.layers && x.condition == y.condition &&
           x.trips == y.trips && x.next == y.next && x.most == y.most && x.fails == y.fails && x.given() == y.given() &&
           x.wanted() == y.wanted();
  };
  return std::equal(a.controls.begin(), a.controls.end(), b.controls.begin(), b.controls.end(), same_control) &&
         a.name == b.name && a.sizes == b.sizes && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.states == b.states && a.extents == b.extents && a.constants == b.constants &&
         a.definitions == b.definitions && a.bounded == b.bounded && a.storage == b.storage && a.items == b.items;
}

Type type_of(const Tensor& tensor) {
  Type t = scalar_type(tensor.scalar());
  for (size_t i = tensor.shape().size(); i-- > 0;) t = array_type(tensor.shape()[i], t);
  return t;
}

std::map<std::string, Type> value_types(const Program& program) {
  std::map<std::string, Type> types;
  for (const auto& [name, type] : program.inputs) types[name] = type;
  for (const auto& [name, tensor] : program.constants) types[name] = type_of(tensor);
  for (const Definition& d : program.definitions) types[d.value] = defined_type(program, d);
  return types;
}

std::vector<std::string> values_read(const Definition& definition) {
  if (definition.reads) return *definition.reads;
  std::vector<std::string> out;
  for (Expr p : parameters_of(definition.expression)) out.push_back(p->name);
  return out;
}

Type type_of(const ValueInfo& info) {
  Type t = scalar_type(info.scalar);
  for (size_t i = info.shape.size(); i-- > 0;) t = array_type(info.shape[i], t);
  return t;
}

ValueInfo value_info(const std::string& name, Type type) { return {name, leaf_of(type)->scalar, shape_of(type)}; }

std::vector<ValueInfo> input_infos(const Program& program) {
  std::vector<ValueInfo> out;
  for (size_t i = 0; i < model_input_count(program); ++i)
    out.push_back(value_info(program.inputs[i].first, program.inputs[i].second));
  return out;
}

const std::array<Control::OneValue, 5> Control::one_values = {{{"condition", &Control::condition, Scalar::boolean},
                                                               {"trips", &Control::trips, Scalar::i64},
                                                               {"number", &Control::number, Scalar::i64},
                                                               {"next", &Control::next, Scalar::boolean},
                                                               {"count", &Control::count, Scalar::i64}}};

std::vector<std::string> Control::given() const {
  std::vector<std::string> out;
  if (!number.empty()) out.push_back(number);
  for (const Carried& each : carried) out.insert(out.end(), {each.before, each.result});
  for (const Rows& each : rows) out.push_back(each.result);
  if (!count.empty()) out.push_back(count);
  for (const Choice& each : choices) out.push_back(each.result);
  return out;
}

std::vector<std::string> Control::wanted() const {
  std::vector<std::string> out;
  for (const std::string* value : {&condition, &trips, &next}) {
    if (!value->empty()) out.push_back(*value);
  }
  for (const Carried& each : carried) out.insert(out.end(), {each.initial, each.after});
  for (const Rows& each : rows) out.push_back(each.row);
  for (const Choice& each : choices) out.insert(out.end(), {each.yes, each.no});
  return out;
}

size_t model_input_count(const Program& program) { return input_count(program) - program.states.size(); }

size_t input_count(const Program& program) {
  size_t count = program.inputs.size();
  for (const Control& control : program.controls) count -= control.given().size();
  return count;
}

std::vector<std::string> state_outputs(const Program& program) {
  std::vector<std::string> out;
  for (const StateValue& state : program.states) {
    out.push_back(state.next);
    if (!state.initial.empty()) out.push_back(state.initial);
  }
  return out;
}

size_t output_count(const Program& program) {
  size_t count = program.outputs.size();
  for (const Control& control : program.controls) count -= control.wanted().size();
  return count;
}

std::vector<ValueInfo> output_infos(const Program& program) {
  const std::map<std::string, Type> types = value_types(program);
  std::vector<ValueInfo> out;
  for (size_t i = 0; i < model_output_count(program); ++i)
    out.push_back(value_info(program.outputs[i], types.at(program.outputs[i])));
  return out;
}

size_t model_output_count(const Program& program) {
  std::set<std::string> counts;
  for (const DynamicExtent& extent : program.extents) counts.insert(extent.count);
  return output_count(program) - counts.size() - state_outputs(program).size();
}

Result<std::vector<Tensor>> cut_outputs(const Program& program, std::vector<Tensor> outputs) {
  HOIST_CHECK(outputs.size() == program.outputs.size(), "one tensor for each output");
  for (const DynamicExtent& extent : program.extents) {
    const auto place = [&](const std::string& name) {
      return static_cast<size_t>(std::find(program.outputs.begin(), program.outputs.end(), name) -
                                 program.outputs.begin());
    };
    const int64_t count = outputs[place(extent.count)].integer_at(0);
    for (size_t i = 0; i < model_output_count(program); ++i) {
      if (program.outputs[i] != extent.value) continue;
      const int64_t most = outputs[i].shape()[static_cast<size_t>(extent.dimension)];
      if (count < 0 || count > most) return wrong_extent(extent.value, extent.dimension, count, most);
      outputs[i] = first_elements(outputs[i], static_cast<size_t>(extent.dimension), count);
    }
  }
  outputs.resize(model_output_count(program));
  return outputs;
}

Diagnostic wrong_extent(const std::string& output, int64_t dimension, int64_t count, int64_t most) {
  return {"output " + output,
          fmt::format("has {} elements along dimension {}, and its capacity is {}", count, dimension, most),
          "an input that determines a size is too large or negative"};
}

bool is_definition(const Program& program, const std::string& value) {
  return find_definition(program, value) != nullptr;
}

const Tensor* find_constant(const Program& program, const std::string& value) {
  const auto found = program.constants.find(value);
  return found == program.constants.end() ? nullptr : &found->second;
}

bool is_output(const Program& program, const std::string& value) {
  return std::find(program.outputs.begin(), program.outputs.end(), value) != program.outputs.end();
}

Type find_type(const Program& program, const std::string& value) {
  if (const Tensor* constant = find_constant(program, value)) return type_of(*constant);
  if (const Definition* definition = find_definition(program, value)) return defined_type(program, *definition);
  for (const auto& [name, type] : program.inputs) {
    if (name == value) return type;
  }
  return nullptr;
}

std::map<std::string, int> use_counts(const Program& program) {
  std::map<std::string, int> uses;
  for (const Definition& d : program.definitions) {
    for (const std::string& value : values_read(d)) ++uses[value];
  }
  for (const std::string& output : program.outputs) ++uses[output];
  return uses;
}

void add_layers(std::vector<std::string>& layers, const std::vector<std::string>& more) {
  for (const std::string& layer : more) {
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
}

const Definition* find_definition(const Program& program, const std::string& value) {
  for (const Definition& definition : program.definitions) {
    if (definition.value == value) return &definition;
  }
  return nullptr;
}

Definition* find_definition(Program& program, const std::string& value) {
  return const_cast<Definition*>(find_definition(std::as_const(program), value));
}

const std::string& layer_name(const Definition& definition) {
  return definition.layers.empty() ? definition.value : definition.layers.front();
}

ProgramStep replayed_step(const std::string& rule) {
  ProgramStep step;
  step.rule = rule;
  step.replays = true;
  return step;
}

ProgramStep replayed_step(const std::string& rule, const Definition& definition) {
  ProgramStep step = replayed_step(rule);
  step.value = definition.value;
  step.layer = layer_name(definition);
  return step;
}

StepConstant step_constant(const Program& program, const std::string& name, bool with_values) {
  constexpr int64_t few = 16;
  const Tensor& tensor = program.constants.at(name);
  StepConstant out{name, type_of(tensor), {}, std::nullopt};
  if (auto withheld = program.withheld.find(name); withheld != program.withheld.end()) {
    out.hash = withheld->second;
    return out;
  }
  out.hash = constant_hash(tensor);
  if (with_values || tensor.size() <= few) out.value = tensor;
  return out;
}

void remove_unused(Program& program) {
  std::set<std::string> needed(program.outputs.begin(), program.outputs.end());
  for (size_t i = program.definitions.size(); i-- > 0;) {
    if (needed.count(program.definitions[i].value) == 0) continue;
    for (Expr p : parameters_of(program.definitions[i].expression)) needed.insert(p->name);
  }
  auto unused = [&](const Definition& d) { return needed.count(d.value) == 0; };
  program.definitions.erase(std::remove_if(program.definitions.begin(), program.definitions.end(), unused),
                            program.definitions.end());
  auto unread = [&](const auto& entry) { return needed.count(entry.first) == 0; };
  std::erase_if(program.constants, unread);
  std::erase_if(program.withheld, unread);
}

ValueNames::ValueNames(const Program& program) {
  for (const auto& [name, type] : program.inputs) take(name);
  for (const auto& [name, tensor] : program.constants) take(name);
  for (const Definition& definition : program.definitions) take(definition.value);
  for (const ModelLayer& layer : program.layers) take(layer.name);
  for (const Definition& definition : program.definitions)
    taken_.insert(definition.layers.begin(), definition.layers.end());
}

std::string ValueNames::make(std::string wanted) {
  while (!taken_.insert(wanted).second) wanted += "_";
  return wanted;
}

}  // namespace hoist
