// Tests spaces of knobs: their values, legal points, and adjacent points.
#include "lowering/tiling/knobs.h"

#include <gmock/gmock.h>

#include <set>

#include "ir/base/stopwatch.h"
#include "tests/support/factors_knob.h"

namespace hoist::knobs_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;
using testing::UnorderedElementsAre;

Knob knob(const std::string& name, Knob::Kind kind, const std::vector<int64_t>& numbers) {
  Knob made{name, kind, {}};
  for (const int64_t number : numbers) made.values.push_back({number});
  return made;
}

TEST(Knobs, FactorsAreEveryOrderedProduct) {
  EXPECT_THAT(factors_knob("m", 12, 2).values, ElementsAre(ElementsAre(1, 12), ElementsAre(2, 6), ElementsAre(3, 4),
                                                           ElementsAre(4, 3), ElementsAre(6, 2), ElementsAre(12, 1)));
  EXPECT_THAT(factors_knob("m", 1, 3).values, ElementsAre(ElementsAre(1, 1, 1)));
  EXPECT_THAT(factors_knob("m", 7, 1).values, ElementsAre(ElementsAre(7)));
  // 2^e in d parts: the number of ways to distribute e copies.
  EXPECT_EQ(factors_knob("m", 512, 4).values.size(), 220);
  EXPECT_EQ(factors_knob("m", 147, 3).values.size(), 3 * 6) << "3 in three places, two copies of 7 in six ways";
  for (const auto& value : factors_knob("m", 360, 3).values) EXPECT_EQ(value[0] * value[1] * value[2], 360);
}

TEST(Knobs, LegalIsWhatTheSpaceSays) {
  KnobSpace space{{knob("a", Knob::Kind::ordered, {1, 2, 4}), knob("b", Knob::Kind::choice, {0, 1})}};
  EXPECT_TRUE(is_legal(space, {2, 1}));
  EXPECT_FALSE(is_legal(space, {3, 1})) << "there is no such value";
  EXPECT_FALSE(is_legal(space, {-1, 1}));
  EXPECT_FALSE(is_legal(space, {1})) << "a knob too few";
  space.is_legal = [](const Point& point) { return point[0] != 2; };
  EXPECT_FALSE(is_legal(space, {2, 1}));
  EXPECT_TRUE(is_legal(space, {1, 1}));
}

TEST(Knobs, NeighboursAreOneMoveAway) {
  KnobSpace space{{knob("a", Knob::Kind::ordered, {1, 2, 4, 8}), knob("b", Knob::Kind::choice, {0, 5, 9})}};
  EXPECT_THAT(adjacent_points(space, {1, 0}),
              UnorderedElementsAre(ElementsAre(0, 0), ElementsAre(2, 0), ElementsAre(1, 1), ElementsAre(1, 2)));
  EXPECT_THAT(adjacent_points(space, {3, 2}),
              UnorderedElementsAre(ElementsAre(2, 2), ElementsAre(3, 0), ElementsAre(3, 1)));
  space.is_legal = [](const Point& point) { return point[0] != 2 && point[1] != 1; };
  EXPECT_THAT(adjacent_points(space, {1, 0}),
              UnorderedElementsAre(ElementsAre(0, 0), ElementsAre(3, 0), ElementsAre(1, 2)))
      << "an illegal number is passed over, another choice is not";
  EXPECT_THAT(adjacent_points({{knob("a", Knob::Kind::ordered, {3})}}, {0}), IsEmpty());
}

TEST(Knobs, FactorsMoveAPrime) {
  const KnobSpace space{{factors_knob("m", 12, 3)}};
  std::set<std::vector<int64_t>> values;
  for (const Point& point : adjacent_points(space, *point_with(space, {{"m.0", 1}, {"m.1", 4}, {"m.2", 3}})))
    values.insert(space.knobs[0].values[point[0]]);
  EXPECT_THAT(values, UnorderedElementsAre(ElementsAre(2, 2, 3), ElementsAre(1, 2, 6), ElementsAre(3, 4, 1),
                                           ElementsAre(1, 12, 1)));
}

TEST(Knobs, NeighboursGoBothWaysAndReachEverything) {
  const KnobSpace space{{factors_knob("m", 90, 3), knob("a", Knob::Kind::ordered, {1, 2, 3, 4}),
                         knob("b", Knob::Kind::choice, {0, 1, 2})},
                        [](const Point& point) { return point[1] != 2 || point[0] % 2 == 0; }};
  const auto all = every_point(space);
  std::set<Point> reached = {all.front()};
  std::vector<Point> left = {all.front()};
  while (!left.empty()) {
    const Point point = left.back();
    left.pop_back();
    for (const Point& other : adjacent_points(space, point)) {
      EXPECT_TRUE(is_legal(space, other));
      EXPECT_THAT(adjacent_points(space, other), testing::Contains(point));
      if (reached.insert(other).second) left.push_back(other);
    }
  }
  EXPECT_EQ(reached, std::set<Point>(all.begin(), all.end()));
}

TEST(Knobs, EveryPointIsInOrderAndLegal) {
  KnobSpace space{{knob("a", Knob::Kind::ordered, {1, 2}), knob("b", Knob::Kind::choice, {0, 1, 2})}};
  EXPECT_EQ(count_points(space), 6);
  space.is_legal = [](const Point& point) { return point[0] != point[1]; };
  EXPECT_THAT(every_point(space),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 2), ElementsAre(1, 0), ElementsAre(1, 2)));
  EXPECT_THAT(every_point(space, 5), IsEmpty()) << "six points, four of them legal";
  EXPECT_EQ(every_point(space, 6).size(), 4);
  EXPECT_THAT(every_point({}), ElementsAre(IsEmpty())) << "no knobs, nothing to choose";
  EXPECT_THAT(every_point({{knob("a", Knob::Kind::ordered, {})}}), IsEmpty());
  // The number of points exceeds 64 bits.
  KnobSpace huge;
  for (int i = 0; i < 80; ++i) huge.knobs.push_back(knob("k" + std::to_string(i), Knob::Kind::choice, {0, 1, 2}));
  EXPECT_EQ(count_points(huge), std::numeric_limits<int64_t>::max());
  EXPECT_THAT(every_point(huge), IsEmpty());
}

TEST(Knobs, ValuesHaveNamesAndLeadBack) {
  const KnobSpace space{{factors_knob("m", 12, 2), knob("width", Knob::Kind::ordered, {4, 8, 16})}};
  for (const Point& point : every_point(space))
    EXPECT_THAT(point_with(space, values_of(space, point)), Optional(point));
  EXPECT_THAT(values_of(space, {3, 1}), ElementsAre(Pair("m.0", 4), Pair("m.1", 3), Pair("width", 8)));
  EXPECT_EQ(point_with(space, {{"m.0", 4}, {"m.1", 3}}), std::nullopt) << "no width";
  EXPECT_EQ(point_with(space, {{"m.0", 4}, {"width", 8}}), std::nullopt) << "half of m";
  EXPECT_EQ(point_with(space, {{"m.0", 4}, {"m.1", 4}, {"width", 8}}), std::nullopt) << "16 is another extent";
  EXPECT_EQ(point_with(space, {{"m.0", 4}, {"m.1", 3}, {"width", 5}}), std::nullopt);
}

TEST(Knobs, ASpaceOfGivenPointsHasNoOthers) {
  const std::vector<KnobValues> legal = {
      {{"columns", 32}, {"rows", 7}}, {{"columns", 16}, {"rows", 14}}, {{"columns", 16}, {"rows", 1}}};
  const KnobSpace space = space_of(legal);
  EXPECT_EQ(space.knobs[0], knob("columns", Knob::Kind::ordered, {16, 32}));
  EXPECT_EQ(space.knobs[1], knob("rows", Knob::Kind::ordered, {1, 7, 14}));
  std::vector<KnobValues> found;
  for (const Point& point : every_point(space)) found.push_back(values_of(space, point));
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(legal));
  EXPECT_EQ(space.estimate, nullptr);
  const KnobSpace estimated = space_of(legal, {3, 2, 1});
  for (size_t i = 0; i < legal.size(); ++i)
    EXPECT_EQ(estimated.estimate(*point_with(estimated, legal[i])), static_cast<double>(3 - i));
  EXPECT_THAT(every_point(space_of({})), IsEmpty());
  EXPECT_DEATH(space_of({{{"a", 1}}, {{"b", 1}}}), "other knobs");
}

// Operations that a search repeats thousands of times must be fast in the largest listed spaces.
TEST(Knobs, AMillionPointsAreListedInSeconds) {
  const KnobSpace space{{factors_knob("m", 1024, 4), factors_knob("k", 1024, 2), factors_knob("n", 1024, 4)}};
  EXPECT_EQ(count_points(space), 899'756);
  const Stopwatch watch;
  EXPECT_EQ(every_point(space).size(), 899'756);
  for (int i = 0; i < 10'000; ++i) adjacent_points(space, {i % 286, i % 11, i % 286});
  EXPECT_LT(watch.seconds(), 20);
}

}  // namespace hoist::knobs_test
