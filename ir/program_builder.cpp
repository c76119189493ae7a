#include "ir/program_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/evaluate.h"
#include "ir/operators/operators.h"

namespace hoist {
namespace {

// Lists of i64 and of f32, which is what shapes, axes and scales are, read better than tensors.
Attribute attribute_of(const Tensor& value) {
  if (value.shape().size() != 1 || value.size() > 64) return value;
  if (value.scalar() == Scalar::i64) return value.as_integers();
  if (value.scalar() != Scalar::f32) return value;
  std::vector<double> numbers;
  for (int64_t i = 0; i < value.size(); ++i) numbers.push_back(value.float_at(i));
  return numbers;
}

}  // namespace

OperatorCall call_of(const NamedCall& named, int64_t version) {
  OperatorCall call;
  call.domain = named.domain == "ai.onnx" ? "" : named.domain;
  call.name = named.operation;
  call.version = version;
  call.results = std::max<int64_t>(static_cast<int64_t>(named.outputs.size()), 1);
  call.attributes = named.attributes;
  return call;
}

ProgramBuilder::ProgramBuilder(std::string name, int64_t version) {
  program_.name = std::move(name);
  program_.version = version;
}

void ProgramBuilder::add_input(const ValueInfo& input) {
  const Type type = type_of(input);
  program_.inputs.emplace_back(input.name, type);
  types_[input.name] = type;
  names_.take(input.name);
}

void ProgramBuilder::add_constant(const std::string& name, Tensor value) {
  types_[name] = type_of(value);
  names_.take(name);
  program_.constants[name] = std::move(value);
}

void ProgramBuilder::expect(const ValueInfo& value) { expected_[value.name] = value; }

void ProgramBuilder::compare_expected(const std::string& value, Type type, const std::string& layer) {
  auto place = expected_.find(value);
  if (place == expected_.end() || !leaf_of(type)->is_scalar()) return;
  const std::vector<int64_t> shape = shape_of(type);
  const std::vector<int64_t>& expected = place->second.shape;
  bool agrees = shape.size() == expected.size() && place->second.scalar == leaf_of(type)->scalar;
  for (size_t i = 0; agrees && i < shape.size(); ++i) agrees = expected[i] < 0 || expected[i] == shape[i];
  if (agrees) return;
  program_.notes.push_back(fmt::format("{}: onnx's shape inference says [{}]{} for {}, hoist computes {}", layer,
                                       fmt::join(expected, "]["), row(place->second.scalar).name, value, text(type)));
}

void ProgramBuilder::add_call(const NamedCall& named, const std::vector<std::string>& absorbed) {
  program_.layers.push_back({named.name, named.operation});
  reserve({named.outputs.begin(), named.outputs.end()});
  auto fail = [&](Diagnostics problems) {
    for (Diagnostic& d : problems) {
      if (d.where.empty()) d.where = named.name;
      problems_.push_back(std::move(d));
    }
    failed_.insert(named.outputs.begin(), named.outputs.end());
  };
  Diagnostics unknown;
  bool reachable = true;
  for (const std::string& name : named.inputs) {
    if (failed_.count(name) != 0)
      reachable = false;
    else if (!name.empty() && types_.count(name) == 0)
      unknown.push_back({named.name, "reads " + name + ", which nothing defines", ""});
  }
  for (const std::string& name : named.outputs) {
    if (types_.count(name) != 0) unknown.push_back({named.name, "defines " + name + ", which is defined already", ""});
  }
  if (!reachable || !unknown.empty()) return fail(unknown);
  auto call = call_for(named);
  if (!call) return fail(call.errors());
  const int64_t results = (*call)->operation->results;
  if (results == 1) return define(named.outputs[0], *call, named.name, absorbed);
  const std::string all = names_.make(named.name + ".results");
  define(all, *call, named.name, absorbed);
  for (int64_t i = 0; i < results; ++i) {
    const std::string& value = named.outputs[static_cast<size_t>(i)];
    if (!value.empty()) define(value, get(i, parameter(all, (*call)->type)), named.name, absorbed);
  }
}

Result<Expr> ProgramBuilder::call_for(const NamedCall& named) {
  OperatorCall call = call_of(named, program_.version);
  std::vector<Expr> operands;
  for (const std::string& name : named.inputs)
    operands.push_back(name.empty() ? nullptr : parameter(name, types_.at(name)));
  if (const OperatorRow* row = find_operator(call.domain, call.name, call.version)) {
    // Outputs that nobody wants at the end of the list are none.
    while (!row->counts_results && call.results > 1 && named.outputs[static_cast<size_t>(call.results) - 1].empty())
      --call.results;
    for (const ShapeInput& input : shape_inputs(*row)) {
      if (input.place >= operands.size() || operands[input.place] == nullptr) continue;
      HOIST_TRY(const Tensor* value, known_value(named.inputs[input.place]));
      if (value == nullptr) continue;  // the definition says that it has to be known
      call.attributes[std::string(input.name)] = attribute_of(*value);
      operands[input.place] = nullptr;
    }
  }
  return operator_call(std::move(call), operands);
}

void ProgramBuilder::define(const std::string& value, Expr e, const std::string& layer,
                            const std::vector<std::string>& absorbed) {
  types_[value] = e->type;
  compare_expected(value, e->type, layer);
  // The definition counts: the shape of a value is known where the value is not.
  const Expr unfolded = without_operator_calls(e);
  const std::vector<Expr> reads = parameters_of(unfolded);
  const bool known = std::all_of(reads.begin(), reads.end(), [&](Expr p) {
    return program_.constants.count(p->name) != 0 || known_.count(p->name) != 0;
  });
  if (known) known_[value] = {program_.definitions.size(), unfolded};
  std::vector<std::string> computed = {layer};
  computed.insert(computed.end(), absorbed.begin(), absorbed.end());
  program_.definitions.push_back({value, computed, e});
}

// The value of what reads nothing but constants, which becomes a constant; null where it does not.
Result<const Tensor*> ProgramBuilder::known_value(const std::string& value) {
  if (auto constant = program_.constants.find(value); constant != program_.constants.end()) return &constant->second;
  auto last = known_.find(value);
  if (last == known_.end() || !leaf_of(types_.at(value))->is_scalar()) return nullptr;
  // What it needs, back from the value, then forwards.
  std::map<size_t, Expr> needed = {{last->second.place, last->second.term}};
  for (auto at = needed.rbegin(); at != needed.rend(); ++at) {
    for (Expr p : parameters_of(at->second)) {
      if (auto inner = known_.find(p->name); inner != known_.end())
        needed.emplace(inner->second.place, inner->second.term);
    }
  }
  std::map<std::string, Expr> tuples;
  for (const auto& [place, term] : needed) {
    const Definition& definition = program_.definitions[place];
    if (program_.constants.count(definition.value) != 0) continue;
    const Expr e = substitute_parameters(term, tuples);
    if (!leaf_of(e->type)->is_scalar()) {
      tuples[definition.value] = e;
      continue;
    }
    Bindings bindings;
    for (Expr p : parameters_of(e)) bindings[p->name] = program_.constants.at(p->name);
    HOIST_TRY(program_.constants[definition.value], evaluate(e, bindings));
    program_.evaluated.insert(program_.evaluated.end(), definition.layers.begin(), definition.layers.end());
  }
  return &program_.constants.at(value);
}

void ProgramBuilder::add_output(const std::string& value) {
  if (types_.count(value) == 0 && failed_.count(value) == 0)
    problems_.push_back({value, "a model output that nothing defines", ""});
  program_.outputs.push_back(value);
}

Result<Program> ProgramBuilder::finish() {
  if (!problems_.empty()) return problems_;
  // What has become a constant on the way needs no definition, and what has become an attribute is read no more.
  std::erase_if(program_.definitions, [&](const Definition& d) { return program_.constants.count(d.value) != 0; });
  const std::map<std::string, int> uses = use_counts(program_);
  std::erase_if(program_.constants, [&](const auto& constant) { return uses.count(constant.first) == 0; });
  return std::move(program_);
}

}  // namespace hoist
