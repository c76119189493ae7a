// Reverse-mode differentiation of a term: the adjoint of the term gives the adjoints of the terms inside it. Each
// pattern has one rule (adjoints.cpp, views.cpp, folds.cpp, scatters.cpp). Functions are opened: their variables become
// fresh parameters. The largest parts of a body that do not depend on its variables get one adjoint, the sum over all
// elements, so that a value that the forward pass computes once is differentiated once. Adjoints are terms over the
// values of the forward pass and the adjoint of the whole term; let-bound values, values of folds and adjoints with
// several uses become bindings. The caller inlines operator calls before; extents are constants. For whole programs use
// gradient.h.
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
  /// Maps compute the value for all elements first, since elements of several adjoints read it.
  bool is_kept = false;
};

struct Adjoints {
  std::vector<Binding> bindings;
  std::vector<Expr> of;  ///< one for each wanted term; zeros if the whole term does not depend on it
};

/// The adjoints of the terms `wanted`, which occur in `e` and have no free variables; `seed` is the adjoint of `e`.
/// Patterns without a derivative pass no adjoint on, and their names are added to `faults`. `result` is a term that has
/// the value of `e` and costs nothing to compute, such as a stored array; null if there is none.
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
  /// A term that has the value of this active term and costs nothing to compute; null if there is none.
  Expr known_result(Expr e) const;
  Expr named(Expr value);  ///< always a name, except for parameters, literals and zeros
  Expr kept(Expr value);   ///< the name of a binding that is kept
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

/// Applies the inverse of the transpose `e` to an array that has the type of `e`.
Expr untransposed(Expr e, Expr array);
void adjoint_of_view(AdjointScope& scope, Expr e, Expr adjoint);     ///< views.cpp
void adjoint_of_scatter(AdjointScope& scope, Expr e, Expr adjoint);  ///< scatters.cpp
void adjoint_of_fold(AdjointScope& scope, Expr e, Expr adjoint);     ///< folds.cpp: reduce, fold, scan, iterate

}  // namespace hoist::gradients
