// Random well-typed terms, for the tests of rules and of functions over terms: values of a type, functions over
// available values, and data for the parameters that they use. The same seed gives the same terms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/evaluate/evaluate.h"
#include "ir/language/expression.h"

namespace hoist {

class RandomTerms {
 public:
  explicit RandomTerms(uint64_t seed) : state_(seed) {}

  uint64_t bits();
  /// 0 .. n-1
  int64_t below(int64_t n);
  bool chance(double probability);
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(below(static_cast<int64_t>(choices.size())))];
  }

  /// A random type: mostly scalars, otherwise small arrays and tuples. `rank` limits the nesting.
  Type type(int rank = 1);
  /// A value made of fresh parameters, for which data() then has values.
  Expr value(Type type);
  /// A term over the values in scope (at least one). Not a bare variable.
  Expr over(Type type, const std::vector<Expr>& scope);
  /// A function of these parameters that may also read `outer`.
  Expr function_of(const std::vector<Type>& parameters, Type result, const std::vector<Expr>& outer);

  /// Data for every parameter that value() made. With `special`, some are signed zeros, infinities, NaN, tiny and huge.
  Bindings data(bool special);
  /// The same for one array of scalars.
  Tensor tensor(Type type, bool special);

 private:
  Expr element(Type type, const std::vector<Nat>& sizes, const std::vector<Expr>& positions);
  Expr some_scalar(Scalar wanted, Expr value);
  Expr scalar_over(Scalar wanted, const std::vector<Expr>& scope, int depth);

  uint64_t state_;
  std::vector<Expr> parameters_;
};

}  // namespace hoist
