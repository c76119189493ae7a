// Simulated annealing, as a baseline: from the point where it stands it looks at some neighbours, goes to one that is
// faster, and to one that is slower the less often the slower it is and the longer the search lasts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/tuning/strategies/candidates.h"
#include "tools/tuning/strategies/strategies.h"

namespace hoist::tuning {
namespace {

constexpr size_t looks = 4;                // neighbours at a time
constexpr double first_temperature = 0.3;  // in units of the logarithm of time
constexpr double cooling = 0.97;           // an observation

class AnnealingSearch : public Search {
 public:
  AnnealingSearch(const KnobSpace& space, uint64_t seed) : candidates_(space, seed), seed_(seed) {}

  std::vector<Point> propose(size_t most) override {
    Random random = candidates_.random();
    std::vector<Point> points;
    if (std::isfinite(here_.seconds))
      for (Point& point : candidates_.new_neighbours(here_.point, random)) {
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
