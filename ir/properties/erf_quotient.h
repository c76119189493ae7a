// erf as x times a quotient of polynomials of its square, within five ulp of f32: for the rule erf-by-quotient and for
// native code.
#pragma once

namespace hoist::erf_quotient {

/// The coefficients are fitted up to 3.64. At the limit, where erf is within two ulp of 1, the quotient exceeds 1.
inline constexpr double limit = 3.78;
/// The coefficients of the powers of the square, the constant first.
inline constexpr double above[] = {1.12837916, 0.176404899, 0.0499616672, 0.00308348582, 0.000228869661};
inline constexpr double below[] = {
    1, 0.489667763, 0.107501859, 0.0134052469, 0.000954887727, 0.0000246581557, -0.000000132218554};

}  // namespace hoist::erf_quotient
