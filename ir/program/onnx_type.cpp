#include "ir/program/onnx_type.h"

#include <array>
#include <cstddef>

namespace hoist {
namespace {

// In the order of Scalar: bool, i4, u4, i8, u8, i16, u16, i32, u32, i64, u64, the float8 types, bf16, f16, f32, f64,
// i2, u2, f4e2m1, f8e8m0, string.
constexpr std::array<int, scalar_count> numbers = {9,  22, 21, 3,  2,  5, 4,  6,  12, 7,  13, 17,
                                                   18, 19, 20, 16, 10, 1, 11, 26, 25, 23, 24, 8};

}  // namespace

int64_t onnx_type(Scalar scalar) { return numbers[static_cast<size_t>(scalar)]; }

std::optional<Scalar> scalar_of_onnx_type(int64_t number) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == number) return static_cast<Scalar>(i);
  }
  return std::nullopt;
}

}  // namespace hoist
