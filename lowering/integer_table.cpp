#include "lowering/integer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ir/evaluate.h"
#include "lowering/program.h"

namespace hoist {
namespace {

constexpr int64_t table_size = 256;
constexpr int64_t onnx_i32 = 6;  // TensorProto.DataType

// Each element of the result depends on that element of the first input alone, whatever the shapes of the others, which
// are constants of one element.
bool is_unary(const Layer& layer) {
  static const std::set<std::string> operations = {
      "Abs",       "Acos", "Acosh",    "Asin",       "Asinh", "Atan",  "Atanh", "Ceil",        "Celu",           "Clip",
      "Cos",       "Cosh", "Elu",      "Erf",        "Exp",   "Floor", "Gelu",  "HardSigmoid", "HardSwish",      "Log",
      "LeakyRelu", "Mish", "Neg",      "Reciprocal", "Relu",  "Round", "Selu",  "Shrink",      "Sigmoid",        "Sign",
      "Sin",       "Sinh", "Softplus", "Softsign",   "Sqrt",  "Swish", "Tan",   "Tanh",        "ThresholdedRelu"};
  return layer.domain.empty() && operations.count(layer.operation) != 0;
}

// Elements of several inputs of the same shape; a constant of higher rank would change the result's.
bool is_broadcasting(const Layer& layer) {
  static const std::set<std::string> operations = {"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub"};
  return layer.domain.empty() && operations.count(layer.operation) != 0;
}

// What a table stands for: places in the graph, in its order.
struct Part {
  std::string source;  ///< the 8-bit value
  Scalar scalar = Scalar::u8;
  std::set<size_t> dequantisers, functions;
  size_t quantiser = 0;
};

class Finder {
 public:
  Finder(const Graph& graph, const TableOptions& options) : graph_(graph), options_(options) {
    for (const ValueInfo& output : graph.outputs) ++uses_[output.name];
    for (size_t i = 0; i < graph.layers.size(); ++i) {
      for (const std::string& input : graph.layers[i].inputs) ++uses_[input];
      for (const std::string& output : graph.layers[i].outputs) producer_[output] = i;
    }
  }

  /// What computes the input of a quantising layer, if a table can stand for it.
  std::optional<Part> before(size_t quantiser) const {
    const Layer& layer = graph_.layers[quantiser];
    if (!is_operator(layer, "QuantizeLinear") || !is_per_tensor(layer) || !gives_bytes(layer)) return std::nullopt;
    Part part;
    part.quantiser = quantiser;
    if (!add(layer.inputs[0], part) || part.functions.empty() || part.dequantisers.empty()) return std::nullopt;
    if (options_.use == TableUse::automatic && is_cheap(part)) return std::nullopt;
    return is_closed(part) ? std::optional(part) : std::nullopt;
  }

 private:
  // Takes in what computes the value, back to the 8-bit value that it comes from.
  bool add(const std::string& value, Part& part) const {
    auto place = producer_.find(value);
    if (place == producer_.end()) return false;
    const Layer& layer = graph_.layers[place->second];
    if (layer.outputs.size() != 1 || options_.except.count(layer.name) != 0) return false;
    if (is_operator(layer, "DequantizeLinear")) return add_dequantiser(place->second, part);
    const bool broadcasts = is_broadcasting(layer);
    if (!broadcasts && !is_unary(layer)) return false;
    if (!part.functions.insert(place->second).second) return true;  // by another way already
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      if (layer.inputs[i].empty()) continue;
      if (const Tensor* constant = constant_of(graph_, layer.inputs[i])) {
        if (constant->size() != 1 || (broadcasts && !constant->shape().empty())) return false;
      } else if ((!broadcasts && i != 0) || !add(layer.inputs[i], part)) {
        return false;
      }
    }
    return true;
  }

  bool add_dequantiser(size_t place, Part& part) const {
    const Layer& layer = graph_.layers[place];
    const std::string& source = layer.inputs[0];
    if (!is_per_tensor(layer) || constant_of(graph_, source) != nullptr) return false;
    const std::optional<Scalar> scalar = input_of(layer);
    if (!scalar || (!part.dequantisers.empty() && source != part.source)) return false;
    part.source = source;
    part.scalar = *scalar;
    part.dequantisers.insert(place);
    return true;
  }

  // One scale and one zero point for the whole tensor, both known.
  bool is_per_tensor(const Layer& layer) const {
    const auto one = [&](size_t i) {
      const Tensor* constant = constant_input(graph_, layer, i);
      return constant != nullptr && constant->size() == 1;
    };
    return one(1) && (!has_input(layer, 2) || one(2)) && integer_attribute(layer, "block_size", 0) == 0;
  }

  // The integers that a dequantising layer reads; nothing where they have not eight bits, or nobody says what they are.
  std::optional<Scalar> input_of(const Layer& layer) const {
    std::optional<Scalar> found;
    if (const Tensor* zero = constant_input(graph_, layer, 2)) found = zero->scalar();
    if (auto place = graph_.inferred.find(layer.inputs[0]); !found && place != graph_.inferred.end()) {
      found = place->second.scalar;
    }
    for (const ValueInfo& input : graph_.inputs) {
      if (!found && input.name == layer.inputs[0]) found = input.scalar;
    }
    return found == Scalar::i8 || found == Scalar::u8 ? found : std::nullopt;
  }

  // What a quantising layer gives: its zero point's type, or one that an attribute names, else u8.
  bool gives_bytes(const Layer& layer) const {
    if (const Tensor* zero = constant_input(graph_, layer, 2))
      return zero->scalar() == Scalar::i8 || zero->scalar() == Scalar::u8;
    return integer_attribute(layer, "output_dtype", 0) == 0;
  }

  // Layers of an instruction or two: with the arithmetic for the scales they take no longer than a look-up.
  bool is_cheap(const Part& part) const {
    static const std::set<std::string> operations = {"Abs", "Add", "Ceil", "Floor", "LeakyRelu", "Max",  "Min",
                                                     "Mul", "Neg", "Relu", "Round", "Sign",      "Sqrt", "Sub"};
    return std::all_of(part.functions.begin(), part.functions.end(),
                       [&](size_t i) { return operations.count(graph_.layers[i].operation) != 0; });
  }

  // All readers of what the part computes on the way belong to it.
  bool is_closed(const Part& part) const {
    std::map<std::string, int> inside;
    for (const std::string& input : graph_.layers[part.quantiser].inputs) ++inside[input];
    for (size_t i : part.functions) {
      for (const std::string& input : graph_.layers[i].inputs) ++inside[input];
    }
    return std::all_of(part.functions.begin(), part.functions.end(), [&](size_t i) {
      const std::string& value = graph_.layers[i].outputs[0];
      return inside[value] == uses_.at(value);
    });
  }

  const Graph& graph_;
  const TableOptions& options_;
  std::map<std::string, int> uses_;
  std::map<std::string, size_t> producer_;
};

// All inputs in the order of their bits, which is that in which a Gather counts: -1 is the last.
Tensor every_input(Scalar scalar) {
  Tensor all(scalar, {table_size});
  for (int64_t i = 0; i < table_size; ++i) all.set_integer(i, i);
  return all;
}

// The part by itself, over all inputs that there are.
Graph alone(const Graph& graph, const Part& part) {
  Graph out;
  out.opset = graph.opset;
  out.inputs = {{part.source, part.scalar, {table_size}}};
  std::set<size_t> places = part.functions;
  places.insert(part.dequantisers.begin(), part.dequantisers.end());
  places.insert(part.quantiser);
  for (size_t i : places) {
    out.layers.push_back(graph.layers[i]);
    for (const std::string& input : graph.layers[i].inputs) {
      // Lists of one element would be scales by channel.
      if (const Tensor* constant = constant_of(graph, input)) out.constants[input] = constant->reshaped({});
    }
  }
  out.outputs = {{out.layers.back().outputs[0], Scalar::u8, {table_size}}};
  return out;
}

Result<Tensor> table_of(const Graph& graph, const Part& part) {
  HOIST_TRY(const Program program, lower_graph(alone(graph, part), true));
  Bindings values = {{part.source, every_input(part.scalar)}};
  for (const auto& [name, tensor] : program.constants) values[name] = tensor;
  for (const Definition& definition : program.definitions) {
    HOIST_TRY(values[definition.value], evaluate(definition.expression, values));
  }
  return values.at(program.outputs[0]);
}

std::string fresh(const Graph& graph, std::string name) {
  const auto taken = [&] {
    return graph.constants.count(name) != 0 ||
           std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const ValueInfo& v) { return v.name == name; }) ||
           std::any_of(graph.layers.begin(), graph.layers.end(), [&](const Layer& l) {
             return std::find(l.outputs.begin(), l.outputs.end(), name) != l.outputs.end();
           });
  };
  while (taken()) name += "_";
  return name;
}

class Tables {
 public:
  Tables(Graph& graph, const TableOptions& options) : graph_(graph) {
    const Finder finder(graph, options);
    for (size_t i = 0; i < graph.layers.size(); ++i) {
      std::optional<Part> part = finder.before(i);
      if (!part) continue;
      Result<Tensor> table = table_of(graph, *part);
      if (table.ok() && table->size() == table_size) parts_.emplace(i, std::pair(std::move(*part), std::move(*table)));
    }
  }

  int run() {
    std::set<size_t> gone = unread_dequantisers();
    for (const auto& [quantiser, entry] : parts_) {
      record(entry.first, gone);
      gone.insert(entry.first.functions.begin(), entry.first.functions.end());
    }
    std::vector<Layer> layers;
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      if (auto entry = parts_.find(i); entry != parts_.end())
        look_up(entry->second.first, std::move(entry->second.second), layers);
      else if (gone.count(i) == 0)
        layers.push_back(graph_.layers[i]);
    }
    graph_.layers = std::move(layers);
    return static_cast<int>(parts_.size());
  }

 private:
  const Layer& last_function(const Part& part) const { return graph_.layers[*part.functions.rbegin()]; }

  // Those that only tables have read.
  std::set<size_t> unread_dequantisers() const {
    std::set<size_t> out, inside;
    for (const auto& [quantiser, entry] : parts_) {
      out.insert(entry.first.dequantisers.begin(), entry.first.dequantisers.end());
      inside.insert(entry.first.functions.begin(), entry.first.functions.end());
    }
    std::set<std::string> read;
    for (const ValueInfo& output : graph_.outputs) read.insert(output.name);
    for (size_t i = 0; i < graph_.layers.size(); ++i) {
      if (inside.count(i) == 0) read.insert(graph_.layers[i].inputs.begin(), graph_.layers[i].inputs.end());
    }
    std::erase_if(out, [&](size_t i) { return read.count(graph_.layers[i].outputs[0]) != 0; });
    return out;
  }

  void record(const Part& part, const std::set<size_t>& gone) {
    const std::string& name = last_function(part).name;
    const size_t layers = part.dequantisers.size() + part.functions.size() + 1;
    graph_.steps.push_back({"integer-table", name, RuleClass::exact,
                            fmt::format("{} layers between 8-bit values are one look-up", layers)});
    std::set<size_t> absorbed = part.functions;
    absorbed.erase(std::prev(absorbed.end()));
    for (size_t i : part.dequantisers) {
      if (gone.count(i) != 0) absorbed.insert(i);
    }
    for (size_t i : absorbed) {
      const std::string& layer = graph_.layers[i].name;
      graph_.steps.push_back(
          {"integer-table", name, RuleClass::exact, fmt::format("{} is part of the table", layer), layer});
    }
  }

  // The names stay those of the model's layers: the last function gives positions, the quantising layer looks them up.
  void look_up(const Part& part, Tensor table, std::vector<Layer>& layers) {
    const Layer &function = last_function(part), &quantise = graph_.layers[part.quantiser];
    const std::string positions = fresh(graph_, function.name + ".positions"),
                      constant = fresh(graph_, function.name + ".table");
    graph_.constants[constant] = std::move(table);
    layers.push_back({function.name, "Cast", "", {{"to", onnx_i32}}, {part.source}, {positions}});
    layers.push_back({quantise.name, "Gather", "", {{"axis", int64_t{0}}}, {constant, positions}, quantise.outputs});
  }

  Graph& graph_;
  std::map<size_t, std::pair<Part, Tensor>> parts_;  ///< by the quantising layer
};

}  // namespace

int use_integer_tables(Graph& graph, const TableOptions& options) {
  return options.use == TableUse::off ? 0 : Tables(graph, options).run();
}

}  // namespace hoist
