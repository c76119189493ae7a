// The adjoints of reduce, fold, scan and iterate. Each is a fold with the states s_0, ..., s_n, and a scan in reverse
// order computes the adjoints of the states. If a step passes its adjoint on unchanged, as in a sum, every state has
// the adjoint of the result. A scan stores the states of the forward pass if the derivative of a step mentions them. A
// minimum or maximum passes its adjoint to the first element that equals it. The derivative of a product is the product
// of all other elements, not a quotient, since elements may be zero.
#include "ir/gradient/adjoints.h"
#include "ir/properties/properties.h"

namespace hoist::gradients {
namespace {

struct Fold {
  Expr function, initial, array;
  Expr states_given = nullptr;  // for a scan: the adjoint of each state
};

// True if the steps of the forward pass store arrays; then the steps of the backward pass store their arrays too.
bool stores_arrays(Expr function) {
  return any_node(function, [](Expr e) { return e->pattern == Pattern::materialise && e->memory == Memory::global; });
}

// The state before each step, from an inclusive scan, which has the state after each step.
Expr before_each(Expr first, Expr inclusive) {
  const Nat& n = inclusive->type->size;
  return concat({repeat(1, first), slice(0, n - 1, inclusive)});
}

void adjoint_of_steps(AdjointScope& scope, const Fold& fold, Expr last) {
  const Nat n = fold.array->type->size;
  if (n == Nat(0)) {
    if (fold.states_given == nullptr && scope.is_active(fold.initial)) scope.add(fold.initial, last);
    return;
  }
  const Type state_type = fold.initial->type;
  const Expr s = fresh_variable(state_type), x = fresh_variable(fold.array->type->element);
  const Expr y = fresh_variable(state_type);
  std::vector<Expr> wanted = scope.captured_by(fold.function);
  const size_t captured = wanted.size();
  wanted.push_back(x);
  wanted.push_back(s);
  Adjoints step = adjoints_of(apply(fold.function, {s, x}), y, wanted, scope.faults());
  if (stores_arrays(fold.function)) {
    for (Binding& b : step.bindings) {
      if (b.value->type->is_array() && leaf_of(b.value->type)->is_scalar() && folds(b.value))
        b.value = materialise(Memory::global, b.value);
    }
  }
  const auto of = [&](size_t i) { return with_bindings(step.bindings, step.of[i]); };
  const Expr back = of(captured + 1);

  const Expr array = scope.shared(fold.array), initial = scope.shared(fold.initial);
  const auto states = [&] {
    Spec all;
    all.pattern = Pattern::scan;
    all.children = {fold.function, initial, array};
    return before_each(initial, scope.named(build(std::move(all))));
  };
  const bool reads_states = mentions(back, s) || [&] {
    for (size_t i = 0; i <= captured; ++i) {
      if ((i < captured || scope.is_active(fold.array)) && mentions(of(i), s)) return true;
    }
    return false;
  }();
  std::vector<Running> steps = {{x, array}};
  if (reads_states) steps.push_back({s, states()});

  // The adjoint of the state after each step, in order, and of the initial state.
  Expr after = nullptr, first = nullptr;
  if (back == y && fold.states_given == nullptr) {
    after = repeat(n, last), first = last;
  } else {
    const Expr given = fresh_variable(state_type);
    std::vector<Running> reverse;
    for (const Running& r : steps) {
      if (mentions(back, r.variable)) reverse.push_back({r.variable, reversed(r.array)});
    }
    Expr next = back, start = last;
    if (fold.states_given != nullptr) {
      start = index(literal_integer(Scalar::i64, n.value() - 1), fold.states_given);
      next = sum_of(given, back);
      reverse.push_back({given, reversed(before_each(zeros(state_type), fold.states_given))});
    }
    if (reverse.empty()) reverse.push_back({fresh_variable(scalar_type(Scalar::i32)), iota(n, Scalar::i32)});
    std::vector<Expr> arrays;
    for (const Running& r : reverse) arrays.push_back(r.array);
    const Expr elements = arrays.size() == 1 ? arrays[0] : zip(arrays),
               element = fresh_variable(elements->type->element);
    std::map<std::string, Expr> parts;
    for (size_t i = 0; i < arrays.size(); ++i) {
      parts.emplace(reverse[i].variable->name, arrays.size() == 1 ? element : get(static_cast<int64_t>(i), element));
    }
    Spec scan;
    scan.pattern = Pattern::scan;
    scan.children = {bind({y, element}, substitute_parameters(next, parts)), start, elements};
    const Expr going_back = scope.named(build(std::move(scan)));
    after = reversed(before_each(start, going_back));
    first = index(literal_integer(Scalar::i64, n.value() - 1), going_back);
  }
  steps.push_back({y, after});
  if (scope.is_active(fold.initial)) scope.add(fold.initial, first);
  if (scope.is_active(fold.array)) scope.add(fold.array, map_over(steps, n, of(captured)));
  for (size_t i = 0; i < captured; ++i) scope.add(wanted[i], sum_over(steps, n, of(i)));
}

// The scalar function of a reduction whose body is one call of both parameters.
std::optional<Function> called_by(Expr e) {
  const Expr body = e->children[0]->children[0];
  if (e->pattern != Pattern::reduce || !e->type->is_scalar() || body->pattern != Pattern::call) return std::nullopt;
  if (body->children.size() != 2 || e != reduce(body->function, e->children[1], e->children[2])) return std::nullopt;
  return body->function;
}

void adjoint_of_extreme(AdjointScope& scope, Expr e, Expr adjoint) {
  const Expr array = scope.shared(e->children[2]);
  const Nat& n = array->type->size;
  const Expr known = scope.known_result(e), extreme = known != nullptr ? known : scope.named(e);
  const Expr v = fresh_variable(e->type), i = fresh_variable(scalar_type(Scalar::i32));
  const Expr none = literal_integer(Scalar::i32, n.value());
  const Expr places =
      map_over({{v, array}, {i, iota(n, Scalar::i32)}}, n, select(call(Function::equal, {v, extreme}), i, none));
  const Expr first = scope.kept(reduce(Function::minimum, none, places));
  scope.add(e->children[2], one_hot(n, first, adjoint));
}

void adjoint_of_product(AdjointScope& scope, Expr e, Expr adjoint) {
  const Expr array = scope.shared(e->children[2]);
  const Nat& n = array->type->size;
  if (n == Nat(0)) return;
  const Expr one = literal(e->type->scalar, 1);
  const auto products_before = [&](Expr row) {
    return before_each(one, scan([](Expr a, Expr b) { return operator_multiply(a, b); }, one, row));
  };
  const Expr before = scope.named(products_before(array)),
             after = scope.named(reversed(products_before(reversed(array))));
  const Expr a = fresh_variable(e->type), b = fresh_variable(e->type);
  scope.add(e->children[2], map_over({{a, before}, {b, after}}, n, scaled(operator_multiply(a, b), adjoint)));
}

}  // namespace

void adjoint_of_fold(AdjointScope& scope, Expr e, Expr adjoint) {
  if (e->pattern == Pattern::iterate) {
    const Expr step = fresh_variable(scalar_type(Scalar::i32)), state = fresh_variable(e->type);
    return adjoint_of_steps(
        scope, {bind({state, step}, apply(e->children[0], {state})), e->children[1], iota(e->sizes[0], Scalar::i32)},
        adjoint);
  }
  if (e->pattern == Pattern::scan)
    return adjoint_of_steps(scope, {e->children[0], e->children[1], e->children[2], adjoint}, nullptr);
  if (scatter_form(e)) return adjoint_of_scatter(scope, e, adjoint);
  const auto function = called_by(e);
  if (function == Function::maximum || function == Function::minimum) return adjoint_of_extreme(scope, e, adjoint);
  if (function == Function::multiply) return adjoint_of_product(scope, e, adjoint);
  return adjoint_of_steps(scope, {e->children[0], e->children[1], e->children[2]}, adjoint);
}

}  // namespace hoist::gradients
