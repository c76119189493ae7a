#include "lowering/layout/memory.h"

#include <algorithm>
#include <numeric>

namespace hoist {

int64_t place_arrays(std::vector<Lifetime>& arrays, int64_t alignment, bool reuse) {
  auto aligned = [&](int64_t n) { return (n + alignment - 1) / alignment * alignment; };
  std::vector<size_t> order(arrays.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return arrays[a].bytes > arrays[b].bytes; });
  std::vector<size_t> placed;
  int64_t total = 0;
  for (size_t i : order) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t j : placed) {
      bool together = !reuse || (arrays[j].first <= arrays[i].last && arrays[i].first <= arrays[j].last);
      if (together) taken.emplace_back(arrays[j].offset, arrays[j].offset + aligned(arrays[j].bytes));
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (auto [begin, end] : taken) {
      if (offset + aligned(arrays[i].bytes) <= begin) break;
      offset = std::max(offset, end);
    }
    arrays[i].offset = offset;
    total = std::max(total, offset + aligned(arrays[i].bytes));
    placed.push_back(i);
  }
  return total;
}

}  // namespace hoist
