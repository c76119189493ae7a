#include "ir/operators/versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "ir/operators/definitions/support.h"
#include "ir/program/onnx_type.h"
#include "ir/program/program_builder.h"

namespace hoist {
namespace {

using operators::fault;
using Integers = std::vector<int64_t>;
using Changed = Result<Nothing>;

/// A call during its conversion to the newest version.
class OldCall {
 public:
  explicit OldCall(Composer& composer) : call(composer.call()), composer_(composer) {}

  NamedCall call;

  bool has(size_t input) const { return input < call.inputs.size() && !call.inputs[input].empty(); }
  bool wants(size_t output) const { return output < call.outputs.size() && !call.outputs[output].empty(); }
  Type type(size_t input) const { return composer_.type(call.inputs[input]); }
  Scalar scalar(size_t input) const { return leaf_of(type(input))->scalar; }
  int64_t rank(size_t input) const { return std::ssize(sizes_of(type(input))); }
  Integers shape(size_t input) const { return shape_of(type(input)); }

  /// Returns the attribute and removes it from the call.
  template <class T>
  Result<std::optional<T>> take(const std::string& name) {
    const auto found = call.attributes.find(name);
    if (found == call.attributes.end()) return std::optional<T>();
    const T* value = std::get_if<T>(&found->second);
    if (value == nullptr) return fault(fmt::format("attribute {} has the wrong kind", name));
    std::optional<T> out = *value;
    call.attributes.erase(found);
    return out;
  }
  void drop(const std::string& name) { call.attributes.erase(name); }
  void set(const std::string& name, Attribute value) { call.attributes[name] = std::move(value); }
  void set_default(const std::string& name, const Attribute& value) { call.attributes.try_emplace(name, value); }
  void rename(const std::string& from, const std::string& to) {
    if (auto found = call.attributes.extract(from)) call.attributes[to] = std::move(found.mapped());
  }
  void set_input(size_t place, std::string value) {
    if (call.inputs.size() <= place) call.inputs.resize(place + 1);
    call.inputs[place] = std::move(value);
  }

  std::string add(const std::string& operation, Attributes attributes, std::vector<std::string> inputs) {
    return composer_.add(operation, std::move(attributes), std::move(inputs))[0];
  }
  std::string integers(const Integers& values) {
    return composer_.constant(Tensor::of(Scalar::i64, {std::ssize(values)}, values));
  }
  std::string number(Scalar scalar, double value) {
    Tensor out(scalar, {});
    if (is_float(scalar))
      out.set_float(0, value);
    else
      out.set_integer(0, static_cast<int64_t>(value));
    return composer_.constant(std::move(out));
  }
  std::string reshaped(const std::string& value, const Integers& shape) {
    return add("Reshape", {}, {value, integers(shape)});
  }
  std::string constant(Tensor value) { return composer_.constant(std::move(value)); }
  /// Null if the input is absent or computed.
  Result<const Tensor*> known(size_t input) {
    if (!has(input)) return static_cast<const Tensor*>(nullptr);
    return composer_.known(call.inputs[input]);
  }
  /// Integers that have to be known, of any type.
  Result<Integers> known(size_t input, const std::string& role) {
    HOIST_TRY(const Tensor* value, composer_.known(call.inputs[input]));
    if (value == nullptr) return fault(role + " has to be known at compile time");
    Integers out;
    for (int64_t i = 0; i < value->size(); ++i)
      out.push_back(is_float(value->scalar()) ? static_cast<int64_t>(value->float_at(i)) : value->integer_at(i));
    return out;
  }
  /// Adds the call in its present form, with new result values.
  std::vector<std::string> add(size_t results) {
    return composer_.add(call.operation, call.attributes, call.inputs, results);
  }
  /// Defines a result that the call itself no longer computes.
  void give(size_t result, const std::string& value) { composer_.give(result, value); }
  void become(const std::string& operation, Attributes attributes, std::vector<std::string> inputs) {
    call.operation = operation;
    call.attributes = std::move(attributes);
    call.inputs = std::move(inputs);
  }

 private:
  Composer& composer_;
};

Changed unchanged(OldCall& /*o*/) { return Nothing{}; }

Changed drop_consumed_inputs(OldCall& o) {
  o.drop("consumed_inputs");
  return Nothing{};
}

// "The shape of the second tensor has to be a contiguous subset of the first tensor's shape. The starting of the
// mutually equal shape is specified by the argument axis, and if it is not set, suffix matching is assumed." Exporters
// of that time wrote -1 for the suffix.
Changed align_right_operand(OldCall& o) {
  HOIST_TRY(const auto broadcast, o.take<int64_t>("broadcast"));
  HOIST_TRY(const auto axis, o.take<int64_t>("axis"));
  if (!broadcast || *broadcast == 0 || !axis || !o.has(0) || !o.has(1)) return Nothing{};
  const int64_t rank = o.rank(0), right = o.rank(1);
  if (element_count(o.shape(1)) == 1) return Nothing{};
  const int64_t first = *axis == -1 ? rank - right : *axis < 0 ? *axis + rank : *axis;
  if (first < 0 || first + right > rank)
    return fault(fmt::format("axis {} leaves no place for {} dimensions among {}", *axis, right, rank));
  Integers behind(static_cast<size_t>(rank - first - right));
  std::iota(behind.begin(), behind.end(), right);
  if (!behind.empty()) o.set_input(1, o.add("Unsqueeze", {}, {o.call.inputs[1], o.integers(behind)}));
  return Nothing{};
}

// Lengths of parts had the type of the data.
Changed lengths_to_attribute(OldCall& o) {
  if (!o.has(1)) return Nothing{};
  HOIST_TRY(const Integers lengths, o.known(1, "split"));
  o.call.inputs.resize(1);
  o.set("split", lengths);
  return Nothing{};
}

Changed drop_broadcast(OldCall& o) {
  o.drop("broadcast");
  return Nothing{};
}

// A slope per channel, which since version 7 broadcasts from the last axis.
Changed align_slope(OldCall& o) {
  if (!o.has(0) || !o.has(1) || o.rank(1) != 1 || o.rank(0) <= 2 || element_count(o.shape(1)) == 1) return Nothing{};
  Integers behind(static_cast<size_t>(o.rank(0) - 2));
  std::iota(behind.begin(), behind.end(), 1);
  o.set_input(1, o.add("Unsqueeze", {}, {o.call.inputs[1], o.integers(behind)}));
  return Nothing{};
}

// In the order of TensorProto.DataType.
constexpr auto type_names = std::to_array<std::string_view>({"UNDEFINED", "FLOAT", "UINT8", "INT8", "UINT16", "INT16",
                                                             "INT32", "INT64", "STRING", "BOOL", "FLOAT16", "DOUBLE",
                                                             "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"});

Changed number_type(OldCall& o) {
  HOIST_TRY(const auto name, o.take<std::string>("to"));
  if (!name) return fault("attribute to is missing");
  std::string upper = *name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  const auto found = std::find(type_names.begin() + 1, type_names.end(), upper);
  if (found == type_names.end()) return fault(fmt::format("to is '{}', which is not a type", *name));
  o.set("to", static_cast<int64_t>(found - type_names.begin()));
  return Nothing{};
}

// Copies along one axis.
Changed tile_axis(OldCall& o) {
  if (o.call.inputs.size() != 3) return Nothing{};
  HOIST_TRY(const Integers tiles, o.known(1, "tiles"));
  HOIST_TRY(const Integers named, o.known(2, "axis"));
  if (tiles.size() != 1 || named.size() != 1)
    return fault(fmt::format("tiles has {} values and axis {}, expected 1 each", tiles.size(), named.size()));
  HOIST_TRY(const int64_t axis, operators::normalise_axis(named[0], o.rank(0)));
  Integers repeats(static_cast<size_t>(o.rank(0)), 1);
  repeats[static_cast<size_t>(axis)] = tiles[0];
  o.call.inputs = {o.call.inputs[0], o.integers(repeats)};
  return Nothing{};
}

// The power was a float: for a power that is not an integer the norm is written as (sum of |x|^p)^(1/p), with the sum
// as a multiple of a mean.
Changed whole_power(OldCall& o) {
  HOIST_TRY(const auto p, o.take<double>("p"));
  const double power = p.value_or(2);
  if (power == std::round(power) && std::abs(power) < 1e9) {
    o.set("p", static_cast<int64_t>(power));
    return Nothing{};
  }
  const Scalar scalar = o.scalar(0);
  double count = 1;
  if (o.call.operation == "LpPool") {
    const auto kernel = o.call.attributes.find("kernel_shape");
    const auto* extents = kernel == o.call.attributes.end() ? nullptr : std::get_if<Integers>(&kernel->second);
    if (extents == nullptr) return fault("attribute kernel_shape is missing");
    count = static_cast<double>(element_count(*extents));
    o.call.operation = "AveragePool";
    o.set("count_include_pad", int64_t{1});
  } else {
    const Integers shape = o.shape(0);
    if (shape.size() < 2) return fault("the input has to have at least two dimensions");
    count = static_cast<double>(element_count({shape.begin() + 2, shape.end()}));
    o.call.operation = "GlobalAveragePool";
  }
  o.call.inputs = {o.add("Pow", {}, {o.add("Abs", {}, {o.call.inputs[0]}), o.number(scalar, power)})};
  const std::string total = o.add("Mul", {}, {o.add(1)[0], o.number(scalar, count)});
  o.become("Pow", {}, {total, o.number(scalar, 1 / power)});
  return Nothing{};
}

Changed rename_paddings(OldCall& o) {
  o.rename("paddings", "pads");
  return Nothing{};
}

Changed value_to_input(OldCall& o) {
  HOIST_TRY(const auto value, o.take<double>("value"));
  if (value && *value != 0) o.set_input(2, o.number(o.scalar(0), *value));
  return Nothing{};
}

// Absent bounds are the limits of f32 in versions 6 to 10, where infinity is beyond them.
Changed bounds_to_inputs(OldCall& o) {
  constexpr double most = std::numeric_limits<float>::max();
  const bool bounded = o.call.version >= 6;
  HOIST_TRY(auto low, o.take<double>("min"));
  HOIST_TRY(auto high, o.take<double>("max"));
  if (bounded && !low) low = -most;
  if (bounded && !high) high = most;
  const auto beyond_all = [&](double bound) { return o.scalar(0) == Scalar::f16 && std::abs(bound) == most; };
  if (low && !beyond_all(*low)) o.set_input(1, o.number(o.scalar(0), *low));
  if (high && !beyond_all(*high)) o.set_input(2, o.number(o.scalar(0), *high));
  return Nothing{};
}

Changed default_axis_one(OldCall& o) {
  o.set_default("axis", int64_t{1});
  return Nothing{};
}

Changed round_parameters(OldCall& o) {
  o.set_default("alpha", 1.6732);
  o.set_default("gamma", 1.0507);
  return Nothing{};
}

// The default of version 1 of GRU reads "foward".
Changed drop_output_sequence(OldCall& o) {
  o.drop("output_sequence");
  const auto direction = o.call.attributes.find("direction");
  if (direction != o.call.attributes.end() && direction->second == Attribute(std::string("foward")))
    o.drop("direction");
  return Nothing{};
}

// Layers of versions before 12 drop nothing in inference; the ratio is for training. The mask had the type of the data
// before version 10.
Changed keep_all(OldCall& o) {
  o.drop("is_test");
  HOIST_TRY(const auto ratio, o.take<double>("ratio"));
  o.set_input(1, o.number(Scalar::f32, ratio.value_or(0.5)));
  if (o.call.version >= 10 || !o.wants(1)) return Nothing{};
  const std::string mask = o.add(2)[1];
  o.give(1, o.add("Cast", {{"to", onnx_type(o.scalar(0))}}, {mask}));
  o.become("Identity", {}, {o.call.inputs[0]});
  o.call.outputs.resize(1);
  return Nothing{};
}

Changed scale_planes(OldCall& o) {
  HOIST_TRY(const auto height, o.take<double>("height_scale"));
  HOIST_TRY(const auto width, o.take<double>("width_scale"));
  if (height && width) o.set("scales", std::vector<double>{1, 1, *height, *width});
  return Nothing{};
}

// "Each dimension value of the output tensor is floor(input_dimension * scale)": positions are output positions divided
// by the scale. An axis that grows takes the element at or before the position, and an axis that shrinks the element at
// or after it. In the standard's case of version 10, an axis of [1, 2, 3, 4] with scale 0.6 gives [1, 3].
Changed resize_from_corner(OldCall& o) {
  if (o.call.inputs.size() == 2) o.call.inputs = {o.call.inputs[0], "", o.call.inputs[1]};
  const auto mode = o.call.attributes.find("mode");
  if (mode != o.call.attributes.end() && mode->second == Attribute(std::string("bilinear")))
    mode->second = std::string("linear");
  o.set("coordinate_transformation_mode", std::string("asymmetric"));
  o.set("nearest_mode", std::string("floor"));
  const bool nearest = mode == o.call.attributes.end() || mode->second == Attribute(std::string("nearest"));
  HOIST_TRY(const Tensor* scales, o.known(2));
  if (!nearest || scales == nullptr || !is_float(scales->scalar())) return Nothing{};
  Tensor shrinking = *scales, growing = *scales;
  bool shrinks = false, grows = false;
  for (int64_t i = 0; i < scales->size(); ++i) {
    const double scale = scales->float_at(i);
    shrinks |= scale < 1;
    grows |= scale > 1;
    shrinking.set_float(i, std::min(scale, 1.0));
    growing.set_float(i, std::max(scale, 1.0));
  }
  if (!shrinks) return Nothing{};
  Attributes up = o.call.attributes;
  o.set("nearest_mode", std::string("ceil"));
  if (!grows) return Nothing{};
  const std::string shrunk =
      o.add("Resize", o.call.attributes, {o.call.inputs[0], "", o.constant(std::move(shrinking))});
  o.become("Resize", std::move(up), {shrunk, "", o.constant(std::move(growing))});
  return Nothing{};
}

Changed count_to_input(OldCall& o) {
  HOIST_TRY(const auto k, o.take<int64_t>("k"));
  if (k) o.set_input(1, o.integers({*k}));
  return Nothing{};
}

// "The input is coerced into a 2-D tensor of [a_0 * ... * a_{k-1}, a_k * ... * a_{n-1}], k being the axis."
Changed coerce_to_rows(OldCall& o) {
  HOIST_TRY(const auto named, o.take<int64_t>("axis"));
  HOIST_TRY(const int64_t axis, operators::normalise_axis(named.value_or(1), o.rank(0)));
  o.set("axis", int64_t{-1});
  if (axis == o.rank(0) - 1) return Nothing{};
  const std::string x = o.call.inputs[0];
  o.call.inputs = {o.add("Flatten", {{"axis", axis}}, {x})};
  const std::string rows = o.add(1)[0];
  o.become("Reshape", {{"allowzero", int64_t{1}}}, {rows, o.add("Shape", {}, {x})});
  return Nothing{};
}

// A layer that names statistics is in training; the batch's statistics were results of their own. Each position of an
// image has parameters of its own if the layer is not spatial, so positions are channels.
Changed normalise_batch(OldCall& o) {
  HOIST_TRY(const auto spatial, o.take<int64_t>("spatial"));
  o.drop("is_test");
  if (o.call.outputs.size() > 1) o.set("training_mode", int64_t{1});
  const bool by_position = spatial.value_or(1) == 0 && o.rank(0) > 2;
  const std::string x = o.call.inputs[0], scale = o.call.inputs[1];
  if (by_position) {
    o.call.inputs[0] = o.add("Flatten", {{"axis", int64_t{1}}}, {x});
    for (size_t i = 1; i < o.call.inputs.size(); ++i) o.call.inputs[i] = o.reshaped(o.call.inputs[i], {-1});
  }
  const auto as_scale = [&](const std::string& value) {
    return by_position ? o.add("Reshape", {}, {value, o.add("Shape", {}, {scale})}) : value;
  };
  if (o.wants(3) || o.wants(4)) {
    Integers axes(static_cast<size_t>(by_position ? 2 : o.rank(0)));
    std::iota(axes.begin(), axes.end(), 0);
    std::erase(axes, 1);
    const auto mean = [&](const std::string& value, int64_t keep) {
      return o.add("ReduceMean", {{"keepdims", keep}}, {value, o.integers(axes)});
    };
    const std::string distance = o.add("Sub", {}, {o.call.inputs[0], mean(o.call.inputs[0], 1)});
    o.give(3, as_scale(mean(o.call.inputs[0], 0)));
    o.give(4, as_scale(mean(o.add("Mul", {}, {distance, distance}), 0)));
  }
  o.call.outputs.resize(std::min<size_t>(o.call.outputs.size(), 3));
  if (!by_position) return Nothing{};
  const std::vector<std::string> results = o.add(o.call.outputs.size());
  for (size_t i = 1; i < results.size(); ++i) o.give(i, as_scale(results[i]));
  o.become("Reshape", {{"allowzero", int64_t{1}}}, {results[0], o.add("Shape", {}, {x})});
  o.call.outputs.resize(1);
  return Nothing{};
}

// The first dimension is a batch, and each member is a separate scan: a scan over the batch whose body is a scan.
Changed scan_batch(OldCall& o) {
  if (o.has(0)) return fault("lengths of sequences are not supported", "versions of Scan from 9 on have none");
  HOIST_TRY(const auto directions, o.take<Integers>("directions"));
  if (o.call.inputs.size() < 2) return fault("the scan has no operands");
  o.call.inputs.erase(o.call.inputs.begin());
  NamedCall member = o.call;
  member.name += "/member";
  member.version = 0;
  if (directions) member.attributes["scan_input_directions"] = *directions;
  NamedBody batch{"body", "batch", {}, {}, {}, {}};
  for (size_t i = 0; i < member.inputs.size(); ++i)
    batch.inputs.push_back(member.inputs[i] = fmt::format("{}/operand_{}", member.name, i));
  for (size_t i = 0; i < member.outputs.size(); ++i)
    batch.outputs.push_back(member.outputs[i] = fmt::format("{}/result_{}", member.name, i));
  batch.calls = {std::move(member)};
  o.set("num_scan_inputs", std::ssize(o.call.inputs));
  o.call.bodies = {std::move(batch)};
  return Nothing{};
}

// Splits into as many equal parts as there are results.
Changed say_part_count(OldCall& o) {
  if (o.has(1) || o.call.attributes.count("split") != 0) return Nothing{};
  const auto found = o.call.attributes.find("axis");
  const auto* named = found == o.call.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  HOIST_TRY(const int64_t axis, operators::normalise_axis(named == nullptr ? 0 : *named, o.rank(0)));
  const int64_t n = o.shape(0)[static_cast<size_t>(axis)], parts = std::ssize(o.call.outputs);
  if (parts == 0 || n % parts != 0) return fault(fmt::format("{} elements do not split into {} equal parts", n, parts));
  o.set("num_outputs", parts);
  return Nothing{};
}

Changed say_output_half_pixel(OldCall& o) {
  o.set_default("coordinate_transformation_mode", std::string("output_half_pixel"));
  return Nothing{};
}

Changed rename_modes(OldCall& o) {
  const auto mode = o.call.attributes.find("mode");
  if (mode == o.call.attributes.end()) return Nothing{};
  if (mode->second == Attribute(std::string("bilinear"))) mode->second = std::string("linear");
  if (mode->second == Attribute(std::string("bicubic"))) mode->second = std::string("cubic");
  return Nothing{};
}

Changed axis_to_input(OldCall& o) {
  HOIST_TRY(const auto axis, o.take<int64_t>("axis"));
  o.set_input(2, o.number(Scalar::i64, static_cast<double>(axis.value_or(1))));
  return Nothing{};
}

// Scale and bias have one element per group.
Changed repeat_for_channels(OldCall& o) {
  const auto found = o.call.attributes.find("num_groups");
  const auto* groups = found == o.call.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  if (groups == nullptr || *groups < 1 || o.rank(0) < 2 || o.shape(0)[1] % *groups != 0)
    return fault(
        fmt::format("{} groups do not divide the channels of {}", groups == nullptr ? 0 : *groups, text(o.type(0))));
  for (size_t i : {1, 2}) {
    if (!o.has(i)) continue;
    if (o.shape(i) != Integers{*groups})
      return fault(fmt::format("input {} is {}, expected [{}]", i, text(o.type(i)), *groups));
    const std::string repeated =
        o.add("Expand", {}, {o.reshaped(o.call.inputs[i], {-1, 1}), o.integers({1, o.shape(0)[1] / *groups})});
    o.call.inputs[i] = o.reshaped(repeated, {-1});
  }
  return Nothing{};
}

struct VersionRow {
  std::string_view operation;  ///< "" is any
  int last;                    ///< the last version of ai.onnx with this meaning
  Changed (*change)(OldCall&);
  std::string_view becomes = {};  ///< the operator of the call afterwards, if it is another one
};

// Sorted by their last version: a call passes through all rows of its operator from its version on, and may become a
// call of another operator.
constexpr auto rows = std::to_array<VersionRow>({
    {"GlobalLpPool", 1, whole_power},
    {"LpPool", 1, whole_power},
    {"Pad", 1, rename_paddings},
    {"Split", 1, lengths_to_attribute},
    {"Concat", 3, default_axis_one},
    {"", 5, drop_consumed_inputs},
    {"Cast", 5, number_type},
    {"Selu", 5, round_parameters},
    {"Tile", 5, tile_axis},
    {"Add", 6, align_right_operand},
    {"And", 6, align_right_operand},
    {"Div", 6, align_right_operand},
    {"Equal", 6, align_right_operand},
    {"GRU", 6, drop_output_sequence},
    {"Gemm", 6, drop_broadcast},
    {"Greater", 6, align_right_operand},
    {"LSTM", 6, drop_output_sequence},
    {"Less", 6, align_right_operand},
    {"Mul", 6, align_right_operand},
    {"Or", 6, align_right_operand},
    {"PRelu", 6, align_slope},
    {"Pow", 6, align_right_operand},
    {"RNN", 6, drop_output_sequence},
    {"Sub", 6, align_right_operand},
    {"Upsample", 6, scale_planes},
    {"Xor", 6, align_right_operand},
    {"Scan", 8, scan_batch},
    {"TopK", 9, count_to_input},
    {"Upsample", 9, resize_from_corner, "Resize"},
    {"Clip", 10, bounds_to_inputs},
    {"Pad", 10, value_to_input},
    {"Resize", 10, resize_from_corner},
    {"Scatter", 10, unchanged, "ScatterElements"},
    {"Dropout", 11, keep_all},
    {"Hardmax", 12, coerce_to_rows},
    {"LogSoftmax", 12, coerce_to_rows},
    {"Softmax", 12, coerce_to_rows},
    {"BatchNormalization", 13, normalise_batch},
    {"RoiAlign", 15, say_output_half_pixel},
    {"Split", 17, say_part_count},
    {"DFT", 19, axis_to_input},
    {"GridSample", 19, rename_modes},
    {"GroupNormalization", 20, repeat_for_channels},
});
static_assert(std::is_sorted(rows.begin(), rows.end(),
                             [](const VersionRow& a, const VersionRow& b) { return a.last < b.last; }));

bool concerns(const VersionRow& row, const NamedCall& call) {
  return call.version <= row.last && call.domain.empty() && (row.operation.empty() || row.operation == call.operation);
}

}  // namespace

int last_old_version(std::string_view operation) {
  const auto last = std::find_if(rows.rbegin(), rows.rend(), [&](const VersionRow& row) {
    return row.operation == operation && row.becomes.empty();
  });
  return last == rows.rend() ? 0 : last->last;
}

std::string_view successor_of(std::string_view operation) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const VersionRow& row) {
    return row.operation == operation && !row.becomes.empty();
  });
  return found == rows.end() ? std::string_view() : found->becomes;
}

bool has_newer_meaning(const NamedCall& call) {
  return call.version > 0 &&
         std::any_of(rows.begin(), rows.end(), [&](const VersionRow& row) { return concerns(row, call); });
}

Result<NamedCall> newest_meaning(Composer& composer) {
  OldCall old(composer);
  for (const VersionRow& row : rows) {
    if (!concerns(row, old.call)) continue;
    HOIST_TRY_VOID(row.change(old));
    if (!row.becomes.empty()) old.call.operation = row.becomes;
  }
  old.call.version = 0;
  return std::move(old.call);
}

}  // namespace hoist
