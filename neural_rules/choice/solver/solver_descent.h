// Local improvement of assignments and pricing of errors: used where lists do not fit, and after a sweep with thinned
// lists. Only a frontier sweep proves bounds. Internal to the solver; the interface is solver.h.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "neural_rules/choice/solver/solver_frontier.h"
#include "neural_rules/choice/solver/solver_problem.h"

namespace hoist {

/// The objective of a descent: error * error_weight + cost * cost_weight, with the error within `budget`. Forbidden
/// pairs cost more than everything else together, so a descent leaves them.
struct DescentGoal {
  double error_weight = 0, cost_weight = 1;
  double budget = std::numeric_limits<double>::infinity();
};

/// Changes one node, two nodes of an edge, or (under a finite budget) any two nodes, as long as the objective falls.
/// Sums are recomputed at the end: the result is within the budget if the start was.
std::vector<size_t> descend(const SolverProblem& problem, std::vector<size_t> options, const DescentGoal& goal);

struct PricedAnswer {
  std::vector<size_t> options;
  double price = 0;                                         ///< price of an error, at the end of the search
  double bound = -std::numeric_limits<double>::infinity();  ///< a lower bound of the cost within the budget
};

/// The best assignment within the budget among the minima for some price of an error, improved locally. The minimum is
/// exact with a plan; without one it is a descent from several starts. nullopt if none was found within the budget:
/// with a plan, none exists.
std::optional<PricedAnswer> solve_priced(const SolverProblem& problem, const FrontierPlan* plan, double budget,
                                         const std::function<bool()>& out_of_time);

}  // namespace hoist
