// The points of a space that a search has not met, and ways to draw some of them. What is drawn follows from the seed
// and from how many points were met before, so a search that is told again what was observed goes on as it would have.
// For strategies of search alone.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "lowering/tiling/knobs.h"
#include "tools/tuning/search.h"

namespace hoist::tuning {

/// So many points are drawn where nothing is known to go on from.
constexpr size_t first_points = 8;

/// Random numbers that are the same everywhere.
class Random {
 public:
  explicit Random(uint64_t state) : state_(state) {}
  /// A number from 0 to `count` - 1, all equally likely.
  size_t below(size_t count);
  /// At least 0, less than 1.
  double fraction();

 private:
  uint64_t state_;
};

class Candidates {
 public:
  Candidates(KnobSpace space, uint64_t seed);

  const KnobSpace& space() const { return space_; }
  /// Legal, and not met.
  bool is_new(const Point& point) const { return !met_.contains(point) && is_legal(space_, point); }
  /// Proposed, or observed.
  void meet(const Point& point) { met_.insert(point); }
  void meet(const std::vector<Observation>& observations);
  size_t met() const { return met_.size(); }
  /// All legal points where there are few enough to list them, else none.
  const std::vector<Point>& listed();

  /// For the choices of one proposal.
  Random random() const;
  /// A new point, all equally likely; nothing once there is none, or where legal points are too rare to be hit upon in
  /// a space that is too large to list.
  std::optional<Point> draw(Random& random);
  /// Meets and adds new points until `points` has `size` or there are no more.
  void fill(std::vector<Point>& points, size_t size, Random& random);
  /// Whether nothing was met yet: then the points to begin with, at most so many.
  bool fill_first(std::vector<Point>& points, size_t most, Random& random);
  /// As fill, with points that share as few values as possible: of each knob every part of its range has its turn.
  void fill_spread(std::vector<Point>& points, size_t size, Random& random);
  /// The new ones among the neighbours of a point, in random order.
  std::vector<Point> new_neighbours(const Point& point, Random& random) const;

 private:
  KnobSpace space_;
  uint64_t seed_;
  std::set<Point> met_;
  std::optional<std::vector<Point>> listed_;
};

/// Puts things in random order.
template <typename T>
void shuffle(std::vector<T>& things, Random& random) {
  for (size_t i = things.size(); i > 1; --i) std::swap(things[i - 1], things[random.below(i)]);
}

}  // namespace hoist::tuning
