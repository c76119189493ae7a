#include "tools/tuning/strategies/g_bfs_search.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "tools/tuning/strategies/candidates.h"

namespace hoist::tuning {
namespace {

constexpr size_t drawn_adjacent = 5;  // the paper's rho

class GBfsSearch : public Search {
 public:
  GBfsSearch(const KnobSpace& space, uint64_t seed) : candidates_(space, seed) {}

  std::vector<Point> propose(size_t most) override {
    Random random = candidates_.random();
    std::vector<Point> points;
    if (candidates_.fill_first(points, most, random)) return points;
    for (; waiting_.empty() && !queue_.empty(); queue_.pop()) {
      waiting_ = adjacent_points(candidates_.space(), queue_.top().point);
      shuffle(waiting_, random);
      waiting_.resize(std::min(waiting_.size(), drawn_adjacent));
      std::erase_if(waiting_, [&](const Point& point) { return !candidates_.is_new(point); });
    }
    for (; !waiting_.empty() && points.size() < most; waiting_.pop_back())
      if (candidates_.is_new(waiting_.back())) {
        candidates_.meet(waiting_.back());
        points.push_back(waiting_.back());
      }
    // All adjacent points are drawn: continue from a random point.
    if (points.empty()) candidates_.fill(points, std::min<size_t>(most, 1), random);
    return points;
  }

  void observe(const std::vector<Observation>& observations) override {
    candidates_.meet(observations);
    for (const Observation& observation : observations)
      if (std::isfinite(observation.seconds)) queue_.push(observation);
  }

 private:
  struct IsSlower {
    bool operator()(const Observation& a, const Observation& b) const { return a.seconds > b.seconds; }
  };

  Candidates candidates_;
  std::priority_queue<Observation, std::vector<Observation>, IsSlower> queue_;
  std::vector<Point> waiting_;  // drawn, not proposed yet
};

}  // namespace

std::unique_ptr<Search> g_bfs_search(const KnobSpace& space, uint64_t seed) {
  return std::make_unique<GBfsSearch>(space, seed);
}

}  // namespace hoist::tuning
