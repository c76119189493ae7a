// Encoders of the domain ai.onnx.ml: numbers and strings by tables that stand in attributes. Strings are compared by
// their words, so that kernels look them up as they do numbers.
#include <fmt/format.h>

#include <optional>

#include "ir/operators/families.h"
#include "ir/operators/support.h"
#include "ir/strings.h"

namespace hoist::operators {
namespace {

constexpr std::string_view encoders = "ai.onnx.ml";

// A list of labels: NAME_strings, NAME_int64s, NAME_floats or NAME_tensor.
Result<std::optional<Tensor>> labels_in(const OperatorContext& c, const std::string& name) {
  if (auto found = c.call.attributes.find(name + "_tensor"); found != c.call.attributes.end()) {
    const auto* tensor = std::get_if<Tensor>(&found->second);
    if (tensor == nullptr) return fault(fmt::format("attribute {}_tensor has to be a tensor", name));
    return std::optional(tensor->reshaped({tensor->size()}));
  }
  HOIST_TRY(const std::vector<std::string> strings, strings_attribute(c, name + "_strings"));
  if (!strings.empty()) {
    HOIST_TRY(const Tensor made, tensor_of_strings({std::ssize(strings)}, strings));
    return std::optional(made);
  }
  HOIST_TRY(const Shape numbers, integers_attribute(c, name + "_int64s", {}));
  if (!numbers.empty()) return std::optional(Tensor::of(Scalar::i64, {std::ssize(numbers)}, numbers));
  if (auto found = c.call.attributes.find(name + "_floats"); found != c.call.attributes.end()) {
    const auto* list = std::get_if<std::vector<double>>(&found->second);
    if (list == nullptr) return fault(fmt::format("attribute {}_floats has to be a list of floats", name));
    return std::optional(Tensor::of(Scalar::f32, {std::ssize(*list)}, *list));
  }
  return std::optional<Tensor>();
}

// What stands for an element that no key equals, of one element.
Result<Tensor> default_label(const OperatorContext& c, Scalar scalar) {
  if (auto found = c.call.attributes.find("default_tensor"); found != c.call.attributes.end()) {
    const auto* tensor = std::get_if<Tensor>(&found->second);
    if (tensor == nullptr || tensor->size() != 1 || tensor->scalar() != scalar)
      return fault(fmt::format("default_tensor has to be one {}", row(scalar).name));
    return tensor->reshaped({1});
  }
  if (scalar == Scalar::string) {
    HOIST_TRY(const std::string text, string_attribute(c, "default_string", "_Unused"));
    return tensor_of_strings({1}, {text});
  }
  Tensor out(scalar, {1});
  if (is_float(scalar)) {
    HOIST_TRY(const double number, float_attribute(c, "default_float", -0.0));
    out.set_float(0, number);
  } else {
    HOIST_TRY(const int64_t number, integer_attribute(c, "default_int64", -1));
    out.set_integer(0, number);
  }
  return out;
}

// NaN among the keys stands for every NaN. Of equal keys the last one counts.
Lowered looked_up(Expr x, const Tensor& keys, const Tensor& values, const Tensor& otherwise) {
  if (keys.size() != values.size() || keys.size() == 0)
    return fault(fmt::format("{} keys and {} values", keys.size(), values.size()));
  if (keys.scalar() != element_of(x))
    return fault(fmt::format("keys are {}, the input is {}", row(keys.scalar()).name, row(element_of(x)).name));
  const Expr entries = zip({constant(keys), constant(values)});
  const auto label = [&](Expr v) {
    return fold(
        [&](Expr found, Expr entry) {
          Number equal = Number(v) == get(0, entry);
          if (is_float(keys.scalar()))
            equal = equal | (apply(Function::is_nan, v) & apply(Function::is_nan, get(0, entry)));
          return choose(equal, get(1, entry), found).e;
        },
        at_position(0, constant(otherwise)), entries);
  };
  return one(map_at(static_cast<int>(rank_of(x)), label, x));
}

Lowered lower_label_encoder(const OperatorContext& c) {
  const Expr x = c.inputs[0];
  HOIST_TRY(const std::vector<std::string> classes, strings_attribute(c, "classes_strings"));
  if (!classes.empty()) {  // version 1: strings by their places, or the other way round
    HOIST_TRY(const Tensor strings, tensor_of_strings({std::ssize(classes)}, classes));
    Tensor places(Scalar::i64, {std::ssize(classes)});
    for (int64_t i = 0; i < places.size(); ++i) places.set_integer(i, i);
    const bool to_places = element_of(x) == Scalar::string;
    HOIST_TRY(const Tensor otherwise, default_label(c, to_places ? Scalar::i64 : Scalar::string));
    return looked_up(x, to_places ? strings : places, to_places ? places : strings, otherwise);
  }
  HOIST_TRY(const std::optional<Tensor> keys, labels_in(c, "keys"));
  HOIST_TRY(const std::optional<Tensor> values, labels_in(c, "values"));
  if (!keys || !values) return fault("the lists of keys and values are missing");
  HOIST_TRY(const Tensor otherwise, default_label(c, values->scalar()));
  return looked_up(x, *keys, *values, otherwise);
}

Lowered lower_category_mapper(const OperatorContext& c) {
  const Expr x = c.inputs[0];
  HOIST_TRY(const std::vector<std::string> texts, strings_attribute(c, "cats_strings"));
  HOIST_TRY(const Shape numbers, integers_attribute(c, "cats_int64s", {}));
  HOIST_TRY(const Tensor strings, tensor_of_strings({std::ssize(texts)}, texts));
  const Tensor whole = Tensor::of(Scalar::i64, {std::ssize(numbers)}, numbers);
  const bool to_numbers = element_of(x) == Scalar::string;
  HOIST_TRY(const Tensor otherwise, default_label(c, to_numbers ? Scalar::i64 : Scalar::string));
  return looked_up(x, to_numbers ? strings : whole, to_numbers ? whole : strings, otherwise);
}

Lowered lower_one_hot_encoder(const OperatorContext& c) {
  Expr x = c.inputs[0];
  HOIST_TRY(const Shape numbers, integers_attribute(c, "cats_int64s", {}));
  HOIST_TRY(const std::vector<std::string> texts, strings_attribute(c, "cats_strings"));
  const bool is_string = element_of(x) == Scalar::string;
  if (is_string ? texts.empty() : numbers.empty())
    return fault(fmt::format("{} is missing", is_string ? "cats_strings" : "cats_int64s"));
  HOIST_TRY(const Tensor strings, tensor_of_strings({std::ssize(texts)}, texts));
  const Expr all = constant(is_string ? strings : Tensor::of(Scalar::i64, {std::ssize(numbers)}, numbers));
  return one(map_at(
      static_cast<int>(rank_of(x)),
      [&](Expr v) {
        const Number own = is_string ? v : convert(Scalar::i64, v);
        return map(
            [&](Expr category) { return choose(own == category, literal(Scalar::f32, 1), literal(Scalar::f32, 0)).e; },
            all);
      },
      x));
}

// clang-format off
constexpr auto encoder_rows = std::to_array<OperatorRow>({
  {encoders, "LabelEncoder", 1, 1, 1, Takes::anything, lower_label_encoder,
   "the value that stands beside the key equal to each element; a function, since keys and values stand in attributes"},
  {encoders, "CategoryMapper", 1, 1, 1, Takes::anything, lower_category_mapper,
   "strings by their numbers or numbers by their strings; a function, since both stand in attributes"},
  {encoders, "OneHotEncoder", 1, 1, 1, Takes::anything, lower_one_hot_encoder,
   "1 at the category of each number or string; a function, since the categories stand in an attribute"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> encoder_operators() { return encoder_rows; }

}  // namespace hoist::operators
