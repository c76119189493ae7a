#include "neural_rules/choice/solver/solver_problem.h"

#include <algorithm>
#include <cmath>

namespace hoist {
namespace {

// Adds an edge's costs from the side of `node`; `at` returns the cost of (own option, other option) in the original
// problem.
template <class At>
void add_link(SolverProblem& problem, size_t node, size_t other, const At& at) {
  std::vector<SolverLink>& links = problem.nodes[node].links;
  const size_t rows = problem.nodes[node].count(), columns = problem.nodes[other].count();
  auto link = std::find_if(links.begin(), links.end(), [&](const SolverLink& l) { return l.other == other; });
  if (link == links.end()) {
    links.push_back({other, std::vector<double>(rows * columns, 0)});
    link = links.end() - 1;
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j)
      link->cost[i * columns + j] += at(problem.nodes[node].original[i], problem.nodes[other].original[j]);
  }
}

}  // namespace

SolverProblem solver_problem(const ChoiceProblem& problem) {
  SolverProblem out;
  double total = 0;
  for (const ChoiceNode& node : problem.nodes) {
    SolverNode& made = out.nodes.emplace_back();
    for (size_t o = 0; o < node.options.size(); ++o) {
      if (node.options[o].forbidden) continue;
      made.original.push_back(o);
      made.cost.push_back(node.options[o].cost);
      made.error.push_back(node.options[o].error);
      total += std::abs(node.options[o].cost) + node.options[o].error;
    }
  }
  for (const ChoiceEdge& edge : problem.edges) {
    const size_t columns = problem.nodes[edge.to].options.size();
    add_link(out, edge.from, edge.to, [&](size_t own, size_t other) { return edge.cost[own * columns + other]; });
    add_link(out, edge.to, edge.from, [&](size_t own, size_t other) { return edge.cost[other * columns + own]; });
    for (double cost : edge.cost) total += std::isinf(cost) ? 0 : std::abs(cost);
  }
  out.penalty = 1 + 2 * total;
  return out;
}

double SolverProblem::cost_of(const std::vector<size_t>& options) const {
  double sum = 0;
  for (size_t n = 0; n < nodes.size(); ++n) {
    sum += nodes[n].cost[options[n]];
    for (const SolverLink& link : nodes[n].links) {
      if (n < link.other) sum += pair_cost(link, options[n], options[link.other]);
    }
  }
  return sum;
}

double SolverProblem::error_of(const std::vector<size_t>& options) const {
  double sum = 0;
  for (size_t n = 0; n < nodes.size(); ++n) sum += nodes[n].error[options[n]];
  return sum;
}

std::vector<size_t> SolverProblem::original(const std::vector<size_t>& options) const {
  std::vector<size_t> out(options.size());
  for (size_t n = 0; n < options.size(); ++n) out[n] = nodes[n].original[options[n]];
  return out;
}

}  // namespace hoist
