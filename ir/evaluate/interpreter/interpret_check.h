// Preconditions of evaluation: a term must be closed, without metavariables, its sizes constant and countable in 64
// bits, its parameters bound to tensors of their types, its result a scalar or an array of scalars. Shared by the
// interpreter and the evaluator, so that both reject the same terms with the same messages.
#pragma once

#include <optional>

#include "ir/evaluate/evaluate.h"

namespace hoist {

/// Without bindings, parameters that are scalars or arrays of scalars are not checked.
Result<Nothing> check_computable(Expr e, const Bindings* bindings);
/// The same for the evaluation of all elements: the result must also fit into memory.
Result<Nothing> check_whole_computable(Expr e, const Bindings& bindings);
/// The number of scalars in a value of the type, counting the components of tuples; nothing if it exceeds 64 bits.
std::optional<int64_t> scalar_count_of(Type type);
/// Limit in bytes of one value during evaluation.
inline constexpr int64_t memory_limit = int64_t{8} << 30;

}  // namespace hoist
