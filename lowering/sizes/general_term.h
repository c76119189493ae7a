// Terms that differ in numbers alone, as one term with a symbolic size. The numbers of the terms become polynomials;
// the term is typed with the symbol, is the same node as each of the terms once the number is substituted, and has a
// type at the other sizes of its range.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/expression.h"
#include "lowering/sizes/size_fit.h"

namespace hoist {

class GeneralTerms {
 public:
  explicit GeneralTerms(SizeFit& fit) : fit_(fit) {}

  /// One per probe, in order. Errors: the terms differ in more than numbers, a number is of no known form, or the terms
  /// are no instances of a typed term.
  Result<Expr> term(const std::vector<Expr>& terms);
  Result<Type> type(const std::vector<Type>& types);
  Result<Nat> size(const std::vector<int64_t>& numbers);

 private:
  // A literal that is a size, or its reciprocal, as in a mean.
  struct Literal {
    std::vector<Expr> terms;  // at the probes
    Expr value = nullptr;
  };

  Result<Expr> node(const std::vector<Expr>& terms);
  std::optional<Expr> literal(const std::vector<Expr>& terms);

  SizeFit& fit_;
  std::map<std::string, Literal> literals_;  // by the name of the parameter in their places
  std::map<std::vector<Expr>, Expr> made_;
};

}  // namespace hoist
