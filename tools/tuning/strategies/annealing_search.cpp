// Simulated annealing, a baseline: from the current point it measures some adjacent points, moves to a faster one if
// there is one, and otherwise to a slower one with a probability that falls with the slow-down and the length of the
// search.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/tuning/strategies/candidates.h"
#include "tools/tuning/strategies/strategies.h"

namespace hoist::tuning {
namespace {

constexpr size_t looks = 4;                // adjacent points per batch
constexpr double first_temperature = 0.3;  // in units of the logarithm of time
constexpr double cooling = 0.97;           // per observation

class AnnealingSearch : public Search {
 public:
  AnnealingSearch(const KnobSpace& space, uint64_t seed) : candidates_(space, seed), seed_(seed) {}

  std::vector<Point> propose(size_t most) override {
    Random random = candidates_.random();
    std::vector<Point> points;
    if (std::isfinite(here_.seconds))
      for (Point& point : candidates_.new_adjacent(here_.point, random)) {
        if (points.size() >= std::min(most, looks)) break;
        candidates_.meet(point);
        points.push_back(std::move(point));
      }
    if (points.empty()) candidates_.fill(points, std::min<size_t>(most, 1), random);
    return points;
  }

  void observe(const std::vector<Observation>& observations) override {
    candidates_.meet(observations);
    for (const Observation& next : observations) {
      Random random(seed_ ^ ++observed_);
      const double temperature = first_temperature * std::pow(cooling, static_cast<double>(observed_));
      const bool goes = !std::isfinite(here_.seconds) || next.seconds < here_.seconds ||
                        random.fraction() < std::exp(std::log(here_.seconds / next.seconds) / temperature);
      if (goes) here_ = next;
    }
  }

 private:
  Candidates candidates_;
  uint64_t seed_;
  uint64_t observed_ = 0;
  Observation here_{{}, std::numeric_limits<double>::infinity()};
};

}  // namespace

std::unique_ptr<Search> annealing_search(const KnobSpace& space, uint64_t seed) {
  return std::make_unique<AnnealingSearch>(space, seed);
}

}  // namespace hoist::tuning
