#include <algorithm>

#include "ir/properties/properties.h"

namespace hoist {
namespace {

bool mentions(Expr e, Expr read) {
  return any_node(e, [&](Expr part) { return part == read; });
}

// True if all uses of the parameter are inside folds.
bool only_folded(Expr e, Expr read) {
  if (is_fold(e)) return true;
  return e != read && std::all_of(e->children.begin(), e->children.end(), [&](Expr c) { return only_folded(c, read); });
}

// The function of a fold, without its leading lets of scalars.
struct StepForm {
  Expr state = nullptr;  // the accumulator
  Expr body = nullptr;
  bool looks = false;       // true if a let names a fold over the state
  bool looks_first = true;  // true if lets use the state only inside folds
};

StepForm step_form(Expr e) {
  StepForm out;
  const Expr function = e->children[0];
  out.state = parameter("\2state", function->parameters[0]);
  out.body = apply(function, {out.state, parameter("\2step", function->parameters[1])});
  for (size_t count = 0; out.body->pattern == Pattern::let && out.body->children[0]->type->is_scalar(); ++count) {
    const Expr value = out.body->children[0];
    out.looks |= mentions(value, out.state) && folds(value);
    out.looks_first &= only_folded(value, out.state);
    out.body = apply(out.body->children[1], {parameter("\2let" + std::to_string(count), value->type)});
  }
  return out;
}

bool folds_numbers_of_array(Expr e) {
  return e->pattern == Pattern::fold && e->mode == Mode::view && e->type->is_array() && leaf_of(e->type)->is_scalar();
}

}  // namespace

Expr combined_at(Function combine, Expr positions, Expr updates, Expr base) {
  const Nat n = base->type->size;
  const Scalar at = leaf_of(positions->type)->scalar;
  return fold(
      [&](Expr state, Expr next) {
        return map(
            [&](Expr element) {
              const Expr old = get(0, element);
              return select(call(Function::equal, {get(1, element), get(0, next)}), call(combine, {old, get(1, next)}),
                            old);
            },
            zip({state, iota(n, at)}));
      },
      base, zip({positions, updates}));
}

std::optional<ScatterForm> scatter_form(Expr e) {
  if (e->pattern == Pattern::scatter) return ScatterForm{e->children[0], e->children[1], e->children[2], std::nullopt};
  if (e->pattern != Pattern::fold || e->mode != Mode::view) return std::nullopt;
  const Expr steps = e->children[2], each = e->children[0]->children[0];
  if (steps->pattern != Pattern::zip || steps->children.size() != 2 || each->pattern != Pattern::map)
    return std::nullopt;
  const Expr chosen = each->children[0]->children[0];
  const bool selects = chosen->pattern == Pattern::select && chosen->children[1]->pattern == Pattern::call;
  if (!selects || !chosen->type->is_scalar() || chosen->children[1]->children.size() != 2) return std::nullopt;
  ScatterForm out = {steps->children[0], steps->children[1], e->children[1], chosen->children[1]->function};
  if (!leaf_of(out.positions->type)->is_scalar() || !is_integer(leaf_of(out.positions->type)->scalar) ||
      e != combined_at(*out.combine, out.positions, out.updates, out.base))
    return std::nullopt;
  return out;
}

bool looks_before_changes(Expr e) { return folds_numbers_of_array(e) && step_form(e).looks; }

bool changes_in_place(Expr e) {
  if (!folds_numbers_of_array(e)) return false;
  const StepForm steps = step_form(e);
  if (!steps.looks || !steps.looks_first || steps.body->pattern != Pattern::map || steps.body->mode != Mode::view ||
      mentions(steps.body->children[0], steps.state))
    return false;
  const Expr over = steps.body->children[1];
  if (over->pattern != Pattern::zip) return over == steps.state;
  return std::all_of(over->children.begin(), over->children.end(),
                     [&](Expr part) { return part == steps.state || !mentions(part, steps.state); });
}

bool binds_for_many(Expr e) { return e->pattern == Pattern::let && e->children[1]->children[0]->type->is_array(); }

bool shares_folds(Expr e) {
  return any_usual_node(e, [](Expr n) { return binds_for_many(n) && folds(n->children[0]); });
}

}  // namespace hoist
