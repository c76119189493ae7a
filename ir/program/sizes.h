// Sizes of a program that have no number yet (Program::sizes): numbers in their place, and the message for whoever
// needs them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

/// The program with these numbers in the place of the sizes, in types, terms and bodies; sizes that are not named stay.
/// Every term is typed again, and gives the type that it had, with the numbers. Errors: a size that the program does
/// not have, a number outside its bounds, an array that comes out negative or too large, and terms that have no type
/// for these numbers.
Result<Program> with_sizes(const Program& program, const std::map<std::string, int64_t>& numbers);

/// That every size of the program is a number: what passes, kernels and interpretation ask for.
Result<Nothing> check_sizes_known(const Program& program);

}  // namespace hoist
