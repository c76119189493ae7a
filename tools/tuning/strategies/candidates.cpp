#include "tools/tuning/strategies/candidates.h"

#include <algorithm>

#include "ir/base/seeded.h"

namespace hoist::tuning {
namespace {

// Listing a million points takes tenths of a second and tens of megabytes.
constexpr int64_t most_listed = 1'000'000;

}  // namespace

size_t Random::below(size_t count) { return static_cast<size_t>(fraction() * static_cast<double>(count)); }

double Random::fraction() { return static_cast<double>(next_random(state_) >> 11) * 0x1p-53; }

Candidates::Candidates(KnobSpace space, uint64_t seed) : space_(std::move(space)), seed_(seed) {}

void Candidates::meet(const std::vector<Observation>& observations) {
  for (const Observation& observation : observations) meet(observation.point);
}

const std::vector<Point>& Candidates::listed() {
  if (!listed_) listed_ = every_point(space_, most_listed);
  return *listed_;
}

Random Candidates::random() const {
  uint64_t state = seed_ + met_.size();
  return Random(next_random(state) ^ seed_);
}

std::optional<Point> Candidates::draw(Random& random) {
  const bool listable = count_points(space_) <= most_listed;
  Point point(space_.knobs.size());
  if (count_points(space_) == 0) return std::nullopt;
  // If most points are legal and new, a few random draws find one without a list.
  for (int tries = listable ? 100 : 100'000; tries > 0; --tries) {
    for (size_t k = 0; k < point.size(); ++k) point[k] = static_cast<int>(random.below(space_.knobs[k].values.size()));
    if (is_new(point)) return point;
  }
  std::vector<const Point*> left;
  for (const Point& listed : listed())
    if (!met_.contains(listed)) left.push_back(&listed);
  if (left.empty()) return std::nullopt;
  return *left[random.below(left.size())];
}

void Candidates::fill(std::vector<Point>& points, size_t size, Random& random) {
  while (points.size() < size) {
    auto point = draw(random);
    if (!point) return;
    meet(*point);
    points.push_back(std::move(*point));
  }
}

bool Candidates::fill_first(std::vector<Point>& points, size_t most, Random& random) {
  if (!met_.empty()) return false;
  fill(points, std::min(most, first_points), random);
  return true;
}

void Candidates::fill_spread(std::vector<Point>& points, size_t size, Random& random) {
  if (points.size() >= size || count_points(space_) == 0) return;
  // A Latin hypercube: each knob's range is split into as many equal parts as there are points, and each part is used
  // once.
  const size_t count = size - points.size();
  std::vector<Point> spread(count, Point(space_.knobs.size()));
  for (size_t k = 0; k < space_.knobs.size(); ++k) {
    std::vector<size_t> parts(count);
    for (size_t i = 0; i < count; ++i) parts[i] = i;
    shuffle(parts, random);
    const auto values = static_cast<double>(space_.knobs[k].values.size());
    for (size_t i = 0; i < count; ++i)
      spread[i][k] =
          static_cast<int>((static_cast<double>(parts[i]) + random.fraction()) / static_cast<double>(count) * values);
  }
  for (Point& point : spread) {
    if (!is_new(point)) continue;
    meet(point);
    points.push_back(std::move(point));
  }
  fill(points, size, random);
}

std::vector<Point> Candidates::new_adjacent(const Point& point, Random& random) const {
  auto points = adjacent_points(space_, point);
  std::erase_if(points, [&](const Point& neighbour) { return met_.contains(neighbour); });
  shuffle(points, random);
  return points;
}

}  // namespace hoist::tuning
