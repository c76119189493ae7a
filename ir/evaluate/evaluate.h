// The meaning of expressions. `Interpreter` is the semantics: pull-based, it computes any single element of a value, so
// that big layers can be checked at sampled positions; it forces each fold's accumulator at every step, computes floats
// in their stated type and integers exactly. `evaluate` computes whole values fast (weight packing, constant folding,
// model checks) and is tested against the interpreter. Terms have to be closed, their sizes constant, and every
// parameter bound to a tensor of its type. Elements that only an open border gives are zero here.
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

/// Elements of an array-of-scalars (or scalar) result at flat row-major positions, one after the other as a tensor of
/// one dimension. Errors: a free parameter, a position outside, an index outside its array, a tuple result.
Result<Tensor> interpret_at(Expr e, const Bindings& bindings, const std::vector<int64_t>& positions);
/// The bits (as seeded_bits has them) of the element of a parameter at a flat row-major position.
using ElementSource = std::function<uint64_t(const std::string& parameter, int64_t position)>;
/// The same with parameters that stand in no memory: their elements are made as they are read.
Result<Tensor> interpret_made_at(Expr e, const ElementSource& elements, const std::vector<int64_t>& positions);
/// All elements.
Result<Tensor> interpret(Expr e, const Bindings& bindings);
/// The same values as interpret, bit for bit, with compiled index functions.
Result<Tensor> evaluate(Expr e, const Bindings& bindings);
/// The same, or nothing where that takes more bytes in between, or where the term has no form for it and is not small.
Result<std::optional<Tensor>> evaluate_within(Expr e, const Bindings& bindings, int64_t bytes);

/// The elements of a tensor at these flat positions, one after the other.
Tensor elements_at(const Tensor& from, const std::vector<int64_t>& positions);

/// `count` positions below `size`, the first and the last always among them, the same for the same seed; sorted.
std::vector<int64_t> sample_positions(int64_t size, int64_t count, uint64_t seed);

}  // namespace hoist
