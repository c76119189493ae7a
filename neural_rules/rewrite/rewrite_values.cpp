#include "neural_rules/rewrite/rewrite_values.h"

#include <algorithm>

#include "ir/operators/operators.h"

namespace hoist {
namespace {

// Which numbers of a value share a scale: `size` neighbours along the axis of the channels, fewer at its end.
struct Blocks {
  std::vector<int64_t> shape;
  int64_t axis = 0, size = 0;
};

Blocks blocks_of(const Type type, const std::set<std::string>& matrix_inputs, const std::string& value) {
  Blocks blocks{shape_of(type), 1, block_channels};
  if (matrix_inputs.count(value) != 0) blocks.axis = static_cast<int64_t>(blocks.shape.size()) - 1;
  blocks.size = std::min(blocks.size, blocks.shape[static_cast<size_t>(blocks.axis)]);
  return blocks;
}

}  // namespace

ValueWriter::ValueWriter(const Program& original, const Flow& flow, std::vector<StoredFamily> families)
    : original_(original),
      flow_(flow),
      types_(value_types(original)),
      families_(std::move(families)),
      matrix_inputs_(matrix_inputs(flow.definitions)),
      names_(original) {
  for (size_t i = 0; i < families_.size(); ++i) {
    for (const std::string& member : families_[i].family->members) family_[member] = i;
  }
}

const StoredFamily* ValueWriter::family_of(const std::string& value) const {
  auto place = family_.find(value);
  return place == family_.end() ? nullptr : &families_[place->second];
}

std::string ValueWriter::add_constant(const std::string& name, Tensor value) {
  std::string unique = fresh(name);
  constants_[unique] = std::move(value);
  return unique;
}

void ValueWriter::add(NamedCall layer) {
  made_.insert(layer.outputs.begin(), layer.outputs.end());
  calls_.push_back(std::move(layer));
}

std::string ValueWriter::number(const std::string& name, float value) {
  return add_constant(name, Tensor::of<float>(Scalar::f32, {}, {value}));
}

std::string ValueWriter::compute(const std::string& name, const char* operation, std::vector<std::string> inputs,
                                 std::map<std::string, Attribute> attributes) {
  std::string output = fresh(name);
  add({output, operation, "", std::move(attributes), std::move(inputs), {output}});
  return output;
}

void ValueWriter::add_parameters(NamedCall& layer, const StoredFamily& stored, const std::string& value) {
  if (stored.format().block != 0) {
    add_block_parameters(layer, value);
    return;
  }
  std::vector<std::string>& names = parameters_[stored.family];
  if (names.empty()) {
    const Grid& grid = stored.grid;
    names = {
        number(stored.family->name + "/scale", grid.scale),
        add_constant(stored.family->name + "/zero_point", Tensor::of<int64_t>(grid.scalar, {}, {grid.zero_point}))};
  }
  layer.inputs.insert(layer.inputs.end(), names.begin(), names.end());
}

void ValueWriter::add_block_parameters(NamedCall& layer, const std::string& value) {
  std::string& scales = scales_[value];
  if (scales.empty()) scales = block_scales(value);
  const Blocks blocks = blocks_of(types_.at(value), matrix_inputs_, value);
  layer.inputs.push_back(scales);
  layer.attributes["axis"] = blocks.axis;
  layer.attributes["block_size"] = blocks.size;
}

// A 64th of the power of two at or below the largest magnitude of each block. With q = (2^23 + 1) m, the difference of
// q and (1 - 2^-24) q, each rounded to f32, is that power of two of m (Rump's unit in the first place, here for all m
// that are normal): every engine has these operations, while the bits of a float are of opset 26.
std::string ValueWriter::block_scales(const std::string& value) {
  const Blocks blocks = blocks_of(types_.at(value), matrix_inputs_, value);
  std::string magnitudes = compute(value + "/magnitudes", "Abs", {value});
  std::vector<int64_t> shape = blocks.shape;
  const auto axis = static_cast<size_t>(blocks.axis);
  const int64_t count = (shape[axis] + blocks.size - 1) / blocks.size;
  if (const int64_t missing = count * blocks.size - shape[axis]; missing != 0) {
    std::vector<int64_t> pads(2 * shape.size());
    pads[shape.size() + axis] = missing;
    const auto length = static_cast<int64_t>(pads.size());
    const std::string border = add_constant(value + "/border", Tensor::of(Scalar::i64, {length}, pads));
    magnitudes = compute(value + "/padded", "Pad", {magnitudes, border});
  }
  shape[axis] = count;
  shape.insert(shape.begin() + blocks.axis + 1, blocks.size);
  const auto rank = static_cast<int64_t>(shape.size());
  const std::string split = add_constant(value + "/blocks_shape", Tensor::of(Scalar::i64, {rank}, shape));
  const std::string in_blocks = compute(value + "/blocks", "Reshape", {magnitudes, split});
  const std::string along =
      add_constant(value + "/block_axis", Tensor::of(Scalar::i64, {1}, std::vector<int64_t>{blocks.axis + 1}));
  const std::string largest = compute(value + "/largest", "ReduceMax", {in_blocks, along}, {{"keepdims", int64_t{0}}});
  const std::string least = number(value + "/least", static_cast<float>(least_block_magnitude));
  const std::string bounded = compute(value + "/bounded", "Max", {largest, least});
  // Smaller by 2^-26, so that the factor overflows nothing.
  const std::string above = compute(value + "/above", "Mul", {bounded, number(value + "/spread", 0x1.000002p-3F)});
  const std::string below = compute(value + "/below", "Mul", {above, number(value + "/shrink", 0x1.fffffep-1F)});
  const std::string power = compute(value + "/power_of_two", "Sub", {above, below});
  return compute(value + "/scales", "Mul", {power, number(value + "/step", 0x1p20F)});
}

void ValueWriter::store(const std::string& value) {
  const StoredFamily& stored = *family_of(value);
  NamedCall layer{fresh(value + "/quantise"), stored.grid.scaled ? "QuantizeLinear" : "Cast", "", {}, {value}, {}};
  layer.outputs = {fresh(value + "/" + std::string(row(stored.grid.scalar).name))};
  if (stored.grid.scaled)
    add_parameters(layer, stored, value);
  else
    layer.attributes["to"] = onnx_type(stored.grid.scalar);
  if (stored.format().block != 0) layer.attributes["output_dtype"] = onnx_type(Scalar::i8);
  stored_[value] = layer.outputs[0];
  add(std::move(layer));
}

std::string ValueWriter::read(const std::string& value) {
  if (auto place = read_.find(value); place != read_.end()) return place->second;
  auto small = stored_.find(value);
  if (small == stored_.end()) return value;
  const StoredFamily& stored = *family_of(value);
  NamedCall layer{
      fresh(value + "/dequantise"), stored.grid.scaled ? "DequantizeLinear" : "Cast", "", {}, {small->second}, {}};
  // What a mover made has lost its name to the small format; statistics and users know it under the old one.
  const bool name_is_free = made_.count(value) == 0 && flow_.inputs.count(value) == 0;
  layer.outputs = {name_is_free ? value : fresh(value + "/dequantised")};
  if (stored.grid.scaled)
    add_parameters(layer, stored, value);
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

void ValueWriter::write(NamedCall layer) {
  const std::vector<std::string> outputs = layer.outputs;
  add(std::move(layer));
  for (const std::string& output : outputs) {
    const StoredFamily* stored = family_of(output);
    if (stored == nullptr) continue;
    const auto& sources = stored->family->sources;
    if (std::find(sources.begin(), sources.end(), output) != sources.end()) store(output);
  }
}

// What DynamicQuantizeLinear is defined to be, written out: its parts are layers that every engine knows.
std::string ValueWriter::quantise_dynamically(const std::string& name, const std::string& input) {
  const auto constant = [&](const char* what, float value) { return number(name + what, value); };
  const auto layer = [&](const std::string& what, const char* operation, std::vector<std::string> inputs,
                         std::map<std::string, Attribute> attributes = {}) {
    return compute(name + "/" + what, operation, std::move(inputs), std::move(attributes));
  };
  const std::map<std::string, Attribute> one_number = {{"keepdims", int64_t{0}}};
  const std::string zero = constant("/zero", 0), most = constant("/most", 255);
  const std::string low = layer("low", "Min", {layer("least", "ReduceMin", {input}, one_number), zero});
  const std::string high = layer("high", "Max", {layer("largest", "ReduceMax", {input}, one_number), zero});
  const std::string step = layer("step", "Div", {layer("range", "Sub", {high, low}), most});
  // Zeros only have no range; any scale will do for them.
  const std::string scale = layer("scale", "Max", {step, constant("/tiny", 1e-30F)});
  const std::string shift = layer("shift", "Sub", {zero, layer("steps_below", "Div", {low, scale})});
  const std::string whole = layer("whole_shift", "Round", {layer("clipped_shift", "Clip", {shift, zero, most})});
  const std::string zero_point = layer("zero_point", "Cast", {whole}, {{"to", onnx_type(Scalar::u8)}});
  const std::string small = layer("quantise", "QuantizeLinear", {input, scale, zero_point});
  return layer("dequantised", "DequantizeLinear", {small, scale, zero_point});
}

void ValueWriter::store_inputs() {
  for (const auto& [name, type] : original_.inputs) {
    if (family_.count(name) != 0) store(name);
  }
}

// In a small type the standard has to let the operator take it too, so that other engines read what is written.
bool ValueWriter::can_move(const NamedCall& layer, const TermFacts& facts, const ValueFormat& format) const {
  if (format.block != 0) return false;  // the scales would have to move too
  if (facts.moved.empty()) return false;
  for (const std::string& value : facts.moved) {
    if (stored_.count(value) == 0) return false;
  }
  const Scalar scalar = format.scalar;
  const OperatorRow* row = find_operator(layer.domain, layer.operation, original_.version);
  if (row == nullptr) return false;
  const int bits = hoist::row(scalar).bits;
  if (is_float(scalar) && bits == 8) return row->float8_since != 0 && original_.version >= row->float8_since;
  if (row->takes == Takes::floats) return scalar == Scalar::f16;
  if (facts.kind == LayerKind::view || facts.joins) return true;
  // Those that look for the largest number.
  return bits == 8 || scalar == Scalar::f16 || (scalar == Scalar::bf16 && original_.version >= 22);
}

bool ValueWriter::move(const NamedCall& layer) {
  const StoredFamily* stored = layer.outputs.empty() ? nullptr : family_of(layer.outputs[0]);
  if (stored == nullptr) return false;
  const auto& sources = stored->family->sources;
  if (std::find(sources.begin(), sources.end(), layer.outputs[0]) != sources.end()) return false;
  NamedCall moved = layer;
  const auto definition = flow_.definitions.find(layer.outputs[0]);
  const TermFacts facts = definition == flow_.definitions.end() ? TermFacts() : facts_of(definition->second);
  if (!can_move(layer, facts, stored->format())) {
    for (std::string& input : moved.inputs) input = read(input);
    for (const std::string& output : moved.outputs) read_[output] = output;
    add(std::move(moved));
    return true;
  }
  for (std::string& input : moved.inputs) {
    if (facts.moved.count(input) != 0) input = stored_.at(input);
  }
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
