#include "lowering/cost/quadratic_choice.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "ir/base/result.h"

namespace hoist {

size_t QuadraticChoice::add_node(std::vector<double> costs) {
  HOIST_CHECK(!costs.empty(), "a node needs an option");
  nodes_.push_back({std::move(costs), {}});
  return nodes_.size() - 1;
}

void QuadraticChoice::add_edge(size_t a, size_t b, const Matrix& costs) {
  const size_t rows = nodes_[a].costs.size(), columns = nodes_[b].costs.size();
  HOIST_CHECK(a != b && costs.size() == rows * columns, "an edge has a cost for each pair of options");
  Matrix& there = nodes_[a].edges.try_emplace(b, costs.size(), 0.0).first->second;
  Matrix& back = nodes_[b].edges.try_emplace(a, costs.size(), 0.0).first->second;
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      there[i * columns + j] += costs[i * columns + j];
      back[j * rows + i] += costs[i * columns + j];
    }
  }
}

double QuadraticChoice::cost(const std::vector<size_t>& options) const {
  double sum = 0;
  for (size_t a = 0; a < nodes_.size(); ++a) {
    sum += nodes_[a].costs[options[a]];
    for (const auto& [b, costs] : nodes_[a].edges) {
      if (b > a) sum += costs[options[a] * nodes_[b].costs.size() + options[b]];
    }
  }
  return sum;
}

std::vector<double> QuadraticChoice::costs_of(size_t node, const std::vector<size_t>& options) const {
  std::vector<double> out = nodes_[node].costs;
  for (const auto& [other, costs] : nodes_[node].edges) {
    const size_t columns = nodes_[other].costs.size();
    for (size_t i = 0; i < out.size(); ++i) out[i] += costs[i * columns + options[other]];
  }
  return out;
}

namespace {

using ChoiceNode = QuadraticChoice::Node;
using ChoiceMatrix = QuadraticChoice::Matrix;

// True if the cost is clearly less, so that rounding does not decide.
bool is_cheaper(double a, double b) { return a < b - 1e-9 * std::max(std::abs(b), 1.0); }

// The first option unless a later one is cheaper.
size_t cheapest_option(const std::vector<double>& costs) {
  size_t best = 0;
  for (size_t i = 1; i < costs.size(); ++i) {
    if (is_cheaper(costs[i], costs[best])) best = i;
  }
  return best;
}

// For each option at the other end of an edge, the least cost of the options with `costs` at this end.
std::vector<double> least_costs(const std::vector<double>& costs, const ChoiceMatrix& matrix) {
  std::vector<double> least(matrix.size() / costs.size(), std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < costs.size(); ++i) {
    for (size_t j = 0; j < least.size(); ++j) least[j] = std::min(least[j], costs[i] + matrix[i * least.size() + j]);
  }
  return least;
}

// Nodes are eliminated one by one and get their options in the reverse order. `constant_` is the least cost of
// eliminated nodes; the least cost of the remaining nodes plus `constant_` stays the least cost of the whole problem.
class QuadraticSolver {
 public:
  QuadraticSolver(std::vector<ChoiceNode> nodes, int attempts)
      : nodes_(std::move(nodes)), attempts_(attempts), options_(nodes_.size(), 0) {
    for (size_t i = 0; i < nodes_.size(); ++i) waiting_.emplace(nodes_[i].edges.size(), i);
    // A search would copy the rest of the graph for each of them, whatever their number.
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].costs.size() == 1) decide(i, 0);
    }
  }

  void solve() {
    while (!waiting_.empty()) {
      const auto [degree, node] = *waiting_.begin();
      if (degree <= 2) {
        eliminate(node);
      } else if (attempts_ > 1) {
        solve_parts();
      } else {
        if (!bound_) bound_ = constant_ + least_of_rest();
        const size_t widest = waiting_.rbegin()->second;
        decide(widest, cheapest_option(estimates(widest)));
      }
    }
    for (size_t i = order_.size(); i-- > 0;) take_option(order_[i]);
  }

  const std::vector<size_t>& options() const { return options_; }
  double cost() const { return constant_; }
  double bound() const { return bound_.value_or(constant_); }

 private:
  // Removes the node from the graph; it keeps its edges, because the nodes at their other ends get their options first.
  void remove(size_t node) {
    waiting_.erase({nodes_[node].edges.size(), node});
    for (const auto& [other, matrix] : nodes_[node].edges) {
      waiting_.erase({nodes_[other].edges.size(), other});
      nodes_[other].edges.erase(node);
      waiting_.emplace(nodes_[other].edges.size(), other);
    }
  }

  void eliminate(size_t node) {
    remove(node);
    order_.push_back(node);
    const ChoiceNode& own = nodes_[node];
    if (own.edges.empty()) {
      constant_ += *std::min_element(own.costs.begin(), own.costs.end());
    } else if (own.edges.size() == 1) {
      const auto& [other, matrix] = *own.edges.begin();
      const std::vector<double> least = least_costs(own.costs, matrix);
      for (size_t j = 0; j < least.size(); ++j) nodes_[other].costs[j] += least[j];
    } else {
      join_adjacent(own);
    }
  }

  // A node of degree 2 becomes an edge between the two adjacent nodes, with the least costs.
  void join_adjacent(const ChoiceNode& node) {
    const auto& [a, of_a] = *node.edges.begin();
    const auto& [b, of_b] = *std::next(node.edges.begin());
    const size_t rows = nodes_[a].costs.size(), columns = nodes_[b].costs.size();
    ChoiceMatrix there(rows * columns), back(rows * columns);
    for (size_t j = 0; j < rows; ++j) {
      std::vector<double> costs = node.costs;
      for (size_t i = 0; i < costs.size(); ++i) costs[i] += of_a[i * rows + j];
      const std::vector<double> least = least_costs(costs, of_b);
      for (size_t k = 0; k < columns; ++k) there[j * columns + k] = back[k * rows + j] = least[k];
    }
    for (const auto& [from, to, costs] : {std::tuple(a, b, &there), std::tuple(b, a, &back)}) {
      waiting_.erase({nodes_[from].edges.size(), from});
      ChoiceMatrix& edge = nodes_[from].edges.try_emplace(to, costs->size(), 0.0).first->second;
      for (size_t i = 0; i < edge.size(); ++i) edge[i] += (*costs)[i];
      waiting_.emplace(nodes_[from].edges.size(), from);
    }
  }

  void decide(size_t node, size_t option) {
    remove(node);
    options_[node] = option;
    constant_ += nodes_[node].costs[option];
    for (const auto& [other, matrix] : nodes_[node].edges) {
      std::vector<double>& costs = nodes_[other].costs;
      for (size_t j = 0; j < costs.size(); ++j) costs[j] += matrix[option * costs.size() + j];
    }
  }

  void take_option(size_t node) {
    std::vector<double> costs = nodes_[node].costs;
    for (const auto& [other, matrix] : nodes_[node].edges) {
      const size_t columns = nodes_[other].costs.size();
      for (size_t i = 0; i < costs.size(); ++i) costs[i] += matrix[i * columns + options_[other]];
    }
    options_[node] = cheapest_option(costs);
  }

  // The costs of a node's options with the cheapest option of each adjacent node.
  std::vector<double> estimates(size_t node) const {
    std::vector<double> out = nodes_[node].costs;
    for (const auto& [other, matrix] : nodes_[node].edges) {
      const std::vector<double> least = least_costs(nodes_[other].costs, nodes_[other].edges.at(node));
      for (size_t i = 0; i < out.size(); ++i) out[i] += least[i];
    }
    return out;
  }

  // A lower bound of the cost of the remaining nodes: the least cost of each row, then of each column, of an edge moves
  // to its node; the bound is the sum of the nodes' least costs.
  double least_of_rest() const {
    std::map<size_t, std::vector<double>> costs;
    for (const auto& [degree, node] : waiting_) costs[node] = nodes_[node].costs;
    for (const auto& [degree, node] : waiting_) {
      for (const auto& [other, matrix] : nodes_[node].edges) {
        if (other < node) continue;
        std::vector<double>&rows = costs.at(node), &columns = costs.at(other);
        std::vector<double> least(columns.size(), std::numeric_limits<double>::infinity());
        for (size_t i = 0; i < rows.size(); ++i) {
          const auto row = matrix.begin() + static_cast<std::ptrdiff_t>(i * least.size());
          const double of_row = *std::min_element(row, row + static_cast<std::ptrdiff_t>(least.size()));
          rows[i] += of_row;
          for (size_t j = 0; j < least.size(); ++j)
            least[j] = std::min(least[j], row[static_cast<std::ptrdiff_t>(j)] - of_row);
        }
        for (size_t j = 0; j < least.size(); ++j) columns[j] += least[j];
      }
    }
    double sum = 0;
    for (const auto& [node, own] : costs) sum += *std::min_element(own.begin(), own.end());
    return sum;
  }

  // The connected components of the remaining nodes.
  std::vector<std::vector<size_t>> parts() const {
    std::vector<std::vector<size_t>> out;
    std::set<size_t> seen;
    for (const auto& [degree, first] : waiting_) {
      if (!seen.insert(first).second) continue;
      std::vector<size_t> part = {first};
      for (size_t i = 0; i < part.size(); ++i) {
        for (const auto& [other, matrix] : nodes_[part[i]].edges) {
          if (seen.insert(other).second) part.push_back(other);
        }
      }
      std::sort(part.begin(), part.end());
      out.push_back(std::move(part));
    }
    return out;
  }

  // Decides all remaining nodes; components are independent.
  void solve_parts() {
    double cost = 0, bound = 0;
    for (const std::vector<size_t>& part : parts()) {
      std::map<size_t, size_t> places;
      for (size_t node : part) places.emplace(node, places.size());
      std::vector<ChoiceNode> nodes;
      for (size_t node : part) {
        ChoiceNode own{nodes_[node].costs, {}};
        for (const auto& [other, matrix] : nodes_[node].edges) own.edges.emplace(places.at(other), matrix);
        nodes.push_back(std::move(own));
      }
      QuadraticSolver solver(std::move(nodes), attempts_);
      solver.try_options();
      for (const auto& [node, place] : places) options_[node] = solver.options_[place];
      cost += solver.cost();
      bound += solver.bound();
    }
    bound_ = constant_ + bound;
    constant_ += cost;
    waiting_.clear();
  }

  // Branches at the node of the highest degree. Each option gets a share of the attempts; options that cannot improve
  // on the best solution are skipped.
  void try_options() {
    const size_t node = waiting_.rbegin()->second, count = nodes_[node].costs.size();
    const std::vector<double> costs = estimates(node);
    std::vector<size_t> promising(count);
    for (size_t i = 0; i < count; ++i) promising[i] = i;
    std::stable_sort(promising.begin(), promising.end(), [&](size_t a, size_t b) { return costs[a] < costs[b]; });
    std::optional<QuadraticSolver> best;
    double bound = std::numeric_limits<double>::infinity();
    for (const size_t option : promising) {
      QuadraticSolver attempt = *this;
      attempt.attempts_ = attempts_ / static_cast<int>(count);
      attempt.decide(node, option);
      const double least = attempt.constant_ + attempt.least_of_rest();
      if (best && least >= best->cost()) {
        bound = std::min(bound, least);
        continue;
      }
      attempt.solve();
      bound = std::min(bound, attempt.bound());
      if (!best || is_cheaper(attempt.cost(), best->cost())) best = std::move(attempt);
    }
    *this = std::move(*best);
    bound_ = std::min(bound, cost());
  }

  std::vector<ChoiceNode> nodes_;
  int attempts_;
  std::vector<size_t> options_;
  std::set<std::pair<size_t, size_t>> waiting_;  // the remaining nodes, by degree
  std::vector<size_t> order_;                    // of elimination
  double constant_ = 0;
  std::optional<double> bound_;
};

}  // namespace

QuadraticChoice::Solution QuadraticChoice::solve(int attempts) const {
  QuadraticSolver solver(nodes_, attempts);
  solver.solve();
  Solution out{solver.options(), cost(solver.options()), 0};
  // The solver adds the costs in another order.
  out.bound = is_cheaper(solver.bound(), solver.cost()) ? std::min(solver.bound(), out.cost) : out.cost;
  return out;
}

}  // namespace hoist
