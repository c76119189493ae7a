// Chooses one option at each node so that costs are least while errors stay within a budget: a multiple-choice knapsack
// with a cost on each edge that depends on the options at both ends. Nodes are sites, options rules, edge costs format
// conversions; nothing here knows that. Deterministic; never answers with more error than the budget.
//
// Prices on the error (Lagrange) find corners of the front, local improvement fills in between them. In narrow graphs
// (chains, trees, residual networks) the corners are exact, give a bound from below, and are followed by going through
// the nodes with a frontier: for each choice at the nodes that still have open edges, the list of (error, cost) that no
// other beats and that could still become cheaper than what prices found. As long as lists fit they are complete and
// the answer is the optimum; longer lists keep the cheapest entry of each error step, and then the answer costs at most
// the optimum of a budget that is smaller by one step a node (2/error_steps of the budget at most). Wide graphs get
// prices and local improvement alone.
//
// As an integer program with a variable for each pair of options of an edge, HiGHS 1.15 takes 8 to 13 s for 300
// residual nodes with 6 options; prices with a frontier take 0.1 s and prove the same optimum, and a front asks a dozen
// times. With the bound that prices give, nearly all entries of the lists can be left out. Lists are thinned by steps
// but keep each entry's own error, so that the budget is kept to the last bit. Everything that a compilation chooses
// hangs on this, and it is the same on every machine.
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

/// cost[i * (options of `to`) + j] is paid when `from` takes i and `to` takes j; infinity forbids the pair. Several
/// edges between the same nodes add up.
struct ChoiceEdge {
  size_t from = 0, to = 0;
  std::vector<double> cost;
};

struct ChoiceProblem {
  std::vector<ChoiceNode> nodes;
  std::vector<ChoiceEdge> edges;
};

enum class ChoiceProof : uint8_t {
  optimal,  ///< no assignment within the budget costs less
  stepped,  ///< up to one error step a node
  priced,   ///< a heuristic; the bound says how far it may be
};

struct Choice {
  std::vector<size_t> options;  ///< one a node
  double cost = 0, error = 0;   ///< summed in the order of nodes, then of edges
  double bound = 0;             ///< no assignment within the budget costs less; -infinity where nothing is known
  ChoiceProof proof = ChoiceProof::optimal;
};

struct SolverOptions {
  int64_t error_steps = 4000;              ///< entries of a list, at most; fewer where `entries` would not do
  int64_t entries = int64_t{1} << 24;      ///< of all lists together: 8 bytes each
  std::function<bool()> out_of_time = {};  ///< asked now and then; the best answer so far is given when it is true
};

/// Cost and error of an assignment, one option a node; the cost is infinite where an option or a pair is forbidden.
Choice evaluate_choice(const ChoiceProblem& problem, std::vector<size_t> options);

/// The cheapest assignment with an error of at most `budget`. Errors: a problem that is not well formed (edges to
/// nodes that do not exist or to themselves, matrices of the wrong size, NaN), or no assignment at all, with the
/// smallest error that can be reached.
Result<Choice> solve(const ChoiceProblem& problem, double budget, const SolverOptions& options = {});

/// The cheapest assignment for each budget, by growing error and falling cost; those that another beats or equals in
/// both are left out, and budgets that cannot be met have none. Errors: as of solve(), when no budget can be met.
Result<std::vector<Choice>> solve_front(const ChoiceProblem& problem, std::vector<double> budgets,
                                        const SolverOptions& options = {});

}  // namespace hoist
