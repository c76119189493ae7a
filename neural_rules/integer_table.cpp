#include "neural_rules/integer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace hoist {
namespace {

constexpr int64_t table_size = 256;
constexpr int64_t onnx_i32 = 6;  // TensorProto.DataType

// Operators of one tensor (and constants), whose every element of the result depends on that element alone.
constexpr auto elementwise = std::to_array<std::string_view>({
    "Abs",       "Acos",      "Acosh",
    "Asin",      "Asinh",     "Atan",
    "Atanh",     "Ceil",      "Celu",
    "Clip",      "Cos",       "Cosh",
    "Elu",       "Erf",       "Exp",
    "Floor",     "Gelu",      "HardSigmoid",
    "HardSwish", "LeakyRelu", "Log",
    "Mish",      "Neg",       "Reciprocal",
    "Relu",      "Round",     "Selu",
    "Shrink",    "Sigmoid",   "Sign",
    "Sin",       "Sinh",      "Softplus",
    "Softsign",  "Sqrt",      "Swish",
    "Tan",       "Tanh",      "ThresholdedRelu",
});

struct Chain {
  std::vector<size_t> layers;  // dequantise, functions, quantise: places in the graph
};

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph) {
    for (const ValueInfo& output : graph.outputs) ++uses_[output.name];
    for (size_t i = 0; i < graph.layers.size(); ++i) {
      for (const std::string& input : graph.layers[i].inputs) {
        ++uses_[input];
        readers_[input] = i;
      }
    }
  }

  std::vector<Chain> run() const {
    std::vector<Chain> chains;
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      if (auto chain = from(i)) chains.push_back(*chain);
    }
    return chains;
  }

 private:
  static bool is(const Layer& layer, std::string_view operation) {
    return (layer.domain.empty() || layer.domain == "ai.onnx") && layer.operation == operation;
  }

  // All inputs after the first are left out or constants.
  bool others_known(const Layer& layer) const {
    return std::all_of(layer.inputs.begin() + 1, layer.inputs.end(),
                       [&](const std::string& name) { return name.empty() || constant_of(graph_, name) != nullptr; });
  }

  // One scale and one zero point for the whole tensor.
  bool is_per_tensor(const Layer& layer) const {
    if (layer.inputs.size() < 2 || !others_known(layer)) return false;
    return std::all_of(layer.inputs.begin() + 1, layer.inputs.end(),
                       [&](const std::string& name) { return name.empty() || constant_of(graph_, name)->size() == 1; });
  }

  const Tensor* zero_point(const Layer& layer) const {
    return layer.inputs.size() > 2 && !layer.inputs[2].empty() ? constant_of(graph_, layer.inputs[2]) : nullptr;
  }

 public:
  /// The integers that a dequantising layer reads; nothing where they have not eight bits, or nobody says what they
  /// are.
  std::optional<Scalar> input_of(const Layer& layer) const {
    std::optional<Scalar> found;
    if (const Tensor* zero = zero_point(layer)) found = zero->scalar();
    if (auto place = graph_.inferred.find(layer.inputs[0]); !found && place != graph_.inferred.end()) {
      found = place->second.scalar;
    }
    for (const ValueInfo& input : graph_.inputs) {
      if (!found && input.name == layer.inputs[0]) found = input.scalar;
    }
    return found == Scalar::i8 || found == Scalar::u8 ? found : std::nullopt;
  }

 private:
  std::optional<Chain> from(size_t first) const {
    const Layer& start = graph_.layers[first];
    if (!is(start, "DequantizeLinear") || !is_per_tensor(start) || !input_of(start)) return std::nullopt;
    Chain chain{{first}};
    while (true) {
      const std::string& value = graph_.layers[chain.layers.back()].outputs[0];
      auto uses = uses_.find(value);
      if (uses == uses_.end() || uses->second != 1 || !readers_.contains(value)) return std::nullopt;
      const size_t next = readers_.at(value);
      const Layer& layer = graph_.layers[next];
      if (layer.inputs[0] != value || !others_known(layer)) return std::nullopt;
      chain.layers.push_back(next);
      if (is(layer, "QuantizeLinear")) break;
      const bool known = std::any_of(elementwise.begin(), elementwise.end(),
                                     [&](std::string_view operation) { return is(layer, operation); });
      if (!known) return std::nullopt;
    }
    const Layer& end = graph_.layers[chain.layers.back()];
    if (chain.layers.size() < 3 || !is_per_tensor(end) || !gives_bytes(end)) return std::nullopt;
    return chain;
  }

  // What a quantising layer gives: its zero point's type, or one that an attribute names, else u8.
  bool gives_bytes(const Layer& layer) const {
    if (const Tensor* zero = zero_point(layer)) return row(zero->scalar()).bits == 8 && is_integer(zero->scalar());
    return !layer.attributes.contains("output_dtype");
  }

  const Graph& graph_;
  std::map<std::string, int> uses_;
  std::map<std::string, size_t> readers_;  // the last one; of use where there is one
};

// All inputs in the order of their bits, which is that in which a Gather counts: -1 is the last.
Tensor every_input(Scalar scalar) {
  Tensor all(scalar, {table_size});
  for (int64_t i = 0; i < table_size; ++i) all.set_integer(i, i);
  return all;
}

Result<Tensor> table_of(const Graph& graph, const Chain& chain, Scalar input, const EvaluateLayer& evaluate) {
  Tensor values = every_input(input);
  for (size_t i : chain.layers) {
    HOIST_TRY(values, evaluate(graph.layers[i], values));
    if (values.size() != table_size) {
      return Diagnostic{graph.layers[i].name,
                        fmt::format("{} values for {} inputs of a table", values.size(), table_size), ""};
    }
  }
  return values;
}

std::string fresh(const Graph& graph, std::string name) {
  auto taken = [&](const std::string& n) {
    auto named = [&](const ValueInfo& v) { return v.name == n; };
    if (std::any_of(graph.inputs.begin(), graph.inputs.end(), named)) return true;
    return graph.constants.contains(n) || std::any_of(graph.layers.begin(), graph.layers.end(), [&](const Layer& l) {
             return l.name == n || std::find(l.outputs.begin(), l.outputs.end(), n) != l.outputs.end();
           });
  };
  while (taken(name)) name += "_";
  return name;
}

// The layers that take a chain's place: positions as Gather wants them, and the look-up.
void look_up(Graph& graph, const Chain& chain, const Tensor& table) {
  const Layer start = graph.layers[chain.layers.front()], end = graph.layers[chain.layers.back()];
  const Layer function = graph.layers[chain.layers[chain.layers.size() - 2]];
  const std::string constant = fresh(graph, function.name + "_table"),
                    position = fresh(graph, function.name + "_index");
  graph.constants[constant] = table;
  Layer cast{position, "Cast", "", {{"to", onnx_i32}}, {start.inputs[0]}, {position}};
  Layer gather{function.name, "Gather", "", {{"axis", int64_t{0}}}, {constant, position}, end.outputs};
  GraphStep step{"integer-table",
                 function.name,
                 RuleClass::exact,
                 fmt::format("{} layers between 8-bit values are one look-up", chain.layers.size()),
                 {}};
  graph.steps.push_back(step);
  for (size_t i : chain.layers) {
    if (graph.layers[i].name == function.name) continue;
    step.absorbed = graph.layers[i].name;
    step.note = "part of a table";
    graph.steps.push_back(step);
  }
  graph.layers[chain.layers[chain.layers.size() - 2]] = cast;
  graph.layers[chain.layers.back()] = gather;
}

}  // namespace

Result<int> use_integer_tables(Graph& graph, const EvaluateLayer& evaluate, const std::string& layer) {
  const Finder finder(graph);
  std::vector<std::pair<Chain, Tensor>> found;
  for (Chain& chain : finder.run()) {
    const bool wanted = layer.empty() || std::any_of(chain.layers.begin() + 1, chain.layers.end() - 1,
                                                     [&](size_t i) { return graph.layers[i].name == layer; });
    if (!wanted) continue;
    HOIST_TRY(Tensor table, table_of(graph, chain, *finder.input_of(graph.layers[chain.layers.front()]), evaluate));
    found.emplace_back(std::move(chain), std::move(table));
  }
  std::set<size_t> gone;
  for (const auto& [chain, table] : found) {
    look_up(graph, chain, table);
    gone.insert(chain.layers.begin(), chain.layers.end() - 2);
  }
  std::vector<Layer> kept;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    if (!gone.contains(i)) kept.push_back(std::move(graph.layers[i]));
  }
  graph.layers = std::move(kept);
  return static_cast<int>(found.size());
}

}  // namespace hoist
