// A choice problem in the form that the solver uses: without forbidden options, with edges stored at both ends, and
// with parallel edges added up. Made once from a well-formed problem. Internal to the solver; the interface is
// solver.h.
#pragma once

#include <cstddef>
#include <vector>

#include "neural_rules/choice/solver/solver.h"

namespace hoist {

/// An edge at one of its ends: cost[own option * options of the other + its option].
struct SolverLink {
  size_t other = 0;
  std::vector<double> cost;
};

struct SolverNode {
  std::vector<size_t> original;     ///< indices of the remaining options in the original problem
  std::vector<double> cost, error;  ///< cost and error of the remaining options
  std::vector<SolverLink> links;
  size_t count() const { return original.size(); }
};

struct SolverProblem {
  std::vector<SolverNode> nodes;
  double penalty =
      1;  ///< exceeds all differences of sums of allowed costs: replaces infinity where sums must be finite

  double pair_cost(const SolverLink& link, size_t own, size_t others) const {
    return link.cost[own * nodes[link.other].count() + others];
  }
  double cost_of(const std::vector<size_t>& options) const;  ///< infinite with a forbidden pair
  double error_of(const std::vector<size_t>& options) const;
  /// Converts options of this problem to options of the original problem.
  std::vector<size_t> original(const std::vector<size_t>& options) const;
};

/// Nodes whose options are all forbidden have none.
SolverProblem solver_problem(const ChoiceProblem& problem);

}  // namespace hoist
