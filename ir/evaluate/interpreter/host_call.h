// Host functions (host_operators.h) in the language: type checks, and evaluation on tensors.
#pragma once

#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"
#include "ir/language/type.h"

namespace hoist {

/// The reason why the function cannot be called with arrays of these types for this result type, or "". Sizes have to
/// be constant, and tuples are not arrays.
std::string host_call_problem(const std::string& function, const std::vector<Type>& arrays, Type result);

/// The result, an array of this type. Errors: an invalid regular expression, a string that is not a number, and the
/// like.
Result<Tensor> evaluate_host_call(const std::string& function, std::vector<Tensor> arrays, Type result);

/// Turns seeded bytes into a valid first array for functions that would reject arbitrary bytes, such as an encoded
/// image.
void seed_for_host(const std::string& function, Tensor& array, Type result);

}  // namespace hoist
