// The scalar types, one row each. Types below 16 bits other than i8 and u8 are storage formats: tensors hold them as
// ONNX's raw data does (two 4-bit or four 2-bit values a byte, the first in the lowest bits).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hoist {

enum class Scalar : uint8_t {
  boolean,
  i4,
  u4,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  bf16,
  f16,
  f32,
  f64,
  // Bundles store these values, so new types are appended.
  i2,
  u2,
  f4e2m1,  ///< has neither infinity nor NaN
  f8e8m0,  ///< powers of two from 2^-127 to 2^127, and NaN; no sign and no zero
  string,  ///< a string handle (ir/base/strings.h): it can be moved and compared for equality, and has no order
};
inline constexpr int scalar_count = 24;

struct ScalarRow {
  Scalar scalar;
  std::string_view name;  ///< name in the language: "f32"
  int bits;               ///< bits of one element in memory; bool takes 8
  bool is_float;
  bool is_signed;
};

const ScalarRow& row(Scalar scalar);
std::optional<Scalar> scalar_named(std::string_view name);
/// True if several elements share a byte.
inline bool is_packed(Scalar s) { return row(s).bits < 8; }
inline bool is_float(Scalar s) { return row(s).is_float; }
inline bool is_integer(Scalar s) { return !row(s).is_float && s != Scalar::boolean && s != Scalar::string; }

}  // namespace hoist
