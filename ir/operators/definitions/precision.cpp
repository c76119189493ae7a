#include "ir/operators/definitions/precision.h"

#include <algorithm>
#include <unordered_map>

#include "ir/operators/definitions/support.h"

namespace hoist::operators {
namespace {

bool is_narrow(Scalar scalar) { return is_float(scalar) && row(scalar).bits == 16; }

// True if the result of the operation on floats may be something else than an operand, up to its sign, or an integer.
bool rounds(Function function) {
  switch (function) {
    case Function::maximum:
    case Function::minimum:
    case Function::negate:
    case Function::absolute:
    case Function::sign:
    case Function::floor:
    case Function::ceiling:
    case Function::round:
    case Function::truncate:
      return false;
    default:
      return row(function).result == ResultKind::same;
  }
}

// The number of roundings of 16-bit floats on the way to a result, at most two; a rounding in a loop counts twice.
class Roundings {
 public:
  int of(Expr e) {
    if (auto found = known_.find(e); found != known_.end()) return found->second;
    int count =
        e->pattern == Pattern::call && e->type->is_scalar() && is_narrow(e->type->scalar) && rounds(e->function);
    const bool loop = e->pattern == Pattern::reduce || e->pattern == Pattern::fold || e->pattern == Pattern::scan ||
                      e->pattern == Pattern::iterate;
    for (size_t i = 0; i < e->children.size(); ++i) count += (loop && i == 0 ? 2 : 1) * of(e->children[i]);
    return known_[e] = std::min(count, 2);
  }

 private:
  std::unordered_map<Expr, int> known_;
};

// The type with f32 in place of 16-bit floats.
Type widened(Type type) {
  if (type->is_scalar()) return is_narrow(type->scalar) ? scalar_type(Scalar::f32) : type;
  if (!type->is_tuple()) return array_type(type->size, widened(type->element));
  std::vector<Type> parts;
  for (Type part : type->parts) parts.push_back(widened(part));
  return tuple_type(parts);
}

// The value converted to that type; scalars that differ are floats.
Expr converted(Expr x, Type type) {
  if (x->type == type) return x;
  if (type->is_scalar()) return convert(type->scalar, x);
  if (!type->is_tuple()) return map([&](Expr element) { return converted(element, type->element); }, x);
  std::vector<Expr> parts;
  for (size_t i = 0; i < type->parts.size(); ++i)
    parts.push_back(converted(get(static_cast<int64_t>(i), x), type->parts[i]));
  return tuple(std::move(parts));
}

}  // namespace

Result<Expr> rounded_once(const std::vector<Type>& types,
                          const std::function<Result<Expr>(const std::vector<Type>&)>& made) {
  HOIST_TRY(Expr narrow, made(types));
  std::vector<Type> wide;
  for (Type type : types) wide.push_back(widened(type));
  if (wide == types || Roundings().of(narrow) < 2) return narrow;
  auto precise = made(wide);
  if (!precise.ok()) return narrow;
  return function(types, [&](const std::vector<Expr>& arguments) {
    std::vector<Expr> widely;
    for (size_t i = 0; i < arguments.size(); ++i) widely.push_back(converted(arguments[i], wide[i]));
    return converted(hoist::apply(*precise, widely), hoist::apply(narrow, arguments)->type);
  });
}

Scalar interpolation_scalar(Scalar scalar) {
  if (is_float(scalar)) return wide_float(scalar);
  return row(scalar).bits <= 16 ? Scalar::f32 : Scalar::f64;
}

double truncation_slack(Scalar interpolated) { return interpolated == Scalar::f32 ? 0x1p-10 : 0x1p-20; }

}  // namespace hoist::operators
