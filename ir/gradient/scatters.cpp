// The adjoints of scatters. The adjoint of an update is the adjoint of its position; if updates overwrite each other,
// only the update that remains has it, and the others have zeros.
#include "ir/gradient/adjoints.h"
#include "ir/properties/properties.h"

namespace hoist::gradients {
namespace {

// For each position inside the array: f of the position and of its number in the list; zeros for other positions.
Expr at_positions(Expr positions, Type element, const Nat& n, const std::function<Expr(Expr, Expr)>& f) {
  const Type type = positions->type->element;
  const Expr position = fresh_variable(type), number = fresh_variable(scalar_type(Scalar::i64));
  const Expr wide = cast(Scalar::i64, position), zero = literal_integer(Scalar::i64, 0);
  const Expr last = literal_integer(Scalar::i64, n.value() - 1);
  const Expr inside = call(Function::logical_and,
                           {call(Function::greater_equal, {wide, zero}), call(Function::less_equal, {wide, last})});
  const Expr safe = call(Function::maximum, {zero, call(Function::minimum, {wide, last})});
  const Nat& m = positions->type->size;
  return map_over({{position, positions}, {number, iota(m, Scalar::i64)}}, m,
                  select(inside, f(safe, number), zeros(element)));
}

}  // namespace

void adjoint_of_scatter(AdjointScope& scope, Expr e, Expr adjoint) {
  const auto form = scatter_form(e);
  const Type element = form->base->type->element;
  const Nat& n = form->base->type->size;
  const Expr y = scope.named(adjoint);
  const bool adds = form->combine == Function::add;
  if (form->combine && !adds) return scope.fault("a scatter that combines by " + std::string(row(*form->combine).name));
  if (scope.is_active(form->base))
    scope.add(form->base, adds ? adjoint : scatter(form->positions, zeros(form->updates->type), adjoint));
  if (!scope.is_active(form->updates) || n == Nat(0)) return;
  if (adds)
    return scope.add(form->updates,
                     at_positions(form->positions, element, n, [&](Expr place, Expr) { return index(place, y); }));
  const Nat& m = form->positions->type->size;
  const Expr writers =
      scope.named(scatter(form->positions, iota(m, Scalar::i64), repeat(n, literal_integer(Scalar::i64, -1))));
  scope.add(form->updates, at_positions(form->positions, element, n, [&](Expr place, Expr number) {
              return select(call(Function::equal, {index(place, writers), number}), index(place, y), zeros(element));
            }));
}

}  // namespace hoist::gradients
