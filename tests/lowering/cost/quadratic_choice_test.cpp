// Tests the choice of options against all combinations, on random graphs.
#include "lowering/cost/quadratic_choice.h"

#include <gmock/gmock.h>

#include <ctime>
#include <random>

namespace hoist::quadratic_choice_test {

struct RandomProblem {
  QuadraticChoice problem;
  std::vector<size_t> options;  // by node
};

// A random graph in which `edges_of_hundred` % of the pairs of nodes have an edge; series-parallel graphs have few.
RandomProblem random_problem(std::mt19937_64& random, size_t nodes, uint64_t edges_of_hundred) {
  RandomProblem out;
  for (size_t i = 0; i < nodes; ++i) {
    std::vector<double> costs(1 + random() % 3);
    for (double& cost : costs) cost = static_cast<double>(random() % 20);
    out.options.push_back(costs.size());
    out.problem.add_node(costs);
  }
  for (size_t a = 0; a < nodes; ++a) {
    for (size_t b = a + 1; b < nodes; ++b) {
      if (random() % 100 >= edges_of_hundred) continue;
      std::vector<double> costs(out.options[a] * out.options[b]);
      for (double& cost : costs) cost = static_cast<double>(random() % 20);
      out.problem.add_edge(a, b, costs);
    }
  }
  return out;
}

double least_cost(const RandomProblem& given) {
  std::vector<size_t> at(given.options.size(), 0);
  double least = given.problem.cost(at);
  for (;;) {
    size_t i = 0;
    while (i < at.size() && ++at[i] == given.options[i]) at[i++] = 0;
    if (i == at.size()) return least;
    least = std::min(least, given.problem.cost(at));
  }
}

TEST(QuadraticChoice, IsExactOnSmallGraphs) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 400; ++i) {
    const RandomProblem given = random_problem(random, 1 + random() % 7, random() % 100);
    const QuadraticChoice::Solution found = given.problem.solve();
    EXPECT_DOUBLE_EQ(found.cost, given.problem.cost(found.options));
    EXPECT_DOUBLE_EQ(found.cost, least_cost(given)) << "problem " << i;
    EXPECT_DOUBLE_EQ(found.bound, found.cost) << "problem " << i;
  }
}

TEST(QuadraticChoice, StatesABoundOfDenseGraphs) {
  std::mt19937_64 random(2);
  size_t inexact = 0;
  for (int i = 0; i < 20; ++i) {
    const RandomProblem given = random_problem(random, 9, 90);
    const double least = least_cost(given);
    for (const int attempts : {0, 4, 32}) {
      const QuadraticChoice::Solution found = given.problem.solve(attempts);
      EXPECT_GE(found.cost, least);
      EXPECT_LE(found.bound, least);
      EXPECT_DOUBLE_EQ(found.cost, given.problem.cost(found.options));
      inexact += found.bound < found.cost ? 1 : 0;
      EXPECT_LE(found.cost, (attempts == 32 ? 1.1 : 1.3) * least) << "problem " << i;
    }
  }
  EXPECT_GT(inexact, 0U);
}

// Complete graphs of five nodes, without edges between them: each is decided exactly, whatever their number.
TEST(QuadraticChoice, SearchesEachPartByItself) {
  QuadraticChoice problem;
  std::mt19937_64 random(4);
  double least = 0;
  for (int part = 0; part < 12; ++part) {
    RandomProblem alone;
    std::vector<size_t> nodes;
    for (int i = 0; i < 5; ++i) {
      const std::vector<double> costs = {static_cast<double>(random() % 20), static_cast<double>(random() % 20)};
      alone.options.push_back(2);
      alone.problem.add_node(costs);
      nodes.push_back(problem.add_node(costs));
    }
    for (size_t a = 0; a < 5; ++a) {
      for (size_t b = a + 1; b < 5; ++b) {
        std::vector<double> costs(4);
        for (double& cost : costs) cost = static_cast<double>(random() % 20);
        alone.problem.add_edge(a, b, costs);
        problem.add_edge(nodes[a], nodes[b], costs);
      }
    }
    least += least_cost(alone);
  }
  const QuadraticChoice::Solution found = problem.solve();
  EXPECT_DOUBLE_EQ(found.cost, least);
  EXPECT_DOUBLE_EQ(found.bound, least);
}

TEST(QuadraticChoice, TakesTheFirstOfEqualOptions) {
  QuadraticChoice problem;
  const size_t a = problem.add_node({3, 2, 2}), b = problem.add_node({1, 1});
  problem.add_edge(a, b, {0, 0, 4, 4, 4, 4});
  const QuadraticChoice::Solution found = problem.solve();
  EXPECT_THAT(found.options, testing::ElementsAre(0, 0));
  EXPECT_THAT(problem.costs_of(a, found.options), testing::ElementsAre(3, 6, 6));
}

// A chain of ten thousand nodes with residual edges.
TEST(QuadraticChoice, ReducesLongChainsExactly) {
  QuadraticChoice problem;
  std::mt19937_64 random(3);
  for (size_t i = 0; i < 10000; ++i) {
    problem.add_node({static_cast<double>(random() % 9), static_cast<double>(random() % 9)});
    if (i > 0) problem.add_edge(i - 1, i, {0, 5, 5, 0});
    if (i > 2 && i % 2 == 0) problem.add_edge(i - 2, i, {0, 3, 3, 0});
  }
  const QuadraticChoice::Solution found = problem.solve();
  EXPECT_DOUBLE_EQ(found.cost, found.bound);
  EXPECT_DOUBLE_EQ(found.cost, problem.cost(found.options));
}

// A search would copy the graph for each node that it decides; nodes of one option need none, whatever their degree.
TEST(QuadraticChoice, DecidesNodesOfOneOptionWithoutASearch) {
  QuadraticChoice problem;
  std::mt19937_64 random(5);
  std::vector<size_t> options;
  for (size_t i = 0; i < 10000; ++i) {
    options.push_back(i % 7 == 0 ? 2 : 1);
    problem.add_node(std::vector<double>(options[i], static_cast<double>(random() % 9)));
    for (size_t before = i < 6 ? 0 : i - 6; before < i; ++before) {
      QuadraticChoice::Matrix costs(options[before] * options[i]);
      for (double& cost : costs) cost = static_cast<double>(random() % 9);
      problem.add_edge(before, i, costs);
    }
  }
  const std::clock_t before = std::clock();
  const QuadraticChoice::Solution found = problem.solve();
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 5);
  EXPECT_DOUBLE_EQ(found.cost, found.bound);
  EXPECT_DOUBLE_EQ(found.cost, problem.cost(found.options));
}

}  // namespace hoist::quadratic_choice_test
