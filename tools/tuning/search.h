// The interface of search strategies: they propose the next points of a space to measure, given the measured ones. They
// depend neither on kernels nor on devices, so a recorded landscape tests them as well as a device, and measurements
// may run here or on other machines. All randomness comes from a seed and the state depends only on the observations,
// so an interrupted search is resumed by observing them again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lowering/tiling/knobs.h"

namespace hoist::tuning {

struct Observation {
  Point point;
  double seconds = 0;  ///< infinity: it did not compile, failed, or computed a wrong result
};

class Search {
 public:
  virtual ~Search() = default;
  /// At most `most` legal points that were neither proposed nor observed before; empty once the space is exhausted.
  virtual std::vector<Point> propose(size_t most) = 0;
  /// Accepts points that were not proposed too: the start point and results of earlier runs.
  virtual void observe(const std::vector<Observation>& observations) = 0;
};

struct SearchStrategy {
  std::string_view name;  ///< for --strategy
  std::string_view what;  ///< one line of help
  std::unique_ptr<Search> (*make)(const KnobSpace& space, uint64_t seed);
};

/// All strategies; the first is the default.
std::span<const SearchStrategy> search_strategies();
const SearchStrategy* find_search_strategy(std::string_view name);  ///< null if there is none

}  // namespace hoist::tuning
