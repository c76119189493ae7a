// The meaning of each scalar function and each cast on each scalar type, shared by the interpreter and the evaluator,
// so that both give the same bits. Works on columns: arrays of values in their storage type (float, int32_t, ...;
// float8, bf16 and f16 as their bits; bool and the packed types take a byte each, 0 or 1 and sign- or zero-extended).
// f32 is computed in float and f64 in double, never fused; the smaller floats are computed in double and rounded once.
// The caller has to ensure that a function supports a type (make() checks it).
//
// Choices that the table of functions leaves open: minimum and maximum order -0 before +0 (so that they are commutative
// and associative bit for bit); sign(-0) is -0; a float modulo of 0 has the divisor's sign; the payload of a NaN is
// unspecified. Casts to float4 and float8 saturate, casts to bf16 and f16 overflow to infinity, as in ONNX (tensor.h,
// bits_from_float).
#pragma once

#include <cstdint>

#include "ir/language/pattern.h"
#include "ir/language/tensor.h"

namespace hoist {

/// The size in bytes of one element of a column.
int column_bytes(Scalar scalar);

/// out[i] = function(a[i], b[i], c[i]) for i < n; pointers beyond the arity are not read, and out overlaps no operand.
using ColumnOperation = void (*)(const void* a, const void* b, const void* c, void* out, int64_t n);
/// Aborts if the table of functions excludes the type.
ColumnOperation column_operation(Function function, Scalar scalar);

using ColumnConversion = void (*)(const void* in, void* out, int64_t n);
ColumnConversion column_conversion(Scalar from, Scalar to);

/// Reinterprets a column as another type of the same width; a NaN becomes the one quiet NaN of type `from`.
ColumnConversion column_reinterpretation(Scalar from);

/// One value as a word: its column bytes, zero-extended.
uint64_t compute(Function function, Scalar scalar, uint64_t a, uint64_t b = 0, uint64_t c = 0);
uint64_t convert(Scalar from, Scalar to, uint64_t word);
uint64_t reinterpret(Scalar from, uint64_t word);
/// The word of a literal from its bits (low bits in the type's format).
uint64_t word_of_bits(Scalar scalar, uint64_t bits);
/// The integer value of a word of an integer or boolean type; u64 keeps its bits.
int64_t integer_of_word(Scalar scalar, uint64_t word);
/// The word of an integer in the given type: the low bits for integer types, rounded half to even for floats.
uint64_t word_of_integer(Scalar scalar, int64_t value);

/// Elements start .. start + n - 1 of a tensor as a column, and back. Writing replaces a NaN by the type's one quiet
/// NaN, since the payload that arithmetic propagates depends on the compiler.
void read_column(const Tensor& tensor, int64_t start, int64_t n, void* column);
void write_column(const void* column, Scalar scalar, std::byte* bytes, int64_t start, int64_t n);
inline uint64_t word_at(const Tensor& tensor, int64_t position) {
  uint64_t word = 0;
  read_column(tensor, position, 1, &word);
  return word;
}

}  // namespace hoist
