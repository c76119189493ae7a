#include "ir/operators/control/appended_states.h"

#include "ir/operators/dynamic/shape_values.h"
#include "ir/program/onnx_type.h"

namespace hoist::operators {
namespace {

void count_reads(const NamedBody& body, std::map<std::string, int>& reads) {
  for (const NamedCall& call : body.calls) {
    for (const std::string& input : call.inputs) ++reads[input];
    for (const NamedBody& inner : call.bodies) count_reads(inner, reads);
  }
  for (const std::string& output : body.outputs) ++reads[output];
}

}  // namespace

bool changes_nothing(const NamedCall& call, Scalar scalar) {
  if (!call.domain.empty() || call.inputs.size() != 1) return false;
  const auto to = scalar_of_onnx_type(integer_of(call, "to", 0));
  return call.operation == "Identity" || (call.operation == "Cast" && to == scalar);
}

Makers makers_of(const NamedBody& body) {
  Makers out;
  for (const NamedCall& call : body.calls) {
    for (const std::string& output : call.outputs) out[output] = &call;
  }
  return out;
}

std::optional<Appended> appended_state(const NamedBody& body, size_t state, Scalar scalar) {
  std::map<std::string, int> reads;
  count_reads(body, reads);
  const Makers makers = makers_of(body);
  Appended out{state, 0, {}, {}};
  const std::string& before = body.inputs[first_loop_state + state];
  // Follows copies back to the call, whose result has no other uses.
  const auto origin = [&](std::string name) {
    for (;;) {
      const auto maker = makers.find(name);
      if (name == before || maker == makers.end() || reads[name] != 1 || !changes_nothing(*maker->second, scalar))
        return name;
      out.values.insert(name);
      name = maker->second->inputs[0];
    }
  };
  const std::string joined = origin(body.outputs[1 + state]);
  const auto maker = makers.find(joined);
  if (maker == makers.end() || reads[joined] != 1 || reads[before] != 1) return std::nullopt;
  const NamedCall& call = *maker->second;
  if (call.operation != "Concat" || !call.domain.empty() || call.inputs.size() < 2) return std::nullopt;
  if (origin(call.inputs[0]) != before) return std::nullopt;
  out.values.insert(joined);
  out.axis = integer_of(call, "axis", 1);
  out.parts.assign(call.inputs.begin() + 1, call.inputs.end());
  return out;
}

std::optional<NamedBody> with_array(const NamedBody& body, size_t state) {
  std::map<std::string, int> reads;
  count_reads(body, reads);
  const Makers makers = makers_of(body);
  const std::string& before = body.inputs[first_loop_state + state];
  std::map<std::string, std::string> added;  // the appended value, by the list that contains it
  std::string name = body.outputs[1 + state];
  if (reads[before] != 1) return std::nullopt;
  while (name != before) {
    const auto maker = makers.find(name);
    if (maker == makers.end() || reads[name] != 1 || !maker->second->domain.empty()) return std::nullopt;
    const NamedCall& call = *maker->second;
    const bool appends = call.operation == "SequenceInsert" && call.inputs.size() == 2;
    if (!appends && call.operation != "Identity") return std::nullopt;
    if (appends) added[name] = call.inputs[1];
    name = call.inputs[0];
  }
  NamedBody out = body;
  out.calls.clear();
  for (const NamedCall& call : body.calls) {
    const auto member = call.outputs.empty() ? added.end() : added.find(call.outputs[0]);
    if (member == added.end()) {
      out.calls.push_back(call);
      continue;
    }
    std::string row = call.outputs[0] + "/row";
    while (makers.count(row) != 0) row += "_";
    out.calls.push_back(
        {call.name + "/row", "Unsqueeze", "", {{"axes", std::vector<int64_t>{0}}}, {member->second}, {row}});
    out.calls.push_back({call.name, "Concat", "", {{"axis", int64_t{0}}}, {call.inputs[0], row}, call.outputs});
  }
  return out;
}

NamedCall with_rows(NamedCall loop, const Appended& appended, const std::string& rows) {
  NamedBody& body = loop.bodies[0];
  std::string part = appended.parts[0];
  std::vector<NamedCall> calls;
  for (const NamedCall& call : body.calls) {
    if (call.outputs.empty() || appended.values.count(call.outputs[0]) == 0) {
      calls.push_back(call);
    } else if (call.operation == "Concat" && appended.parts.size() > 1) {
      NamedCall together = call;
      together.inputs = appended.parts;
      part = together.outputs[0];
      calls.push_back(std::move(together));
    }
  }
  loop.outputs.resize(body.outputs.size() - 1);
  body.calls = std::move(calls);
  erase_at(body.inputs, first_loop_state + appended.state);
  erase_at(body.outputs, 1 + appended.state);
  body.outputs.push_back(part);
  erase_at(loop.inputs, first_loop_state + appended.state);
  erase_at(loop.outputs, appended.state);
  loop.outputs.push_back(rows);
  return loop;
}

}  // namespace hoist::operators
