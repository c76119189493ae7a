// Encoders of the domain ai.onnx.ml: numbers and strings mapped by tables in attributes. Strings are compared by their
// handles, so that their tables work like tables of numbers. A map is the tensor of its values by key, so ZipMap,
// DictVectorizer and CastMap check the number of keys and pass on the values.
#include <fmt/format.h>

#include <optional>

#include "ir/base/strings.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

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

// The result for an element that equals no key, a single element.
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

// NaN among the keys matches every NaN. The last of several equal keys is used.
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
  if (!classes.empty()) {  // version 1: strings to their positions, or positions to strings
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

// ---- Maps: a map is the tensor of its values by key ----------------------------------------------------------------

// One row of values per map, with one value per key.
Result<Expr> rows_by_key(const OperatorContext& c, int64_t keys, const std::string& named) {
  const Expr x = rank_of(c.inputs[0]) == 1 ? repeat(1, c.inputs[0]) : c.inputs[0];
  if (keys == 0) return fault(fmt::format("{} is missing", named));
  if (rank_of(x) != 2 || extents(x)[1] != keys)
    return fault(fmt::format("{} has {} keys, and the values are {}", named, keys, text(extents(c.inputs[0]))));
  return x;
}

// The number of keys, from the attributes that may contain them.
Result<int64_t> key_count(const OperatorContext& c, const std::string& integers, const std::string& strings) {
  HOIST_TRY(const Shape numbers, integers_attribute(c, integers, {}));
  HOIST_TRY(const std::vector<std::string> texts, strings_attribute(c, strings));
  return numbers.empty() ? std::ssize(texts) : std::ssize(numbers);
}

Lowered lower_zip_map(const OperatorContext& c) {
  HOIST_TRY(const int64_t keys, key_count(c, "classlabels_int64s", "classlabels_strings"));
  HOIST_TRY(const Expr x, rows_by_key(c, keys, "classlabels"));
  return one(map_at(
      2, [](Expr v) { return convert(Scalar::f32, v); }, x));
}

Lowered lower_dict_vectorizer(const OperatorContext& c) {
  HOIST_TRY(const int64_t keys, key_count(c, "int64_vocabulary", "string_vocabulary"));
  HOIST_TRY(const Expr x, rows_by_key(c, keys, "the vocabulary"));
  return one(x);
}

// Converts as Cast; an absent string is "", or 0 as a number.
Lowered lower_cast_map(const OperatorContext& c) {
  HOIST_TRY(const std::string to, choice_attribute(c, "cast_to", "TO_FLOAT", {"TO_FLOAT", "TO_STRING", "TO_INT64"}));
  HOIST_TRY(const std::string form, choice_attribute(c, "map_form", "DENSE", {"DENSE", "SPARSE"}));
  HOIST_TRY(const int64_t most, integer_attribute(c, "max_map", 1));
  const Expr given = c.inputs[0];
  const bool sparse = form == "SPARSE";
  if (rank_of(given) < 1) return fault("the values are one number, expected a row");
  HOIST_TRY(const Expr row, rows_by_key(c, sparse ? most : extents(given).back(), sparse ? "max_map" : "the map"));
  const Scalar from = element_of(row), scalar = to == "TO_FLOAT"   ? Scalar::f32
                                                : to == "TO_INT64" ? Scalar::i64
                                                                   : Scalar::string;
  if (from == scalar) return one(row);
  if (from != Scalar::string && !is_float(from))
    return fault(fmt::format("the values are {}, expected floats or strings", hoist::row(from).name));
  OperatorCall cast = c.call;
  cast.domain.clear(), cast.name = "Cast", cast.version = std::max<int64_t>(cast.version, 13);
  cast.attributes = {{"to", int64_t{scalar == Scalar::f32 ? 1 : scalar == Scalar::i64 ? 7 : 8}}};
  Expr read = row;
  if (from == Scalar::string && sparse) {
    // The text of 0 replaces an absent value, since "" is not a number.
    HOIST_TRY(const Expr nothing, constant_strings({1}, {""}));
    HOIST_TRY(const Expr naught, constant_strings({1}, {"0"}));
    read = in_memory(map_at(
        2, [&](Expr v) { return choose(Number(v) == at_position(0, nothing), at_position(0, naught), v).e; }, row));
  }
  return define({cast, {read}, {nullptr}});
}

// clang-format off
constexpr auto encoder_rows = std::to_array<OperatorRow>({
  {encoders, "LabelEncoder", 1, 1, 1, Takes::anything, lower_label_encoder,
   "looks up each element among the keys and returns the value of that key; in C++, since keys and values are attributes"},
  {encoders, "CategoryMapper", 1, 1, 1, Takes::anything, lower_category_mapper,
   "numbers for strings, or strings for numbers; in C++, since both are attributes"},
  {encoders, "ZipMap", 1, 1, 1, Takes::floats, lower_zip_map,
   "the values of a map in the order of its keys; in C++, since the keys are attributes"},
  {encoders, "DictVectorizer", 1, 1, 1, Takes::anything, lower_dict_vectorizer,
   "the values of a map by key, unchanged; in C++, since the keys are attributes"},
  {encoders, "CastMap", 1, 1, 1, Takes::anything, lower_cast_map,
   "the values of a map by key in another type; in C++, since an attribute states the number of keys"},
  {encoders, "OneHotEncoder", 1, 1, 1, Takes::anything, lower_one_hot_encoder,
   "1 at the category of each number or string; in C++, since the categories are an attribute"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> encoder_operators() { return encoder_rows; }

}  // namespace hoist::operators
