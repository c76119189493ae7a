#include "ir/plan/region.h"

#include "ir/evaluate/evaluate.h"

namespace hoist {

bool Region::contains(const Region& other) const {
  for (size_t i = 0; i < array.size(); ++i) {
    if (other.before[i] < before[i] || before[i] + shape[i] < other.before[i] + other.shape[i]) return false;
  }
  return true;
}

bool Region::overlaps(const Region& other) const {
  for (size_t i = 0; i < array.size(); ++i) {
    if (before[i] + shape[i] <= other.before[i] || other.before[i] + other.shape[i] <= before[i]) return false;
  }
  return size() > 0 && other.size() > 0;
}

int64_t Region::position(int64_t flat) const {
  int64_t position = 0, stride = 1;
  for (size_t i = array.size(); i-- > 0;) {
    position += (flat % shape[i] + before[i]) * stride;
    flat /= shape[i];
    stride *= array[i];
  }
  return position;
}

std::vector<int64_t> sample_positions(const Region& region, int64_t count, uint64_t seed) {
  std::vector<int64_t> positions = sample_positions(region.size(), count, seed);
  for (int64_t& position : positions) position = region.position(position);
  return positions;
}

}  // namespace hoist
