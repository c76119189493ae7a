#include "ir/gradient/adjoints.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/seen_terms.h"
#include "ir/gradient/derivatives.h"
#include "ir/gradient/known_adjoints.h"
#include "ir/properties/properties.h"

namespace hoist::gradients {
namespace {

// True if the operand's adjoint reads each element of the term's adjoint once.
bool passes_on(Expr e) {
  switch (e->pattern) {
    case Pattern::parameter:
    case Pattern::get:
    case Pattern::split:
    case Pattern::join:
    case Pattern::transpose:
    case Pattern::cast:
    case Pattern::identity:
    case Pattern::materialise:
    case Pattern::let:
      return true;
    default:
      return false;
  }
}

// True if each operand takes one part of the adjoint.
bool is_parted(Expr e, Expr adjoint) {
  const auto has_parts = [](Expr n) { return n->pattern == Pattern::zip || n->pattern == Pattern::tuple; };
  return has_parts(e) && has_parts(adjoint);
}

void adjoint_of_call(AdjointScope& scope, Expr e, Expr adjoint) {
  const DerivativeRow* row = find_derivative(e->function);
  if (row == nullptr) return scope.fault(std::string(hoist::row(e->function).name));
  std::vector<Expr> operands;
  for (Expr c : e->children) operands.push_back(scope.shared(c));
  const Expr known = scope.known_result(e), result = known != nullptr ? known : call(e->function, operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (scope.is_active(e->children[i]))
      scope.add(e->children[i], scaled(adjoint, partial_derivative(*row, i, operands, result)));
  }
}

void adjoint_of_select(AdjointScope& scope, Expr e, Expr adjoint) {
  for (const size_t i : {1, 2}) {
    if (!scope.is_active(e->children[i])) continue;
    std::vector<Expr> children = {scope.shared(e->children[0]), zeros(e->type), zeros(e->type)};
    children[i] = adjoint;
    auto made = with_children(e, std::move(children));
    HOIST_CHECK(made.ok(), made.errors()[0].text());
    scope.add(e->children[i], *made);
  }
}

void adjoint_of_map(AdjointScope& scope, Expr e, Expr adjoint) {
  const Expr function = e->children[0], array = e->children[1];
  std::vector<Expr> wanted = scope.captured_by(function);
  const size_t captured = wanted.size();
  // An adjoint that is equal for all elements needs no variable.
  const bool is_repeated = adjoint->pattern == Pattern::repeat;
  const Expr x = fresh_variable(function->parameters[0]);
  const Expr y = is_repeated ? adjoint->children[0] : fresh_variable(adjoint->type->element);
  if (scope.is_active(array)) wanted.push_back(x);
  std::vector<Running> variables = {{x, scope.shared(array)}};
  if (!is_repeated) variables.push_back({y, adjoint});
  Expr result = nullptr;
  if (const Expr known = scope.known_result(e)) {
    result = fresh_variable(known->type->element);
    variables.push_back({result, known});
  }
  const Adjoints inner = adjoints_of(apply(function, {x}), y, wanted, scope.faults(), result);
  const Nat& n = array->type->size;
  // A fold's value that is an array, or that a sum over all elements reads, is computed for all elements first: inside
  // the function, every element of a result would compute it again.
  std::vector<Binding> inside;
  for (const Binding& b : inner.bindings) {
    const bool is_array = folds(b.value) && (b.value->type->is_array() || captured > 0);
    if (!b.is_kept && !is_array) {
      inside.push_back(b);
      continue;
    }
    const Expr all = map_over(variables, n, with_bindings(inside, b.value));
    variables.push_back({b.name, b.is_kept ? scope.kept(all) : scope.named(all)});
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Expr one = with_bindings(inside, inner.of[i]);
    scope.add(i < captured ? wanted[i] : array,
              i < captured ? sum_over(variables, n, one) : map_over(variables, n, one));
  }
}

void adjoint_of_known(AdjointScope& scope, Expr e, Expr adjoint) {
  const KnownTerm known = known_term(e);
  const Expr result = scope.known_result(e), row = scope.shared(known.row);
  scope.add(known.row, known.adjoint(row, result != nullptr ? result : scope.named(e), scope.shared(adjoint)));
}

}  // namespace

Expr with_bindings(const std::vector<Binding>& bindings, Expr e) {
  for (size_t i = bindings.size(); i-- > 0;) e = let_in(bindings[i].name, bindings[i].value, e);
  return e;
}

AdjointScope::AdjointScope(const std::vector<Expr>& wanted, std::set<std::string>& faults)
    : wanted_(wanted), faults_(faults) {
  for (Expr w : wanted) active_[w] = true;
}

bool AdjointScope::is_active(Expr e) {
  if (auto found = active_.find(e); found != active_.end()) return found->second;
  bool active = false;
  if (e->pattern == Pattern::function || has_floats(e->type)) {
    for (Expr c : e->children) active |= is_active(c);
  }
  return active_[e] = active;
}

void AdjointScope::add(Expr to, Expr adjoint) {
  HOIST_CHECK(to->type == adjoint->type,
              fmt::format("an adjoint of {} for a value of {}", text(adjoint->type), text(to->type)));
  auto [place, is_new] = adjoints_.emplace(to, adjoint);
  if (!is_new) place->second = sum_of(place->second, adjoint);
}

Expr AdjointScope::named(Expr value) {
  if (value->pattern == Pattern::parameter || value->pattern == Pattern::literal || is_zero(value)) return value;
  if (value->pattern == Pattern::tuple || value->pattern == Pattern::zip) {
    std::vector<Expr> parts;
    for (Expr part : value->children) parts.push_back(shared(part));
    return value->pattern == Pattern::tuple ? tuple(parts) : zip(parts);
  }
  Expr& name = names_[value];
  if (name == nullptr) {
    name = fresh_variable(value->type);
    bindings_.push_back({name, value, false});
  }
  return name;
}

Expr AdjointScope::kept(Expr value) {
  const Expr name = named(value);
  for (Binding& b : bindings_) b.is_kept |= b.name == name;
  return name;
}

Expr AdjointScope::shared(Expr value) { return folds(value) ? named(value) : value; }

std::vector<Expr> AdjointScope::captured_by(Expr function) {
  std::vector<Expr> found;
  SeenTerms seen;
  const auto walk = [&](const auto& self, Expr e) -> void {
    if (!is_active(e) || !seen.insert(e)) return;
    if (e->free == 0 && e->pattern != Pattern::function) {
      found.push_back(e);
      return;
    }
    for (Expr c : e->children) self(self, c);
  };
  walk(walk, function->children[0]);
  return found;
}

// The known value of a view or a let gives the value of its operand or its body.
void AdjointScope::know(Expr e, Expr result) {
  if (result == nullptr || !is_active(e)) return;
  results_[e] = result;
  switch (e->pattern) {
    case Pattern::let:
      if (auto opened = opened_.find(e); opened != opened_.end()) know(opened->second, result);
      return;
    case Pattern::split:
      return know(e->children[0], join(result));
    case Pattern::join:
      return know(e->children[0], split(e->children[0]->type->element->size, result));
    case Pattern::transpose:
      return know(e->children[0], untransposed(e, result));
    default:
      return;
  }
}

Expr AdjointScope::known_result(Expr e) const {
  auto found = results_.find(e);
  return found == results_.end() ? nullptr : found->second;
}

// Lists the active terms in topological order. Lets are opened: the bound value gets a name.
void AdjointScope::visit(Expr e) {
  if (!is_active(e) || !visited_.insert(e).second) return;
  if (std::find(wanted_.begin(), wanted_.end(), e) != wanted_.end()) return;
  if (auto value = value_of_.find(e); value != value_of_.end()) {
    visit(value->second);
  } else if (const KnownTerm known = known_term(e); known.row != nullptr) {
    visit(known.row);
  } else if (e->pattern == Pattern::let) {
    const Expr value = e->children[0], name = fresh_variable(value->type);
    active_[name] = is_active(value);
    value_of_[name] = value;
    names_[value] = name;
    bindings_.push_back({name, value, false});
    visit(name);
    visit(opened_[e] = apply(e->children[1], {name}));
  } else {
    for (Expr c : e->children) {
      if (c->pattern != Pattern::function) {
        visit(c);
        continue;
      }
      for (Expr captured : captured_by(c)) visit(captured);
    }
  }
  order_.push_back(e);
}

void AdjointScope::step(Expr e, Expr adjoint) {
  if (auto value = value_of_.find(e); value != value_of_.end()) return add(value->second, adjoint);
  switch (e->pattern) {
    case Pattern::let:
      if (auto opened = opened_.find(e); opened != opened_.end()) return add(opened->second, adjoint);
      return adjoint_of_known(*this, e, adjoint);
    case Pattern::call:
      return adjoint_of_call(*this, e, adjoint);
    case Pattern::select:
      return adjoint_of_select(*this, e, adjoint);
    case Pattern::cast:
      return add(e->children[0], cast(e->children[0]->type->scalar, adjoint));
    case Pattern::identity:
    case Pattern::materialise:
      return add(e->children[0], adjoint);
    case Pattern::map:
      return adjoint_of_map(*this, e, adjoint);
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::scan:
    case Pattern::iterate:
      return adjoint_of_fold(*this, e, adjoint);
    case Pattern::scatter:
      return adjoint_of_scatter(*this, e, adjoint);
    default:
      return adjoint_of_view(*this, e, adjoint);
  }
}

Adjoints AdjointScope::run(Expr e, Expr seed, Expr result) {
  visit(e);
  if (is_active(e)) {
    add(e, seed);
    if (std::find(wanted_.begin(), wanted_.end(), e) == wanted_.end()) know(e, result);
  }
  for (size_t i = order_.size(); i-- > 0;) {
    const Expr at = order_[i];
    auto found = adjoints_.find(at);
    if (found == adjoints_.end() || is_zero(found->second)) continue;
    const Expr adjoint = passes_on(at) || is_parted(at, found->second) ? found->second : shared(found->second);
    step(at, adjoint);
  }
  Adjoints out;
  for (Expr w : wanted_) {
    auto found = adjoints_.find(w);
    out.of.push_back(found == adjoints_.end() ? zeros(w->type) : found->second);
  }
  out.bindings = std::move(bindings_);
  return out;
}

Adjoints adjoints_of(Expr e, Expr seed, const std::vector<Expr>& wanted, std::set<std::string>& faults, Expr result) {
  return AdjointScope(wanted, faults).run(e, seed, result);
}

}  // namespace hoist::gradients
