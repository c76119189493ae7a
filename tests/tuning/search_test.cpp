// Replays search strategies on landscapes: their proposals, and the number of measurements that they need.
#include "tools/tuning/search.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "tests/support/factors_knob.h"
#include "tests/tuning/landscape.h"
#include "tools/tuning/strategies/boosted_trees.h"
#include "tools/tuning/strategies/candidates.h"

namespace hoist::tuning {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// A few hundred points, some of them illegal, with every kind of knob.
KnobSpace small_space() {
  return {{factors_knob("m", 12, 3), Knob{"width", Knob::Kind::ordered, {{1}, {2}, {4}}},
           Knob{"order", Knob::Kind::choice, {{0}, {1}, {2}}}},
          [](const Point& point) { return point[1] != 2 || point[0] % 3 != 0; }};
}

double seconds_at(const KnobSpace& space, const Point& point) {
  if (point[2] == 1 && point[1] == 0) return std::numeric_limits<double>::infinity();
  const auto& m = space.knobs[0].values[point[0]];
  return std::abs(std::log2(static_cast<double>(m[2])) - 1.5) + 0.3 * point[1] + 0.1 * point[2] + 1;
}

std::vector<Observation> observed(const KnobSpace& space, const std::vector<Point>& points) {
  std::vector<Observation> observations;
  for (const Point& point : points) observations.push_back({point, seconds_at(space, point)});
  return observations;
}

class EveryStrategy : public testing::TestWithParam<const SearchStrategy*> {};

std::vector<const SearchStrategy*> every_strategy() {
  std::vector<const SearchStrategy*> result;
  for (const SearchStrategy& strategy : search_strategies()) result.push_back(&strategy);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Search, EveryStrategy, testing::ValuesIn(every_strategy()), [](const auto& strategy) {
  std::string name(strategy.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(EveryStrategy, ProposesEveryPointOnce) {
  const KnobSpace space = small_space();
  const auto all = every_point(space);
  const auto search = GetParam()->make(space, 1);
  search->observe(observed(space, {all[7]}));
  std::set<Point> met = {all[7]};
  for (size_t most = 1;; most = most % 9 + 1) {
    const auto points = search->propose(most);
    if (points.empty()) break;
    EXPECT_LE(points.size(), most);
    for (const Point& point : points) {
      EXPECT_TRUE(is_legal(space, point));
      EXPECT_TRUE(met.insert(point).second) << "twice";
    }
    search->observe(observed(space, points));
  }
  EXPECT_EQ(met.size(), all.size());
}

TEST_P(EveryStrategy, ProposesOthersWhileItWaits) {
  const KnobSpace space = small_space();
  const auto search = GetParam()->make(space, 1);
  std::set<Point> met;
  size_t count = 0;
  for (int i = 0; i < 10; ++i)
    for (const Point& point : search->propose(4)) met.insert(point), ++count;
  EXPECT_GE(count, 10);
  EXPECT_EQ(met.size(), count);
}

TEST_P(EveryStrategy, FollowsFromItsSeed) {
  const auto course = [&](uint64_t seed) {
    const KnobSpace space = small_space();
    const auto search = GetParam()->make(space, seed);
    std::vector<Point> all;
    for (int i = 0; i < 6; ++i) {
      const auto points = search->propose(8);
      search->observe(observed(space, points));
      all.insert(all.end(), points.begin(), points.end());
    }
    return all;
  };
  EXPECT_EQ(course(3), course(3));
  EXPECT_NE(course(3), course(4));
}

TEST_P(EveryStrategy, GoesOnFromWhatItIsTold) {
  const KnobSpace space = small_space();
  const auto first = GetParam()->make(space, 5);
  std::vector<Observation> told;
  for (int i = 0; i < 5; ++i) {
    const auto observations = observed(space, first->propose(8));
    first->observe(observations);
    told.insert(told.end(), observations.begin(), observations.end());
  }
  const auto second = GetParam()->make(space, 5);
  second->observe(told);
  std::set<Point> known;
  for (const Observation& observation : told) known.insert(observation.point);
  const auto points = second->propose(8);
  EXPECT_FALSE(points.empty());
  for (const Point& point : points) EXPECT_FALSE(known.contains(point));
  // These strategies have no state that an interruption loses: even the choice is the same.
  const std::set<std::string_view> stateless = {"boosted-trees", "random", "genetic", "annealing"};
  if (stateless.contains(GetParam()->name)) {
    EXPECT_EQ(first->propose(8), points);
  }
}

TEST_P(EveryStrategy, StandsFailures) {
  const KnobSpace space = small_space();
  const auto search = GetParam()->make(space, 2);
  for (int i = 0; i < 8; ++i) {
    std::vector<Observation> failed;
    for (const Point& point : search->propose(8)) failed.push_back({point, std::numeric_limits<double>::infinity()});
    EXPECT_FALSE(failed.empty());
    search->observe(failed);
  }
  EXPECT_FALSE(search->propose(8).empty());
}

TEST_P(EveryStrategy, SpacesWithNothingToChooseEnd) {
  EXPECT_THAT(GetParam()->make({{Knob{"width", Knob::Kind::ordered, {}}}}, 1)->propose(8), IsEmpty());
  const KnobSpace none{{Knob{"width", Knob::Kind::ordered, {{1}, {2}}}}, [](const Point&) { return false; }};
  EXPECT_THAT(GetParam()->make(none, 1)->propose(8), IsEmpty());
  const KnobSpace one{{Knob{"width", Knob::Kind::ordered, {{4}}}, factors_knob("m", 1, 2)}};
  const auto search = GetParam()->make(one, 1);
  EXPECT_THAT(search->propose(8), SizeIs(1));
  search->observe({{{0, 0}, 1}});
  EXPECT_THAT(search->propose(8), IsEmpty());
}

// Too many points to list: 10^18, half of them legal.
TEST_P(EveryStrategy, FindsItsWayInHugeSpaces) {
  KnobSpace space;
  for (int k = 0; k < 18; ++k) {
    Knob& knob = space.knobs.emplace_back(Knob{"k" + std::to_string(k), Knob::Kind::ordered, {}});
    for (int64_t i = 1; i <= 10; ++i) knob.values.push_back({i});
  }
  space.is_legal = [](const Point& point) { return (point[0] + point[1]) % 2 == 0; };
  const auto search = GetParam()->make(space, 1);
  double first = 0, best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 24; ++i) {
    std::vector<Observation> observations;
    for (const Point& point : search->propose(16)) {
      EXPECT_TRUE(is_legal(space, point));
      double seconds = 1;
      for (const int index : point) seconds += (index - 3) * (index - 3);
      observations.push_back({point, seconds});
      best = std::min(best, seconds);
      if (first == 0) first = seconds;
    }
    EXPECT_FALSE(observations.empty());
    search->observe(observations);
  }
  EXPECT_LT(best, 0.9 * first);
}

double median_to_within_5_percent(const Landscape& landscape, const char* name, int seeds) {
  const SearchStrategy* strategy = find_search_strategy(name);
  std::vector<double> needed;
  for (int seed = 0; seed < seeds; ++seed)
    needed.push_back(static_cast<double>(
        measurements_to(replay(landscape, strategy->make, static_cast<uint64_t>(seed), 400), 1.05, 400)));
  return quantile(needed, 0.5);
}

// The bounds leave slack: results follow from the seeds, but XGBoost's tie-breaking may change.
TEST(Replay, OnAComputedLandscape) {
  const Landscape landscape = computed_landscape();
  EXPECT_LE(median_to_within_5_percent(landscape, "boosted-trees", 11), 70);
  EXPECT_LE(median_to_within_5_percent(landscape, "genetic", 21), 200);
  EXPECT_LE(median_to_within_5_percent(landscape, "annealing", 21), 300);
  EXPECT_GT(median_to_within_5_percent(landscape, "random", 21), 300) << "or the landscape is too easy to tell";
}

TEST(Replay, OfNeighboursOnAComputedLandscape) {
  if (find_search_strategy("g-bfs") == nullptr) GTEST_SKIP() << "built without HOIST_NEIGHBOURHOOD_SEARCH";
  const Landscape landscape = computed_landscape();
  EXPECT_LE(median_to_within_5_percent(landscape, "g-bfs", 21), 130);
  EXPECT_LE(median_to_within_5_percent(landscape, "n-a2c", 11), 180);
}

class RecordedReplay : public testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("HOIST_SHARED");
    if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
    const auto file = std::filesystem::path(shared) / "data/gemm_landscape/gemm256_tilings.txt.gz";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << file.filename() << " is not in HOIST_SHARED";
    landscape_ = recorded_landscape(file);
    ASSERT_TRUE(landscape_);
    ASSERT_EQ(landscape_->seconds.size(), 18'225);
  }

  std::optional<Landscape> landscape_;
};

// Upper ends of measurements with other implementations: 25 to 36 measurements for boosted trees, 35 to 78 for G-BFS,
// 60 to 91 for N-A2C, 382 for random points.
TEST_F(RecordedReplay, BoostedTreesNeedFewMeasurements) {
  EXPECT_LE(median_to_within_5_percent(*landscape_, "boosted-trees", 11), 36);
  EXPECT_GT(median_to_within_5_percent(*landscape_, "random", 21), 200);
}

TEST_F(RecordedReplay, BaselinesNeedMore) {
  EXPECT_LE(median_to_within_5_percent(*landscape_, "genetic", 21), 120);
  EXPECT_LE(median_to_within_5_percent(*landscape_, "annealing", 21), 140);
}

TEST_F(RecordedReplay, NeighboursNeedFewMeasurements) {
  if (find_search_strategy("g-bfs") == nullptr) GTEST_SKIP() << "built without HOIST_NEIGHBOURHOOD_SEARCH";
  EXPECT_LE(median_to_within_5_percent(*landscape_, "g-bfs", 21), 78);
  EXPECT_LE(median_to_within_5_percent(*landscape_, "n-a2c", 11), 91);
}

TEST(Search, StrategiesHaveNames) {
  EXPECT_EQ(search_strategies().front().name, "boosted-trees");
  EXPECT_EQ(find_search_strategy("genetic")->name, "genetic");
  EXPECT_EQ(find_search_strategy("exhaustive"), nullptr);
}

TEST(Candidates, SpreadPointsTakeEveryPartOfARange) {
  Candidates candidates({{Knob{"a", Knob::Kind::ordered, {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}},
                          Knob{"b", Knob::Kind::choice, {{0}, {1}}}}},
                        1);
  Random random = candidates.random();
  std::vector<Point> points;
  candidates.fill_spread(points, 8, random);
  std::set<int> a;
  int b = 0;
  for (const Point& point : points) a.insert(point[0]), b += point[1];
  EXPECT_THAT(a, SizeIs(8));
  EXPECT_EQ(b, 4);
}

TEST(BoostedTrees, LearnAndAreKept) {
  FeatureTable table;
  std::vector<float> labels;
  for (int i = 0; i < 200; ++i) {
    const int row = i / 20;
    const auto a = static_cast<float>(i % 20), b = static_cast<float>(row);
    table.add({a, b});
    labels.push_back(a > 10 ? 5 - b : b);
  }
  const auto error = [&](const std::vector<float>& predicted) {
    double worst = 0;
    for (size_t i = 0; i < labels.size(); ++i) worst = std::max(worst, std::abs(double{predicted[i]} - labels[i]));
    return worst;
  };
  const BoostedTrees trees = BoostedTrees::fit(table, labels, {});
  EXPECT_LT(error(trees.predict(table)), 0.1);
  const auto loaded = BoostedTrees::load(trees.save(), table.columns);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->predict(table), trees.predict(table));
  EXPECT_EQ(loaded->save(), trees.save());
  EXPECT_TRUE(BoostedTrees::load("1<2.5 3 4\n", 2).has_value());
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "0<1 ";
  for (const std::string& wrong :
       {std::string("no trees"), std::string("1<2.5 3"), std::string("2<2.5 3 4"), std::string("-1<2.5 3 4"),
        std::string("1<2.5 3 4 5"), std::string("nan"), std::string("1<2.5 inf 4"), std::string("1 <2"), deep})
    EXPECT_FALSE(BoostedTrees::load(wrong, 2).has_value()) << wrong.substr(0, 20);
}

}  // namespace
}  // namespace hoist::tuning
