#include "ir/gradient/known_adjoints.h"

#include <array>
#include <string_view>

#include "ir/gradient/linear_terms.h"
#include "ir/operators/operators.h"

namespace hoist::gradients {
namespace {

// The array of f for each pair of elements of two arrays.
Expr of_pairs(Expr a, Expr b, const std::function<Expr(Expr, Expr)>& f) {
  const Expr x = fresh_variable(a->type->element), y = fresh_variable(b->type->element);
  return map_over({{x, a}, {y, b}}, a->type->size, f(x, y));
}

Expr total(Expr array) {
  const Expr x = fresh_variable(array->type->element);
  return sum_over({{x, array}}, array->type->size, x);
}

Expr of_softmax(Expr, Expr result, Expr adjoint) {
  return let(total(of_pairs(result, adjoint, times)), [&](Expr sum) {
    return of_pairs(result, adjoint, [&](Expr y, Expr dy) { return times(y, minus(dy, sum)); });
  });
}

Expr of_log_softmax(Expr, Expr result, Expr adjoint) {
  return let(total(adjoint), [&](Expr sum) {
    return of_pairs(result, adjoint, [&](Expr y, Expr dy) { return minus(dy, times(call(Function::exp, {y}), sum)); });
  });
}

Expr of_log_sum_exp(Expr row, Expr result, Expr adjoint) {
  const Expr x = fresh_variable(row->type->element);
  return map_over({{x, row}}, row->type->size, times(adjoint, call(Function::exp, {minus(x, result)})));
}

struct KnownRow {
  std::string_view operation;
  Attributes attributes;
  KnownAdjoint adjoint;
};

const auto& known_rows() {
  static const auto all = std::to_array<KnownRow>({
      {"Softmax", {}, of_softmax},
      {"LogSoftmax", {}, of_log_softmax},
      {"ReduceLogSumExp", {{"keepdims", int64_t{0}}}, of_log_sum_exp},
  });
  return all;
}

// The definition of the operator for the row.
Expr definition_for(const KnownRow& known, Expr row) {
  const Expr x = parameter("row", row->type);
  auto called = operator_call({"", std::string(known.operation), 13, 1, {}, known.attributes}, {x});
  if (!called.ok()) return nullptr;
  const auto inlined = inline_call(**called);
  return inlined.ok() ? substitute_parameters(*inlined, {{x->name, row}}) : nullptr;
}

}  // namespace

KnownTerm known_term(Expr e) {
  if (e->pattern != Pattern::let || e->children[0]->pattern != Pattern::reduce) return {};
  const Expr row = e->children[0]->children[2];
  for (const KnownRow& known : known_rows()) {
    if (definition_for(known, row) == e) return {row, known.adjoint};
  }
  return {};
}

}  // namespace hoist::gradients
