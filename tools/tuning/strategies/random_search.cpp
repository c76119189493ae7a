// Uniform random search: the baseline for other strategies.
#include "tools/tuning/strategies/candidates.h"
#include "tools/tuning/strategies/strategies.h"

namespace hoist::tuning {
namespace {

class RandomSearch : public Search {
 public:
  RandomSearch(const KnobSpace& space, uint64_t seed) : candidates_(space, seed) {}

  std::vector<Point> propose(size_t most) override {
    Random random = candidates_.random();
    std::vector<Point> points;
    candidates_.fill(points, most, random);
    return points;
  }

  void observe(const std::vector<Observation>& observations) override { candidates_.meet(observations); }

 private:
  Candidates candidates_;
};

}  // namespace

std::unique_ptr<Search> random_search(const KnobSpace& space, uint64_t seed) {
  return std::make_unique<RandomSearch>(space, seed);
}

}  // namespace hoist::tuning
