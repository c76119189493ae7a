// Chooses one option per node with minimum total cost within a budget of total error: a multiple-choice knapsack with a
// cost per edge that depends on the options at both ends. Nodes are sites, options are rules and edge costs are format
// conversions, but the solver does not depend on this meaning. Deterministic; the answer's error never exceeds the
// budget.
//
// Prices on the error (Lagrange multipliers) find corners of the Pareto front, and local improvement finds points
// between them. For narrow graphs (chains, trees, residual networks) the corners are exact and give a lower bound, and
// a frontier sweep over the nodes follows: for each combination of options at nodes with unprocessed edges it has the
// list of Pareto-optimal (error, cost) entries that could still become cheaper than the result of the prices. As long
// as lists fit they are complete and the answer is the optimum; longer lists keep the cheapest entry of each error
// step, and then the answer costs at most the optimum of a budget that is smaller by one step per node (at most
// 2/error_steps of the budget). Wide graphs are solved by prices and local improvement alone.
//
// As an integer program with a variable per pair of options of an edge, 300 residual nodes with 6 options take 8 to 13
// s with HiGHS 1.15; prices with a frontier take 0.1 s and prove the same optimum, and a front needs a dozen solutions.
// The bound that prices give eliminates nearly all entries of the lists. Lists are thinned by steps but keep each
// entry's exact error, so the budget holds to the last bit. Results are the same on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/base/result.h"

namespace hoist {

struct ChoiceOption {
  double cost = 0;   ///< finite
  double error = 0;  ///< finite, at least 0
  bool forbidden = false;
};

struct ChoiceNode {
  std::vector<ChoiceOption> options;
};

/// cost[i * (options of `to`) + j] is the cost if `from` takes i and `to` takes j; infinity forbids the pair. Costs of
/// several edges between the same nodes are added.
struct ChoiceEdge {
  size_t from = 0, to = 0;
  std::vector<double> cost;
};

struct ChoiceProblem {
  std::vector<ChoiceNode> nodes;
  std::vector<ChoiceEdge> edges;
};

enum class ChoiceProof : uint8_t {
  optimal,  ///< no assignment within the budget is cheaper
  stepped,  ///< optimal up to one error step per node
  priced,   ///< heuristic; the bound limits the distance from the optimum
};

struct Choice {
  std::vector<size_t> options;  ///< one per node
  double cost = 0, error = 0;   ///< summed in the order of nodes, then of edges
  double bound = 0;             ///< a lower bound of the cost within the budget; -infinity if there is none
  ChoiceProof proof = ChoiceProof::optimal;
};

struct SolverOptions {
  int64_t error_steps = 4000;          ///< maximum number of entries per list; lower if `entries` would be exceeded
  int64_t entries = int64_t{1} << 24;  ///< maximum over all lists: 8 bytes each
  std::function<bool()> out_of_time =
      {};  ///< polled during the search; the best answer so far is returned when it is true
};

/// Cost and error of an assignment, one option per node; the cost is infinite if an option or a pair is forbidden.
Choice evaluate_choice(const ChoiceProblem& problem, std::vector<size_t> options);

/// The cheapest assignment with an error of at most `budget`. Errors: a malformed problem (edges to unknown nodes or
/// loops, matrices of the wrong size, NaN), or no assignment within the budget, with the smallest possible error.
Result<Choice> solve(const ChoiceProblem& problem, double budget, const SolverOptions& options = {});

/// The cheapest assignment for each budget, by increasing error and decreasing cost; dominated assignments and budgets
/// that cannot be met are left out. Errors: the errors of solve(), if no budget can be met.
Result<std::vector<Choice>> solve_front(const ChoiceProblem& problem, std::vector<double> budgets,
                                        const SolverOptions& options = {});

}  // namespace hoist
