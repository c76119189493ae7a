// Improving an assignment move by move, and pricing errors: the solver's way where lists do not fit, and its last
// touch where they were thinned. Nothing here proves anything but what a frontier sweep proves. Inside the solver only;
// users see solver.h.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "neural_rules/choice/solver/solver_frontier.h"
#include "neural_rules/choice/solver/solver_problem.h"

namespace hoist {

/// What a descent lowers: error * error_weight + cost * cost_weight, with the error within `budget`. Forbidden pairs
/// cost more than everything else together, so that a start that has some can leave them.
struct DescentGoal {
  double error_weight = 0, cost_weight = 1;
  double budget = std::numeric_limits<double>::infinity();
};

/// Changes one node, two at an edge, or (under a finite budget) two anywhere, as long as the goal falls. Sums are
/// formed anew in the end: the result is within the budget if the start was.
std::vector<size_t> descend(const SolverProblem& problem, std::vector<size_t> options, const DescentGoal& goal);

struct PricedAnswer {
  std::vector<size_t> options;
  double price = 0;                                         ///< of an error, where the search ended
  double bound = -std::numeric_limits<double>::infinity();  ///< no assignment within the budget costs less
};

/// The best assignment within the budget among those that are cheapest for some price of an error, improved locally.
/// With a plan the cheapest is exact, without it is a descent from several starts. nullopt where none was found within
/// the budget: with a plan there is none.
std::optional<PricedAnswer> solve_priced(const SolverProblem& problem, const FrontierPlan* plan, double budget,
                                         const std::function<bool()>& out_of_time);

}  // namespace hoist
