#include "lowering/cost/work.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "ir/operators/operators.h"
#include "ir/properties/properties.h"
#include "lowering/cost/work_counter.h"
#include "lowering/terms/saturated.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

void add(Work& to, const Work& from, int64_t times) {
  for (size_t i = 0; i < operation_classes; ++i)
    to.operations[i] = saturated_sum(to.operations[i], saturated_product(times, from.operations[i]));
  to.products = saturated_sum(to.products, saturated_product(times, from.products));
  to.needed = saturated_sum(to.needed, saturated_product(times, from.needed));
  to.fused = saturated_sum(to.fused, saturated_product(times, from.fused));
  for (const auto& [name, bytes] : from.read)
    to.read[name] = saturated_sum(to.read[name], saturated_product(times, bytes));
  to.written = saturated_sum(to.written, saturated_product(times, from.written));
  to.is_exact &= from.is_exact;
}

// The bytes of all scalars of a type.
int64_t scalar_bytes(Type type) {
  if (type->is_scalar()) return std::max<int64_t>(1, row(type->scalar).bits / 8);
  int64_t out = 0;
  if (type->is_tuple()) {
    for (Type part : type->parts) out = saturated_sum(out, scalar_bytes(part));
    return out;
  }
  if (leaf_of(type)->is_scalar())
    return saturated_sum(saturated_product(element_count(shape_of(type)), row(leaf_of(type)->scalar).bits), 7) / 8;
  return saturated_product(type->size.value(), scalar_bytes(type->element));
}

// Adds `times` executions of a call, cast or selection; other nodes are not operations.
void add_node(Work& work, Expr e, int64_t times) {
  OperationClass kind = OperationClass::comparison;
  if (e->pattern == Pattern::call)
    kind = class_of(e->function, e->children[0]->type->scalar);
  else if (e->pattern == Pattern::cast)
    kind = OperationClass::conversion;
  else if (e->pattern != Pattern::select)
    return;
  int64_t& count = work.operations[static_cast<size_t>(kind)];
  count = saturated_sum(count, times);
  if (e->pattern != Pattern::call) return;
  const bool is_fused = e->function == Function::fma;
  if (is_fused) work.fused = saturated_sum(work.fused, times);
  if (is_fused || e->function == Function::multiply) work.products = saturated_sum(work.products, times);
}

// Counts the tree of a term: each node as often as the enclosing maps and folds run, and all elements of its
// parameters.
Work tree_work(Expr term) {
  std::unordered_map<Expr, Work> known;
  // Terms may be deeper than the stack allows for a recursion.
  std::vector<Expr> open = {term};
  while (!open.empty()) {
    const Expr e = open.back();
    const std::vector<Expr> children = usual_children(e);
    const size_t before = open.size();
    std::copy_if(children.begin(), children.end(), std::back_inserter(open),
                 [&](Expr c) { return known.count(c) == 0; });
    if (open.size() > before) continue;
    open.pop_back();
    if (known.count(e) != 0) continue;
    Work out;
    add_node(out, e, 1);
    for (Expr c : children) {
      const bool repeats = c->pattern == Pattern::function && e->pattern != Pattern::let;
      add(out, known.at(c), repeats ? applications(e) : 1);
    }
    known[e] = std::move(out);
  }
  Work out = known.at(term);
  for (Expr p : parameters_of(term)) out.read[p->name] = scalar_bytes(p->type);
  out.is_exact = false;
  return out;
}

// True if the function only adds undefined elements to its argument, at any depth.
bool surrounds(Expr function) {
  const Expr body = function->children[0];
  const bool adds = body->pattern == Pattern::pad && body->border == Border::undefined;
  const bool maps = body->pattern == Pattern::map && surrounds(body->children[0]);
  const Expr argument = adds ? body->children[0] : maps ? body->children[1] : nullptr;
  return argument != nullptr && argument->pattern == Pattern::bound && argument->integers[0] == 0;
}

// The array of a term without the undefined elements around it, which no kernel computes.
Expr without_surroundings(Expr term) {
  for (;;) {
    if (term->pattern == Pattern::pad && term->border == Border::undefined)
      term = term->children[0];
    else if (term->pattern == Pattern::map && surrounds(term->children[0]))
      term = term->children[1];
    else
      return term;
  }
}

}  // namespace

std::string_view name_of(OperationClass kind) {
  constexpr std::string_view names[] = {"multiply-add",   "comparison", "division",
                                        "transcendental", "integer",    "conversion"};
  return names[static_cast<size_t>(kind)];
}

OperationClass class_of(Function function, Scalar operands) {
  const FunctionRow& function_row = row(function);
  switch (function) {
    case Function::divide:
    case Function::modulo:
    case Function::remainder:
    case Function::sqrt:
      return OperationClass::division;
    case Function::minimum:
    case Function::maximum:
    case Function::sign:
    case Function::is_nan:
    case Function::is_infinite:
      return OperationClass::comparison;
    default:
      break;
  }
  if (function_row.result == ResultKind::boolean || operands == Scalar::boolean) return OperationClass::comparison;
  if (function_row.ulp > 0 && is_float(operands)) return OperationClass::transcendental;
  return is_float(operands) ? OperationClass::multiply_add : OperationClass::integer;
}

int64_t Work::arithmetic() const {
  int64_t out = fused;
  for (size_t i = 0; i < operation_classes; ++i) {
    if (static_cast<OperationClass>(i) != OperationClass::conversion) out = saturated_sum(out, operations[i]);
  }
  return out;
}

int64_t Work::instructions() const {
  int64_t out = 0;
  for (size_t i = 0; i < operation_classes; ++i) {
    const auto kind = static_cast<OperationClass>(i);
    const int64_t each = kind == OperationClass::transcendental ? 16 : kind == OperationClass::division ? 4 : 1;
    out = saturated_sum(out, saturated_product(each, operations[i]));
  }
  return out;
}

int64_t Work::bytes() const {
  int64_t out = written;
  for (const auto& [name, bytes] : read) out = saturated_sum(out, bytes);
  return out;
}

Work operator+(const Work& a, const Work& b) {
  Work out = a;
  add(out, b, 1);
  return out;
}

Work operator*(int64_t times, const Work& work) {
  Work out;
  add(out, work, times);
  return out;
}

Work executed_work(Expr term) {
  term = without_surroundings(without_operator_calls(term));
  Work out;
  CountedTerm counted;
  if (count_nodes(term, counted)) {
    Work needed;
    for (const CountedTerm::Node& each : counted.nodes) {
      add_node(out, each.node, each.executed);
      add_node(needed, each.node, each.needed);
    }
    out.needed = needed.arithmetic();
    out.read = std::move(counted.read);
  } else {
    out = tree_work(term);
    out.needed = out.arithmetic();
  }
  out.written = scalar_bytes(term->type);
  return out;
}

}  // namespace hoist
