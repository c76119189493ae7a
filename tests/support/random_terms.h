// Random closed well-typed terms over all patterns, for tests of printing, interpreting and rewriting. Patterns are
// drawn from the table, so a new row is covered as soon as it compiles. Only for tests.
#pragma once

#include <random>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

struct RandomTermOptions {
  int patterns = 12;            ///< about how many patterns are applied
  int64_t largest_size = 4;     ///< largest extent of an array dimension, from 1
  int64_t largest_array = 256;  ///< elements of any value
  bool modes = true;            ///< modes of maps and folds, materialise
  bool symbolic = false;        ///< some sizes are names; such terms print and parse but cannot be evaluated
  bool operator_calls = false;  ///< calls of operators of the table, where sizes are constant
  bool scalars_only = true;     ///< the result is a scalar or an array of scalars, as the interpreter requires
  std::vector<Scalar> scalars = {Scalar::f32, Scalar::f32, Scalar::i32, Scalar::i64,
                                 Scalar::u8,  Scalar::i8,  Scalar::f16, Scalar::boolean};
};

/// The same generator state gives the same term. parameters_of(term) lists the parameters to bind before evaluation.
/// Positions of index are within bounds; rows under untile agree in their overlaps.
Expr random_term(std::mt19937_64& random, const RandomTermOptions& options = {});

}  // namespace hoist
