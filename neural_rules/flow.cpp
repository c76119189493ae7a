#include "neural_rules/flow.h"

#include <algorithm>
#include <utility>

namespace hoist {
namespace {

const std::set<std::string>& views() {
  static const std::set<std::string> names = {"Reshape",   "Flatten", "Transpose",    "Squeeze",
                                              "Unsqueeze", "Slice",   "DepthToSpace", "SpaceToDepth",
                                              "Identity",  "Split",   "Dropout"};
  return names;
}

const std::set<std::string>& elementwise_operations() {
  static const std::set<std::string> names = {"Abs",         "Add",       "BatchNormalization",
                                              "Ceil",        "Celu",      "Clip",
                                              "Cos",         "Div",       "Elu",
                                              "Erf",         "Exp",       "Floor",
                                              "Gelu",        "HardSwish", "LeakyRelu",
                                              "HardSigmoid", "Log",       "Max",
                                              "Min",         "Mish",      "Mul",
                                              "Neg",         "PRelu",     "Pow",
                                              "Reciprocal",  "Relu",      "Round",
                                              "Selu",        "Sign",      "Sigmoid",
                                              "Sin",         "Softplus",  "Softsign",
                                              "Sqrt",        "Sub",       "Tanh",
                                              "Sum",         "Swish",     "ThresholdedRelu",
                                              "Where"};
  return names;
}

// Layers whose result is never a number of type f32 when their first input is one.
const std::set<std::string>& leaves_floats() {
  static const std::set<std::string> names = {
      "ArgMax",         "ArgMin", "Shape",       "Size",  "NonZero", "Equal",          "Greater",
      "GreaterOrEqual", "Less",   "LessOrEqual", "IsNaN", "IsInf",   "QuantizeLinear", "DynamicQuantizeLinear"};
  return names;
}

constexpr int64_t onnx_f32 = 1;  // TensorProto.FLOAT

// Without onnx's own inference: operators keep the type of their first data input but for these few.
bool gives_float(const Layer& layer, const Graph& graph, const Flow& flow) {
  if (layer.operation == "Cast") return integer_attribute(layer, "to", 0) == onnx_f32;
  if (layer.operation == "DequantizeLinear") return true;
  if (leaves_floats().count(layer.operation) != 0 || layer.inputs.empty()) return false;
  const std::string& first = layer.inputs[layer.operation == "Where" && layer.inputs.size() > 1 ? 1 : 0];
  if (flow.floats.count(first) != 0) return true;
  const Tensor* constant = constant_of(graph, first);
  return constant != nullptr && constant->scalar() == Scalar::f32;
}

// The arrays that kernels write, found as lowering/grouping.cpp does: views belong to their readers, and each layer
// takes the layers before it into its kernel that nobody else reads, with one anchor a kernel.
class Kernels {
 public:
  Kernels(const Graph& graph, const Flow& flow) : graph_(graph), flow_(flow) {
    for (const std::string& name : flow.outputs) read_outside_.insert(source_of(name));
    for (size_t i = 0; i < graph.layers.size(); ++i) add(i);
  }

  /// The layer's first output is an array in memory.
  bool writes(size_t layer) const { return kernel_.at(layer) == layer && kind(layer) != LayerKind::view; }
  /// Nothing has joined the layer's kernel.
  bool alone(size_t layer) const { return size_.at(layer) == 1; }

 private:
  LayerKind kind(size_t i) const { return kind_of(graph_.layers[i]); }

  // Through views to the array that holds the numbers.
  std::string source_of(std::string value) const {
    for (auto made = flow_.producer.find(value); made != flow_.producer.end() && kind(made->second) == LayerKind::view;
         made = flow_.producer.find(value)) {
      value = graph_.layers[made->second].inputs[0];
    }
    return value;
  }

  // Kernels that read the array, by way of views or not.
  void collect_readers(const std::string& value, std::set<size_t>& kernels) const {
    auto readers = flow_.readers.find(value);
    if (readers == flow_.readers.end()) return;
    for (size_t reader : readers->second) {
      if (kind(reader) != LayerKind::view) {
        auto joined = kernel_.find(reader);
        kernels.insert(joined == kernel_.end() ? reader : joined->second);
      } else {
        for (const std::string& output : graph_.layers[reader].outputs) collect_readers(output, kernels);
      }
    }
  }

  void add(size_t i) {
    kernel_[i] = i;
    size_[i] = 1;
    anchored_[i] = kind(i) != LayerKind::elementwise;
    if (kind(i) != LayerKind::elementwise) return;
    for (bool joined = true; joined;) {
      joined = false;
      for (size_t j = i; j-- > 0 && !joined;) joined = join(j, i);
    }
  }

  bool join(size_t before, size_t reader) {
    if (kind(before) == LayerKind::view || kernel_[before] != before) return false;
    if (graph_.layers[before].operation == "Concat" || (anchored_[before] && anchored_[reader])) return false;
    const std::string& value = graph_.layers[before].outputs[0];
    if (read_outside_.count(value) != 0) return false;
    std::set<size_t> kernels;
    collect_readers(value, kernels);
    if (kernels != std::set<size_t>{reader}) return false;
    for (auto& [layer, kernel] : kernel_) {
      if (kernel == before) kernel = reader;
    }
    size_[reader] += size_[before];
    anchored_[reader] = anchored_[reader] || anchored_[before];
    return true;
  }

  const Graph& graph_;
  const Flow& flow_;
  std::set<std::string> read_outside_;  // arrays that outputs of the model are views of
  std::map<size_t, size_t> kernel_;     // layer -> the last layer of its kernel
  std::map<size_t, size_t> size_;       // by last layer
  std::map<size_t, bool> anchored_;
};

class Families {
 public:
  Families(const Graph& graph, const Flow& flow) : graph_(graph), flow_(flow), kernels_(graph, flow) {
    for (const ValueInfo& input : graph.inputs) {
      if (input.scalar == Scalar::f32) start(input.name);
    }
    for (size_t i = 0; i < graph.layers.size(); ++i) add(i);
  }

  std::vector<ValueFamily> take() {
    std::vector<ValueFamily> out;
    for (ValueFamily& family : families_) {
      bool leaves = std::any_of(family.members.begin(), family.members.end(),
                                [&](const std::string& v) { return flow_.outputs.count(v) != 0; });
      bool read = std::any_of(family.members.begin(), family.members.end(),
                              [&](const std::string& v) { return flow_.readers.count(v) != 0; });
      if (!family.name.empty() && !leaves && read && !quantised_already(family)) out.push_back(std::move(family));
    }
    return out;
  }

 private:
  void start(const std::string& value) {
    family_[value] = families_.size();
    families_.push_back({value, {value}, {value}});
  }

  void enter(const std::string& value, size_t family) {
    family_[value] = family;
    families_[family].members.insert(value);
  }

  // The model itself rounds these to a grid.
  bool quantised_already(const ValueFamily& family) const {
    auto quantises = [&](size_t reader) {
      const std::string& operation = graph_.layers[reader].operation;
      return operation == "QuantizeLinear" || operation == "DynamicQuantizeLinear";
    };
    return std::all_of(family.members.begin(), family.members.end(), [&](const std::string& member) {
      auto made = flow_.producer.find(member);
      if (made != flow_.producer.end() && graph_.layers[made->second].operation == "DequantizeLinear") return true;
      auto readers = flow_.readers.find(member);
      return readers != flow_.readers.end() && std::all_of(readers->second.begin(), readers->second.end(), quantises);
    });
  }

  void add(size_t i) {
    const Layer& layer = graph_.layers[i];
    const LayerKind kind = kind_of(layer);
    const bool moves = kind == LayerKind::view || (kind == LayerKind::mover && kernels_.alone(i));
    auto first = layer.inputs.empty() ? family_.end() : family_.find(layer.inputs[0]);
    if (layer.operation == "Concat") {
      if (kernels_.writes(i) && !join_parts(layer) && is_float(layer.outputs[0])) start(layer.outputs[0]);
    } else if (moves && first != family_.end()) {
      for (const std::string& output : layer.outputs) {
        if (is_float(output)) enter(output, first->second);
      }
    } else if (kind != LayerKind::view && kernels_.writes(i)) {
      for (const std::string& output : layer.outputs) {
        if (is_float(output)) start(output);
      }
    }
  }

  bool is_float(const std::string& value) const { return flow_.floats.count(value) != 0; }

  // Every number of a part goes into the concatenation and nowhere else, so that the concatenation's range is theirs.
  bool only_read_here(const std::string& part) const {
    auto place = family_.find(part);
    if (place == family_.end() || flow_.outputs.count(part) != 0) return false;
    const ValueFamily& family = families_[place->second];
    if (flow_.inputs.count(family.name) != 0) return false;
    return std::all_of(family.members.begin(), family.members.end(), [&](const std::string& member) {
      auto readers = flow_.readers.find(member);
      return readers != flow_.readers.end() && readers->second.size() == 1;
    });
  }

  bool join_parts(const Layer& concat) {
    if (!std::all_of(concat.inputs.begin(), concat.inputs.end(), [&](const auto& p) { return only_read_here(p); }))
      return false;
    ValueFamily joined{concat.outputs[0], {}, {concat.outputs[0]}};
    std::set<size_t> parts;
    for (const std::string& part : concat.inputs) parts.insert(family_.at(part));
    for (size_t part : parts) {
      ValueFamily& family = families_[part];
      joined.sources.insert(joined.sources.end(), family.sources.begin(), family.sources.end());
      joined.members.merge(family.members);
      family = {};
    }
    for (const std::string& member : joined.members) family_[member] = families_.size();
    families_.push_back(std::move(joined));
    return true;
  }

  const Graph& graph_;
  const Flow& flow_;
  Kernels kernels_;
  std::vector<ValueFamily> families_;  // those without a name are part of a later one
  std::map<std::string, size_t> family_;
};

}  // namespace

LayerKind kind_of(const Layer& layer) {
  if (!layer.domain.empty()) return LayerKind::anchor;
  if (views().count(layer.operation) != 0) return LayerKind::view;
  // The positions that a second output would hold are no numbers of the input.
  const bool one_output = layer.outputs.size() == 1 || layer.outputs[1].empty();
  if ((layer.operation == "MaxPool" && one_output) || layer.operation == "GlobalMaxPool" || layer.operation == "Concat")
    return LayerKind::mover;
  return elementwise_operations().count(layer.operation) != 0 ? LayerKind::elementwise : LayerKind::anchor;
}

std::set<std::string> functions_called(const Layer& layer) {
  static const std::map<std::string, std::set<std::string>> called = {
      {"Celu", {"exp"}},
      {"Elu", {"exp"}},
      {"Erf", {"erf"}},
      {"Exp", {"exp"}},
      {"GRU", {"tanh", "sigmoid", "exp"}},
      {"Gelu", {"erf"}},
      {"LSTM", {"tanh", "sigmoid", "exp"}},
      {"LogSoftmax", {"exp"}},
      {"Mish", {"tanh", "exp"}},
      {"RNN", {"tanh"}},
      {"Selu", {"exp"}},
      {"Sigmoid", {"sigmoid", "exp"}},
      {"Softmax", {"exp"}},
      {"Softplus", {"exp"}},
      {"Swish", {"sigmoid", "exp"}},
      {"Tanh", {"tanh"}},
  };
  auto place = layer.domain.empty() ? called.find(layer.operation) : called.end();
  if (place == called.end()) return {};
  auto form = layer.attributes.find("approximate");
  const auto* text = form == layer.attributes.end() ? nullptr : std::get_if<std::string>(&form->second);
  if (layer.operation == "Gelu" && text != nullptr && *text == "tanh") return {"tanh"};
  return place->second;
}

Flow flow_of(const Graph& graph) {
  Flow flow;
  for (const ValueInfo& input : graph.inputs) {
    flow.inputs.insert(input.name);
    if (input.scalar == Scalar::f32) flow.floats.insert(input.name);
  }
  for (const ValueInfo& output : graph.outputs) flow.outputs.insert(output.name);
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    const Layer& layer = graph.layers[i];
    for (const std::string& name : layer.inputs) {
      if (name.empty()) continue;
      std::vector<size_t>& readers = flow.readers[name];
      if (readers.empty() || readers.back() != i) readers.push_back(i);
    }
    const bool known = std::all_of(layer.inputs.begin(), layer.inputs.end(), [&](const std::string& name) {
      return name.empty() || graph.constants.count(name) != 0 || flow.known.count(name) != 0;
    });
    for (const std::string& name : layer.outputs) {
      if (name.empty()) continue;
      flow.producer[name] = i;
      if (known) {
        flow.known.insert(name);
        continue;
      }
      auto types = graph.types.find(name);
      if (types != graph.types.end() ? types->second.scalar == Scalar::f32 : gives_float(layer, graph, flow))
        flow.floats.insert(name);
    }
  }
  return flow;
}

std::set<std::string> matrix_inputs(const Graph& graph) {
  std::set<std::string> out;
  for (const Layer& layer : graph.layers) {
    if (is_operator(layer, "MatMul") || is_operator(layer, "Gemm")) out.insert(layer.inputs[0]);
  }
  return out;
}

std::vector<ValueFamily> value_families(const Graph& graph, const Flow& flow) { return Families(graph, flow).take(); }

}  // namespace hoist
