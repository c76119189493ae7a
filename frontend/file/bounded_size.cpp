#include "frontend/file/bounded_size.h"

#include <algorithm>

#include "ir/language/tensor.h"

namespace hoist {

std::optional<int64_t> bounded_byte_size(Scalar scalar, const std::vector<int64_t>& shape, int64_t maximum_bytes) {
  if (shape.size() > maximum_rank) return std::nullopt;
  const int64_t maximum_elements = maximum_bytes / row(scalar).bits * 8;
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, std::max<int64_t>(extent, 1), &count) || count > maximum_elements) {
      return std::nullopt;
    }
  }
  return byte_size(scalar, shape);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  constexpr size_t shown = 16;
  std::string out = "[";
  for (size_t i = 0; i < shape.size() && i < shown; ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() > shown ? ", ...]" : "]");
}

}  // namespace hoist
