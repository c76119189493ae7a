#include "tools/driver/input_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "tools/data/npy.h"

namespace hoist {
namespace {

using Json = nlohmann::json;

// The extents along the first element of each list; all other elements must match them.
std::vector<int64_t> outermost_extents(const Json& literal) {
  std::vector<int64_t> out;
  for (const Json* at = &literal; at->is_array(); at = &(*at)[0]) {
    out.push_back(static_cast<int64_t>(at->size()));
    if (at->empty()) break;
  }
  return out;
}

bool flatten(const Json& literal, const std::vector<int64_t>& shape, size_t axis, std::vector<Json>& out) {
  if (axis == shape.size()) {
    out.push_back(literal);
    return literal.is_number() || literal.is_boolean();
  }
  if (!literal.is_array() || static_cast<int64_t>(literal.size()) != shape[axis]) return false;
  return std::all_of(literal.begin(), literal.end(),
                     [&](const Json& part) { return flatten(part, shape, axis + 1, out); });
}

}  // namespace

Result<InputValue> parse_input_value(const std::string& text, const std::string& option) {
  constexpr size_t most_axes = 32;
  const std::string example = fmt::format("for example {0} axes=[0,1], {0} k=3 or {0} shape=shape.npy", option);
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return Diagnostic{option + " " + text, "is not NAME=VALUE", example};
  InputValue out;
  out.name = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  if (value.ends_with(".npy") || value.ends_with(".pb")) {
    HOIST_TRY(out.value, read_tensor(value));
    return out;
  }
  const Json literal = Json::parse(value, nullptr, false);
  const std::vector<int64_t> shape = literal.is_discarded() ? std::vector<int64_t>() : outermost_extents(literal);
  std::vector<Json> numbers;
  if (literal.is_discarded() || shape.size() > most_axes || !flatten(literal, shape, 0, numbers))
    return Diagnostic{option + " " + text,
                      "is neither a number, lists of numbers of one length, nor a .npy or .pb file", example};
  for (const Json& number : numbers) {
    if (number.is_number_unsigned() && number.get<uint64_t>() > uint64_t{INT64_MAX})
      return Diagnostic{option + " " + text,
                        number.dump() + " exceeds the largest integer of a literal, " + std::to_string(INT64_MAX),
                        "write the elements to a .npy file"};
  }
  const bool floats =
      std::any_of(numbers.begin(), numbers.end(), [](const Json& number) { return number.is_number_float(); });
  out.value = Tensor(floats ? Scalar::f64 : Scalar::i64, shape);
  out.untyped = true;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (floats)
      out.value.set_float(place, numbers[i].get<double>());
    else
      out.value.set_integer(place,
                            numbers[i].is_boolean() ? int64_t{numbers[i].get<bool>()} : numbers[i].get<int64_t>());
  }
  return out;
}

}  // namespace hoist
