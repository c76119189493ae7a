// Scalar types and functions in Halide's terms. Float arithmetic is left to Halide under strict_float where it keeps
// the meaning of the table, and is a call of an OpenCL or preamble function where it does not.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "backends/halide/emitter.h"

namespace hoist::emission {
namespace {

bool is_reduced_float(Scalar s) { return is_float(s) && row(s).bits < 32; }

H::Expr extern_call(H::Type type, const std::string& name, const std::vector<H::Expr>& arguments) {
  return H::Internal::Call::make(type, name, arguments, H::Internal::Call::PureExtern);
}

// Most bounds are constants; next to a constant, NaN and the signs of zeros need no more than one comparison.
H::Expr extremum(Function f, H::Type t, const std::vector<H::Expr>& x) {
  const std::string name = f == Function::minimum ? "hoist_minimum" : "hoist_maximum";
  for (const size_t place : {size_t{0}, size_t{1}}) {
    const auto known = t.is_float() ? H::Internal::as_const_float(x[place]) : std::nullopt;
    if (!known || std::isnan(*known)) continue;
    const H::Expr& other = x[1 - place];
    if (*known != 0) return extern_call(t, name + "_known", {other, x[place]});
    if (f == Function::maximum && !std::signbit(*known)) return extern_call(t, name + "_zero", {other});
  }
  return extern_call(t, name, x);
}

// True if the value depends on loop indices and literals alone. It then cannot overflow and can remain an index.
bool is_index(const H::Expr& e) {
  struct Finder : H::Internal::IRGraphVisitor {
    using IRGraphVisitor::visit;
    bool found = false;
    void visit(const H::Internal::Call*) override { found = true; }
  } finder;
  e.accept(&finder);
  return !finder.found;
}

// Signed arithmetic wraps, but Halide and C leave its overflow open: it is done on unsigned numbers.
template <class Operation>
H::Expr wrapping(Operation operation, const H::Expr& a, const H::Expr& b) {
  H::Type t = a.type();
  if (!t.is_int() || t.bits() < 32 || (is_index(a) && is_index(b))) return operation(a, b);
  H::Type u = t.with_code(halide_type_uint);
  return H::reinterpret(t, operation(H::reinterpret(u, a), H::reinterpret(u, b)));
}

// Halide's simplifier moves a summand of an index to the other side of a comparison, or out of a selection. With a
// literal that far from zero the difference overflows the type, which Halide rejects. Unsigned integers wrap.
bool is_far(const H::Expr& e) {
  const auto literal = H::Internal::as_const_int(e);
  if (!literal || e.type().bits() < 32) return false;
  const int64_t near = int64_t{1} << (e.type().bits() - 2);
  return *literal <= -near || *literal >= near;
}

template <class Comparison>
H::Expr compared(Comparison comparison, const H::Expr& a, const H::Expr& b) {
  const bool of_data = a.as<H::Internal::Call>() != nullptr || b.as<H::Internal::Call>() != nullptr;
  if (of_data || (!is_far(a) && !is_far(b))) return comparison(a, b);
  const H::Type u = a.type().with_code(halide_type_uint);
  const H::Expr lowest = H::Internal::make_const(u, uint64_t{1} << (u.bits() - 1));
  return comparison(H::reinterpret(u, a) + lowest, H::reinterpret(u, b) + lowest);
}

// Brings the result of arithmetic on a packed type back into its range.
H::Expr narrowed(Scalar s, const H::Expr& e) {
  if (!is_packed(s) || is_float(s)) return e;
  const int mask = (1 << row(s).bits) - 1, sign = 1 << (row(s).bits - 1);
  if (!row(s).is_signed) return e & H::cast<uint8_t>(mask);
  return H::cast<int8_t>((e & H::cast<int8_t>(mask)) ^ H::cast<int8_t>(sign)) - H::cast<int8_t>(sign);
}

// A 64-bit integer with a sticky bit for all bits that f64 would round away, so that rounding it again equals rounding
// it once.
H::Expr odd(const H::Expr& e) {
  const H::Type t = e.type();
  const H::Expr low = H::Internal::make_const(t, 0x7ff), edge = H::Internal::make_const(t, int64_t{1} << 53);
  H::Expr is_wide = e >= edge;
  if (t.is_int()) is_wide = is_wide || e <= H::Internal::make_const(t, -(int64_t{1} << 53));
  const H::Expr marked = (e & ~low) | H::Internal::make_const(t, int64_t{1} << 11);
  return H::select(is_wide && (e & low) != H::Internal::make_zero(t), marked, e);
}

H::Expr rounded(Scalar s, const H::Expr& e) {
  if (s == Scalar::f32 || s == Scalar::f64 || !is_float(s)) return e;
  return extern_call(H::Float(32), fmt::format("hoist_round_{}", row(s).name), {e});
}

// Halide rejects a constant divisor of zero: the quotient is infinity with the sign of both, and NaN for 0 and NaN.
H::Expr quotient(const H::Expr& a, const H::Expr& b) {
  const auto* number = b.as<H::Internal::FloatImm>();
  if (number == nullptr || number->value != 0) return H::Internal::Div::make(a, b);
  const double infinite = std::copysign(std::numeric_limits<double>::infinity(), number->value);
  return H::Internal::Mul::make(a, H::Internal::FloatImm::make(b.type(), infinite));
}

constexpr Scalars plain;

// The f32 value of a half given by its bits; a literal stays a literal.
H::Expr widened(const H::Expr& e) {
  if (auto bits = H::Internal::as_const_uint(e)) return plain.literal_value(Scalar::f16, *bits);
  return plain.from_stored(Scalar::f16, e);
}

}  // namespace

H::Type Scalars::value_type(Scalar s) const {
  if (s == Scalar::boolean) return H::Bool();
  if (is_bits(s)) return stored_type(s);
  if (is_reduced_float(s)) return H::Float(32);
  if (is_float(s)) return H::Float(row(s).bits);
  int bits = std::max(row(s).bits, 8);
  return row(s).is_signed ? H::Int(bits) : H::UInt(bits);
}

H::Type stored_type(Scalar s) {
  if (s == Scalar::boolean) return H::UInt(8);
  if (is_packed(s)) return H::UInt(8);
  if (is_reduced_float(s)) return H::UInt(row(s).bits);
  return plain.value_type(s);
}

H::Expr Scalars::from_stored(Scalar s, const H::Expr& e) const {
  if (s == Scalar::boolean) return e != H::cast<uint8_t>(0);
  if (is_bits(s)) return e;
  if (is_reduced_float(s)) return extern_call(H::Float(32), fmt::format("hoist_from_{}", row(s).name), {e});
  return e;
}

H::Expr Scalars::to_stored(Scalar s, const H::Expr& e) const {
  // NaN is stored as the type's one quiet NaN.
  auto to = [&](const H::Expr& x) { return extern_call(stored_type(s), fmt::format("hoist_to_{}", row(s).name), {x}); };
  auto quiet = [&](const H::Expr& x) {
    return extern_call(stored_type(s), fmt::format("hoist_quiet_{}", row(s).name), {x});
  };
  const auto* made = e.as<H::Internal::Call>();
  auto made_by = [&](const char* prefix) {
    return made != nullptr && made->name == fmt::format("hoist_{}_{}", prefix, row(s).name);
  };
  if (is_bits(s)) return made_by("to") ? e : quiet(e);
  if (s == Scalar::bf16 || s == Scalar::f16) {
    // A value that was just rounded needs no second rounding; a value that was just widened needs none at all.
    if (made_by("round") && made->args[0].type().bits() == 32) return to(made->args[0]);
    if (made_by("from")) return quiet(made->args[0]);
  }
  if (s == Scalar::boolean) return H::select(e, H::cast<uint8_t>(1), H::cast<uint8_t>(0));
  if (s == Scalar::f8e5m2) {
    // Conversions saturate, and an infinite value stays infinite in this type. The test uses bits, because Halide has
    // no vectors of strict comparisons.
    const auto bit_pattern = [](uint32_t word) { return H::Internal::make_const(H::UInt(32), word); };
    const H::Expr bits = H::reinterpret(H::UInt(32), e);
    const H::Expr infinite = (bits & bit_pattern(0x7fffffff)) == bit_pattern(0x7f800000);
    const H::Expr code = ((bits >> bit_pattern(24)) & bit_pattern(0x80)) | bit_pattern(0x7c);
    return H::select(infinite, H::cast<uint8_t>(code), to(e));
  }
  return is_reduced_float(s) ? to(e) : e;
}

H::Expr selected(const H::Expr& condition, const H::Expr& a, const H::Expr& b) {
  if (!is_far(a) && !is_far(b)) return H::select(condition, a, b);
  const H::Type t = a.type(), u = t.with_code(halide_type_uint);
  return H::reinterpret(t, H::select(condition, H::reinterpret(u, a), H::reinterpret(u, b)));
}

H::Expr from_private(Scalar s, const H::Expr& e) { return s == Scalar::boolean ? e != H::cast<uint8_t>(0) : e; }

H::Expr to_private(Scalar s, const H::Expr& e) {
  return s == Scalar::boolean ? H::select(e, H::cast<uint8_t>(1), H::cast<uint8_t>(0)) : e;
}

H::Expr Scalars::literal_value(Scalar s, uint64_t bits) const {
  if (s == Scalar::boolean) return H::Internal::make_bool((bits & 1) != 0);
  if (is_float(s) && !is_bits(s)) return H::Internal::FloatImm::make(value_type(s), float_from_bits(s, bits));
  H::Type t = value_type(s);
  if (t.is_uint()) {
    int width = row(s).bits;
    return H::Internal::UIntImm::make(t, width == 64 ? bits : bits & ((uint64_t{1} << width) - 1));
  }
  int unused = 64 - row(s).bits;
  return H::Internal::IntImm::make(t, static_cast<int64_t>(bits << unused) >> unused);
}

namespace {

// Native operations on halves take and return bits, all others convert to f32 and back.
H::Expr value_of_halves(Function f, const H::Type& bits, const std::vector<H::Expr>& x) {
  if (f == Function::add || f == Function::subtract || f == Function::multiply || f == Function::fma)
    return extern_call(bits, half_call + std::string(row(f).name), x);
  std::vector<H::Expr> wide;
  for (const H::Expr& e : x) wide.push_back(widened(e));
  H::Expr e = plain.call_value(f, Scalar::f16, wide);
  return e.type().is_float() ? plain.to_stored(Scalar::f16, e) : e;
}

// Undefined for any other function.
H::Expr comparison_or_logic(Function f, Scalar s, const std::vector<H::Expr>& x) {
  const bool on_float = is_float(s), on_bool = s == Scalar::boolean;
  // Halide has no vectors of strict comparisons.
  auto compare = [&](const std::string& name, const H::Expr& a, const H::Expr& b) {
    return extern_call(H::Int(32), name, {a, b}) != 0;
  };
  switch (f) {
    case Function::equal:
      return on_float  ? compare("hoist_equal", x[0], x[1])
             : on_bool ? !(x[0] ^ x[1])
                       : compared(H::Internal::EQ::make, x[0], x[1]);
    case Function::not_equal:
      return on_float  ? compare("hoist_not_equal", x[0], x[1])
             : on_bool ? (x[0] ^ x[1])
                       : compared(H::Internal::NE::make, x[0], x[1]);
    case Function::less:
      return on_float ? compare("hoist_less", x[0], x[1]) : compared(H::Internal::LT::make, x[0], x[1]);
    case Function::less_equal:
      return on_float ? compare("hoist_less_equal", x[0], x[1]) : compared(H::Internal::LE::make, x[0], x[1]);
    case Function::greater:
      return on_float ? compare("hoist_less", x[1], x[0]) : compared(H::Internal::LT::make, x[1], x[0]);
    case Function::greater_equal:
      return on_float ? compare("hoist_less_equal", x[1], x[0]) : compared(H::Internal::LE::make, x[1], x[0]);
    case Function::logical_and:
      return on_bool ? x[0] && x[1] : x[0] & x[1];
    case Function::logical_or:
      return on_bool ? x[0] || x[1] : x[0] | x[1];
    case Function::logical_xor:
      return on_bool ? (x[0] && !x[1]) || (!x[0] && x[1]) : x[0] ^ x[1];
    case Function::logical_not:
      return on_bool ? !x[0] : narrowed(s, ~x[0]);
    case Function::is_nan:
      return extern_call(H::Int(32), "hoist_is_nan", x) != 0;
    case Function::is_infinite:
      return extern_call(H::Int(32), "hoist_is_infinite", x) != 0;
    default:
      return {};
  }
}

}  // namespace

H::Expr Scalars::call_value(Function f, Scalar s, const std::vector<H::Expr>& x) const {
  namespace I = H::Internal;
  if (is_bits(s)) return value_of_halves(f, value_type(s), x);
  if (H::Expr e = comparison_or_logic(f, s, x); e.defined()) return e;
  H::Type t = value_type(s);
  const bool on_float = is_float(s);
  auto same = [&](const std::string& name) { return extern_call(t, name, x); };
  auto integer = [&](const std::string& name) { return narrowed(s, extern_call(t, name, x)); };
  auto math = [&](const std::string& name) { return rounded(s, same(name)); };
  switch (f) {
    case Function::add:
    case Function::subtract:
    case Function::multiply: {
      const auto make = f == Function::add ? I::Add::make : f == Function::subtract ? I::Sub::make : I::Mul::make;
      return on_float ? rounded(s, make(x[0], x[1])) : narrowed(s, wrapping(make, x[0], x[1]));
    }
    case Function::divide:
      return on_float ? rounded(s, quotient(x[0], x[1])) : integer("hoist_divide");
    case Function::modulo:
      return on_float ? math("hoist_modulo") : integer("hoist_modulo");
    case Function::remainder:
      return on_float ? math("hoist_remainder") : integer("hoist_remainder");
    case Function::minimum:
    case Function::maximum:
      return extremum(f, t, x);
    case Function::power:
      return on_float ? math("pow") : integer("hoist_power");
    case Function::fma:
      if (is_reduced_float(s)) return rounded(s, same("hoist_fma_to_odd"));
      return same("fma");
    case Function::negate:
      if (on_float) return same("hoist_negate");
      return narrowed(s, wrapping(I::Sub::make, I::make_zero(t), x[0]));
    case Function::absolute:
      if (on_float) return same("fabs");
      if (t.is_uint()) return x[0];
      return integer("hoist_absolute");
    case Function::sign:
      if (on_float) return same("hoist_sign");
      if (t.is_uint()) return H::select(x[0] == I::make_zero(t), I::make_zero(t), I::make_one(t));
      return H::select(x[0] == I::make_zero(t), I::make_zero(t),
                       H::select(x[0] < I::make_zero(t), I::make_const(t, -1), I::make_one(t)));
    case Function::floor:
      return same("floor");
    case Function::ceiling:
      return same("ceil");
    case Function::round:
      return same("rint");
    case Function::truncate:
      return same("trunc");
    case Function::sin:
    case Function::cos:
    case Function::tan:
      return math("hoist_" + std::string(row(f).name));
    case Function::sqrt:
    case Function::exp:
    case Function::log:
    case Function::asin:
    case Function::acos:
    case Function::atan:
    case Function::sinh:
    case Function::cosh:
    case Function::tanh:
    case Function::asinh:
    case Function::acosh:
    case Function::atanh:
    case Function::erf:
      return math(std::string(row(f).name));
    case Function::shift_left:
      return integer("hoist_shift_left");
    case Function::shift_right:
      return integer("hoist_shift_right");
    default:
      break;
  }
  HOIST_CHECK(false, "a function without a row here");
  std::abort();
}

H::Expr Scalars::cast_value(Scalar from, Scalar to, const H::Expr& e) const {
  if (from == to) return e;
  if (is_bits(from)) return plain.cast_value(from, to, widened(e));
  if (is_bits(to)) return plain.to_stored(to, plain.cast_value(from, to, e));
  H::Type t = value_type(to);
  if (to == Scalar::boolean && is_float(from))
    return extern_call(H::Int(32), "hoist_not_equal", {e, H::Internal::make_zero(e.type())}) != 0;
  if (to == Scalar::boolean) return H::Internal::NE::make(e, H::Internal::make_zero(e.type()));
  if (from == Scalar::boolean) return H::select(e, H::Internal::make_one(t), H::Internal::make_zero(t));
  if (is_float(to)) {
    if (!is_reduced_float(to)) return H::cast(t, e);
    // Values that f32 cannot hold are rounded once, from f64.
    bool wide = is_float(from) ? from == Scalar::f64 : row(from).bits >= 32;
    const bool beyond = !is_float(from) && row(from).bits == 64;
    return rounded(to, H::cast(wide ? H::Float(64) : t, beyond ? odd(e) : e));
  }
  if (is_float(from)) {
    return extern_call(t, fmt::format("hoist_to_{}", row(to).name), {e});
  }
  return narrowed(to, H::cast(t, e));  // keeps the low bits
}

H::Expr Scalars::reinterpret_value(Scalar from, Scalar to, const H::Expr& e) const {
  if (from == to) return e;
  H::Expr bits = to_stored(from, e);
  if (from == Scalar::f32 || from == Scalar::f64) {
    uint64_t quiet = from == Scalar::f32 ? 0x7fc00000 : 0x7ff8ull << 48;
    H::Type unsigned_type = H::UInt(row(from).bits);
    bits = H::select(extern_call(H::Int(32), "hoist_is_nan", {e}) != 0,
                     H::Internal::UIntImm::make(unsigned_type, quiet), H::reinterpret(unsigned_type, bits));
  }
  H::Type stored = stored_type(to);
  return from_stored(to, bits.type() == stored ? bits : H::reinterpret(stored, bits));
}

}  // namespace hoist::emission
