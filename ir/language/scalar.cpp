#include "ir/language/scalar.h"

#include <array>
#include <cstddef>

namespace hoist {
namespace {

constexpr std::array<ScalarRow, scalar_count> rows = {{
    {Scalar::boolean, "bool", 8, false, false},
    {Scalar::i4, "i4", 4, false, true},
    {Scalar::u4, "u4", 4, false, false},
    {Scalar::i8, "i8", 8, false, true},
    {Scalar::u8, "u8", 8, false, false},
    {Scalar::i16, "i16", 16, false, true},
    {Scalar::u16, "u16", 16, false, false},
    {Scalar::i32, "i32", 32, false, true},
    {Scalar::u32, "u32", 32, false, false},
    {Scalar::i64, "i64", 64, false, true},
    {Scalar::u64, "u64", 64, false, false},
    {Scalar::f8e4m3fn, "f8e4m3fn", 8, true, true},
    {Scalar::f8e4m3fnuz, "f8e4m3fnuz", 8, true, true},
    {Scalar::f8e5m2, "f8e5m2", 8, true, true},
    {Scalar::f8e5m2fnuz, "f8e5m2fnuz", 8, true, true},
    {Scalar::bf16, "bf16", 16, true, true},
    {Scalar::f16, "f16", 16, true, true},
    {Scalar::f32, "f32", 32, true, true},
    {Scalar::f64, "f64", 64, true, true},
    {Scalar::i2, "i2", 2, false, true},
    {Scalar::u2, "u2", 2, false, false},
    {Scalar::f4e2m1, "f4e2m1", 4, true, true},
    {Scalar::f8e8m0, "f8e8m0", 8, true, false},
    {Scalar::string, "string", 64, false, false},
}};

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<size_t>(rows[i].scalar) != i) return false;
  }
  return true;
}
static_assert(rows_are_in_order(), "a row is found by its scalar's number");

}  // namespace

const ScalarRow& row(Scalar scalar) { return rows[static_cast<size_t>(scalar)]; }

std::optional<Scalar> scalar_named(std::string_view name) {
  for (const ScalarRow& candidate : rows) {
    if (candidate.name == name) return candidate.scalar;
  }
  return std::nullopt;
}

}  // namespace hoist
