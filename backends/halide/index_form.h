// Equality of indices, decided by a normal form: sums of loop variables and of quotients of such sums by constants,
// each with an integer factor. Remainders are written with quotients, and a quotient that the loops' extents decide
// vanishes, so that (x / 4) * 4 + x % 4 is x. Terms of other forms stay in the sum unchanged. Equal forms are equal
// everywhere; for different forms the answer is "not equal", which may be wrong and is always safe.
//
// Halide's simplifier does not recognise equal layouts with several divisions, and sampled points prove nothing.
#pragma once

#include <Halide.h>

#include <cstdint>
#include <map>
#include <string>

namespace hoist::emission {

/// True if the expression is zero for all values of its variables. `extents`: a variable of that name lies in [0,
/// extent).
bool is_always_zero(const Halide::Expr& e, const std::map<std::string, int64_t>& extents);

}  // namespace hoist::emission
