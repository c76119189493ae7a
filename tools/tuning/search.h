// Strategies of search, all behind one interface: which points of a space to measure next, given what was measured.
// They know neither kernels nor devices, so that a recorded landscape tests them as well as a device does, and
// measuring here or on other machines is the same to them. All that is random follows from a seed; the state follows
// from what was observed, so that a search that was interrupted is resumed by telling it again.
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
  double seconds = 0;  ///< infinity: it did not compile, failed, or computed something else
};

class Search {
 public:
  virtual ~Search() = default;
  /// At most so many points that are legal and were neither proposed nor observed before; none once the space is
  /// exhausted.
  virtual std::vector<Point> propose(size_t most) = 0;
  /// Also of points that it has not proposed: where a tuner begins, and what earlier runs found.
  virtual void observe(const std::vector<Observation>& observations) = 0;
};

struct SearchStrategy {
  std::string_view name;  ///< for --strategy
  std::string_view what;  ///< one line, for people
  std::unique_ptr<Search> (*make)(const KnobSpace& space, uint64_t seed);
};

/// The first is the default.
std::span<const SearchStrategy> search_strategies();
const SearchStrategy* find_search_strategy(std::string_view name);  ///< null where there is none

}  // namespace hoist::tuning
