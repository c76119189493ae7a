// The default strategy: boosted trees learn from the measurements which of two points is faster, and the points that
// they rank first are measured next. Batches are small: on a landscape of 18,225 tilings, batches of 8 needed a third
// as many measurements as batches of 64. Some points adjacent to the best one and some random points keep the search
// from relying on the trees too early.
#include <algorithm>
#include <cmath>

#include "tools/tuning/strategies/boosted_trees.h"
#include "tools/tuning/strategies/candidates.h"
#include "tools/tuning/strategies/strategies.h"

namespace hoist::tuning {
namespace {

constexpr size_t batch = 8;
constexpr size_t adjacent_per_batch = 1;  // points adjacent to the best one per batch
constexpr size_t random_a_batch = 1;

// Larger spaces are not ranked as a whole: random points are ranked, and then, for a few rounds, all points adjacent to
// the best ones.
constexpr size_t most_ranked = 100'000;
constexpr int random_ranked = 1000;
constexpr size_t climbers = 16;
constexpr int climbing_rounds = 6;

/// The features of each knob that trees can split at: positive numbers as logarithms, alternatives one-hot.
std::vector<float> features_of(const KnobSpace& space, const Point& point) {
  std::vector<float> features;
  for (size_t k = 0; k < space.knobs.size(); ++k) {
    const Knob& knob = space.knobs[k];
    if (knob.kind == Knob::Kind::choice) {
      for (size_t i = 0; i < knob.values.size(); ++i) features.push_back(point[k] == static_cast<int>(i) ? 1.0F : 0.0F);
      continue;
    }
    for (const int64_t value : knob.values[point[k]])
      features.push_back(value > 0 ? std::log2(static_cast<float>(value)) : static_cast<float>(value));
  }
  return features;
}

class BoostedTreesSearch : public Search {
 public:
  BoostedTreesSearch(const KnobSpace& space, uint64_t seed) : candidates_(space, seed), seed_(seed) {}

  std::vector<Point> propose(size_t most) override {
    Random random = candidates_.random();
    const size_t size = std::min(most, batch);
    std::vector<Point> points;
    const auto best = std::min_element(observed_.begin(), observed_.end(),
                                       [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    if (best == observed_.end() || candidates_.met() < first_points || !std::isfinite(best->seconds)) {
      candidates_.fill_spread(points, std::min(size, first_points - std::min(first_points - 1, candidates_.met())),
                              random);
      return points;
    }
    const BoostedTrees trees = fit();
    size_t adjacent = size > adjacent_per_batch + random_a_batch ? adjacent_per_batch : 0;
    const size_t drawn = size > adjacent_per_batch + random_a_batch ? random_a_batch : 0;
    for (const Point& point : ranked(trees, pool(trees, best->point, random))) {
      if (points.size() + adjacent + drawn >= size) break;
      take(point, points);
    }
    for (const Point& point : ranked(trees, candidates_.new_adjacent(best->point, random))) {
      if (adjacent == 0) break;
      --adjacent;
      take(point, points);
    }
    candidates_.fill(points, size, random);
    return points;
  }

  void observe(const std::vector<Observation>& observations) override {
    candidates_.meet(observations);
    for (const Observation& observation : observations) {
      observed_.push_back(observation);
      table_.add(features_of(candidates_.space(), observation.point));
    }
  }

 private:
  void take(const Point& point, std::vector<Point>& points) {
    if (!candidates_.is_new(point)) return;
    candidates_.meet(point);
    points.push_back(point);
  }

  BoostedTrees fit() const {
    // Failures share one rank, after all others.
    double slowest = 0;
    for (const auto& [point, seconds] : observed_)
      if (std::isfinite(seconds)) slowest = std::max(slowest, seconds);
    std::vector<float> labels;
    for (const auto& [point, seconds] : observed_)
      labels.push_back(-static_cast<float>(std::log(std::isfinite(seconds) ? seconds : 2 * slowest)));
    return BoostedTrees::fit(table_, labels, {.ranks = true, .rounds = 100, .depth = 3, .rate = 0.3, .seed = seed_});
  }

  /// The points, best first.
  std::vector<Point> ranked(const BoostedTrees& trees, std::vector<Point> points) const {
    FeatureTable table;
    for (const Point& point : points) table.add(features_of(candidates_.space(), point));
    const auto scores = trees.predict(table);
    std::vector<size_t> order(points.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    std::vector<Point> sorted;
    for (const size_t i : order) sorted.push_back(std::move(points[i]));
    return sorted;
  }

  /// New points for the trees to rank, in random order, since the trees give many of them the same value.
  std::vector<Point> pool(const BoostedTrees& trees, const Point& best, Random& random) {
    std::vector<Point> points;
    if (count_points(candidates_.space()) <= static_cast<int64_t>(most_ranked)) {
      for (const Point& point : candidates_.listed())
        if (candidates_.is_new(point)) points.push_back(point);
      shuffle(points, random);
      return points;
    }
    std::set<Point> seen;
    const auto add = [&](Point point) {
      if (candidates_.is_new(point) && seen.insert(point).second) points.push_back(std::move(point));
    };
    for (int i = 0; i < random_ranked; ++i)
      if (auto point = candidates_.draw(random)) add(std::move(*point));
    for (Point& point : candidates_.new_adjacent(best, random)) add(std::move(point));
    for (int round = 0; round < climbing_rounds; ++round) {
      points = ranked(trees, std::move(points));
      const size_t climbing = std::min(climbers, points.size());
      for (size_t i = 0; i < climbing; ++i)
        for (Point& point : candidates_.new_adjacent(points[i], random)) add(std::move(point));
    }
    return points;
  }

  Candidates candidates_;
  uint64_t seed_;
  std::vector<Observation> observed_;
  FeatureTable table_;
};

}  // namespace

std::unique_ptr<Search> boosted_trees_search(const KnobSpace& space, uint64_t seed) {
  return std::make_unique<BoostedTreesSearch>(space, seed);
}

}  // namespace hoist::tuning
