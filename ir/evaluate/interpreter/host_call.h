// Functions on the host (host_operators.h) as the language calls them: their types, and their values of tensors.
#pragma once

#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"
#include "ir/language/type.h"

namespace hoist {

/// What is wrong with calling the function with arrays of these types for a result of that one; "" where nothing is.
/// Sizes have to be numbers, and tuples are no arrays.
std::string host_call_problem(const std::string& function, const std::vector<Type>& arrays, Type result);

/// The result, an array of this type. Errors: a pattern that is none, a string that is no number, and the like.
Result<Tensor> evaluate_host_call(const std::string& function, std::vector<Tensor> arrays, Type result);

/// Makes of seeded numbers something that the function takes as its first array for a result of that type, where
/// numbers as such would be refused: a stream of bytes that holds a picture.
void seed_for_host(const std::string& function, Tensor& array, Type result);

}  // namespace hoist
