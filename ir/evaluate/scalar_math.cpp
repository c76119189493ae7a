#include "ir/evaluate/scalar_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "ir/base/result.h"

namespace hoist {
namespace {

// ---- Storage types -------------------------------------------------------------------------------------------------

template <Scalar S>
auto storage_of() {
  if constexpr (S == Scalar::f64)
    return double{};
  else if constexpr (S == Scalar::f32)
    return float{};
  else if constexpr (S == Scalar::f16 || S == Scalar::bf16 || S == Scalar::u16)
    return uint16_t{};
  else if constexpr (S == Scalar::i16)
    return int16_t{};
  else if constexpr (S == Scalar::i32)
    return int32_t{};
  else if constexpr (S == Scalar::u32)
    return uint32_t{};
  else if constexpr (S == Scalar::i64)
    return int64_t{};
  else if constexpr (S == Scalar::u64 || S == Scalar::string)
    return uint64_t{};
  else if constexpr (S == Scalar::i2 || S == Scalar::i4 || S == Scalar::i8)
    return int8_t{};
  else
    return uint8_t{};  // bool, u2, u4, u8, float4, float8
}
template <Scalar S>
using Storage = decltype(storage_of<S>());

constexpr bool is_big_float(Scalar s) { return s == Scalar::f32 || s == Scalar::f64; }
constexpr bool is_small_float(Scalar s) {
  return (s >= Scalar::f8e4m3fn && s <= Scalar::f16) || s == Scalar::f4e2m1 || s == Scalar::f8e8m0;
}

template <Scalar S>
constexpr int bits_of() {
  if (S == Scalar::i2 || S == Scalar::u2) return 2;
  return S == Scalar::i4 || S == Scalar::u4 ? 4 : static_cast<int>(sizeof(Storage<S>)) * 8;
}

// Reduces an integer to the range of its type; only the packed types are narrower than their storage.
template <Scalar S, class Wide>
Storage<S> narrow(Wide x) {
  constexpr int spare = static_cast<int>(sizeof(Storage<S>)) * 8 - bits_of<S>();
  if constexpr (spare == 0)
    return static_cast<Storage<S>>(x);
  else
    return static_cast<Storage<S>>(static_cast<Storage<S>>(static_cast<uint8_t>(x) << spare) >> spare);
}

// ---- Functions -----------------------------------------------------------------------------------------------------

constexpr int arity_of(Function f) {
  if (f == Function::fma) return 3;
  if ((f >= Function::negate && f <= Function::erf) || f == Function::logical_not || f >= Function::is_nan) return 1;
  return 2;
}

constexpr bool is_comparison(Function f) {
  return (f >= Function::equal && f <= Function::greater_equal) || f >= Function::is_nan;
}

template <Function F, class T>
bool compare(T a, T b) {
  if constexpr (F == Function::equal)
    return a == b;
  else if constexpr (F == Function::not_equal)
    return a != b;
  else if constexpr (F == Function::less)
    return a < b;
  else if constexpr (F == Function::less_equal)
    return a <= b;
  else if constexpr (F == Function::greater)
    return a > b;
  else if constexpr (F == Function::greater_equal)
    return a >= b;
  else if constexpr (F == Function::is_nan)
    return a != a;
  else
    return a == std::numeric_limits<T>::infinity() || a == -std::numeric_limits<T>::infinity();
}

template <class T>
T float_modulo(T a, T b) {
  T r = std::fmod(a, b);
  if (r == 0) return std::copysign(T{0}, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

template <Function F, class T>
T on_floats(T a, T b, T c) {
  using enum Function;
  if constexpr (F == add)
    return a + b;
  else if constexpr (F == subtract)
    return a - b;
  else if constexpr (F == multiply)
    return a * b;
  else if constexpr (F == divide)
    return a / b;
  else if constexpr (F == modulo)
    return float_modulo(a, b);
  else if constexpr (F == remainder)
    return std::fmod(a, b);
  // Equal numbers with different bits are the two zeros; operands that are neither smaller, equal nor greater include a
  // NaN.
  else if constexpr (F == minimum)
    return a < b ? a : b < a ? b : a == b ? (std::signbit(a) ? a : b) : a + b;
  else if constexpr (F == maximum)
    return a > b ? a : b > a ? b : a == b ? (std::signbit(a) ? b : a) : a + b;
  else if constexpr (F == power)
    return std::pow(a, b);
  else if constexpr (F == fma)
    return std::fma(a, b, c);
  else if constexpr (F == negate)
    return -a;
  else if constexpr (F == absolute)
    return std::fabs(a);
  else if constexpr (F == sign)
    return a > 0 ? T{1} : a < 0 ? T{-1} : a == 0 ? T{0} : a;  // -0 gives 0, as ONNX specifies
  else if constexpr (F == floor)
    return std::floor(a);
  else if constexpr (F == ceiling)
    return std::ceil(a);
  else if constexpr (F == round)
    return std::rint(a);
  else if constexpr (F == truncate)
    return std::trunc(a);
  else if constexpr (F == sqrt)
    return std::sqrt(a);
  else if constexpr (F == exp)
    return std::exp(a);
  else if constexpr (F == log)
    return std::log(a);
  else if constexpr (F == sin)
    return std::sin(a);
  else if constexpr (F == cos)
    return std::cos(a);
  else if constexpr (F == tan)
    return std::tan(a);
  else if constexpr (F == asin)
    return std::asin(a);
  else if constexpr (F == acos)
    return std::acos(a);
  else if constexpr (F == atan)
    return std::atan(a);
  else if constexpr (F == sinh)
    return std::sinh(a);
  else if constexpr (F == cosh)
    return std::cosh(a);
  else if constexpr (F == tanh)
    return std::tanh(a);
  else if constexpr (F == asinh)
    return std::asinh(a);
  else if constexpr (F == acosh)
    return std::acosh(a);
  else if constexpr (F == atanh)
    return std::atanh(a);
  else
    return std::erf(a);
}

// a + b in double with the last bit set if the sum is inexact (rounded to odd): rounding this to a type of at most 51
// bits gives the same result as rounding the exact sum.
double sum_rounded_to_odd(double a, double b) {
  double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  double b_part = sum - a;
  double error = (a - (sum - b_part)) + (b - b_part);
  auto bits = std::bit_cast<uint64_t>(sum);
  if (error != 0 && (bits & 1) == 0) bits += (error > 0) == (sum > 0) ? uint64_t{1} : ~uint64_t{0};
  return std::bit_cast<double>(bits);
}

template <class Wide>
Wide integer_power(Wide base, Wide exponent) {
  Wide result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

// Integer arithmetic wraps, so sums and products are computed unsigned, in at least 32 bits, and reduced.
template <Function F, Scalar S>
Storage<S> on_integers(Storage<S> a, Storage<S> b) {
  using enum Function;
  using T = Storage<S>;
  using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  using SignedWide = std::make_signed_t<Wide>;
  constexpr bool is_signed = std::is_signed_v<T>;
  constexpr int bits = bits_of<S>();
  const Wide x = static_cast<Wide>(a), y = static_cast<Wide>(b);
  // Only the quotient of the smallest value and -1 overflows: the negation wraps, the remainder is 0.
  if constexpr (F == add)
    return narrow<S>(x + y);
  else if constexpr (F == subtract)
    return narrow<S>(x - y);
  else if constexpr (F == multiply)
    return narrow<S>(x * y);
  else if constexpr (F == divide) {
    if (b == 0) return 0;
    if (is_signed && y == ~Wide{0}) return narrow<S>(Wide{0} - x);
    return narrow<S>(a / b);
  } else if constexpr (F == modulo || F == remainder) {
    if (b == 0 || (is_signed && y == ~Wide{0})) return 0;
    T r = static_cast<T>(a % b);
    if (F == modulo && r != 0 && (r < 0) != (b < 0)) r = static_cast<T>(r + b);
    return r;
  } else if constexpr (F == minimum)
    return a < b ? a : b;
  else if constexpr (F == maximum)
    return a > b ? a : b;
  else if constexpr (F == power) {
    if (is_signed && b < 0) {  // 1 / a^-b, truncated
      if (a == 1) return 1;
      return a == static_cast<T>(-1) ? narrow<S>((y & 1) ? ~Wide{0} : Wide{1}) : T{0};
    }
    return narrow<S>(integer_power(x, y));
  } else if constexpr (F == negate)
    return narrow<S>(Wide{0} - x);
  else if constexpr (F == absolute)
    return narrow<S>(is_signed && a < 0 ? Wide{0} - x : x);
  else if constexpr (F == sign)
    return static_cast<T>(a > 0 ? 1 : is_signed && a < 0 ? -1 : 0);
  else if constexpr (F == logical_and)
    return static_cast<T>(a & b);
  else if constexpr (F == logical_or)
    return static_cast<T>(a | b);
  else if constexpr (F == logical_xor)
    return static_cast<T>(a ^ b);
  else if constexpr (F == logical_not)
    return narrow<S>(~x);
  else if constexpr (F == shift_left)
    return y >= static_cast<Wide>(bits) ? T{0} : narrow<S>(x << y);
  else {
    static_assert(F == shift_right);
    if (y >= static_cast<Wide>(bits)) return static_cast<T>(is_signed && a < 0 ? -1 : 0);
    if constexpr (is_signed)
      return static_cast<T>(static_cast<SignedWide>(a) >> y);
    else
      return static_cast<T>(x >> y);
  }
}

template <Function F>
uint8_t on_booleans(uint8_t a, uint8_t b) {
  if constexpr (F == Function::logical_and)
    return a & b;
  else if constexpr (F == Function::logical_or)
    return a | b;
  else if constexpr (F == Function::logical_xor)
    return a ^ b;
  else
    return static_cast<uint8_t>(a ^ 1);
}

constexpr bool takes(Function f, Scalar s) {
  const bool on_integer_only = f >= Function::logical_and && f <= Function::shift_right;
  const bool on_float_only =
      (f >= Function::floor && f <= Function::erf) || f == Function::fma || f >= Function::is_nan;
  if (s == Scalar::string) return f == Function::equal || f == Function::not_equal;
  if (s == Scalar::boolean) {
    return f == Function::equal || f == Function::not_equal ||
           (f >= Function::logical_and && f <= Function::logical_not);
  }
  return is_big_float(s) || is_small_float(s) ? !on_integer_only : !on_float_only;
}

template <Function F, Scalar S>
auto apply_one(Storage<S> a, Storage<S> b, Storage<S> c) {
  using T = Storage<S>;
  if constexpr (is_small_float(S)) {
    const double x = float_from_bits(S, a), y = float_from_bits(S, b), z = float_from_bits(S, c);
    if constexpr (is_comparison(F))
      return static_cast<uint8_t>(compare<F>(x, y));
    else if constexpr (F == Function::fma) {  // the product is exact in double
      return static_cast<T>(bits_from_float(S, sum_rounded_to_odd(x * y, z)));
    } else
      return static_cast<T>(bits_from_float(S, on_floats<F>(x, y, z)));
  } else if constexpr (is_comparison(F)) {
    return static_cast<uint8_t>(compare<F>(a, b));
  } else if constexpr (is_big_float(S)) {
    return on_floats<F>(a, b, c);
  } else if constexpr (S == Scalar::boolean) {
    return on_booleans<F>(a, b);
  } else {
    return on_integers<F, S>(a, b);
  }
}

template <Function F, Scalar S>
void apply_column(const void* a, const void* b, const void* c, void* out, int64_t n) {
  using T = Storage<S>;
  using R = decltype(apply_one<F, S>(T{}, T{}, T{}));
  const T* __restrict x = static_cast<const T*>(a);
  const T* __restrict y = static_cast<const T*>(b);
  const T* __restrict z = static_cast<const T*>(c);
  R* __restrict r = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (arity_of(F) == 1)
      r[i] = apply_one<F, S>(x[i], T{}, T{});
    else if constexpr (arity_of(F) == 2)
      r[i] = apply_one<F, S>(x[i], y[i], T{});
    else
      r[i] = apply_one<F, S>(x[i], y[i], z[i]);
  }
}

#if defined(__x86_64__)
// With the fma instruction the compiler vectorises the loop; otherwise each element is a call of the library's fma.
template <class T>
__attribute__((target("avx2,fma"))) void fuse_column(const void* a, const void* b, const void* c, void* out,
                                                     int64_t n) {
  const T* __restrict x = static_cast<const T*>(a);
  const T* __restrict y = static_cast<const T*>(b);
  const T* __restrict z = static_cast<const T*>(c);
  T* __restrict r = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = std::fma(x[i], y[i], z[i]);
}
#endif

// ---- Casts ---------------------------------------------------------------------------------------------------------

template <Scalar To>
Storage<To> integer_of_float(double x) {  // every float type is exact in double
  using T = Storage<To>;
  constexpr int bits = bits_of<To>();
  constexpr bool is_signed = std::is_signed_v<T>;
  constexpr double past = (is_signed ? 0.5 : 1.0) * 2 * static_cast<double>(uint64_t{1} << (bits - 1));
  if (std::isnan(x)) return 0;
  if (x >= past) return static_cast<T>(is_signed ? (uint64_t{1} << (bits - 1)) - 1 : ~uint64_t{0} >> (64 - bits));
  if (is_signed) return x <= -past ? narrow<To>(uint64_t{1} << (bits - 1)) : static_cast<T>(x);
  return x <= 0 ? T{0} : static_cast<T>(x);
}

// Converts an integer to a double such that a second rounding gives the correctly rounded integer.
template <class T>
double odd_double(T x) {
  if constexpr (sizeof(T) < 8) {
    return static_cast<double>(x);
  } else {  // a sticky bit replaces the bits that double would round away
    constexpr T low = 0x7ff;
    const bool is_wide = x >= (T{1} << 53) || (std::is_signed_v<T> && x <= T{0} - (T{1} << 53));
    return static_cast<double>(is_wide && (x & low) != 0 ? static_cast<T>((x & ~low) | (T{1} << 11)) : x);
  }
}

template <Scalar From, Scalar To>
Storage<To> convert_one(Storage<From> x) {
  using T = Storage<To>;
  if constexpr (From == To)
    return x;
  else if constexpr (To == Scalar::boolean) {
    if constexpr (is_small_float(From))
      return float_from_bits(From, x) != 0;
    else
      return x != 0;
  } else if constexpr (is_big_float(To)) {
    if constexpr (is_small_float(From))
      return static_cast<T>(float_from_bits(From, x));
    else
      return static_cast<T>(x);
  } else if constexpr (is_small_float(To)) {
    if constexpr (is_small_float(From))
      return static_cast<T>(bits_from_float(To, float_from_bits(From, x)));
    else if constexpr (is_big_float(From))
      return static_cast<T>(bits_from_float(To, x));
    else
      return static_cast<T>(bits_from_float(To, odd_double(x)));
  } else if constexpr (is_small_float(From)) {
    return integer_of_float<To>(float_from_bits(From, x));
  } else if constexpr (is_big_float(From)) {
    return integer_of_float<To>(x);
  } else {
    return narrow<To>(x);
  }
}

template <Scalar From, Scalar To>
void convert_column(const void* in, void* out, int64_t n) {
  const Storage<From>* __restrict x = static_cast<const Storage<From>*>(in);
  Storage<To>* __restrict r = static_cast<Storage<To>*>(out);
  for (int64_t i = 0; i < n; ++i) r[i] = convert_one<From, To>(x[i]);
}

// ---- Tables --------------------------------------------------------------------------------------------------------

constexpr size_t function_count = static_cast<size_t>(Function::is_infinite) + 1;

template <size_t I>
constexpr ColumnOperation operation_at() {
  constexpr auto f = static_cast<Function>(I / scalar_count);
  constexpr auto s = static_cast<Scalar>(I % scalar_count);
  if constexpr (takes(f, s))
    return apply_column<f, s>;
  else
    return nullptr;
}

template <size_t... I>
constexpr std::array<ColumnOperation, sizeof...(I)> operations_at(std::index_sequence<I...>) {
  return {operation_at<I>()...};
}
constexpr auto operations = operations_at(std::make_index_sequence<function_count * scalar_count>());

template <size_t... I>
constexpr std::array<ColumnConversion, sizeof...(I)> conversions_at(std::index_sequence<I...>) {
  return {convert_column<static_cast<Scalar>(I / scalar_count), static_cast<Scalar>(I % scalar_count)>...};
}
constexpr auto conversions = conversions_at(std::make_index_sequence<scalar_count * scalar_count>());

template <size_t... I>
constexpr std::array<int, sizeof...(I)> sizes_at(std::index_sequence<I...>) {
  return {static_cast<int>(sizeof(Storage<static_cast<Scalar>(I)>))...};
}
constexpr auto sizes = sizes_at(std::make_index_sequence<scalar_count>());

// Types whose NaNs are replaced by one quiet NaN; NaNs of float8 have one code already (or two that differ in the
// sign).
template <class Bits>
void copy_with_plain_nans(const void* column, std::byte* out, int64_t n, Bits infinity, Bits plain) {
  const auto* in = static_cast<const std::byte*>(column);
  constexpr Bits magnitude = static_cast<Bits>(~Bits{0}) >> 1;
  for (int64_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, in + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    if ((bits & magnitude) > infinity) bits = plain;
    std::memcpy(out + i * static_cast<int64_t>(sizeof(Bits)), &bits, sizeof(Bits));
  }
}

// Copies a column, replacing NaNs by the type's one quiet NaN; also in place.
template <Scalar S>
void copy_column(const void* column, void* bytes, int64_t n) {
  auto* out = static_cast<std::byte*>(bytes);
  if constexpr (S == Scalar::f64)
    copy_with_plain_nans<uint64_t>(column, out, n, 0x7ffull << 52, 0x7ff8ull << 48);
  else if constexpr (S == Scalar::f32)
    copy_with_plain_nans<uint32_t>(column, out, n, 0x7f800000u, 0x7fc00000u);
  else if constexpr (S == Scalar::f16)
    copy_with_plain_nans<uint16_t>(column, out, n, 0x7c00, 0x7e00);
  else if constexpr (S == Scalar::bf16)
    copy_with_plain_nans<uint16_t>(column, out, n, 0x7f80, 0x7fc0);
  else
    std::memmove(out, column, static_cast<size_t>(n) * sizeof(Storage<S>));
}

template <size_t... I>
constexpr std::array<ColumnConversion, sizeof...(I)> copies_at(std::index_sequence<I...>) {
  return {copy_column<static_cast<Scalar>(I)>...};
}
constexpr auto copies = copies_at(std::make_index_sequence<scalar_count>());

}  // namespace

int column_bytes(Scalar scalar) { return sizes[static_cast<size_t>(scalar)]; }

ColumnOperation column_operation(Function function, Scalar scalar) {
#if defined(__x86_64__)
  static const bool has_fma = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
  if (function == Function::fma && has_fma) {
    if (scalar == Scalar::f32) return fuse_column<float>;
    if (scalar == Scalar::f64) return fuse_column<double>;
  }
#endif
  ColumnOperation operation = operations[static_cast<size_t>(function) * scalar_count + static_cast<size_t>(scalar)];
  HOIST_CHECK(operation != nullptr,
              std::string(row(function).name) + " is not defined on " + std::string(row(scalar).name));
  return operation;
}

ColumnConversion column_conversion(Scalar from, Scalar to) {
  return conversions[static_cast<size_t>(from) * scalar_count + static_cast<size_t>(to)];
}

ColumnConversion column_reinterpretation(Scalar from) { return copies[static_cast<size_t>(from)]; }

uint64_t compute(Function function, Scalar scalar, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t word = 0;
  column_operation(function, scalar)(&a, &b, &c, &word, 1);
  return word;
}

uint64_t convert(Scalar from, Scalar to, uint64_t word) {
  uint64_t out = 0;
  column_conversion(from, to)(&word, &out, 1);
  return out;
}

uint64_t reinterpret(Scalar from, uint64_t word) {
  uint64_t out = 0;
  column_reinterpretation(from)(&word, &out, 1);
  return out;
}

uint64_t word_of_bits(Scalar scalar, uint64_t bits) {
  if (scalar == Scalar::boolean) return (bits & 0xff) != 0;
  return is_float(scalar) ? bits : word_of_integer(scalar, static_cast<int64_t>(bits));
}

int64_t integer_of_word(Scalar scalar, uint64_t word) {
  if (scalar == Scalar::i64 || scalar == Scalar::u64 || scalar == Scalar::string) return static_cast<int64_t>(word);
  return static_cast<int64_t>(convert(scalar, Scalar::i64, word));
}

uint64_t word_of_integer(Scalar scalar, int64_t value) {
  return convert(Scalar::i64, scalar, static_cast<uint64_t>(value));
}

void read_column(const Tensor& tensor, int64_t start, int64_t n, void* column) {
  const std::byte* bytes = tensor.data();
  if (const ScalarRow& type = row(tensor.scalar()); is_packed(type.scalar)) {
    auto* out = static_cast<uint8_t*>(column);
    const unsigned sign = !type.is_float && type.is_signed ? 1u << (type.bits - 1) : 0;
    for (int64_t i = start; i < start + n; ++i)
      *out++ = static_cast<uint8_t>((static_cast<unsigned>(load_element(bytes, type.bits, i)) ^ sign) - sign);
  } else if (tensor.scalar() == Scalar::boolean) {  // files may contain any non-zero byte for true
    auto* out = static_cast<uint8_t*>(column);
    for (int64_t i = start; i < start + n; ++i) *out++ = bytes[i] != std::byte{0};
  } else {
    const int size = column_bytes(tensor.scalar());
    std::memcpy(column, bytes + start * size, static_cast<size_t>(n * size));
  }
}

void write_column(const void* column, Scalar scalar, std::byte* bytes, int64_t start, int64_t n) {
  const int size = column_bytes(scalar);
  if (is_packed(scalar)) {
    const auto* in = static_cast<const uint8_t*>(column);
    for (int64_t i = start; i < start + n; ++i) store_element(bytes, row(scalar).bits, i, *in++);
    return;
  }
  copies[static_cast<size_t>(scalar)](column, bytes + start * size, n);
}

}  // namespace hoist
