#include "lowering/layout/constant_storage.h"

#include <algorithm>

#include "lowering/terms/terms.h"

namespace hoist {

std::vector<int64_t> weights_order(size_t rank, int64_t output_dimension, bool filters) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < rank; ++i) {
    if (static_cast<int64_t>(i) != output_dimension) out.push_back(static_cast<int64_t>(i));
  }
  if ((output_dimension == 0 || (output_dimension == 1 && filters)) && out.size() > 1)
    std::rotate(out.begin(), out.begin() + 1, out.end());
  out.push_back(output_dimension);
  return out;
}

Storage weights_storage(const std::string& name, Type type, int64_t output_dimension, bool filters, const Tile& tile,
                        bool panels, int64_t interleave) {
  Storage s = plain_storage(name, type);
  s.permutation = weights_order(s.permutation.size(), output_dimension, filters);
  int64_t columns = shape_of(type)[static_cast<size_t>(output_dimension)];
  s.interleave = interleave;
  // A tile that is shifted inwards reads the columns of two panels.
  const bool shifted = tile.on_gpu() == nullptr && tile.cpu().shifted != 0;
  if (panels && !shifted) {
    s.after.back() = round_up(columns, tile.columns) - columns;
    s.panel = tile.columns;
  }
  return s;
}

Storage constant_storage(const std::string& name, const Tensor& tensor, Type type, int64_t width) {
  Storage s = plain_storage(name, type);
  // A constant along one dimension (a bias, a scale per channel) is padded so that whole vectors can be loaded.
  int wide = 0;
  size_t which = 0;
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    if (tensor.shape()[i] <= 1) continue;
    ++wide;
    which = i;
  }
  if (wide != 1) return s;
  int64_t n = tensor.shape()[which];
  s.after[which] = round_up(n, n < width ? width : 8 * width) - n;
  return s;
}

}  // namespace hoist
