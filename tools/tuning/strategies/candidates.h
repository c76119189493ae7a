// The points of a space that a search has not met, with several ways to draw some of them. Draws depend only on the
// seed and on the number of points met, so a search that receives its observations again continues identically. For
// search strategies only.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "lowering/tiling/knobs.h"
#include "tools/tuning/search.h"

namespace hoist::tuning {

/// The number of points to draw before anything is known.
constexpr size_t first_points = 8;

/// A random generator with the same sequence on every platform.
class Random {
 public:
  explicit Random(uint64_t state) : state_(state) {}
  /// A uniform integer from 0 to `count` - 1.
  size_t below(size_t count);
  /// Uniform in [0, 1).
  double fraction();

 private:
  uint64_t state_;
};

class Candidates {
 public:
  Candidates(KnobSpace space, uint64_t seed);

  const KnobSpace& space() const { return space_; }
  /// True if the point is legal and not met.
  bool is_new(const Point& point) const { return !met_.contains(point) && is_legal(space_, point); }
  /// Marks points as met, that is proposed or observed.
  void meet(const Point& point) { met_.insert(point); }
  void meet(const std::vector<Observation>& observations);
  size_t met() const { return met_.size(); }
  /// All legal points if the space is small enough to list, else none.
  const std::vector<Point>& listed();

  /// The random generator for one proposal.
  Random random() const;
  /// A uniformly drawn new point; empty if there is none, or if legal points are too rare to be found by chance in a
  /// space that is too large to list.
  std::optional<Point> draw(Random& random);
  /// Adds new points, and marks them as met, until `points` has `size` elements or no new points are left.
  void fill(std::vector<Point>& points, size_t size, Random& random);
  /// If nothing was met yet, fills in at most `most` start points and returns true.
  bool fill_first(std::vector<Point>& points, size_t most, Random& random);
  /// As fill, with points that share as few values as possible: each part of a knob's range is used in turn.
  void fill_spread(std::vector<Point>& points, size_t size, Random& random);
  /// The new points adjacent to a point, in random order.
  std::vector<Point> new_adjacent(const Point& point, Random& random) const;

 private:
  KnobSpace space_;
  uint64_t seed_;
  std::set<Point> met_;
  std::optional<std::vector<Point>> listed_;
};

/// Shuffles things.
template <typename T>
void shuffle(std::vector<T>& things, Random& random) {
  for (size_t i = things.size(); i > 1; --i) std::swap(things[i - 1], things[random.below(i)]);
}

}  // namespace hoist::tuning
