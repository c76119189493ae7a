// An evolutionary search that uses the adjacency of points, after OpEvo (arXiv 2006.05664): parents are drawn by their
// speed, a child takes each knob from one of two parents, then walks a few steps to adjacent points until it reaches a
// new point.
#include <algorithm>
#include <cmath>

#include "tools/tuning/strategies/candidates.h"
#include "tools/tuning/strategies/strategies.h"

namespace hoist::tuning {
namespace {

constexpr size_t most_parents = 8;
constexpr size_t generation = 8;
constexpr double further = 0.5;  // probability of another step
constexpr int most_steps = 64;   // after which a random point replaces the child

class GeneticSearch : public Search {
 public:
  GeneticSearch(const KnobSpace& space, uint64_t seed) : candidates_(space, seed) {}

  std::vector<Point> propose(size_t most) override {
    Random random = candidates_.random();
    const size_t size = std::min(most, generation);
    std::vector<Point> points;
    if (candidates_.met() < most_parents) {
      candidates_.fill(points, std::min(size, most_parents - candidates_.met()), random);
      return points;
    }
    for (size_t i = 0; i < size && !parents_.empty(); ++i) {
      auto child = child_of(random);
      if (!child) continue;
      candidates_.meet(*child);
      points.push_back(std::move(*child));
    }
    candidates_.fill(points, size, random);
    return points;
  }

  void observe(const std::vector<Observation>& observations) override {
    candidates_.meet(observations);
    for (const Observation& observation : observations)
      if (std::isfinite(observation.seconds)) parents_.push_back(observation);
    std::stable_sort(parents_.begin(), parents_.end(),
                     [](const Observation& a, const Observation& b) { return a.seconds < b.seconds; });
    if (parents_.size() > most_parents) parents_.resize(most_parents);
  }

 private:
  const Point& parent(Random& random) const {
    double sum = 0;
    for (const Observation& one : parents_) sum += 1 / one.seconds;
    double at = random.fraction() * sum;
    for (const Observation& one : parents_)
      if ((at -= 1 / one.seconds) < 0) return one.point;
    return parents_.back().point;
  }

  std::optional<Point> child_of(Random& random) const {
    const Point& mother = parent(random);
    const Point& father = parent(random);
    Point child = mother;
    for (size_t k = 0; k < child.size(); ++k)
      if (random.fraction() < 0.5) child[k] = father[k];
    if (!is_legal(candidates_.space(), child)) child = mother;
    for (int step = 0; step < most_steps; ++step) {
      const auto ways = adjacent_points(candidates_.space(), child);
      if (ways.empty()) break;
      child = ways[random.below(ways.size())];
      if (candidates_.is_new(child) && random.fraction() >= further) return child;
    }
    if (candidates_.is_new(child)) return child;
    return std::nullopt;
  }

  Candidates candidates_;
  std::vector<Observation> parents_;  // in increasing order of time
};

}  // namespace

std::unique_ptr<Search> genetic_search(const KnobSpace& space, uint64_t seed) {
  return std::make_unique<GeneticSearch>(space, seed);
}

}  // namespace hoist::tuning
