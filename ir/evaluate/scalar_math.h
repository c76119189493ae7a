// What each scalar function and each cast means on each scalar type: the one place that the interpreter and the
// evaluator share, so that both give the same bits. Works on columns: arrays of values in their storage type (float,
// int32_t, ...; float8, bf16 and f16 as their bits; bool and the packed types take a byte each, 0 or 1 and sign- or
// zero-extended). f32 is computed in float and f64 in double, never fused; the smaller floats are computed in double
// and rounded once. Whether a function takes a type is the caller's to know (make() checks it).
//
// Where the table of functions leaves a choice: minimum and maximum order -0 before +0 (so that they are commutative
// and associative bit for bit); sign(-0) is -0; a float modulo of 0 has the divisor's sign; NaN has no payload that
// anybody may rely on. Casts to float4 and float8 saturate, to bf16 and f16 overflow to infinity, as ONNX has them
// (tensor.h, bits_from_float).
#pragma once

#include <cstdint>

#include "ir/language/pattern.h"
#include "ir/language/tensor.h"

namespace hoist {

/// Bytes of one value in a column.
int column_bytes(Scalar scalar);

/// out[i] = function(a[i], b[i], c[i]) for i < n; pointers past the arity are not read, out overlaps none of the
/// others.
using ColumnOperation = void (*)(const void* a, const void* b, const void* c, void* out, int64_t n);
/// Aborts where the table of functions excludes the type.
ColumnOperation column_operation(Function function, Scalar scalar);

using ColumnConversion = void (*)(const void* in, void* out, int64_t n);
ColumnConversion column_conversion(Scalar from, Scalar to);

/// The bits of another type of the same width, which a column holds as they are; NaN gives the bits of the type's one
/// quiet NaN.
ColumnConversion column_reinterpretation(Scalar from);

/// One value as a word: its column bytes, zero-extended.
uint64_t compute(Function function, Scalar scalar, uint64_t a, uint64_t b = 0, uint64_t c = 0);
uint64_t convert(Scalar from, Scalar to, uint64_t word);
uint64_t reinterpret(Scalar from, uint64_t word);
/// The bits of a literal (low bits in the type's format) as a word.
uint64_t word_of_bits(Scalar scalar, uint64_t bits);
/// A word of an integer or boolean type as a number; u64 keeps its bits.
int64_t integer_of_word(Scalar scalar, uint64_t word);
/// The low bits of an integer as a word of an integer type; as a float it is rounded half to even.
uint64_t word_of_integer(Scalar scalar, int64_t value);

/// Elements start .. start + n - 1 of a tensor as a column, and back. A NaN that is written becomes the type's one
/// quiet NaN, since which payload arithmetic passes on depends on the compiler.
void read_column(const Tensor& tensor, int64_t start, int64_t n, void* column);
void write_column(const void* column, Scalar scalar, std::byte* bytes, int64_t start, int64_t n);
inline uint64_t word_at(const Tensor& tensor, int64_t position) {
  uint64_t word = 0;
  read_column(tensor, position, 1, &word);
  return word;
}

}  // namespace hoist
