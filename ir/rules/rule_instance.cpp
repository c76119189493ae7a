#include "ir/rules/rule_instance.h"

#include <limits>

#include "ir/base/seeded.h"

namespace hoist {

uint64_t RandomTerms::bits() { return next_random(state_); }

int64_t RandomTerms::below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }

bool RandomTerms::chance(double probability) { return static_cast<double>(bits() >> 11) * 0x1p-53 < probability; }

Type RandomTerms::type(int rank) {
  if (rank > 0 && chance(0.2)) return array_type(1 + below(3), type(rank - 1));
  if (rank > 0 && chance(0.15)) {
    Type first = type(rank - 1);
    return tuple_type({first, type(rank - 1)});
  }
  using enum Scalar;
  return scalar_type(one_of<Scalar>({f32, f32, f32, f64, i32, i32, u8}));
}

// The element of a value at positions inside arrays of these sizes; its parameters have these as leading dimensions.
Expr RandomTerms::element(Type type, const std::vector<Nat>& sizes, const std::vector<Expr>& positions) {
  if (type->is_tuple()) {
    std::vector<Expr> parts;
    for (Type part : type->parts) parts.push_back(element(part, sizes, positions));
    return tuple(parts);
  }
  if (type->is_array() && !leaf_of(type)->is_scalar()) {
    std::vector<Nat> inner_sizes = sizes;
    inner_sizes.push_back(type->size);
    return map(
        [&](Expr i) {
          std::vector<Expr> inner = positions;
          inner.push_back(i);
          return element(type->element, inner_sizes, inner);
        },
        iota(type->size, Scalar::i64));
  }
  Expr e = parameter("x" + std::to_string(parameters_.size()), array_type(sizes, type));
  parameters_.push_back(e);
  for (Expr p : positions) e = index(p, e);
  return e;
}

Expr RandomTerms::value(Type type) { return element(type, {}, {}); }

// Some scalar inside a value, converted to the given type.
Expr RandomTerms::some_scalar(Scalar wanted, Expr v) {
  while (!v->type->is_scalar()) {
    if (v->type->is_tuple()) {
      v = get(below(static_cast<int64_t>(v->type->parts.size())), v);
    } else if (v->type->size == Nat(0)) {
      return literal(wanted, 1);
    } else {
      v = index(literal_integer(Scalar::i64, below(v->type->size.value())), v);
    }
  }
  if (v->type->scalar == wanted) return v;
  if (wanted == Scalar::boolean) return call(Function::not_equal, {v, literal(v->type->scalar, 1)});
  return cast(wanted, v);
}

Expr RandomTerms::scalar_over(Scalar wanted, const std::vector<Expr>& scope, int depth) {
  Expr a = some_scalar(wanted, one_of(scope));
  if (depth == 0) return a;
  Expr b = chance(0.5) ? scalar_over(wanted, scope, depth - 1) : some_scalar(wanted, one_of(scope));
  if (wanted == Scalar::boolean) return call(one_of<Function>({Function::logical_and, Function::logical_xor}), {a, b});
  switch (below(7)) {
    case 0:
      return call(Function::maximum, {a, b});
    case 1:
      return call(Function::minimum, {b, a});
    case 2:
      return call(Function::subtract, {a, b});
    case 3:
      return call(Function::multiply, {a, literal(wanted, is_float(wanted) ? 0.75 : 3)});
    case 4:
      return select(call(Function::less, {a, b}), b, call(Function::add, {a, literal(wanted, 1)}));
    case 5:
      return call(Function::add, {call(Function::multiply, {a, literal(wanted, is_float(wanted) ? 0.5 : 2)}), b});
    default:
      return call(Function::add, {a, b});
  }
}

Expr RandomTerms::over(Type type, const std::vector<Expr>& scope) {
  if (type->is_scalar()) return scalar_over(type->scalar, scope, 1 + static_cast<int>(below(2)));
  if (type->is_tuple()) {
    std::vector<Expr> parts;
    for (Type part : type->parts) parts.push_back(over(part, scope));
    return tuple(parts);
  }
  auto with = [&](Expr extra) {
    std::vector<Expr> inner = scope;
    inner.push_back(extra);
    return over(type->element, inner);
  };
  for (Expr v : scope) {
    if (v->type->is_array() && v->type->size == type->size && chance(0.7)) return map(with, v);
  }
  return map(with, iota(type->size, Scalar::i32));
}

Expr RandomTerms::function_of(const std::vector<Type>& parameters, Type result, const std::vector<Expr>& outer) {
  return function(parameters, [&](const std::vector<Expr>& variables) {
    std::vector<Expr> scope = variables;
    if (chance(0.5)) scope.insert(scope.end(), outer.begin(), outer.end());
    return over(result, scope);
  });
}

Tensor RandomTerms::tensor(Type type, bool special) {
  using limits = std::numeric_limits<double>;
  const std::vector<double> strange = {0.0,  -0.0, limits::infinity(), -limits::infinity(), limits::quiet_NaN(),
                                       1e30, 1e-41};
  Tensor out(leaf_of(type)->scalar, shape_of(type));
  const Scalar s = out.scalar();
  for (int64_t i = 0; i < out.size(); ++i) {
    if (!is_float(s)) {
      bool small = s == Scalar::boolean;
      out.set_integer(i, small ? below(2) : row(s).is_signed ? below(17) - 6 : below(17));
    } else if (special && chance(0.08)) {
      out.set_float(i, one_of(strange));
    } else {
      out.set_float(i, static_cast<double>(below(4001) - 2000) / 1024.0 / (1 + static_cast<double>(below(7))));
    }
  }
  return out;
}

Bindings RandomTerms::data(bool special) {
  Bindings bindings;
  for (Expr p : parameters_) bindings.emplace(p->name, tensor(p->type, special));
  return bindings;
}

}  // namespace hoist
