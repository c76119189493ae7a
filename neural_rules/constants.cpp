#include "neural_rules/constants.h"

#include <set>

#include "neural_rules/flow.h"

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

void fold_constant_shapes(Graph& graph) {
  const Flow flow = flow_of(graph);
  std::set<std::string> gone;
  for (const Layer& layer : graph.layers) {
    const std::string& value = layer.outputs[0];
    const auto definition = flow.definitions.find(value);
    if (layer.outputs.size() != 1 || definition == flow.definitions.end() || !is_reshape(definition->second)) continue;
    const std::vector<Expr> reads = parameters_of(definition->second);
    const Tensor* data = reads.size() == 1 ? constant_of(graph, reads[0]->name) : nullptr;
    auto readers = flow.readers.find(value);
    if (data == nullptr || flow.outputs.count(value) != 0 || readers == flow.readers.end()) continue;
    Tensor reshaped = data->reshaped(shape_of(definition->second->type));
    graph.constants[value] = std::move(reshaped);
    gone.insert(layer.name);
    const std::string& reader = graph.layers[readers->second[0]].name;
    graph.steps.push_back({"constant-shape", reader, RuleClass::exact, value + " is a constant", {layer.name}});
  }
  std::erase_if(graph.layers, [&](const Layer& layer) { return gone.count(layer.name) != 0; });
}

}  // namespace hoist
