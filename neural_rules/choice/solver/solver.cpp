#include "neural_rules/choice/solver/solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/base/special_values.h"
#include "neural_rules/choice/solver/solver_descent.h"
#include "neural_rules/choice/solver/solver_frontier.h"
#include "neural_rules/choice/solver/solver_problem.h"

namespace hoist {
namespace {

constexpr size_t fewest_entries = 64;                   // shorter lists are less accurate than prices
constexpr size_t most_priced_states = size_t{1} << 17;  // limit of states of a plan, with one entry per state

Diagnostic problem_with(const std::string& what) { return {"choice", what, ""}; }

Result<Nothing> check(const ChoiceProblem& problem) {
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    for (const ChoiceOption& option : problem.nodes[n].options) {
      if (option.forbidden) continue;
      if (!std::isfinite(option.cost) || !std::isfinite(option.error) || option.error < 0) {
        return problem_with(
            fmt::format("node {} has an option with cost {} and error {}", n, option.cost, option.error));
      }
    }
  }
  for (const ChoiceEdge& edge : problem.edges) {
    const std::string name = fmt::format("edge {} to {}", edge.from, edge.to);
    if (edge.from >= problem.nodes.size() || edge.to >= problem.nodes.size())
      return problem_with(fmt::format("{} leaves the {} nodes", name, problem.nodes.size()));
    if (edge.from == edge.to) return problem_with(name + " joins a node to itself");
    const size_t rows = problem.nodes[edge.from].options.size(), columns = problem.nodes[edge.to].options.size();
    if (edge.cost.size() != rows * columns)
      return problem_with(fmt::format("{} has {} costs, its nodes {} pairs", name, edge.cost.size(), rows * columns));
    for (double cost : edge.cost) {
      if (std::isnan(cost) || cost == -infinity) return problem_with(fmt::format("{} has a cost {}", name, cost));
    }
  }
  return Nothing{};
}

/// A problem with the precomputations shared by all budgets of a front.
class Solver {
 public:
  Solver(const ChoiceProblem& problem, const SolverOptions& options)
      : original_(problem), problem_(solver_problem(problem)), options_(options) {
    if (!any_options()) return;
    plan_ = frontier_plan(problem_, most_priced_states);
    for (const SolverNode& node : problem_.nodes)
      largest_error_ += *std::max_element(node.error.begin(), node.error.end());
  }

  Result<Choice> solve(double budget) const {
    if (!any_options()) return problem_with("a node has no option that is allowed");
    if (std::isnan(budget)) return problem_with("the budget is not a number");
    const FrontierPlan* plan = plan_ ? &*plan_ : nullptr;
    const std::optional<PricedAnswer> priced = solve_priced(problem_, plan, budget, options_.out_of_time);
    if (!priced) return infeasible(budget);
    Choice best = choice(priced->options, ChoiceProof::priced, priced->bound);
    // With too many states, lists are too short to be useful.
    const size_t room = plan == nullptr ? 0 : static_cast<size_t>(options_.entries) / std::max<size_t>(plan->states, 1);
    if (best.bound >= best.cost) best.proof = ChoiceProof::optimal;
    if (best.proof == ChoiceProof::optimal || room < fewest_entries) return best;
    return searched(best, budget, priced->price, room);
  }

 private:
  bool any_options() const {
    return std::all_of(problem_.nodes.begin(), problem_.nodes.end(),
                       [](const SolverNode& node) { return node.count() > 0; });
  }
  Choice choice(const std::vector<size_t>& options, ChoiceProof proof, double bound) const {
    Choice out = evaluate_choice(original_, problem_.original(options));
    out.proof = proof;
    out.bound = proof == ChoiceProof::optimal ? out.cost : std::min(bound, out.cost);
    return out;
  }

  // Searches all assignments for a choice cheaper than `best`, within lists of `room` entries.
  Choice searched(Choice best, double budget, double price, size_t room) const {
    const SweepCeiling ceiling{price, best.cost + price * budget, cost_to_go(problem_, *plan_, price)};
    const double scale = std::min(budget, largest_error_);
    const Sweep sweep(problem_, *plan_, {},
                      {.bound = budget,
                       .scale = scale > 0 ? scale : 1,
                       .entries = std::min(room, static_cast<size_t>(std::max<int64_t>(options_.error_steps, 2))),
                       .out_of_time = options_.out_of_time ? &options_.out_of_time : nullptr,
                       .ceiling = &ceiling});
    if (sweep.stopped()) return best;
    best.proof = sweep.thinned() ? ChoiceProof::stepped : ChoiceProof::optimal;
    // The last entry is the cheapest; sums in another order may exceed the budget by a rounding error.
    for (size_t i = sweep.entries().size(); i-- > 0;) {
      std::vector<size_t> options = sweep.options(sweep.entries()[i]);
      if (problem_.error_of(options) > budget) continue;
      if (sweep.thinned()) options = descend(problem_, std::move(options), {.budget = budget});
      Choice found = choice(options, best.proof, best.bound);
      if (found.cost < best.cost) best = std::move(found);
      break;
    }
    if (best.proof == ChoiceProof::optimal) best.bound = best.cost;
    return best;
  }

  Result<Choice> infeasible(double budget) const {
    const auto least = solve_priced(problem_, plan_ ? &*plan_ : nullptr, infinity, {});
    if (!least) return problem_with("no assignment avoids the pairs that are forbidden");
    if (!plan_) return problem_with(fmt::format("no assignment with an error of at most {} was found", budget));
    const Sweep sweep(problem_, *plan_, {}, {.bound = infinity, .scale = 1, .entries = 1});
    return problem_with(fmt::format("no assignment has an error of at most {}; the smallest is {}", budget,
                                    sweep.entries().front().first));
  }

  const ChoiceProblem& original_;
  SolverProblem problem_;
  const SolverOptions& options_;
  std::optional<FrontierPlan> plan_;
  double largest_error_ = 0;
};

}  // namespace

Choice evaluate_choice(const ChoiceProblem& problem, std::vector<size_t> options) {
  HOIST_CHECK(options.size() == problem.nodes.size(), "one option per node");
  Choice out;
  for (size_t n = 0; n < options.size(); ++n) {
    HOIST_CHECK(options[n] < problem.nodes[n].options.size(), "the node has no such option");
    const ChoiceOption& option = problem.nodes[n].options[options[n]];
    out.cost += option.forbidden ? infinity : option.cost;
    out.error += option.error;
  }
  for (const ChoiceEdge& edge : problem.edges)
    out.cost += edge.cost[options[edge.from] * problem.nodes[edge.to].options.size() + options[edge.to]];
  out.options = std::move(options);
  return out;
}

Result<Choice> solve(const ChoiceProblem& problem, double budget, const SolverOptions& options) {
  HOIST_TRY_VOID(check(problem));
  return Solver(problem, options).solve(budget);
}

Result<std::vector<Choice>> solve_front(const ChoiceProblem& problem, std::vector<double> budgets,
                                        const SolverOptions& options) {
  HOIST_TRY_VOID(check(problem));
  std::sort(budgets.begin(), budgets.end());
  const Solver solver(problem, options);
  std::vector<Choice> out;
  Diagnostics none = {problem_with("no budget was given")};
  for (double budget : budgets) {
    Result<Choice> found = solver.solve(budget);
    if (!found) {
      none = found.errors();
      continue;
    }
    if (!out.empty() && found->cost >= out.back().cost) continue;  // a smaller budget gives the same cost
    while (!out.empty() && found->error <= out.back().error) out.pop_back();
    out.push_back(std::move(*found));
  }
  if (out.empty()) return none;
  return out;
}

}  // namespace hoist
