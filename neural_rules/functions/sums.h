// The neural rule for contractions with sums in f16: only short sums, since every partial sum is rounded and large sums
// absorb small terms. It is a row of the rule engine like the rules for functions (functions.h applies both); its error
// follows from the moments of the contraction's input. Only devices with f16 arithmetic gain from it (Profile::half);
// on others kernels give the same bits more slowly.
//
// A sum has at most 64 products: in f16, longer sums are less accurate than in 8 bits (1.2e-2 for 1,024 positive
// terms). ONNX cannot express the type of a sum, so an export contains the operator in f16 between casts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/rules/rewrite.h"

namespace hoist {

/// The neural rule, and its row in the rule engine.
inline constexpr std::string_view half_rule = "f16-arithmetic";
/// Maximum of products per sum: with more, the error of partial sums exceeds that of 8 bits.
inline constexpr int64_t half_terms = 64;

std::span<const RuleRow> sum_rule_rows();
const RuleTable& sum_rule_table();

/// The program with these layers as ONNX can express them: inputs cast to f16, the operator in f16, its result cast to
/// f32. The type of the sum is then the engine's choice.
Result<Program> with_half_products(const Program& program, const std::vector<std::string>& layers);

/// The mean squared relative error of one rounding to f16, for log-uniformly distributed magnitudes: an ulp is 2^-10 of
/// the power of two below, the squared error 1/12 of its square, and E[1/m^2] over [1, 2) is 3 / (8 ln 2).
inline constexpr double half_rounding_noise = 0x1p-20 / 12 * 0.5410;
/// The mean squared error of a rounding near zero, with the constant ulp of 2^-24.
inline constexpr double half_subnormal_noise = 0x1p-48 / 12;

}  // namespace hoist
