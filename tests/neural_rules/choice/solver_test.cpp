// Compares the budget solver with brute force on small random problems, and tests its guarantees on large ones.
#include "neural_rules/choice/solver/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "ir/base/special_values.h"

namespace hoist::solver_test {

using testing::HasSubstr;
using Edges = std::vector<std::pair<size_t, size_t>>;

struct Draw {
  double forbidden_options = 0.1, forbidden_pairs = 0.1;
  bool integers_only = false;  ///< causes many ties
  bool falling = false;        ///< like for rules, options with larger errors cost less
  bool exchange = false;       ///< the cost is the remaining error, so no price separates the options: lists grow long
};

ChoiceProblem random_problem(std::mt19937_64& random, size_t nodes, size_t options, const Edges& edges,
                             const Draw& draw) {
  std::uniform_real_distribution<double> unit(0, 1);
  const auto number = [&](double high) {
    return draw.integers_only ? std::floor(unit(random) * 5) : unit(random) * high;
  };
  ChoiceProblem out;
  for (size_t n = 0; n < nodes; ++n) {
    ChoiceNode& node = out.nodes.emplace_back();
    for (size_t o = 0; o < options; ++o) {
      ChoiceOption option{number(10), number(4), o > 0 && unit(random) < draw.forbidden_options};
      if (draw.falling)
        option = {10.0 / static_cast<double>(o + 1) * (0.5 + unit(random)), std::pow(4.0, o) * unit(random), false};
      if (draw.exchange) option.cost = 10 - option.error + 0.01 * unit(random);
      node.options.push_back(option);
    }
  }
  for (const auto& [from, to] : edges) {
    ChoiceEdge& edge = out.edges.emplace_back(ChoiceEdge{from, to, {}});
    for (size_t i = 0; i < options; ++i) {
      for (size_t j = 0; j < options; ++j)
        edge.cost.push_back(i == j                                ? 0
                            : unit(random) < draw.forbidden_pairs ? infinity
                                                                  : number(draw.exchange ? 0.01 : 3));
    }
  }
  return out;
}

Edges chain(size_t nodes) {
  Edges out;
  for (size_t n = 1; n < nodes; ++n) out.push_back({n - 1, n});
  return out;
}
// A chain whose nodes 0, 2, 4, ... are connected too, as in residual blocks.
Edges residual_chain(size_t nodes) {
  Edges out = chain(nodes);
  for (size_t n = 2; n < nodes; n += 2) out.push_back({n - 2, n});
  return out;
}
Edges tree(std::mt19937_64& random, size_t nodes) {
  Edges out;
  for (size_t n = 1; n < nodes; ++n) out.push_back({random() % n, n});
  return out;
}
// 0 -> {1, 2} -> 3 -> {4, 5} -> 6 ...
Edges diamonds(size_t nodes) {
  Edges out;
  for (size_t n = 0; n + 3 < nodes; n += 3) {
    for (size_t middle : {n + 1, n + 2}) {
      out.push_back({n, middle});
      out.push_back({middle, n + 3});
    }
  }
  return out;
}
Edges anything(std::mt19937_64& random, size_t nodes) {
  Edges out;
  for (size_t n = 0; n < 2 * nodes; ++n) {
    const size_t a = random() % nodes, b = random() % nodes;
    if (a != b) out.push_back({a, b});
  }
  return out;
}

template <class Visit>
void for_each_assignment(const ChoiceProblem& problem, const Visit& visit) {
  std::vector<size_t> options(problem.nodes.size(), 0);
  while (true) {
    visit(evaluate_choice(problem, options));
    size_t n = 0;
    while (n < options.size() && ++options[n] == problem.nodes[n].options.size()) options[n++] = 0;
    if (n == options.size()) return;
  }
}

std::optional<Choice> brute_force(const ChoiceProblem& problem, double budget) {
  std::optional<Choice> best;
  for_each_assignment(problem, [&](Choice choice) {
    if (choice.error <= budget && choice.cost < infinity && (!best || choice.cost < best->cost))
      best = std::move(choice);
  });
  return best;
}

void expect_consistent(const ChoiceProblem& problem, const Choice& choice, double budget) {
  const Choice again = evaluate_choice(problem, choice.options);
  EXPECT_EQ(again.cost, choice.cost);
  EXPECT_EQ(again.error, choice.error);
  EXPECT_LE(choice.error, budget);
  EXPECT_LT(choice.cost, infinity);
}

ChoiceProblem random_shape(std::mt19937_64& random, int kind, size_t nodes, size_t options, const Draw& draw) {
  const Edges edges = kind == 0   ? chain(nodes)
                      : kind == 1 ? tree(random, nodes)
                      : kind == 2 ? diamonds(nodes)
                      : kind == 3 ? residual_chain(nodes)
                                  : anything(random, nodes);
  return random_problem(random, nodes, options, edges, draw);
}

TEST(Solver, IsOptimalOnSmallProblems) {
  std::mt19937_64 random(1);
  int feasible = 0, infeasible = 0;
  for (int i = 0; i < 600; ++i) {
    const ChoiceProblem problem = random_shape(random, i % 5, 1 + random() % 7, 1 + random() % 3,
                                               {.forbidden_pairs = i % 3 * 0.2, .integers_only = i % 2 == 0});
    const double budget = static_cast<double>(random() % 15);
    const std::optional<Choice> best = brute_force(problem, budget);
    const Result<Choice> found = solve(problem, budget);
    ASSERT_EQ(found.ok(), best.has_value()) << i;
    ++(best ? feasible : infeasible);
    if (!best) continue;
    expect_consistent(problem, *found, budget);
    EXPECT_NEAR(found->cost, best->cost, 1e-9) << i;
    EXPECT_EQ(found->proof, ChoiceProof::optimal);
    EXPECT_EQ(found->bound, found->cost);
  }
  EXPECT_GT(feasible, 300);
  EXPECT_GT(infeasible, 50);
}

TEST(Solver, ShortListsCostAtMostAStepANode) {
  std::mt19937_64 random(2);
  int stepped = 0;
  for (int i = 0; i < 100; ++i) {
    const size_t nodes = 6 + random() % 3;
    const ChoiceProblem problem = random_shape(random, i % 4, nodes, 3, {.forbidden_pairs = 0, .exchange = true});
    const double budget = 8 + static_cast<double>(random() % 6);
    constexpr int64_t steps = 30;
    const std::optional<Choice> best = brute_force(problem, budget);
    const Result<Choice> found = solve(problem, budget, {.error_steps = steps});
    ASSERT_EQ(found.ok(), best.has_value());
    if (!best) continue;
    expect_consistent(problem, *found, budget);
    EXPECT_GE(found->cost, best->cost - 1e-9);
    EXPECT_LE(found->bound, best->cost + 1e-9);
    const double step = 2 * budget / (steps - 1);
    const std::optional<Choice> smaller = brute_force(problem, budget - static_cast<double>(nodes) * step);
    EXPECT_LE(found->cost, smaller ? smaller->cost + 1e-9 : infinity);
    stepped += found->proof == ChoiceProof::stepped ? 1 : 0;
  }
  EXPECT_GT(stepped, 20);
}

TEST(Solver, PricesComeCloseWhereListsDoNotFit) {
  std::mt19937_64 random(3);
  double excess = 0;
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    const ChoiceProblem problem = random_shape(random, i % 5, 8, 3, {.forbidden_pairs = 0, .falling = true});
    const double budget = 10 + static_cast<double>(random() % 30);
    const std::optional<Choice> best = brute_force(problem, budget);
    const Result<Choice> found = solve(problem, budget, {.entries = 1});
    ASSERT_EQ(found.ok(), best.has_value());
    if (!best) continue;
    expect_consistent(problem, *found, budget);
    EXPECT_GE(found->cost, best->cost - 1e-9);
    EXPECT_LE(found->bound, best->cost + 1e-9);
    excess += found->cost / best->cost - 1;
    ++compared;
  }
  ASSERT_GT(compared, 200);
  EXPECT_LT(excess / compared, 0.02);
}

TEST(Solver, FindsItsWayRoundForbiddenPairsInWideProblems) {
  // A complete graph, too wide for a plan; only equal options are compatible.
  constexpr size_t nodes = 30;
  ChoiceProblem problem;
  for (size_t n = 0; n < nodes; ++n) problem.nodes.push_back({{{3, 0}, {2, 1}, {1, n == 17 ? 100.0 : 2.0}}});
  for (size_t a = 0; a < nodes; ++a) {
    for (size_t b = 0; b < a; ++b)
      problem.edges.push_back({a, b, {0, infinity, infinity, infinity, 0, infinity, infinity, infinity, 0}});
  }
  const Result<Choice> found = solve(problem, 80);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->options, std::vector<size_t>(nodes, 1));
  EXPECT_EQ(found->cost, 60);
  EXPECT_EQ(solve(problem, 10)->options, std::vector<size_t>(nodes, 0));
}

TEST(Solver, WideProblemsBeatUniformAndRandomAssignments) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 5; ++i) {
    constexpr size_t nodes = 40, options = 4;
    Edges edges;
    for (size_t a = 0; a < nodes; ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (random() % 2 == 0) edges.push_back({a, b});
      }
    }
    const ChoiceProblem problem =
        random_problem(random, nodes, options, edges, {.forbidden_pairs = 0, .falling = true});
    for (double budget : {40.0, 200.0, 1000.0}) {
      const Result<Choice> found = solve(problem, budget);
      ASSERT_TRUE(found.ok());
      expect_consistent(problem, *found, budget);
      EXPECT_EQ(found->proof, ChoiceProof::priced);
      for (size_t o = 0; o < options; ++o) {
        const Choice uniform = evaluate_choice(problem, std::vector<size_t>(nodes, o));
        EXPECT_TRUE(uniform.error > budget || found->cost <= uniform.cost);
      }
      for (int k = 0; k < 300; ++k) {
        // Near the answer and anywhere.
        std::vector<size_t> drawn = found->options;
        for (size_t& option : drawn) option = random() % 8 == 0 || k % 2 == 0 ? random() % options : option;
        const Choice other = evaluate_choice(problem, drawn);
        EXPECT_TRUE(other.error > budget || found->cost <= other.cost + 1e-9);
      }
    }
  }
}

TEST(Solver, TheFrontRisesInErrorAndFallsInCost) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 40; ++i) {
    const ChoiceProblem problem = random_shape(random, i % 5, 7, 3, {.falling = true});
    std::vector<double> budgets;
    for (int k = 0; k < 12; ++k) budgets.push_back(100 * std::pow(0.6, k));
    const Result<std::vector<Choice>> front = solve_front(problem, budgets);
    if (!front) continue;
    for (size_t k = 0; k < front->size(); ++k) {
      expect_consistent(problem, (*front)[k], budgets.front());
      if (k == 0) continue;
      EXPECT_GT((*front)[k].error, (*front)[k - 1].error);
      EXPECT_LT((*front)[k].cost, (*front)[k - 1].cost);
    }
    // Each budget's optimum is on the front.
    for (double budget : budgets) {
      const std::optional<Choice> best = brute_force(problem, budget);
      if (!best) continue;
      double cheapest = infinity;
      for (const Choice& choice : *front)
        cheapest = choice.error <= budget ? std::min(cheapest, choice.cost) : cheapest;
      EXPECT_NEAR(cheapest, best->cost, 1e-9);
    }
    // No assignment is better than a point of the front in both error and cost.
    for_each_assignment(problem, [&](const Choice& choice) {
      for (const Choice& point : *front) EXPECT_FALSE(choice.error <= point.error && choice.cost < point.cost - 1e-9);
    });
  }
}

TEST(Solver, DoesNotDependOnTheOrderOfNodes) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 60; ++i) {
    const ChoiceProblem problem = random_shape(random, i % 5, 12, 3, {.falling = true});
    std::vector<size_t> place(problem.nodes.size());
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), random);
    ChoiceProblem shuffled;
    shuffled.nodes.resize(problem.nodes.size());
    for (size_t n = 0; n < place.size(); ++n) shuffled.nodes[place[n]] = problem.nodes[n];
    for (const ChoiceEdge& edge : problem.edges)
      shuffled.edges.push_back({place[edge.from], place[edge.to], edge.cost});
    std::shuffle(shuffled.edges.begin(), shuffled.edges.end(), random);
    const Result<Choice> one = solve(problem, 30), other = solve(shuffled, 30);
    ASSERT_EQ(one.ok(), other.ok());
    if (!one) continue;
    ASSERT_EQ(one->proof, ChoiceProof::optimal);
    EXPECT_NEAR(one->cost, other->cost, 1e-9);
  }
}

TEST(Solver, ThousandNodesStayWithinTheBudget) {
  std::mt19937_64 random(6);
  for (const Edges& edges : {chain(1000), residual_chain(1000), diamonds(1000), anything(random, 1000)}) {
    const ChoiceProblem problem = random_problem(random, 1000, 6, edges, {.forbidden_pairs = 0, .falling = true});
    const double budget = 20000;
    const Result<Choice> found = solve(problem, budget);
    ASSERT_TRUE(found.ok());
    expect_consistent(problem, *found, budget);
    EXPECT_LE(found->bound, found->cost);
    if (edges.size() < 1500) {
      EXPECT_LT(found->cost, 1.002 * found->bound);
    } else {
      EXPECT_EQ(found->proof, ChoiceProof::priced);  // too wide for a bound
    }
    for (size_t o = 0; o < 6; ++o) {
      const Choice uniform = evaluate_choice(problem, std::vector<size_t>(1000, o));
      EXPECT_TRUE(uniform.error > budget || found->cost < uniform.cost);
    }
  }
}

TEST(Solver, SaysTheSameTwice) {
  std::mt19937_64 random(7);
  const ChoiceProblem problem = random_problem(random, 60, 4, residual_chain(60), {.falling = true});
  EXPECT_EQ(solve(problem, 200)->options, solve(problem, 200)->options);
}

TEST(Solver, GivesWhatItHasWhenOutOfTime) {
  std::mt19937_64 random(8);
  const ChoiceProblem problem = random_problem(random, 200, 5, residual_chain(200), {.falling = true});
  int asked = 0;
  for (int patience : {0, 1, 10, 100, 100000}) {
    asked = 0;
    const Result<Choice> found = solve(problem, 2000, {.out_of_time = [&] { return ++asked > patience; }});
    ASSERT_TRUE(found.ok());
    expect_consistent(problem, *found, 2000);
    EXPECT_GT(asked, 0);
  }
  EXPECT_NE(solve(problem, 2000)->proof, ChoiceProof::priced);
}

TEST(Solver, SaysWhatTheSmallestErrorIs) {
  const ChoiceProblem problem{{{{{1, 0.5}, {2, 0.25}}}, {{{1, 1}, {5, 3}}}}, {{0, 1, {0, 0, infinity, 0}}}};
  // Option 1 of the first node is incompatible with option 0 of the second.
  const Result<Choice> found = solve(problem, 1.4);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.errors()[0].text(), HasSubstr("the smallest is 1.5"));
  EXPECT_TRUE(solve(problem, 1.5).ok());
  EXPECT_FALSE(solve_front(problem, {0.1, 1.4}).ok());
}

TEST(Solver, RefusesWhatIsNoProblem) {
  const ChoiceNode node{{{1, 1}, {2, 0}}};
  const auto error = [](const ChoiceProblem& problem, double budget = 1) {
    const Result<Choice> found = solve(problem, budget);
    return found.ok() ? "" : found.errors()[0].text();
  };
  EXPECT_THAT(error({{node, node}, {{0, 2, {0, 0, 0, 0}}}}), HasSubstr("edge 0 to 2"));
  EXPECT_THAT(error({{node}, {{0, 0, {0, 0, 0, 0}}}}), HasSubstr("itself"));
  EXPECT_THAT(error({{node, node}, {{0, 1, {0, 0, 0}}}}), HasSubstr("3 costs, its nodes 4"));
  EXPECT_THAT(error({{node, node}, {{0, 1, {0, 0, 0, NAN}}}}), HasSubstr("cost nan"));
  EXPECT_THAT(error({{{{{NAN, 0}}}}, {}}), HasSubstr("cost nan"));
  EXPECT_THAT(error({{{{{1, -1}}}}, {}}), HasSubstr("error -1"));
  EXPECT_THAT(error({{{{{1, 1, true}}}}, {}}), HasSubstr("no option that is allowed"));
  EXPECT_THAT(error({{ChoiceNode{}}, {}}), HasSubstr("no option that is allowed"));
  EXPECT_THAT(error({{node}, {}}, NAN), HasSubstr("not a number"));
  EXPECT_THAT(error({{node, node}, {{0, 1, {infinity, infinity, infinity, infinity}}}}),
              HasSubstr("no assignment avoids"));
  EXPECT_EQ(error({{}, {}}), "");
}

}  // namespace hoist::solver_test
