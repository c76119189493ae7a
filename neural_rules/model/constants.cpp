#include "neural_rules/model/constants.h"

#include <set>

#include "neural_rules/model/flow.h"

namespace hoist {
namespace {

// Does the term give the elements of an array in the same order?
bool is_reshape(Expr e) {
  return e->type->is_array() && !any_node(e, [](Expr n) {
           return n->pattern != Pattern::parameter && n->pattern != Pattern::split && n->pattern != Pattern::join &&
                  n->pattern != Pattern::map && n->pattern != Pattern::function && n->pattern != Pattern::bound &&
                  n->pattern != Pattern::identity;
         });
}

}  // namespace

void fold_constant_shapes(Program& program) {
  const Flow flow = flow_of(program);
  std::set<std::string> gone;
  for (const NamedCall& call : flow.calls) {
    const std::string& value = call.outputs[0];
    const auto definition = flow.definitions.find(value);
    if (call.outputs.size() != 1 || definition == flow.definitions.end() || !is_reshape(definition->second)) continue;
    const std::vector<Expr> reads = parameters_of(definition->second);
    const Tensor* data = reads.size() == 1 ? find_constant(program, reads[0]->name) : nullptr;
    auto readers = flow.readers.find(value);
    if (data == nullptr || flow.outputs.count(value) != 0 || readers == flow.readers.end()) continue;
    Tensor reshaped = data->reshaped(shape_of(definition->second->type));
    program.constants[value] = std::move(reshaped);
    gone.insert(value);
    const size_t first = readers->second[0];
    const std::string& reader = flow.calls[first].name;
    program.definitions[flow.places[first]].layers.push_back(call.name);
    program.steps.push_back({"constant-shape", reader, RuleClass::exact, value + " is a constant", {call.name}});
  }
  std::erase_if(program.definitions, [&](const Definition& d) { return gone.count(d.value) != 0; });
  const std::map<std::string, int> uses = use_counts(program);
  std::erase_if(program.constants, [&](const auto& constant) { return uses.count(constant.first) == 0; });
}

}  // namespace hoist
