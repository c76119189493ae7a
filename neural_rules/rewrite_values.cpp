#include "neural_rules/rewrite_values.h"

#include <algorithm>

namespace hoist {
namespace {

// Reads of a mover that are numbers to move; the others are shapes and positions.
size_t moved_inputs(const Layer& layer) { return layer.operation == "Concat" ? layer.inputs.size() : 1; }

}  // namespace

ValueWriter::ValueWriter(const Graph& original, Graph& out, std::vector<StoredFamily> families)
    : original_(original), out_(out), families_(std::move(families)) {
  for (size_t i = 0; i < families_.size(); ++i) {
    for (const std::string& member : families_[i].family->members) family_[member] = i;
  }
  for (const ValueInfo& input : original.inputs) names_.insert(input.name);
  for (const auto& [name, tensor] : original.constants) names_.insert(name);
  for (const Layer& layer : original.layers) {
    names_.insert(layer.name);
    names_.insert(layer.outputs.begin(), layer.outputs.end());
  }
}

const StoredFamily* ValueWriter::family_of(const std::string& value) const {
  auto place = family_.find(value);
  return place == family_.end() ? nullptr : &families_[place->second];
}

std::string ValueWriter::fresh(const std::string& name) {
  std::string unique = name;
  for (int i = 2; !names_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  return unique;
}

std::string ValueWriter::add_constant(const std::string& name, Tensor value) {
  std::string unique = fresh(name);
  out_.constants[unique] = std::move(value);
  return unique;
}

void ValueWriter::add_parameters(Layer& layer, const StoredFamily& stored) {
  std::vector<std::string>& names = parameters_[stored.family];
  if (names.empty()) {
    const Grid& grid = stored.grid;
    names = {
        add_constant(stored.family->name + "/scale", Tensor::of<double>(Scalar::f32, {}, {grid.scale})),
        add_constant(stored.family->name + "/zero_point", Tensor::of<int64_t>(grid.scalar, {}, {grid.zero_point}))};
  }
  layer.inputs.insert(layer.inputs.end(), names.begin(), names.end());
}

void ValueWriter::store(const std::string& value) {
  const StoredFamily& stored = *family_of(value);
  Layer layer{fresh(value + "/quantise"), stored.grid.scaled ? "QuantizeLinear" : "Cast", "", {}, {value}, {}};
  layer.outputs = {fresh(value + "/" + std::string(row(stored.grid.scalar).name))};
  if (stored.grid.scaled)
    add_parameters(layer, stored);
  else
    layer.attributes["to"] = onnx_type(stored.grid.scalar);
  stored_[value] = layer.outputs[0];
  add(std::move(layer));
}

std::string ValueWriter::read(const std::string& value) {
  if (auto place = read_.find(value); place != read_.end()) return place->second;
  auto small = stored_.find(value);
  if (small == stored_.end()) return value;
  const StoredFamily& stored = *family_of(value);
  Layer layer{
      fresh(value + "/dequantise"), stored.grid.scaled ? "DequantizeLinear" : "Cast", "", {}, {small->second}, {}};
  // What a mover made has lost its name to the small format; statistics and users know it under the old one.
  const bool name_is_free = std::none_of(out_.layers.begin(), out_.layers.end(), [&](const Layer& made) {
    return std::find(made.outputs.begin(), made.outputs.end(), value) != made.outputs.end();
  });
  const bool is_input = std::any_of(original_.inputs.begin(), original_.inputs.end(),
                                    [&](const ValueInfo& input) { return input.name == value; });
  layer.outputs = {name_is_free && !is_input ? value : fresh(value + "/dequantised")};
  if (stored.grid.scaled)
    add_parameters(layer, stored);
  else
    layer.attributes["to"] = onnx_type(Scalar::f32);
  read_[value] = layer.outputs[0];
  add(std::move(layer));
  return read_[value];
}

std::string ValueWriter::read_dequantised(const std::string& value) {
  if (stored_.count(value) == 0) {
    // A mover made it from numbers of the grid, so that rounding changes none of them.
    store(value);
    read_.erase(value);
  }
  return read(value);
}

void ValueWriter::write(Layer layer) {
  const std::vector<std::string> outputs = layer.outputs;
  add(std::move(layer));
  for (const std::string& output : outputs) {
    const StoredFamily* stored = family_of(output);
    if (stored == nullptr) continue;
    const auto& sources = stored->family->sources;
    if (std::find(sources.begin(), sources.end(), output) != sources.end()) store(output);
  }
}

// What DynamicQuantizeLinear is defined to be, written out: its parts are layers that every reader of the graph knows.
std::string ValueWriter::quantise_dynamically(const std::string& name, const std::string& input) {
  auto number = [&](const char* what, float value) {
    return add_constant(name + what, Tensor::of<float>(Scalar::f32, {}, {value}));
  };
  auto layer = [&](const char* operation, const char* what, std::vector<std::string> inputs,
                   std::map<std::string, Attribute> attributes = {}) {
    std::string output = fresh(name + "/" + what);
    add({output, operation, "", std::move(attributes), std::move(inputs), {output}});
    return output;
  };
  const std::map<std::string, Attribute> one_number = {{"keepdims", int64_t{0}}};
  const std::string zero = number("/zero", 0), most = number("/most", 255);
  const std::string low = layer("Min", "low", {layer("ReduceMin", "least", {input}, one_number), zero});
  const std::string high = layer("Max", "high", {layer("ReduceMax", "largest", {input}, one_number), zero});
  const std::string step = layer("Div", "step", {layer("Sub", "range", {high, low}), most});
  // Zeros only have no range; any scale will do for them.
  const std::string scale = layer("Max", "scale", {step, number("/tiny", 1e-30F)});
  const std::string shift = layer("Sub", "shift", {zero, layer("Div", "steps_below", {low, scale})});
  const std::string whole = layer("Round", "whole_shift", {layer("Clip", "clipped_shift", {shift, zero, most})});
  const std::string zero_point = layer("Cast", "zero_point", {whole}, {{"to", onnx_type(Scalar::u8)}});
  const std::string small = layer("QuantizeLinear", "quantise", {input, scale, zero_point});
  return layer("DequantizeLinear", "dequantised", {small, scale, zero_point});
}

void ValueWriter::store_inputs() {
  for (const ValueInfo& input : original_.inputs) {
    if (family_.count(input.name) != 0) store(input.name);
  }
}

bool ValueWriter::can_move(const Layer& layer, Scalar scalar) const {
  static const std::set<std::string> any_type = {"Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Identity"};
  for (size_t i = 0; i < moved_inputs(layer); ++i) {
    if (stored_.count(layer.inputs[i]) == 0) return false;
  }
  if (any_type.count(layer.operation) != 0) return !is_float(scalar) || row(scalar).bits > 8 || original_.opset >= 21;
  if (is_float(scalar) && row(scalar).bits == 8) return false;
  if (layer.operation == "MaxPool")
    return scalar == Scalar::u8 || scalar == Scalar::i8 || scalar == Scalar::f16 ||
           (scalar == Scalar::bf16 && original_.opset >= 22);
  if (layer.operation == "Dropout" || layer.operation == "GlobalMaxPool") return scalar == Scalar::f16;
  return true;
}

bool ValueWriter::move(const Layer& layer) {
  const StoredFamily* stored = layer.outputs.empty() ? nullptr : family_of(layer.outputs[0]);
  if (stored == nullptr) return false;
  const auto& sources = stored->family->sources;
  if (std::find(sources.begin(), sources.end(), layer.outputs[0]) != sources.end()) return false;
  Layer moved = layer;
  if (!can_move(layer, stored->grid.scalar)) {
    for (std::string& input : moved.inputs) input = read(input);
    for (const std::string& output : moved.outputs) read_[output] = output;
    add(std::move(moved));
    return true;
  }
  for (size_t i = 0; i < moved_inputs(layer); ++i) moved.inputs[i] = stored_.at(layer.inputs[i]);
  for (std::string& output : moved.outputs) {
    if (output.empty()) continue;
    const std::string small = fresh(output + "/" + std::string(row(stored->grid.scalar).name));
    stored_[output] = small;
    output = small;
  }
  add(std::move(moved));
  return true;
}

}  // namespace hoist
