// Operators that choose among elements of arrays with data-dependent extents, and among elements of images whose number
// depends on data.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ir/operators/dynamic/dynamic_arrays.h"

namespace hoist::operators {
namespace {

// ---- Choosing ----------------------------------------------------------------------------------------------------
Done positions_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray x = operand(c, 0);
  const std::string all = filled(c, x, all_dimensions(x), constant_number(c, scalar_of(c, x.value), 0));
  const std::string found = call(c, "NonZero", {all});
  c.give(0, found, extents_of(c, found));
  return true;
}

Done compressed_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  DynamicArray x = operand(c, 0);
  DynamicArray keeps = operand(c, 1);
  const bool flat = c.call().attributes.count("axis") == 0;
  if (flat && x.extents.size() != 1) {
    HOIST_TRY(x, reshaped(c, x, {product(c, x.extents)}));
  }
  HOIST_TRY(const int64_t axis, flat ? Result<int64_t>(0) : axis_of(c, "axis", 0, x.extents.size()));
  const auto along_axis = static_cast<size_t>(axis);
  if (keeps.extents.size() != 1) return false;
  const std::string no = constant_number(c, Scalar::boolean, 0);
  const int64_t room = std::min(room_of(c, keeps.value)[0], room_of(c, x.value)[along_axis]);
  const std::string wanted = filled(c, keeps, {0}, no);
  DynamicArray both{slice_capacity(c, wanted, 0, 0, room), {x.extents[along_axis]}};
  const std::string found = call(c, "Compress", {x.value, filled(c, both, {0}, no)}, {{"axis", axis}});
  ShapeValues extents = x.extents;
  extents[along_axis] = extents_of(c, found)[along_axis];
  c.give(0, found, extents);
  return true;
}

Done largest_call(ExtentComposer& c) {
  const DynamicArray x = operand(c, 0);
  HOIST_TRY(const int64_t named, axis_of(c, "axis", -1, x.extents.size()));
  const auto axis = static_cast<size_t>(named);
  const int64_t room = room_of(c, x.value)[axis];
  HOIST_TRY(std::optional<ShapeValues> wanted, deciding_numbers(c, "k", 1));
  if (x.extents[axis].is_known() && (!wanted || (are_all_known(*wanted) && !reads_dynamic(c)))) return false;
  if (!wanted && c.has(1)) {
    const std::string number =
        call(c, "Cast", {call(c, "Reshape", {input_name(c, 1)}, {{"shape", Shape{}}})}, {{"to", int64_t{7}}});
    wanted = {ShapeValue{0, room, number}};
  }
  if (!wanted || wanted->size() != 1) return false;
  ShapeValue k = (*wanted)[0];
  if (k.is_known() && (k.low < 0 || k.low > room))
    return fault(fmt::format("k is {}, axis {} has at most {} elements", k.low, axis, room));
  k.high = std::min(k.high, room);
  const bool largest = integer_of(c.call(), "largest", 1) != 0;
  const std::string all = filled(c, x, {named}, extreme_number(c, scalar_of(c, x.value), largest));
  Attributes attributes = attributes_without(c, {"k"});
  attributes["k"] = Shape{k.high};
  const std::vector<std::string> found = c.add_bounded("TopK", attributes, {all}, 2);
  ShapeValues extents = x.extents;
  extents[axis] = k;
  c.give(0, found[0], extents);
  c.give(1, found[1], extents);
  return true;
}

// True if Resize by scales leaves dimension 0 unchanged.
Result<bool> keeps_images(ExtentComposer& c) {
  const auto axes = known_list(c, c.call(), "axes", c.call().inputs.size());
  if (axes) return std::find(axes->begin(), axes->end(), 0) == axes->end();
  if (!c.has(2)) return false;
  HOIST_TRY(const Tensor* scales, c.known(input_name(c, 2)));
  return scales != nullptr && scales->size() > 0 && scales->float_at(0) == 1;
}

}  // namespace

// Dimension 0 is a batch of images, which are independent of each other.
Done images_call(ExtentComposer& c) {
  const DynamicArray x = operand(c, 0);
  const auto counts = c.counts(x.value);
  if (counts.size() != 1 || counts.count(0) == 0) return false;
  std::vector<std::string> inputs = c.call().inputs;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (c.has(i) && !c.counts(inputs[i]).empty()) return false;
  }
  if (c.call().operation == "Resize") {
    HOIST_TRY(const bool keeps, keeps_images(c));
    if (!keeps) return false;
  }
  const std::vector<std::string> found =
      c.add_bounded(c.call().operation, c.call().attributes, inputs, c.call().outputs.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ShapeValues extents = extents_of(c, found[i]);
    if (extents.empty() || extents[0].high != room_of(c, x.value)[0]) return false;
    extents[0] = x.extents[0];
    c.give(i, found[i], extents);
  }
  return true;
}

namespace {

// The result has one image per region; regions beyond the actual length have an empty area.
Done regions_call(ExtentComposer& c) {
  if (!c.counts(input_name(c, 0)).empty() || !reads_dynamic(c)) return false;
  for (size_t i = 1; i < c.call().inputs.size(); ++i) {
    if (!c.has(i) || room_of(c, input_name(c, i)).empty()) return false;
  }
  const DynamicArray regions = operand(c, 1);
  std::vector<std::string> inputs = c.call().inputs;
  ShapeValue n = regions.extents[0];
  int64_t room = std::numeric_limits<int64_t>::max();
  for (size_t i = 1; i < inputs.size(); ++i) {
    room = std::min(room, room_of(c, inputs[i])[0]);
    if (n.is_known()) n = operand(c, i).extents[0];
  }
  for (size_t i = 1; i < inputs.size(); ++i) {
    DynamicArray own = operand(c, i);
    own.extents[0] = n;
    inputs[i] = slice_capacity(c, filled(c, own, {0}, constant_number(c, scalar_of(c, own.value), 0)), 0, 0, room);
  }
  const std::string images = call(c, c.call().operation, inputs, c.call().attributes);
  ShapeValues extents = extents_of(c, images);
  extents[0] = n;
  c.give(0, images, extents);
  return true;
}

// Boxes beyond the actual length come last: their score is NaN. They have no area either, so they neither overlap a box
// nor replace one, and are never chosen.
Done suppressed_call(ExtentComposer& c) {
  if (!reads_dynamic(c)) return false;
  const DynamicArray boxes = operand(c, 0), scores = operand(c, 1);
  if (boxes.extents.size() != 3 || scores.extents.size() != 3) return false;
  if (!boxes.extents[0].is_known() || !scores.extents[0].is_known() || !scores.extents[1].is_known())
    return fault("the number of images or classes depends on data");
  ShapeValue n = boxes.extents[1].is_known() ? scores.extents[2] : boxes.extents[1];
  const int64_t room = std::min(room_of(c, boxes.value)[1], room_of(c, scores.value)[2]);
  const std::string zero = constant_number(c, scalar_of(c, boxes.value), 0);
  const std::string none = c.once("no number", [&] {
    return c.constant(Tensor::of(Scalar::f32, {}, std::vector<double>{std::numeric_limits<double>::quiet_NaN()}));
  });
  std::vector<std::string> inputs = c.call().inputs;
  inputs[0] =
      filled(c, {slice_capacity(c, boxes.value, 1, 0, room), {boxes.extents[0], n, boxes.extents[2]}}, {1}, zero);
  inputs[1] =
      filled(c, {slice_capacity(c, scores.value, 2, 0, room), {scores.extents[0], scores.extents[1], n}}, {2}, none);
  const std::string found = call(c, "NonMaxSuppression", inputs, c.call().attributes);
  if (c.counts(found).empty()) {
    c.give(0, found);
    return true;
  }
  const std::string column = c.add("Gather", {{"axis", int64_t{1}}}, {found, constant_number(c, Scalar::i64, 2)})[0];
  const std::string count = c.add("Less", {}, {column, n.value})[0];
  const std::string kept = c.add("Compress", {{"axis", int64_t{0}}}, {found, count})[0];
  c.give(0, kept, extents_of(c, kept));
  return true;
}

constexpr auto rows_of_choices = std::to_array<ExtentMeaningRow>({
    {"AveragePool", images_call},
    {"Compress", compressed_call},
    {"Conv", images_call},
    {"ConvTranspose", images_call},
    {"DepthToSpace", images_call},
    {"GlobalAveragePool", images_call},
    {"GlobalMaxPool", images_call},
    {"GroupNormalization", images_call},
    {"InstanceNormalization", images_call},
    {"LRN", images_call},
    {"MaxPool", images_call},
    {"MaxRoiPool", regions_call},
    {"NonMaxSuppression", suppressed_call},
    {"NonZero", positions_call},
    {"RoiAlign", regions_call},
    {"SpaceToDepth", images_call},
    {"TopK", largest_call},
});

}  // namespace

std::span<const ExtentMeaningRow> dynamic_choices() { return rows_of_choices; }

}  // namespace hoist::operators
