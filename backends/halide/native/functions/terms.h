// The functions of native code as terms of Halide: shorthands, and the table of functions by name. Only for this
// folder.
#pragma once

#include <Halide.h>
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace hoist::emission::native {

using Halide::select;
using Halide::Type;
using Halide::Internal::Call;
using HExpr = Halide::Expr;
using Arguments = std::vector<HExpr>;

inline Type lanes_of(const Type& element, const HExpr& like) { return element.with_lanes(like.type().lanes()); }
inline HExpr to(const Type& element, const HExpr& e) { return Halide::Internal::Cast::make(lanes_of(element, e), e); }
inline HExpr bits(const Type& element, const HExpr& e) {
  return Halide::Internal::Reinterpret::make(lanes_of(element, e), e);
}
inline HExpr constant(const HExpr& like, double value) { return Halide::Internal::make_const(like.type(), value); }
inline HExpr integer(const HExpr& like, int64_t value) { return Halide::Internal::make_const(like.type(), value); }
/// A shift count.
inline HExpr count(const HExpr& like, int64_t value) {
  return Halide::Internal::make_const(Halide::UInt(like.type().bits(), like.type().lanes()), value);
}
inline Type as_int(const HExpr& e) { return Halide::Int(e.type().bits()); }
inline Type as_uint(const HExpr& e) { return Halide::UInt(e.type().bits()); }
inline HExpr call(const Type& type, const std::string& name, const Arguments& x) {
  return Call::make(type, name, x, Call::PureExtern);
}
inline HExpr of_llvm(const std::string& name, const Arguments& x) {
  return call(x[0].type(), fmt::format("llvm.{}.f{}", name, x[0].type().bits()), x);
}
/// A function of the C library, lane by lane.
inline HExpr of_library(const std::string& name, const Arguments& x) {
  return call(x[0].type(), x[0].type().bits() == 32 ? name + "f" : name, x);
}

/// Binds the value to a name, so that it is computed once.
inline HExpr let(const HExpr& value, const std::function<HExpr(const HExpr&)>& body) {
  if (Halide::Internal::is_const(value) || value.as<Halide::Internal::Variable>() != nullptr) return body(value);
  const std::string name = Halide::Internal::unique_name("v");
  return Halide::Internal::Let::make(name, value, body(Halide::Internal::Variable::make(value.type(), name)));
}

inline HExpr is_number(const HExpr& a) { return a == a; }
inline HExpr fma(const HExpr& a, const HExpr& b, const HExpr& c) { return of_llvm("fma", {a, b, c}); }
inline HExpr magnitude(const HExpr& a) { return of_llvm("fabs", {a}); }
/// The first coefficient is the constant term.
inline HExpr polynomial(const HExpr& x, const std::vector<double>& coefficients) {
  HExpr sum = constant(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = fma(sum, x, constant(x, coefficients[i]));
  return sum;
}
inline HExpr sign_bit(const HExpr& like) {
  return Halide::Internal::make_const(lanes_of(as_int(like), like), like.type().bits() == 32 ? INT32_MIN : INT64_MIN);
}
inline HExpr with_sign_of(const HExpr& size, const HExpr& sign) {
  const Type words = as_int(size);
  return bits(size.type().element_of(), bits(words, size) | (bits(words, sign) & sign_bit(sign)));
}
inline HExpr one_or_zero(const HExpr& condition) { return to(Halide::Int(32), to(Halide::UInt(8), condition)); }

inline HExpr strict(Call::IntrinsicOp operation, const HExpr& a, const HExpr& b) {
  return Call::make(a.type(), operation, {a, b}, Call::PureIntrinsic);
}

inline HExpr strict_sum(const HExpr& a, const HExpr& b) { return strict(Call::strict_add, a, b); }
inline HExpr strict_product(const HExpr& a, const HExpr& b) { return strict(Call::strict_mul, a, b); }

constexpr int exponent_of_one = 127;
// 2^exponent, which must be a normal number. Only the low nine bits of the exponent matter, so `steps` of
// with_powers_of_two needs no subtraction.
inline HExpr power_of_two(const HExpr& exponent) {
  return bits(Halide::Float(32), (exponent + integer(exponent, exponent_of_one)) << count(exponent, 23));
}

/// A function as a term of its arguments.
using Meaning = std::function<HExpr(const Arguments&)>;
/// By the name that the preamble gives the function.
using Meanings = std::unordered_map<std::string, Meaning>;

void add_arithmetic(Meanings& t);
void add_elementary_functions(Meanings& t);
void add_conversions(Meanings& t);

}  // namespace hoist::emission::native
