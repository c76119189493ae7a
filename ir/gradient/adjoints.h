// Reverse-mode differentiation of a term: the adjoints of terms inside it from the adjoint of the whole. Each pattern
// has one rule (adjoints.cpp, views.cpp, folds.cpp). Functions are opened: their variables become fresh parameters, and
// the largest parts of a body that do not depend on its variables get one adjoint for all elements, so that nothing is
// summed more often than the forward pass shares it. Adjoints are terms over the values of the forward pass and the
// adjoint of the whole; let-bound values, values of folds and adjoints with several uses become bindings. Operator
// calls are inlined before. For whole programs use gradient.h. Extents are constants.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/base/result.h"
#include "ir/gradient/linear_terms.h"

namespace hoist::gradients {

/// A parameter (fresh_variable) and its value, which may mention the parameters of earlier bindings.
struct Binding {
  Expr name;
  Expr value;
};

struct Adjoints {
  std::vector<Binding> bindings;
  std::vector<Expr> of;  ///< one for each wanted term; zeros where the whole does not depend on it
};

/// The adjoints of `wanted`, terms without free variables that occur in `e`, where `seed` is the adjoint of e. Names of
/// patterns without a derivative are added to `faults`; their adjoints are zeros. `result` is a term with the value of
/// e that costs nothing to compute, such as a stored array; null if there is none.
Adjoints adjoints_of(Expr e, Expr seed, const std::vector<Expr>& wanted, std::set<std::string>& faults,
                     Expr result = nullptr);

/// The term with lets for the bindings that it mentions.
Expr with_bindings(const std::vector<Binding>& bindings, Expr e);

// ---- For the rules of patterns only ---------------------------------------------------------------------------------

/// The differentiation of one function body or one whole term.
class AdjointScope {
 public:
  AdjointScope(const std::vector<Expr>& wanted, std::set<std::string>& faults);
  Adjoints run(Expr e, Expr seed, Expr result);

  /// True if the adjoint of the term has to be computed.
  bool is_active(Expr e);
  void add(Expr to, Expr adjoint);
  /// The term, or its name in the bindings if computing it again would cost a fold.
  Expr shared(Expr value);
  /// A term with the value of an active one that costs nothing to compute; null if there is none.
  Expr known_result(Expr e) const;
  Expr named(Expr value);  ///< always a name, except for parameters and literals
  void fault(const std::string& what) { faults_.insert(what); }
  /// The largest active parts of a function's body that do not mention its variables.
  std::vector<Expr> captured_by(Expr function);
  std::set<std::string>& faults() { return faults_; }

 private:
  void visit(Expr e);
  void know(Expr e, Expr result);
  void step(Expr e, Expr adjoint);

  std::vector<Expr> wanted_;
  std::set<std::string>& faults_;
  std::unordered_map<Expr, bool> active_;
  std::unordered_map<Expr, Expr> adjoints_, opened_, value_of_, names_, results_;
  std::set<Expr> visited_;
  std::vector<Expr> order_;
  std::vector<Binding> bindings_;
};

/// The inverse of a transpose, of an array of the type of its result.
Expr untransposed(Expr e, Expr array);
void adjoint_of_view(AdjointScope& scope, Expr e, Expr adjoint);     ///< views.cpp
void adjoint_of_scatter(AdjointScope& scope, Expr e, Expr adjoint);  ///< scatters.cpp
void adjoint_of_fold(AdjointScope& scope, Expr e, Expr adjoint);     ///< folds.cpp: reduce, fold, scan, iterate

}  // namespace hoist::gradients
