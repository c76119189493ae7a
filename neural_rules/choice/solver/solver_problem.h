// A choice problem as the solver's two ways want it: forbidden options gone, edges seen from both ends, edges between
// the same nodes added up. Made once a problem from one that is well formed. Inside the solver only; users see
// solver.h.
#pragma once

#include <cstddef>
#include <vector>

#include "neural_rules/choice/solver/solver.h"

namespace hoist {

/// An edge as one of its ends sees it: cost[own option * options of the other + its option].
struct SolverLink {
  size_t other = 0;
  std::vector<double> cost;
};

struct SolverNode {
  std::vector<size_t> original;     ///< the options that are left, as the problem numbers them
  std::vector<double> cost, error;  ///< of these
  std::vector<SolverLink> links;
  size_t count() const { return original.size(); }
};

struct SolverProblem {
  std::vector<SolverNode> nodes;
  double penalty = 1;  ///< more than any sum of allowed costs can differ by: stands for infinity where sums must not

  double pair_cost(const SolverLink& link, size_t own, size_t others) const {
    return link.cost[own * nodes[link.other].count() + others];
  }
  double cost_of(const std::vector<size_t>& options) const;  ///< infinite with a forbidden pair
  double error_of(const std::vector<size_t>& options) const;
  /// Options of the original problem for options of this one.
  std::vector<size_t> original(const std::vector<size_t>& options) const;
};

/// Nodes whose options are all forbidden come out with none.
SolverProblem solver_problem(const ChoiceProblem& problem);

}  // namespace hoist
