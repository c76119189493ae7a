#include "ir/program/storage.h"

#include <numeric>

#include "ir/base/result.h"
#include "ir/language/tensor.h"

namespace hoist {

std::vector<int64_t> Storage::stored_shape() const {
  std::vector<int64_t> shape = shape_of(logical), out;
  for (int64_t p : permutation) out.push_back(shape[static_cast<size_t>(p)]);
  return out;
}

std::vector<int64_t> Storage::array_shape() const {
  std::vector<int64_t> shape = stored_shape();
  for (size_t i = 0; i < shape.size(); ++i) shape[i] += before[i] + after[i];
  const int64_t rows = interleave == 0 ? 0 : shape[shape.size() - 2];
  if (interleave > 0) shape[shape.size() - 2] /= interleave;
  if (panel > 0) {
    int64_t columns = shape.back();
    shape.back() = panel;
    shape.insert(shape.begin(), columns / panel);
  }
  HOIST_CHECK(interleave == 0 || rows % interleave == 0, "the rows are not a multiple of the interleaved block");
  if (interleave > 0) shape.push_back(interleave);
  for (int64_t i = 0; i < joined; ++i) {
    shape[1] *= shape[0];
    shape.erase(shape.begin());
  }
  return shape;
}

Type Storage::array_type() const {
  Type t = leaf_of(logical);
  std::vector<int64_t> shape = array_shape();
  for (size_t i = shape.size(); i-- > 0;) t = hoist::array_type(shape[i], t);
  return t;
}

Region Storage::written_region() const {
  if (!is_packed()) return {array_shape(), before, stored_shape()};
  const int64_t bytes = byte_size(leaf_of(logical)->scalar, array_shape());
  return {{bytes}, {0}, {bytes}};
}

Storage plain_storage(const std::string& array, Type logical) {
  Storage s;
  s.array = array;
  s.logical = logical;
  size_t rank = sizes_of(logical).size();
  s.permutation.resize(rank);
  std::iota(s.permutation.begin(), s.permutation.end(), 0);
  s.before.assign(rank, 0);
  s.after.assign(rank, 0);
  return s;
}

}  // namespace hoist
