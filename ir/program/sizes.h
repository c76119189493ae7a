// Symbolic sizes of a program (Program::sizes): substitution of values, and the error of code that requires values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

/// The program with values substituted for sizes in types, terms and bodies; sizes that are not named stay. Every term
/// is typed again and has its previous type with the substituted values. Errors: an unknown size, a value outside its
/// bounds, an array with a negative or too large extent, and terms that have no type for these values.
Result<Program> with_sizes(const Program& program, const std::map<std::string, int64_t>& numbers);

/// The term with values substituted for all of its sizes. Errors: a size without a value, no type for these values.
Result<Expr> with_sizes(Expr term, const std::map<std::string, int64_t>& numbers);

/// Fails if the program has symbolic sizes: passes, kernels and interpretation require values.
Result<Nothing> check_sizes_known(const Program& program);

}  // namespace hoist
