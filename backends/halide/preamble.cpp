// The OpenCL C that precedes every kernel. Each function exists for scalars and for vectors of 2, 3, 4, 8 and 16; its
// meaning is in the table of functions in ir/language/pattern.cpp, to the bit for exact functions.
#include "backends/halide/emit.h"

namespace hoist {
namespace {

constexpr const char* preamble_text = R"(// Functions that hoist's kernels call.
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define float_from_bits(x) as_float((uint)(x))
#define nan_f32() NAN
#define inf_f32() INFINITY
#define neg_inf_f32() (-INFINITY)
#define halide_maybe_unused(x) (void)(x)
#define hoist_first(a, b) (a)
#ifndef HOIST_RESTRICT
#define HOIST_RESTRICT
#endif
// Prefetches the element at a byte offset of an array (prefetches.cpp), on drivers of CPUs that are built on clang: their
// own prefetch() does nothing, and other drivers have no replacement.
#ifdef HOIST_PREFETCHES
#define hoist_prefetch(array, place) \
  (__builtin_prefetch((const __private void*)((ulong)(array) + (place)), 0, 2), 0)
#else
#define hoist_prefetch(array, place) 0
#endif
// PoCL 3.1 rounds vectors in 17 instructions, although AVX has one. Without AVX these builtins are library calls.
#if defined(__AVX__) && defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_roundeven)
#undef rint
#undef floor
#undef ceil
#undef trunc
#define rint __builtin_elementwise_roundeven
#define floor __builtin_elementwise_floor
#define ceil __builtin_elementwise_ceil
#define trunc __builtin_elementwise_trunc
#endif
#endif
#define HOIST static inline __attribute__((overloadable))
// A number that is unknown to the optimiser (loop_indices.cpp), which generates slower code for a known one.
HOIST int hoist_opaque(int a) {
#if defined(__x86_64__) && defined(__clang__)
  __asm__("" : "+r"(a));
#endif
  return a; }
#define HOIST_1(M, A, B) M(A, B, A, B)
#define HOIST_N(M, A, B, N) M(A##N, B##N, A, B)
#define HOIST_WIDTHS(M, A, B) \
  HOIST_1(M, A, B) HOIST_N(M, A, B, 2) HOIST_N(M, A, B, 3) HOIST_N(M, A, B, 4) HOIST_N(M, A, B, 8) HOIST_N(M, A, B, 16)
#define HOIST_CAT(a, b) HOIST_CAT_(a, b)
#define HOIST_CAT_(a, b) a##b
// The low bits of an unsigned value, which C may have widened, as the signed type.
#define HOIST_WRAP(T, U, x) HOIST_CAT(as_, T)(HOIST_CAT(convert_, U)(x))

// Below this magnitude sin x = tan x = x and cos x = 1 within one ulp; the vector functions of PoCL 3.1 are wrong there.
#define HOIST_SMALL(T, T1) (T)(sizeof(T1) == 8 ? (T1)1e-8f : (T1)1e-4f)
// Floats T with the integers I of their size. NaN propagates, and -0 is less than +0: minimum and maximum of x86 depend
// on the order of their operands if both are zeros. If b is known and not zero, one order is enough; a sum with 0 turns
// -0 into 0. The remainder is C's fmod, which never ends in PoCL 3.1 for some doubles: each round subtracts a multiple of
// b whose factor has half of the bits, so that the difference is exact. The last difference is between -b and b.
#define HOIST_ON_FLOATS(T, I, T1, I1) \
  HOIST T hoist_negate(T a) { return -a; } \
  HOIST T hoist_minimum(T a, T b) { \
    T one = a < b ? a : b, other = b < a ? b : a; \
    return ((a == a) & (b == b)) ? HOIST_CAT(as_, T)(HOIST_CAT(as_, I)(one) | HOIST_CAT(as_, I)(other)) : a + b; } \
  HOIST T hoist_maximum(T a, T b) { \
    T one = a > b ? a : b, other = b > a ? b : a; \
    return ((a == a) & (b == b)) ? HOIST_CAT(as_, T)(HOIST_CAT(as_, I)(one) & HOIST_CAT(as_, I)(other)) : a + b; } \
  HOIST T hoist_minimum_known(T a, T b) { return b < a ? b : a; } \
  HOIST T hoist_maximum_known(T a, T b) { return a < b ? b : a; } \
  HOIST T hoist_maximum_zero(T a) { return hoist_maximum_known(a, (T)(0)) + (T)(0); } \
  HOIST T hoist_sin(T a) { return fabs(a) < HOIST_SMALL(T, T1) ? a : sin(a); } \
  HOIST T hoist_cos(T a) { return cos(fabs(a) < HOIST_SMALL(T, T1) ? (T)(0) : a); } \
  HOIST T hoist_tan(T a) { return fabs(a) < HOIST_SMALL(T, T1) ? a : tan(a); } \
  HOIST T hoist_sign(T a) { return a > 0 ? (T)(1) : a < 0 ? (T)(-1) : a == 0 ? (T)(0) : a; } \
  HOIST T hoist_remainder(T a, T b) { \
    const I1 half_step = (I1)(1) << (sizeof(T1) == 8 ? 25 : 11); \
    T size = fabs(b), left = a; \
    I going = ((fabs(a) < (T)(INFINITY)) & (fabs(a) >= size) & (size > 0)) ? (I)(-1) : (I)(0); \
    while (any(going)) { \
      T unit = size, quotient = left / unit; \
      I infinite = (fabs(quotient) == (T)(INFINITY)) ? going : (I)(0); \
      while (any(infinite)) { \
        unit = infinite ? unit * (T)(0x1p100f) : unit; \
        quotient = left / unit; \
        infinite = (fabs(quotient) == (T)(INFINITY)) ? going : (I)(0); } \
      T whole = HOIST_CAT(as_, T)((HOIST_CAT(as_, I)(rint(quotient)) + (I)(half_step)) & (I)(-2 * half_step)); \
      left = going ? fma(-whole, unit, left) : left; \
      going = (fabs(left) >= size) ? going : (I)(0); } \
    left = ((left != 0) & ((left < 0) != (a < 0))) ? left + copysign(size, a) : left; \
    return ((fabs(a) < (T)(INFINITY)) & (size > 0)) ? copysign(left, a) : (T)(NAN); } \
  HOIST T hoist_modulo(T a, T b) { \
    T r = hoist_remainder(a, b); \
    return r == 0 ? copysign((T)(0), b) : ((r < 0) != (b < 0)) ? r + b : r; }
HOIST_WIDTHS(HOIST_ON_FLOATS, float, int)
#define HOIST_TESTS(T, I, T1, I1) \
  HOIST I hoist_is_nan(T a) { return (a != a) ? (I)(1) : (I)(0); } \
  HOIST I hoist_is_infinite(T a) { return (fabs(a) == INFINITY) ? (I)(1) : (I)(0); }
HOIST_WIDTHS(HOIST_TESTS, float, int)
// Comparisons give 1 or 0 as int, for every type.
#define HOIST_COMPARE(NAME, OPERATOR, T, I) \
  HOIST I NAME(T a, T b) { return a OPERATOR b ? (I)(1) : (I)(0); }
#define HOIST_COMPARE_DOUBLE(NAME, OPERATOR, T, I) \
  HOIST I NAME(T a, T b) { return HOIST_CAT(convert_, I)(a OPERATOR b) != 0 ? (I)(1) : (I)(0); }
#define HOIST_COMPARISONS(M, T, I) \
  M(hoist_less, <, T, I) M(hoist_less_equal, <=, T, I) M(hoist_equal, ==, T, I) M(hoist_not_equal, !=, T, I)
#define HOIST_COMPARISONS_FLOAT(T, I, T1, I1) HOIST_COMPARISONS(HOIST_COMPARE, T, I)
HOIST_WIDTHS(HOIST_COMPARISONS_FLOAT, float, int)
#ifdef cl_khr_fp64
HOIST_WIDTHS(HOIST_ON_FLOATS, double, long)
#define HOIST_TESTS_DOUBLE(T, I, T1, I1) \
  HOIST I hoist_is_nan(T a) { return HOIST_CAT(convert_, I)(a != a) != 0 ? (I)(1) : (I)(0); } \
  HOIST I hoist_is_infinite(T a) { return HOIST_CAT(convert_, I)(fabs(a) == INFINITY) != 0 ? (I)(1) : (I)(0); }
HOIST_WIDTHS(HOIST_TESTS_DOUBLE, double, int)
#define HOIST_COMPARISONS_OF_DOUBLE(T, I, T1, I1) HOIST_COMPARISONS(HOIST_COMPARE_DOUBLE, T, I)
HOIST_WIDTHS(HOIST_COMPARISONS_OF_DOUBLE, double, int)
#endif

// Integers T with their unsigned type U. Division by 0 gives 0; the one quotient that overflows wraps.
#define HOIST_ON_INTEGERS(T, U, T1, U1) \
  HOIST T hoist_minimum(T a, T b) { return a < b ? a : b; } \
  HOIST T hoist_maximum(T a, T b) { return a > b ? a : b; } \
  HOIST T hoist_shift_left(T a, T b) { \
    U n = HOIST_CAT(as_, U)(b); \
    return n >= (U)(8 * sizeof(T1)) ? (T)(0) : HOIST_WRAP(T, U, HOIST_CAT(as_, U)(a) << (n & (U)(8 * sizeof(T1) - 1))); } \
  HOIST T hoist_shift_right(T a, T b) { \
    U n = HOIST_CAT(as_, U)(b); \
    return n >= (U)(8 * sizeof(T1)) ? (a < (T)(0) ? (T)(-1) : (T)(0)) : a >> HOIST_WRAP(T, U, n & (U)(8 * sizeof(T1) - 1)); }
#define HOIST_ON_SIGNED(T, U, T1, U1) \
  HOIST T hoist_absolute(T a) { return a < (T)(0) ? HOIST_WRAP(T, U, (U)(0) - HOIST_CAT(as_, U)(a)) : a; } \
  HOIST T hoist_divide(T a, T b) { \
    T special = ((b == (T)(0)) | (b == (T)(-1))) ? (T)(1) : b; \
    T q = a / special; \
    return b == (T)(0) ? (T)(0) : b == (T)(-1) ? HOIST_WRAP(T, U, (U)(0) - HOIST_CAT(as_, U)(a)) : q; } \
  HOIST T hoist_remainder(T a, T b) { \
    T special = ((b == (T)(0)) | (b == (T)(-1))) ? (T)(1) : b; \
    return ((b == (T)(0)) | (b == (T)(-1))) ? (T)(0) : a % special; } \
  HOIST T hoist_modulo(T a, T b) { \
    T r = hoist_remainder(a, b); \
    return ((r != (T)(0)) & ((r < (T)(0)) != (b < (T)(0)))) ? r + b : r; } \
  HOIST T hoist_power(T a, T b) { \
    U base = HOIST_CAT(as_, U)(a), n = HOIST_CAT(as_, U)(b), r = (U)(1); \
    for (int i = 0; i < (int)(8 * sizeof(T1)); ++i) { \
      r = (n & (U)(1)) != (U)(0) ? r * base : r; n = n >> (U)(1); base = base * base; } \
    T reciprocal = a == (T)(1) ? (T)(1) : a == (T)(-1) ? ((b & (T)(1)) != (T)(0) ? (T)(-1) : (T)(1)) : (T)(0); \
    return b < (T)(0) ? reciprocal : HOIST_WRAP(T, U, r); }
#define HOIST_ON_UNSIGNED(T, U, T1, U1) \
  HOIST T hoist_divide(T a, T b) { return b == (T)(0) ? (T)(0) : a / (b == (T)(0) ? (T)(1) : b); } \
  HOIST T hoist_remainder(T a, T b) { return b == (T)(0) ? (T)(0) : a % (b == (T)(0) ? (T)(1) : b); } \
  HOIST T hoist_modulo(T a, T b) { return hoist_remainder(a, b); } \
  HOIST T hoist_power(T a, T b) { \
    T r = (T)(1); \
    for (int i = 0; i < (int)(8 * sizeof(T1)); ++i) { \
      r = (b & (T)(1)) != (T)(0) ? r * a : r; b = b >> (T)(1); a = a * a; } \
    return r; }
#define HOIST_INTEGER(S, U) \
  HOIST_WIDTHS(HOIST_ON_INTEGERS, S, U) HOIST_WIDTHS(HOIST_ON_SIGNED, S, U) \
  HOIST_WIDTHS(HOIST_ON_INTEGERS, U, U) HOIST_WIDTHS(HOIST_ON_UNSIGNED, U, U)
HOIST_INTEGER(char, uchar)
HOIST_INTEGER(short, ushort)
HOIST_INTEGER(int, uint)
HOIST_INTEGER(long, ulong)

// Floats to integers: truncated, saturated, NaN gives 0.
#define HOIST_TO(NAME, T, F, T1, F1) \
  HOIST T NAME(F a) { return HOIST_CAT(HOIST_CAT(convert_, T), _sat_rtz)(a == a ? a : (F)(0)); }
#define HOIST_TO_I32(F, T, F1, T1) HOIST_TO(hoist_to_i32, T, F, T1, F1)
#define HOIST_TO_U32(F, T, F1, T1) HOIST_TO(hoist_to_u32, T, F, T1, F1)
#define HOIST_TO_I64(F, T, F1, T1) HOIST_TO(hoist_to_i64, T, F, T1, F1)
#define HOIST_TO_U64(F, T, F1, T1) HOIST_TO(hoist_to_u64, T, F, T1, F1)
// Small integers through int, since drivers convert vectors without saturation in one instruction.
#define HOIST_TO_SMALL(F, N) \
  HOIST int##N hoist_within(F##N a, F##N low, F##N high) { \
    F##N b = a > low ? a : low; \
    b = b < high ? b : high; \
    return convert_int##N(a == a ? b : (F##N)(0)); } \
  HOIST char##N hoist_to_i2(F##N a) { return convert_char##N(hoist_within(a, (F##N)(-2), (F##N)(1))); } \
  HOIST uchar##N hoist_to_u2(F##N a) { return convert_uchar##N(hoist_within(a, (F##N)(0), (F##N)(3))); } \
  HOIST char##N hoist_to_i4(F##N a) { return convert_char##N(hoist_within(a, (F##N)(-8), (F##N)(7))); } \
  HOIST uchar##N hoist_to_u4(F##N a) { return convert_uchar##N(hoist_within(a, (F##N)(0), (F##N)(15))); } \
  HOIST char##N hoist_to_i8(F##N a) { return convert_char##N(hoist_within(a, (F##N)(-128), (F##N)(127))); } \
  HOIST uchar##N hoist_to_u8(F##N a) { return convert_uchar##N(hoist_within(a, (F##N)(0), (F##N)(255))); } \
  HOIST short##N hoist_to_i16(F##N a) { return convert_short##N(hoist_within(a, (F##N)(-32768), (F##N)(32767))); } \
  HOIST ushort##N hoist_to_u16(F##N a) { return convert_ushort##N(hoist_within(a, (F##N)(0), (F##N)(65535))); }
#define HOIST_TO_ALL(F) \
  HOIST_TO_SMALL(F, ) HOIST_TO_SMALL(F, 2) HOIST_TO_SMALL(F, 3) HOIST_TO_SMALL(F, 4) HOIST_TO_SMALL(F, 8) \
  HOIST_TO_SMALL(F, 16) \
  HOIST_WIDTHS(HOIST_TO_I32, F, int) HOIST_WIDTHS(HOIST_TO_U32, F, uint) \
  HOIST_WIDTHS(HOIST_TO_I64, F, long) HOIST_WIDTHS(HOIST_TO_U64, F, ulong)
HOIST_TO_ALL(float)
#ifdef cl_khr_fp64
HOIST_TO_ALL(double)
#endif

// A float, rounded to an integer, plus an integer of at most 16 bits, saturated; NaN gives 0. A sum with 1.5 * 2^23
// rounds: the ulp of that sum is 1. hoist_rounded_u8 and its kind give the result minus the integer, as a float.
#define HOIST_QUANTISED(TYPE, LOW, HIGH, N) \
  HOIST float##N hoist_steps_##TYPE(float##N a, float##N w) { \
    const float##N least = (float##N)(LOW) - w, most = (float##N)(HIGH) - w, b = a > least ? a : least; \
    return (b < most ? b : most) + (float##N)(12582912.0f); } \
  HOIST int##N hoist_quantised_##TYPE(float##N a, int##N whole) { \
    const int##N sum = as_int##N(hoist_steps_##TYPE(a, convert_float##N(whole))) - (int##N)(0x4b400000) + whole; \
    return LOW == 0 ? sum : a == a ? sum : (int##N)(0); } \
  HOIST float##N hoist_rounded_##TYPE(float##N a, int##N whole) { \
    const float##N w = convert_float##N(whole), rounded = hoist_steps_##TYPE(a, w) - (float##N)(12582912.0f); \
    return LOW == 0 ? rounded : a == a ? rounded : (float##N)(0.0f) - w; }
#define HOIST_QUANTISED_ALL(N) \
  HOIST_QUANTISED(i8, -128, 127, N) HOIST_QUANTISED(u8, 0, 255, N) HOIST_QUANTISED(i16, -32768, 32767, N) \
  HOIST_QUANTISED(u16, 0, 65535, N)
HOIST_QUANTISED_ALL() HOIST_QUANTISED_ALL(2) HOIST_QUANTISED_ALL(3) HOIST_QUANTISED_ALL(4) HOIST_QUANTISED_ALL(8)
HOIST_QUANTISED_ALL(16)

// hoist_word: four bytes or two 16-bit integers as a word, the first one lowest, if they cannot be loaded as a word.
// hoist_dot: s plus the products of the four unsigned bytes of x and the four signed bytes of y. hoist_dot_pairs: s plus
// the products of two 16-bit integers each; y may hold two bytes.
#define HOIST_BYTES(N) \
  HOIST int##N hoist_word(uchar##N a, uchar##N b, uchar##N c, uchar##N d) { \
    return as_int##N(convert_uint##N(a) | convert_uint##N(b) << 8u | convert_uint##N(c) << 16u | \
                     convert_uint##N(d) << 24u); } \
  HOIST int##N hoist_word(char##N a, char##N b, char##N c, char##N d) { \
    return hoist_word(as_uchar##N(a), as_uchar##N(b), as_uchar##N(c), as_uchar##N(d)); } \
  HOIST int##N hoist_word(short##N a, short##N b) { \
    return as_int##N(convert_uint##N(as_ushort##N(a)) | convert_uint##N(as_ushort##N(b)) << 16u); } \
  HOIST int##N hoist_word(ushort##N a, ushort##N b) { \
    return as_int##N(convert_uint##N(a) | convert_uint##N(b) << 16u); } \
  HOIST short##N hoist_word(char##N a, char##N b) { \
    return as_short##N(convert_ushort##N(convert_ushort##N(as_uchar##N(a)) | \
                                         convert_ushort##N(as_uchar##N(b)) << (ushort##N)(8))); } \
  HOIST int##N hoist_pairs_plain(int##N s, int##N x, int##N y) { \
    return as_int##N(as_uint##N(s) + as_uint##N((x << 16 >> 16) * (y << 16 >> 16)) + \
                     as_uint##N((x >> 16) * (y >> 16))); } \
  HOIST int##N hoist_pairs_plain(int##N s, int##N x, short##N y) { \
    return as_int##N(as_uint##N(s) + as_uint##N((x << 16 >> 16) * (convert_int##N(y) << 24 >> 24)) + \
                     as_uint##N((x >> 16) * (convert_int##N(y) >> 8))); } \
  HOIST int##N hoist_dot_plain(int##N s, int##N x, int##N y) { \
    return as_int##N(as_uint##N(s) + as_uint##N((x & 255) * (y << 24 >> 24)) + \
                     as_uint##N((x >> 8 & 255) * (y << 16 >> 24)) + as_uint##N((x >> 16 & 255) * (y << 8 >> 24)) + \
                     as_uint##N((x >> 24 & 255) * (y >> 24))); }
HOIST_BYTES() HOIST_BYTES(2) HOIST_BYTES(3) HOIST_BYTES(4) HOIST_BYTES(8) HOIST_BYTES(16)
#define HOIST_PLAIN_PAIRS(N) \
  HOIST int##N hoist_dot_pairs(int##N s, int##N x, int##N y) { return hoist_pairs_plain(s, x, y); } \
  HOIST int##N hoist_dot_pairs(int##N s, int##N x, short##N y) { return hoist_pairs_plain(s, x, y); }
#define HOIST_PLAIN_DOT(N) \
  HOIST int##N hoist_dot(int##N s, int##N x, int##N y) { return hoist_dot_plain(s, x, y); } \
  HOIST_PLAIN_PAIRS(N)
// The same in one instruction on processors that have it, for at least four lanes.
#if defined(HOIST_VPDPBUSD) || defined(HOIST_VPMADDWD)
#define HOIST_PAIRS(N, N2) \
  typedef short hoist_short##N2 __attribute__((ext_vector_type(N2))); \
  typedef char hoist_char##N2 __attribute__((ext_vector_type(N2))); \
  HOIST int##N hoist_dot_pairs(int##N s, int##N x, short##N y) { \
    return hoist_dot_pairs(s, x, __builtin_astype( \
        __builtin_convertvector(__builtin_astype(y, hoist_char##N2), hoist_short##N2), int##N)); }
#endif
#if defined(HOIST_VPDPBUSD)
#define HOIST_DOT(N, N2) \
  HOIST int##N hoist_dot(int##N s, int##N x, int##N y) { \
    __asm__("vpdpbusd %2, %1, %0" : "+v"(s) : "v"(x), "v"(y)); \
    return s; } \
  HOIST int##N hoist_dot_pairs(int##N s, int##N x, int##N y) { \
    __asm__("vpdpwssd %2, %1, %0" : "+v"(s) : "v"(x), "v"(y)); \
    return s; } \
  HOIST_PAIRS(N, N2)
HOIST_DOT(4, 8) HOIST_DOT(8, 16) HOIST_DOT(16, 32)
HOIST int hoist_dot(int s, int x, int y) { return hoist_dot((int4)(s), (int4)(x), (int4)(y)).s0; }
#elif defined(HOIST_VPMADDWD)
// Sums of two 16-bit products of unsigned and signed bytes: bytes 0 and 2 of a word, then bytes 1 and 3.
#define HOIST_DOT(N, N2) \
  HOIST int##N hoist_pair(int##N x, int##N y) { \
    int##N sums; \
    __asm__("vpmaddwd %2, %1, %0" : "=v"(sums) : "v"(x), "v"(y)); \
    return sums; } \
  HOIST int##N hoist_dot_pairs(int##N s, int##N x, int##N y) { \
    return as_int##N(as_uint##N(s) + as_uint##N(hoist_pair(x, y))); } \
  HOIST_PAIRS(N, N2) \
  HOIST int##N hoist_dot(int##N s, int##N x, int##N y) { \
    const int##N a = x & 0xff00ff, c = as_int##N(as_uint##N(x) >> 8 & 0xff00ffu); \
    const hoist_short##N2 b = __builtin_astype(y, hoist_short##N2), eight = (hoist_short##N2)(8); \
    const int##N even = __builtin_astype(b << eight >> eight, int##N), odd = __builtin_astype(b >> eight, int##N); \
    return as_int##N(as_uint##N(s) + as_uint##N(hoist_pair(a, even)) + as_uint##N(hoist_pair(c, odd))); }
HOIST_DOT(4, 8) HOIST_DOT(8, 16)
#if HOIST_VPMADDWD == 16
HOIST_DOT(16, 32)
#else
HOIST int16 hoist_dot(int16 s, int16 x, int16 y) {
  return (int16)(hoist_dot(s.lo, x.lo, y.lo), hoist_dot(s.hi, x.hi, y.hi)); }
HOIST int16 hoist_dot_pairs(int16 s, int16 x, int16 y) {
  return (int16)(hoist_dot_pairs(s.lo, x.lo, y.lo), hoist_dot_pairs(s.hi, x.hi, y.hi)); }
HOIST int16 hoist_dot_pairs(int16 s, int16 x, short16 y) {
  return (int16)(hoist_dot_pairs(s.lo, x.lo, y.lo), hoist_dot_pairs(s.hi, x.hi, y.hi)); }
#endif
HOIST int hoist_dot(int s, int x, int y) { return hoist_dot_plain(s, x, y); }
#else
HOIST int hoist_dot(int s, int x, int y) { return hoist_dot_plain(s, x, y); }
HOIST_PLAIN_DOT(4) HOIST_PLAIN_DOT(8) HOIST_PLAIN_DOT(16)
#endif
HOIST_PLAIN_DOT(2) HOIST_PLAIN_PAIRS() HOIST_PLAIN_PAIRS(3)

// f16 and bf16 are represented by their bits; arithmetic is in f32, rounded to the type after each operation.
#define HOIST_QUIET(T, INFINITE, QUIET, N) \
  HOIST ushort##N hoist_quiet_##T(ushort##N a) { \
    return (a & (ushort##N)(0x7fff)) > (ushort##N)(INFINITE) ? (ushort##N)(QUIET) : a; }
#define HOIST_QUIET_16(N) HOIST_QUIET(f16, 0x7c00, 0x7e00, N) HOIST_QUIET(bf16, 0x7f80, 0x7fc0, N)
HOIST_QUIET_16() HOIST_QUIET_16(2) HOIST_QUIET_16(3) HOIST_QUIET_16(4) HOIST_QUIET_16(8) HOIST_QUIET_16(16)
// The select replaces one NaN with the same NaN, so that LLVM does not know that compared floats come from halves: it would
// compare halves, lane by lane on x86 without AVX-512 (a Relu then takes 40 times as long as native code).
#define HOIST_HALF(N) \
  HOIST float##N hoist_from_f16(ushort##N a) { \
    return convert_uint##N(a) == (uint##N)(0xffff) ? (float##N)(NAN) : vload_half##N(0, (const __private half *)&a); } \
  HOIST ushort##N hoist_to_f16(float##N a) { ushort##N r; vstore_half##N##_rte(a, 0, (__private half *)&r); \
    return convert_ushort##N(a != a ? (uint##N)(0x7e00) : convert_uint##N(r)); } \
  HOIST float##N hoist_round_f16(float##N a) { return hoist_from_f16(hoist_to_f16(a)); }
HOIST_HALF() HOIST_HALF(2) HOIST_HALF(3) HOIST_HALF(4) HOIST_HALF(8) HOIST_HALF(16)
// Native f16 arithmetic on bits, for kernels that call it by name. Only the three operators are used: some devices lack
// the other functions and the reinterpretations of the extension, fma among them.
#define HOIST_HALF_OPERATION(NAME, OPERATOR, N) \
  HOIST ushort##N NAME(ushort##N a, ushort##N b) { \
    union { ushort##N bits; hoist_half##N value; } x, y, z; \
    x.bits = a; \
    y.bits = b; \
    z.value = x.value OPERATOR y.value; \
    return z.bits; }
#ifdef cl_khr_fp16
#define HOIST_HALF_FMA(N) \
  HOIST ushort##N hoist_half_fma(ushort##N a, ushort##N b, ushort##N c) { \
    union { ushort##N bits; hoist_half##N value; } x, y, z, sum; \
    x.bits = a; \
    y.bits = b; \
    z.bits = c; \
    sum.value = fma(x.value, y.value, z.value); \
    return sum.bits; }
#else
#define HOIST_HALF_FMA(N) \
  HOIST ushort##N hoist_half_fma(ushort##N a, ushort##N b, ushort##N c) { \
    return hoist_to_f16(hoist_fma_to_odd(hoist_from_f16(a), hoist_from_f16(b), hoist_from_f16(c))); }
#endif
#define HOIST_HALF_OPERATIONS(N) \
  HOIST_HALF_OPERATION(hoist_half_add, +, N) HOIST_HALF_OPERATION(hoist_half_subtract, -, N) \
  HOIST_HALF_OPERATION(hoist_half_multiply, *, N) HOIST_HALF_FMA(N)
#define HOIST_HALF_VECTOR(N) \
  typedef half hoist_half##N __attribute__((ext_vector_type(N))); HOIST_HALF_OPERATIONS(N)
#define HOIST_HALF_ARITHMETIC \
  typedef half hoist_half; HOIST_HALF_OPERATIONS() HOIST_HALF_VECTOR(2) HOIST_HALF_VECTOR(3) HOIST_HALF_VECTOR(4) \
  HOIST_HALF_VECTOR(8) HOIST_HALF_VECTOR(16)
#define HOIST_BRAIN(N) \
  HOIST float##N hoist_from_bf16(ushort##N a) { return as_float##N(convert_uint##N(a) << (uint##N)(16)); } \
  HOIST ushort##N hoist_to_bf16(float##N a) { \
    uint##N x = as_uint##N(a); \
    uint##N r = (x + (uint##N)(0x7fff) + ((x >> (uint##N)(16)) & (uint##N)(1))) >> (uint##N)(16); \
    return convert_ushort##N(a != a ? (uint##N)(0x7fc0) : r); } \
  HOIST float##N hoist_add_first_product(float##N s, int##N x, int##N y) { \
    return fma(as_float##N(x << 16), as_float##N(y << 16), s); } \
  HOIST float##N hoist_add_second_product(float##N s, int##N x, int##N y) { \
    return fma(as_float##N(x & ~0xffff), as_float##N(y & ~0xffff), s); } \
  HOIST float##N hoist_add_two_sums(float##N s, float##N a, float##N b) { return s + (a + b); } \
  HOIST float##N hoist_round_bf16(float##N a) { return hoist_from_bf16(hoist_to_bf16(a)); }
HOIST_BRAIN() HOIST_BRAIN(2) HOIST_BRAIN(3) HOIST_BRAIN(4) HOIST_BRAIN(8) HOIST_BRAIN(16)

// Unaligned vectors of small integers, for which vload and vstore of PoCL 3.1 access each lane alone.
#define HOIST_UNALIGNED(T, N) \
  typedef T##N hoist_unaligned_##T##N __attribute__((aligned(sizeof(T)))); \
  HOIST T##N hoist_load##N(const __global T* p) { return *(const __global hoist_unaligned_##T##N*)p; } \
  HOIST void hoist_store##N(T##N v, __global T* p) { *(__global hoist_unaligned_##T##N*)p = v; }
#define HOIST_UNALIGNED_VECTORS(T) HOIST_UNALIGNED(T, 4) HOIST_UNALIGNED(T, 8) HOIST_UNALIGNED(T, 16)
HOIST_UNALIGNED_VECTORS(char) HOIST_UNALIGNED_VECTORS(uchar) HOIST_UNALIGNED_VECTORS(short) HOIST_UNALIGNED_VECTORS(ushort)

// float8 and float4: bit SIGN is the sign; below it is the exponent with the bias BIAS, and below that the mantissa of
// MANTISSA bits. LARGEST is the largest finite code; larger values saturate; NaN becomes NONE. The "uz" types have one
// zero and NaN at 0x80; f8e4m3fn has NaN at 0x7f; f8e5m2 has infinities and NaN above LARGEST; f4e2m1 has neither.
HOIST float hoist_decode_f8(uint code, int sign, int mantissa, int bias, uint largest, int unsigned_zero) {
  uint magnitude = code & ((1u << sign) - 1u);
  if (unsigned_zero ? code == 0x80 : magnitude > largest + (mantissa == 2 ? 1u : 0u)) return NAN;
  float value;
  if (!unsigned_zero && mantissa == 2 && magnitude == 0x7c) value = INFINITY;
  else if (magnitude >> mantissa == 0) value = ldexp((float)magnitude, 1 - bias - mantissa);
  else value = ldexp((float)((magnitude & ((1u << mantissa) - 1)) | (1u << mantissa)), (int)(magnitude >> mantissa) - bias - mantissa);
  return code >> sign & 1u ? -value : value;
}
HOIST uint hoist_encode_f8(float a, int sign, int mantissa, int bias, uint largest, uint none, int unsigned_zero) {
  if (a != a) return none;
  float x = fabs(a);
  uint code;
  if (x > hoist_decode_f8(largest, sign, mantissa, bias, largest, unsigned_zero)) code = largest;
  else {
    int exponent = max((int)(as_uint(x) >> 23) - 127, 1 - bias);
    uint steps = (uint)rint(ldexp(x, mantissa - exponent));  // in ulps of this exponent
    code = steps + ((uint)(exponent + bias - 1) << mantissa);
  }
  return (unsigned_zero && code == 0) ? 0 : code | as_uint(a) >> 31 << sign;
}
#define HOIST_LANES2(F, a) F(a.s0), F(a.s1)
#define HOIST_LANES3(F, a) HOIST_LANES2(F, a), F(a.s2)
#define HOIST_LANES4(F, a) HOIST_LANES3(F, a), F(a.s3)
#define HOIST_LANES8(F, a) HOIST_LANES4(F, a), F(a.s4), F(a.s5), F(a.s6), F(a.s7)
#define HOIST_LANES16(F, a) HOIST_LANES8(F, a), F(a.s8), F(a.s9), F(a.sa), F(a.sb), F(a.sc), F(a.sd), F(a.se), F(a.sf)
#define HOIST_F8_N(T, N) \
  HOIST float##N hoist_from_##T(uchar##N a) { return (float##N)(HOIST_LANES##N(hoist_from_##T, a)); } \
  HOIST uchar##N hoist_to_##T(float##N a) { return (uchar##N)(HOIST_LANES##N(hoist_to_##T, a)); } \
  HOIST float##N hoist_round_##T(float##N a) { return hoist_from_##T(hoist_to_##T(a)); }
#define HOIST_F8(T, SIGN, MANTISSA, BIAS, LARGEST, NONE, UZ) \
  HOIST float hoist_from_##T(uchar a) { return hoist_decode_f8(a, SIGN, MANTISSA, BIAS, LARGEST, UZ); } \
  HOIST uchar hoist_to_##T(float a) { return (uchar)hoist_encode_f8(a, SIGN, MANTISSA, BIAS, LARGEST, NONE, UZ); } \
  HOIST float hoist_round_##T(float a) { return hoist_from_##T(hoist_to_##T(a)); } \
  HOIST_F8_N(T, 2) HOIST_F8_N(T, 3) HOIST_F8_N(T, 4) HOIST_F8_N(T, 8) HOIST_F8_N(T, 16)
HOIST_F8(f8e4m3fn, 7, 3, 7, 0x7e, 0x7f, 0)
HOIST_F8(f8e4m3fnuz, 7, 3, 8, 0x7f, 0x80, 1)
HOIST_F8(f8e5m2, 7, 2, 15, 0x7b, 0x7f, 0)
HOIST_F8(f8e5m2fnuz, 7, 2, 16, 0x7f, 0x80, 1)
HOIST_F8(f4e2m1, 3, 1, 1, 0x7, 0x8, 0)

// f8e8m0 is the exponent of a power of two, the smallest one that is not below the magnitude; 0xff is NaN.
#define HOIST_POWERS(N) \
  HOIST float##N hoist_from_f8e8m0(uchar##N a) { \
    uint##N x = convert_uint##N(a); \
    uint##N y = x == (uint##N)(0) ? (uint##N)(0x400000) : x << (uint##N)(23); \
    return as_float##N(x == (uint##N)(0xff) ? (uint##N)(0x7fc00000) : y); } \
  HOIST uchar##N hoist_to_f8e8m0(float##N a) { \
    uint##N x = as_uint##N(a) & (uint##N)(0x7fffffff); \
    uint##N above = (x + (uint##N)(0x7fffff)) >> (uint##N)(23); \
    uint##N y = x <= (uint##N)(0x400000) ? (uint##N)(0) : above > (uint##N)(0xfe) ? (uint##N)(0xfe) : above; \
    return convert_uchar##N(x >= (uint##N)(0x7f800000) ? (uint##N)(0xff) : y); } \
  HOIST float##N hoist_round_f8e8m0(float##N a) { return hoist_from_f8e8m0(hoist_to_f8e8m0(a)); }
HOIST_POWERS() HOIST_POWERS(2) HOIST_POWERS(3) HOIST_POWERS(4) HOIST_POWERS(8) HOIST_POWERS(16)

// a * b + c of f16 or bf16 operands, rounded to odd: an inexact result has its last bit set. A second rounding, to the
// type, then gives the correctly rounded result.
#define HOIST_FUSE(T, I, T1, I1) HOIST T hoist_fma_to_odd(T a, T b, T c) { \
  T product = a * b, sum = product + c, part = sum - product; \
  T error = (product - (sum - part)) + (c - part); \
  I bits = HOIST_CAT(as_, I)(sum); \
  I step = ((error > 0) == (sum > 0)) ? (I)(1) : (I)(-1); \
  I odd = ((error != 0) & ((bits & (I)(1)) == (I)(0)) & (fabs(sum) <= (T)(FLT_MAX))) ? bits + step : bits; \
  return HOIST_CAT(as_, T)(odd); }
HOIST_WIDTHS(HOIST_FUSE, float, int)
#ifdef cl_khr_fp64
#define HOIST_ROUND_DOUBLE(N) \
  HOIST float##N hoist_to_odd(double##N a) { \
    float##N f = convert_float##N##_rtz(a); \
    int##N inexact = convert_int##N(convert_double##N(f) != a) != 0 ? (int##N)(1) : (int##N)(0); \
    return as_float##N(as_int##N(f) | inexact); } \
  HOIST float##N hoist_round_f16(double##N a) { return hoist_round_f16(hoist_to_odd(a)); } \
  HOIST float##N hoist_round_bf16(double##N a) { return hoist_round_bf16(hoist_to_odd(a)); } \
  HOIST float##N hoist_round_f8e4m3fn(double##N a) { return hoist_round_f8e4m3fn(hoist_to_odd(a)); } \
  HOIST float##N hoist_round_f8e4m3fnuz(double##N a) { return hoist_round_f8e4m3fnuz(hoist_to_odd(a)); } \
  HOIST float##N hoist_round_f8e5m2(double##N a) { return hoist_round_f8e5m2(hoist_to_odd(a)); } \
  HOIST float##N hoist_round_f8e5m2fnuz(double##N a) { return hoist_round_f8e5m2fnuz(hoist_to_odd(a)); } \
  HOIST float##N hoist_round_f4e2m1(double##N a) { return hoist_round_f4e2m1(hoist_to_odd(a)); } \
  HOIST float##N hoist_round_f8e8m0(double##N a) { return hoist_round_f8e8m0(hoist_to_odd(a)); }
HOIST_ROUND_DOUBLE() HOIST_ROUND_DOUBLE(2) HOIST_ROUND_DOUBLE(3) HOIST_ROUND_DOUBLE(4) HOIST_ROUND_DOUBLE(8) HOIST_ROUND_DOUBLE(16)
#endif
)";

}  // namespace

std::string preamble() { return preamble_text; }

std::string build_options() { return "-cl-std=CL1.2"; }

}  // namespace hoist
