#include "ir/gradient/linear_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "ir/base/seen_terms.h"
#include "ir/properties/properties.h"

namespace hoist::gradients {
namespace {

// The maximum number of arrays in a zip (typing.cpp).
constexpr size_t most_zipped = 64;

bool is_number(Expr e, double value) {
  return e->pattern == Pattern::literal && is_float(e->type->scalar) && e == literal(e->type->scalar, value);
}

bool is_constant_number(Expr e) { return e->pattern == Pattern::literal || e->pattern == Pattern::constant; }

bool mentions_any(Expr e, const std::vector<Running>& variables) {
  return std::any_of(variables.begin(), variables.end(), [&](const Running& v) { return mentions(e, v.variable); });
}

// Replaces a variable over a zip by one variable for each part, and a variable over a repeated value by that value;
// removes variables without a use.
Expr without_zips(std::vector<Running>& variables, Expr body) {
  for (size_t i = 0; i < variables.size();) {
    const Running whole = variables[i];
    if (!mentions(body, whole.variable)) {
      variables.erase(variables.begin() + static_cast<ptrdiff_t>(i));
    } else if (whole.array->pattern == Pattern::zip) {
      std::vector<Expr> parts;
      variables.erase(variables.begin() + static_cast<ptrdiff_t>(i));
      for (Expr array : whole.array->children) {
        parts.push_back(fresh_variable(array->type->element));
        variables.push_back({parts.back(), array});
      }
      body = substitute_parameters(body, {{whole.variable->name, tuple(parts)}});
    } else if (whole.array->pattern == Pattern::repeat) {
      variables.erase(variables.begin() + static_cast<ptrdiff_t>(i));
      body = substitute_parameters(body, {{whole.variable->name, whole.array->children[0]}});
    } else {
      ++i;
    }
  }
  return body;
}

// The sum over the first dimension.
Expr sum_of_elements(Expr array) {
  const Expr element = fresh_variable(array->type->element);
  return sum_over({{element, array}}, array->type->size, element);
}

Expr sum_of_scalars(const std::vector<Running>& variables, const Nat& n, Expr body) {
  const Scalar scalar = body->type->scalar;
  if (variables.empty() && n.is_constant()) return scaled(body, literal(scalar, static_cast<double>(n.value())));
  // A sum of sums becomes one sum. An inner function that does not mention the variables is mapped over joined arrays.
  if (body->pattern == Pattern::reduce && body == reduce(Function::add, literal(scalar, 0), body->children[2])) {
    const Expr inner = body->children[2];
    const bool maps = inner->pattern == Pattern::map && inner->mode == Mode::view;
    if (maps && !mentions_any(inner->children[0], variables)) {
      std::vector<Running> parts;
      const Expr element = fresh_variable(inner->children[0]->parameters[0]);
      std::vector<Running> inside = {{element, inner->children[1]}};
      const Expr term = without_zips(inside, apply(inner->children[0], {element}));
      for (const Running& part : inside) parts.push_back({part.variable, join(map_over(variables, n, part.array))});
      const Nat all = n * inner->type->size;
      if (!parts.empty()) return reduce(Function::add, literal(scalar, 0), map_over(parts, all, term));
    }
    return reduce(Function::add, literal(scalar, 0), join(map_over(variables, n, inner)));
  }
  return reduce(Function::add, literal(scalar, 0), map_over(variables, n, body));
}

// The sum of arrays of zeros with one update each is one scatter; updates may be arrays.
Expr scatter_sum(const Nat& n, Expr positions, Expr updates) {
  const Type element = updates->type->element;
  if (element->is_scalar()) return combined_at(Function::add, positions, updates, zeros(array_type(n, element)));
  if (element->is_tuple()) {
    std::vector<Expr> parts;
    for (size_t i = 0; i < element->parts.size(); ++i)
      parts.push_back(scatter_sum(n, positions, component(static_cast<int64_t>(i), updates)));
    return zip(parts);
  }
  return transpose(map([&](Expr column) { return scatter_sum(n, positions, column); }, transpose(updates)));
}

// The position and the value if the term has the form of one_hot().
std::optional<std::pair<Expr, Expr>> hot_form(Expr e) {
  if (e->pattern != Pattern::map || e->children[1]->pattern != Pattern::iota) return std::nullopt;
  const Expr at = fresh_variable(e->children[0]->parameters[0]);
  const Expr body = apply(e->children[0], {at});
  if (body->pattern != Pattern::select || !is_zero(body->children[2]) || mentions(body->children[1], at))
    return std::nullopt;
  const Expr test = body->children[0];
  if (test->pattern != Pattern::call || test->function != Function::equal || test->children[0] != at ||
      mentions(test->children[1], at))
    return std::nullopt;
  return std::pair(test->children[1], body->children[1]);
}

Expr sum_of_map(const std::vector<Running>& variables, const Nat& n, Expr body) {
  const Expr array = body->children[1];
  const Expr element = fresh_variable(body->children[0]->parameters[0]);
  std::vector<Running> parts = {{element, array}}, around, inside = variables;
  const Expr term = without_zips(parts, apply(body->children[0], {element}));
  for (const Running& part : parts) {
    if (!mentions_any(part.array, variables)) {
      around.push_back(part);
      continue;
    }
    const Expr row = fresh_variable(array_type(n, part.variable->type));
    around.push_back({row, transpose(map_over(variables, n, part.array))});
    inside.push_back({part.variable, row});
  }
  return map_over(around, body->type->size, sum_over(inside, n, term));
}

// A sum over a view becomes the view of the sum; null for other patterns.
Expr sum_of_view(const std::vector<Running>& variables, const Nat& n, Expr body) {
  switch (body->pattern) {
    case Pattern::transpose:
    case Pattern::split:
    case Pattern::join:
    case Pattern::slice:
    case Pattern::repeat:
    case Pattern::slide:
    case Pattern::zip:
    case Pattern::concat:
    case Pattern::tuple: {
      std::vector<Expr> sums;
      for (Expr c : body->children) sums.push_back(sum_over(variables, n, c));
      auto made = with_children(body, std::move(sums));
      HOIST_CHECK(made.ok(), made.errors()[0].text());
      return *made;
    }
    case Pattern::pad:
      if (body->border != Border::value || !is_zero(body->children[1])) return nullptr;
      return pad_zeros(body->sizes[0], body->sizes[1], sum_over(variables, n, body->children[0]));
    default:
      return nullptr;
  }
}

}  // namespace

Expr zeros(Type type) {
  if (type->is_array()) return repeat(type->size, zeros(type->element));
  if (type->is_tuple()) {
    std::vector<Expr> parts;
    for (Type part : type->parts) parts.push_back(zeros(part));
    return tuple(parts);
  }
  return is_float(type->scalar) ? literal(type->scalar, 0) : literal_integer(type->scalar, 0);
}

bool is_zero(Expr e) {
  if (e->pattern == Pattern::literal) return e->bits == 0;
  if (e->pattern != Pattern::repeat && e->pattern != Pattern::tuple && e->pattern != Pattern::zip) return false;
  return std::all_of(e->children.begin(), e->children.end(), is_zero);
}

bool has_floats(Type type) {
  if (type->is_array()) return has_floats(type->element);
  if (type->is_tuple()) return std::any_of(type->parts.begin(), type->parts.end(), has_floats);
  return type->is_scalar() && is_float(type->scalar);
}

Expr sum_of(Expr a, Expr b) {
  if (is_zero(a)) return b;
  if (is_zero(b)) return a;
  const Type type = a->type;
  if (type->is_tuple()) {
    std::vector<Expr> parts;
    for (size_t i = 0; i < type->parts.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      parts.push_back(sum_of(part_of(at, a), part_of(at, b)));
    }
    return tuple(parts);
  }
  if (type->is_scalar()) return is_float(type->scalar) ? call(Function::add, {a, b}) : zeros(type);
  const Expr x = fresh_variable(type->element), y = fresh_variable(type->element);
  return map_over({{x, a}, {y, b}}, type->size, sum_of(x, y));
}

Expr scaled(Expr adjoint, Expr factor) {
  if (is_zero(factor) || is_number(factor, 1)) return is_zero(factor) ? factor : adjoint;
  if (is_number(adjoint, 1)) return factor;
  if (is_number(factor, -1)) return call(Function::negate, {adjoint});
  if (factor->pattern == Pattern::select &&
      (is_constant_number(factor->children[1]) || is_constant_number(factor->children[2])))
    return select(factor->children[0], scaled(adjoint, factor->children[1]), scaled(adjoint, factor->children[2]));
  return call(Function::multiply, {adjoint, factor});
}

Expr fresh_variable(Type type) {
  static std::atomic<uint64_t> count = 0;
  return parameter(fmt::format("\1adjoint{}", count++), type);
}

bool mentions(Expr e, Expr variable) {
  SeenTerms seen;
  const auto walk = [&](const auto& self, Expr n) -> bool {
    if (n == variable) return true;
    if (!n->has_placeholder || !seen.insert(n)) return false;
    return std::any_of(n->children.begin(), n->children.end(), [&](Expr c) { return self(self, c); });
  };
  return walk(walk, e);
}

Expr bind(const std::vector<Expr>& variables, Expr body) {
  std::vector<Type> types;
  for (Expr v : variables) types.push_back(v->type);
  return function(types, [&](const std::vector<Expr>& bound) {
    std::map<std::string, Expr> values;
    for (size_t i = 0; i < variables.size(); ++i) values.emplace(variables[i]->name, bound[i]);
    return substitute_parameters(body, values);
  });
}

Expr let_in(Expr name, Expr value, Expr body) {
  if (body == name) return value;
  if (!mentions(body, name)) return body;
  return let(value, [&](Expr v) { return substitute_parameters(body, {{name->name, v}}); });
}

Expr part_of(int64_t i, Expr e) {
  if (e->pattern != Pattern::let) return get(i, e);
  const Expr name = fresh_variable(e->children[0]->type);
  return let_in(name, e->children[0], part_of(i, apply(e->children[1], {name})));
}

// One variable over the zip of all arrays. Replaces the variables in the body by its components.
static Running zipped(const std::vector<Running>& variables, Expr& body) {
  std::vector<Expr> arrays;
  for (const Running& v : variables) arrays.push_back(v.array);
  const Expr all = zip(arrays), element = fresh_variable(all->type->element);
  std::map<std::string, Expr> values;
  for (size_t i = 0; i < variables.size(); ++i)
    values.emplace(variables[i].variable->name, get(static_cast<int64_t>(i), element));
  body = substitute_parameters(body, values);
  return {element, all};
}

Expr map_over(std::vector<Running> variables, const Nat& n, Expr body) {
  if (is_zero(body)) return zeros(array_type(n, body->type));
  body = without_zips(variables, body);
  const bool is_tuple = body->pattern == Pattern::tuple || (body->pattern == Pattern::let && body->type->is_tuple());
  if (is_tuple && body->type->parts.size() <= most_zipped) {
    std::vector<Expr> parts;
    for (size_t i = 0; i < body->type->parts.size(); ++i)
      parts.push_back(map_over(variables, n, part_of(static_cast<int64_t>(i), body)));
    return zip(parts);
  }
  if (variables.empty()) return repeat(n, body);
  if (variables.size() == 1) return map(bind({variables[0].variable}, body), variables[0].array);
  if (variables.size() > most_zipped) {
    const auto last = variables.begin() + static_cast<ptrdiff_t>(most_zipped) - 1;
    const Running rest = zipped({last, variables.end()}, body);
    variables.erase(last, variables.end());
    // It has to stay one variable, and map_over() would split it again.
    variables.push_back(rest);
  }
  const Running element = zipped(variables, body);
  return map(bind({element.variable}, body), element.array);
}

Expr sum_over(std::vector<Running> variables, const Nat& n, Expr body) {
  if (is_zero(body) || n == Nat(0)) return zeros(body->type);
  body = without_zips(variables, body);
  if (body->pattern == Pattern::let) {
    // A bound value that depends on the variables becomes an array of all its values.
    const Expr value = body->children[0], name = fresh_variable(value->type);
    const Expr inner = apply(body->children[1], {name});
    if (!mentions_any(value, variables)) return let_in(name, value, sum_over(variables, n, inner));
    const Expr values = fresh_variable(array_type(n, value->type));
    variables.push_back({name, values});
    const Expr sum = sum_over(variables, n, inner);
    variables.pop_back();
    return let_in(values, map_over(variables, n, value), sum);
  }
  if (body->type->is_scalar())
    return is_float(body->type->scalar) ? sum_of_scalars(variables, n, body) : zeros(body->type);
  if (const auto hot = hot_form(body))
    return scatter_sum(body->type->size, map_over(variables, n, hot->first), map_over(variables, n, hot->second));
  if (const auto updates = scatter_form(body); updates && updates->combine == Function::add && is_zero(updates->base))
    return combined_at(Function::add, join(map_over(variables, n, updates->positions)),
                       join(map_over(variables, n, updates->updates)), updates->base);
  if (Expr view = sum_of_view(variables, n, body)) return view;
  if (body->pattern == Pattern::map && body->mode == Mode::view) return sum_of_map(variables, n, body);
  if (body->type->is_tuple()) {
    std::vector<Expr> parts;
    for (size_t i = 0; i < body->type->parts.size(); ++i)
      parts.push_back(sum_over(variables, n, part_of(static_cast<int64_t>(i), body)));
    return tuple(parts);
  }
  if (variables.empty()) {
    const Expr element = fresh_variable(body->type->element);
    return map_over({{element, body}}, body->type->size, sum_over({}, n, element));
  }
  // Sums the columns of the array of all values.
  const Expr all = map_over(variables, n, body);
  return map([&](Expr column) { return sum_of_elements(column); }, transpose(all));
}

Expr one_hot(const Nat& n, Expr position, Expr value) {
  if (position->pattern == Pattern::literal) {
    const auto at = static_cast<int64_t>(position->bits);
    return pad_zeros(at, n - at - 1, repeat(1, value));
  }
  const Scalar scalar = position->type->scalar;
  return map(
      [&](Expr i) {
        return select(call(Function::equal, {i, position}), value, zeros(value->type));
      },
      iota(n, scalar));
}

// The sum of products with the factors exchanged; any other term unchanged.
static Expr with_turned_factors(Expr e) {
  if (e->pattern != Pattern::reduce || e->children[2]->pattern != Pattern::map) return e;
  const Expr pairs = e->children[2]->children[1];
  if (pairs->pattern != Pattern::zip || pairs->children.size() != 2) return e;
  const auto sum = [&](Expr a, Expr b) {
    const Expr x = fresh_variable(a->type->element), y = fresh_variable(b->type->element);
    return sum_over({{x, a}, {y, b}}, a->type->size, call(Function::multiply, {x, y}));
  };
  const Expr a = pairs->children[0], b = pairs->children[1];
  return a->type->element->is_scalar() && e == sum(a, b) ? sum(b, a) : e;
}

Expr transposed(Expr array) {
  const auto is_map = [](Expr e) { return e->pattern == Pattern::map && e->mode == Mode::view; };
  if (!is_map(array)) return transpose(array);
  const Expr x = fresh_variable(array->children[0]->parameters[0]), row = apply(array->children[0], {x});
  if (!is_map(row) || mentions(row->children[1], x)) return transpose(array);
  const Expr y = fresh_variable(row->children[0]->parameters[0]), element = apply(row->children[0], {y});
  const Expr column = map_over({{x, array->children[1]}}, array->type->size, with_turned_factors(element));
  return map_over({{y, row->children[1]}}, array->type->element->size, column);
}

Expr reversed(Expr array) {
  if (array->pattern == Pattern::repeat || array->type->size == Nat(0)) return array;
  return slice(array->type->size - 1, array->type->size, array, -1);
}

Expr pad_zeros(const Nat& left, const Nat& right, Expr array) {
  const Type element = array->type->element;
  if (is_zero(array)) return zeros(array_type(left + array->type->size + right, element));
  if (left == Nat(0) && right == Nat(0)) return array;
  return pad(left, right, zeros(element), array);
}

Expr zeros_between(const Nat& count, Expr array) {
  const Nat n = array->type->size, step = count + 1;
  if (count == Nat(0) || n == Nat(0)) return array;
  const Expr spread = join(map([&](Expr one) { return pad_zeros(0, count, one); }, split(1, array)));
  return slice(0, (n - 1) * step + 1, spread);
}

Expr component(int64_t i, Expr array) {
  const Expr element = fresh_variable(array->type->element);
  return map_over({{element, array}}, array->type->size, part_of(i, element));
}

}  // namespace hoist::gradients
