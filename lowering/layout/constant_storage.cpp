#include "lowering/layout/constant_storage.h"

#include <algorithm>

#include "lowering/terms/terms.h"

namespace hoist {

Storage weights_storage(const std::string& name, Type type, int64_t output_dimension, bool filters, const Tile& tile,
                        bool panels, int64_t interleave) {
  Storage s = plain_storage(name, type);
  size_t rank = s.permutation.size();
  // [O][I][k...] -> [k...][I][O], and the same for [I][O][k...]: the order in which an NHWC image is read.
  s.permutation.clear();
  std::vector<int64_t> rest;
  for (size_t i = 0; i < rank; ++i) {
    if (static_cast<int64_t>(i) != output_dimension) rest.push_back(static_cast<int64_t>(i));
  }
  if ((output_dimension == 0 || (output_dimension == 1 && filters)) && rest.size() > 1)
    std::rotate(rest.begin(), rest.begin() + 1, rest.end());
  s.permutation = rest;
  s.permutation.push_back(output_dimension);
  int64_t columns = shape_of(type)[static_cast<size_t>(output_dimension)];
  s.interleave = interleave;
  if (panels) {
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
