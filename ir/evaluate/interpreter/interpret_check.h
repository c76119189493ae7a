// What a term must be before its value can be computed: closed, without metavariables, its sizes constant and small
// enough to count, its parameters bound to tensors of their types, its result an array of scalars or a scalar. Shared
// by the interpreter and the evaluator, so that both refuse the same terms with the same words.
#pragma once

#include <optional>

#include "ir/evaluate/evaluate.h"

namespace hoist {

/// Without bindings, parameters of scalars and arrays of them are not looked at.
Result<Nothing> check_computable(Expr e, const Bindings* bindings);
/// The same for all elements at once: the result also has to be one that memory can hold.
Result<Nothing> check_whole_computable(Expr e, const Bindings& bindings);
/// Scalars in a value of the type, tuples' components counted one by one; empty where they do not fit 64 bits.
std::optional<int64_t> scalar_count_of(Type type);
/// Bytes that one value may take while a term is computed.
inline constexpr int64_t memory_limit = int64_t{8} << 30;

}  // namespace hoist
