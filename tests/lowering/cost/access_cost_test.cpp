// Tests the costs of loads against kernels whose vectors are known.
#include "lowering/cost/access_cost.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "ir/text/text.h"

namespace hoist::access_cost_test {

Profile eight_lanes() {
  Profile profile;
  profile.vector_width = 8;
  return profile;
}

Definition definition_of(const std::string& text) {
  auto parsed = parse(text);
  HOIST_CHECK(parsed.ok(), parsed.errors()[0].text());
  Definition out;
  out.value = "y";
  out.expression = *parsed;
  return out;
}

TEST(AccessCost, AdjacentLanesAreOneLoad) {
  const Profile profile = eight_lanes();
  const AccessCost cost(definition_of("%x : [32][64]f32 |> map2d abs"), profile);
  ASSERT_TRUE(cost.is_known());
  const double vectors = 32 * 64 / 8;
  EXPECT_DOUBLE_EQ(cost.of_loads({0, 1}, 0, {0, 1}), vectors);
  EXPECT_DOUBLE_EQ(cost.of_loads({1, 0}, 0, {1, 0}), vectors);
  const double lanes = 8 * static_cast<double>(profile.loads.lane);
  EXPECT_DOUBLE_EQ(cost.of_loads({0, 1}, 0, {1, 0}), vectors * lanes);
  EXPECT_DOUBLE_EQ(cost.of_loads({1, 0}, 0, {0, 1}), vectors * lanes);
}

TEST(AccessCost, TranspositionsTurnTheOrderOfTheirOperand) {
  const Profile profile = eight_lanes();
  const AccessCost cost(definition_of("%x : [32][64]f32 |> transpose |> map2d abs"), profile);
  EXPECT_DOUBLE_EQ(cost.of_loads({0, 1}, 0, {1, 0}), 32 * 64 / 8);
  EXPECT_GT(cost.of_loads({0, 1}, 0, {0, 1}), 32 * 64 / 8);
}

TEST(AccessCost, VectorsThatAreNotFullTakeAsLong) {
  const Profile profile = eight_lanes();
  const AccessCost cost(definition_of("%x : [32][3]f32 |> map2d abs"), profile);
  EXPECT_DOUBLE_EQ(cost.of_loops({0, 1}) / cost.of_loops({1, 0}), 32.0 / 12);
}

// The rows of the left operand are a page apart, so that their lines evict each other.
TEST(AccessCost, ContractionsAcrossRowsCostMore) {
  const Profile profile = eight_lanes();
  Definition d = definition_of(
      "%x : [16][1024]f32 |> map (\\a. %w : [1024][32]f32 |> transpose |> map (\\b. zip(a, b) |> map (*) |> reduce (+) "
      "0))");
  d.weights = {{"w", {1024, 32}, 1}};
  const AccessCost cost(d, profile);
  const std::vector<Expr> operands = parameters_of(d.expression);
  const size_t x = operands[0]->name == "x" ? 0 : 1;
  EXPECT_GT(cost.of_loads({1, 0}, x, {0, 1}), 10 * cost.of_loads({0, 1}, x, {0, 1}));
  Profile near = profile;
  near.loads.distant_lane = near.loads.lane;
  EXPECT_LT(AccessCost(d, near).of_loads({1, 0}, x, {0, 1}), cost.of_loads({1, 0}, x, {0, 1}));
}

Definition convolution_in_groups(int64_t groups, int64_t filters, int64_t extent) {
  Definition d = definition_of(fmt::format(
      "zip(%x : [1][{0}][{2}][{2}]f32 |> join |> split {1} |> map (map (slide 3 1) >> map3d (slide 3 1) >> transpose "
      "(1 3 0 2)), "
      "%w : [{0}][{1}][3][3]f32 |> split {1}) |> map (\\(a, b). b |> map (\\c. a |> map2d (\\e. zip(e |> join |> join, "
      "c "
      "|> join |> join) |> map (*) |> reduce (+) 0))) |> join |> split {0}",
      groups * filters, filters, extent));
  d.channels_first = true;
  d.weights = {{"w", {groups * filters, filters, 3, 3}, 0, groups}};
  return d;
}

// Groups of 3 filters leave vectors of channels empty.
TEST(AccessCost, VectorsOfNarrowGroupsRunAlongRows) {
  Profile profile = eight_lanes();
  const auto cost = [&](int64_t filters, const DimensionOrder& order) {
    const Definition d = convolution_in_groups(4, filters, 34);
    const AccessCost of(d, profile);
    EXPECT_TRUE(of.is_known());
    double sum = of.of_loops(order);
    const std::vector<Expr> operands = parameters_of(d.expression);
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool is_image = operands[i]->name == "x";
      sum += of.of_loads(order, i, is_image ? order : innermost_order(4, 3));
    }
    return sum;
  };
  EXPECT_LT(cost(3, {0, 1, 2, 3}), cost(3, {0, 2, 3, 1}));
  const double outside = cost(20, {0, 1, 2, 3});
  profile.first_cache = 1 << 20;
  EXPECT_LT(cost(20, {0, 1, 2, 3}), outside) << "the planes of a group stay in the first cache";
}

// Vectors of a block run along other dimensions in each of its arrays.
TEST(AccessCost, BlocksOfRowsAreUnknown) {
  const Profile profile = eight_lanes();
  const AccessCost cost(
      definition_of("%x : [32][64]f32 |> map (\\a. let b = a |> map exp |> materialise private in "
                    "%w : [64][16]f32 |> transpose |> map (\\c. zip(b, c) |> map (*) |> reduce (+) 0))"),
      profile);
  EXPECT_FALSE(cost.is_known());
}

TEST(AccessCost, ScansAreUnknown) {
  const Profile profile = eight_lanes();
  const AccessCost cost(definition_of("%x : [8][64]f32 |> map (scan (+) 0f32)"), profile);
  EXPECT_FALSE(cost.is_known());
  EXPECT_EQ(cost.of_loads({0, 1}, 0, {0, 1}), 0);
}

}  // namespace hoist::access_cost_test
