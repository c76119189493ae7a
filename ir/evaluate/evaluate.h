// The meaning of expressions. `Interpreter` defines the semantics: pull-based, it computes any single element of a
// value, so that large layers can be checked at sampled positions; it forces each fold's accumulator at every step,
// computes floats in their stated type and integers exactly. `evaluate` computes whole values fast (weight packing,
// constant folding, model checks) and is tested against the interpreter. Terms must be closed with constant sizes, and
// every parameter must be bound to a tensor of its type. Elements that come from an undefined border are zero here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

using Bindings = std::map<std::string, Tensor>;  ///< parameter name -> value

/// Elements of an array of scalars (or of a scalar) at flat row-major positions, as a tensor of rank 1. Errors: a free
/// parameter, a position outside, an index outside its array, a tuple result.
Result<Tensor> interpret_at(Expr e, const Bindings& bindings, const std::vector<int64_t>& positions);
/// The bits (in the format of seeded_bits) of a parameter's element at a flat row-major position.
using ElementSource = std::function<uint64_t(const std::string& parameter, int64_t position)>;
/// interpret_at() with parameters that are not in memory: each element is generated when it is read.
Result<Tensor> interpret_made_at(Expr e, const ElementSource& elements, const std::vector<int64_t>& positions);
/// All elements.
Result<Tensor> interpret(Expr e, const Bindings& bindings);
/// A call or a cast, and the words of its operands (scalar_math.h).
using OperationObserver = std::function<void(Expr operation, const std::vector<uint64_t>& operands)>;
/// interpret(), which passes each operation to the observer as often as it executes it.
Result<Tensor> interpret_observed(Expr e, const Bindings& bindings, const OperationObserver& observer);
/// The same values as interpret, bit for bit, with compiled index functions.
Result<Tensor> evaluate(Expr e, const Bindings& bindings);
/// evaluate() with at most `bytes` of intermediate values: nothing if it needs more, or if the term cannot be compiled
/// and is not small.
Result<std::optional<Tensor>> evaluate_within(Expr e, const Bindings& bindings, int64_t bytes);

/// The elements of a tensor at these flat positions, as a tensor of rank 1.
Tensor elements_at(const Tensor& from, const std::vector<int64_t>& positions);

/// `count` positions below `size`, sorted, including the first and the last; deterministic for a seed.
std::vector<int64_t> sample_positions(int64_t size, int64_t count, uint64_t seed);

}  // namespace hoist
