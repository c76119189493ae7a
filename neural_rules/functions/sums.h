// The neural rule for products whose sums are formed in f16: short sums only, since every partial sum is rounded and
// large ones swallow small terms. A row of the rule engine, as those for functions are (functions.h applies both); what
// it costs follows from the moments of what the product reads. Only devices that compute in f16 gain from it
// (Profile::half); on others kernels give the same bits more slowly.
//
// A sum has at most 64 products: f16 keeps longer ones worse than 8 bits do (1.2e-2 for 1,024 positive terms). ONNX has
// no word for the type of a sum, so an export has the operator in f16 between casts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/rules/rewrite.h"

namespace hoist {

/// The neural rule, and its row in the rule engine.
inline constexpr std::string_view half_rule = "f16-arithmetic";
/// Of the products in one sum: with more, the error of partial sums grows past that of 8 bits (neural_rules' README).
inline constexpr int64_t half_terms = 64;

std::span<const RuleRow> sum_rule_rows();
const RuleTable& sum_rule_table();

/// The program with these layers as ONNX can say it: inputs cast to f16, the operator in f16, its result cast to f32.
/// How the sum is formed is then up to the engine.
Result<Program> with_half_products(const Program& program, const std::vector<std::string>& layers);

/// The relative error of one rounding to f16, mean squared, for magnitudes whose logarithms are spread evenly: a step
/// is 2^-10 of the power of two below, its error a twelfth of its square, and E[1/m^2] over [1, 2) is 3 / (8 ln 2).
inline constexpr double half_rounding_noise = 0x1p-20 / 12 * 0.5410;
/// What a rounding costs near zero, where steps stay 2^-24.
inline constexpr double half_subnormal_noise = 0x1p-48 / 12;

}  // namespace hoist
