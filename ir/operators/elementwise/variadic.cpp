// Sum, Mean, Max and Min of more inputs than a definition reads: a composition of calls with fewer inputs.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "ir/operators/definitions/composition.h"
#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"
#include "ir/program/onnx_type.h"
#include "ir/program/program_builder.h"

namespace hoist::operators {
namespace {

// Combines inputs in order, part by part, so that sums keep their order. Sums of 16-bit floats stay f32 from part to
// part: they round once, as in the definitions, and a mean is finite even if the sum overflows 16 bits.
Result<Nothing> combine_parts(Composer& c) {
  const NamedCall& call = c.call();
  const bool is_mean = call.operation == "Mean";
  const std::string operation = is_mean ? "Sum" : call.operation;
  const Scalar scalar = leaf_of(c.type(call.inputs[0]))->scalar;
  const Scalar wide = operation == "Sum" && is_float(scalar) ? wide_float(scalar) : scalar;
  const auto in_type = [&](Scalar type, const std::string& value) {
    return wide == scalar ? value : c.add("Cast", {{"to", onnx_type(type)}}, {value})[0];
  };
  std::string value = in_type(wide, call.inputs[0]);
  for (size_t i = 1; i < call.inputs.size(); i += most_variadic - 1) {
    std::vector<std::string> part = {value};
    for (size_t k = i; k < std::min(call.inputs.size(), i + most_variadic - 1); ++k)
      part.push_back(in_type(wide, call.inputs[k]));
    value = c.add(operation, {}, std::move(part))[0];
  }
  if (is_mean) {
    Tensor count(wide, {});
    count.set_float(0, static_cast<double>(call.inputs.size()));
    value = c.add("Div", {}, {value, c.constant(std::move(count))})[0];
  }
  c.give(0, in_type(scalar, value));
  return Nothing{};
}

constexpr CompositionRow combined_in_parts = {combine_parts, false, most_variadic};

// The definitions of these operators are in elementwise.op.
constexpr OperatorRow in_parts(std::string_view name) {
  OperatorRow row{"", name, 6, 1, -1, Takes::anything, nullptr, {}};
  row.composition = &combined_in_parts;
  return row;
}

constexpr auto variadic_rows =
    std::to_array<OperatorRow>({in_parts("Sum"), in_parts("Mean"), in_parts("Max"), in_parts("Min")});

}  // namespace

std::span<const OperatorRow> variadic_operators() { return variadic_rows; }

}  // namespace hoist::operators
