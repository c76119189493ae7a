#include "frontend/model/deciding_inputs.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "ir/operators/operators.h"
#include "ir/operators/versions.h"

namespace hoist {
namespace {

// The inputs from whose values the outputs are computed. If a call reads only the shape of an operand, its definition
// does not read the operand.
std::set<std::string> inputs_after_outputs(const Program& program) {
  std::map<std::string, Expr> terms;
  for (const Definition& definition : program.definitions) terms[definition.value] = definition.expression;
  std::set<std::string> seen(program.outputs.begin(), program.outputs.end()), out;
  for (std::vector<std::string> left(seen.begin(), seen.end()); !left.empty();) {
    const std::string name = left.back();
    left.pop_back();
    for (const auto& [input, type] : program.inputs) {
      if (input == name) out.insert(name);
    }
    const auto term = terms.find(name);
    if (term == terms.end()) continue;
    for (Expr p : parameters_of(without_operator_calls(term->second))) {
      if (seen.insert(p->name).second) left.push_back(p->name);
    }
  }
  return out;
}

// The operands that a call reads, also in its bodies, whose values are among the given ones.
void add_reads(const NamedCall& call, std::set<std::string>& out) {
  out.insert(call.inputs.begin(), call.inputs.end());
  for (const NamedBody& body : call.bodies) {
    for (const NamedCall& inner : body.calls) add_reads(inner, out);
    out.insert(body.outputs.begin(), body.outputs.end());
  }
}

// Messages about a body name the layer first, also if the body has been inlined.
bool is_named(const std::set<std::string>& places, const NamedCall& call) {
  if (places.count(call.name) != 0) return true;
  if (call.bodies.empty()) return false;
  const auto any_begins = [&](const std::string& beginning) {
    const auto first = places.lower_bound(beginning);
    return first != places.end() && first->starts_with(beginning);
  };
  return any_begins(call.name + ", ") || any_begins(call.name + "/");
}

}  // namespace

std::set<std::string> deciding_inputs(Program header, const std::map<std::string, TensorList>& lists,
                                      const std::vector<NamedCall>& calls, const std::set<std::string>& places) {
  header.outputs.clear();
  std::set<std::string> missing, values;
  for (const auto& [name, type] : header.inputs) values.insert(name);
  std::vector<NamedCall> sound;
  for (const NamedCall& call : calls) {
    std::set<std::string> reads;
    add_reads(call, reads);
    const bool unreached =
        std::any_of(reads.begin(), reads.end(), [&](const std::string& name) { return missing.count(name) != 0; });
    const bool fails = is_named(places, call);
    if (!fails && !unreached) {
      sound.push_back(call);
      values.insert(call.outputs.begin(), call.outputs.end());
      continue;
    }
    missing.insert(call.outputs.begin(), call.outputs.end());
    missing.erase("");
    const std::string domain = call_of(call, header.version).domain;
    const std::string_view successor = domain.empty() ? successor_of(call.operation) : std::string_view();
    const OperatorRow* row =
        find_operator(domain, successor.empty() ? std::string_view(call.operation) : successor, header.version);
    if (unreached || row == nullptr) continue;
    // Unknown values may reach a body through any operand of the layer.
    if (!call.bodies.empty())
      std::copy_if(reads.begin(), reads.end(), std::back_inserter(header.outputs),
                   [&](const std::string& name) { return values.count(name) != 0; });
    for (const ShapeInput& input : shape_inputs(*row)) {
      if (input.place < call.inputs.size() && !call.inputs[input.place].empty())
        header.outputs.push_back(call.inputs[input.place]);
    }
  }
  if (header.outputs.empty()) return {};
  ProgramBuilder builder(header.name, header.version);
  for (const ValueInfo& input : input_infos(header)) builder.add_input(input);
  for (const auto& [name, value] : header.constants) builder.add_constant(name, value);
  for (const auto& [name, list] : lists) builder.add_list(name, list);
  for (const NamedCall& call : sound) builder.reserve({call.outputs.begin(), call.outputs.end()});
  for (const NamedCall& call : sound) builder.add_call(call);
  // The content of a list is known; only the values of its members are not.
  for (const std::string& output : header.outputs) {
    if (builder.is_tensor(output)) builder.add_output(output);
  }
  const Result<Program> program = builder.finish();
  return program.ok() ? inputs_after_outputs(*program) : std::set<std::string>();
}

}  // namespace hoist
