#include "neural_rules/choice/solver/solver_descent.h"

#include <algorithm>
#include <cmath>

#include "ir/base/special_values.h"

namespace hoist {
namespace {

constexpr int most_rounds = 1000;  // limit of passes over all nodes; each pass lowers the objective, so few are needed
constexpr int most_hull_points = 64;

class Descent {
 public:
  Descent(const SolverProblem& problem, std::vector<size_t> options, const DescentGoal& goal)
      : problem_(problem), options_(std::move(options)), goal_(goal), error_(problem.error_of(options_)) {}

  std::vector<size_t> run() {
    for (int round = 0; round < most_rounds; ++round) {
      bool moved = false;
      for (size_t node = 0; node < problem_.nodes.size(); ++node) moved = move_one(node) || moved;
      for (size_t node = 0; node < problem_.nodes.size(); ++node) {
        for (const SolverLink& link : problem_.nodes[node].links) {
          if (node < link.other) moved = move_pair(node, link.other) || moved;
        }
      }
      error_ = problem_.error_of(options_);
      if (!moved && (std::isinf(goal_.budget) || !exchange())) break;
    }
    return options_;
  }

 private:
  struct Move {
    size_t node, option;
    double goal, error;  ///< changes of objective and error
  };

  // The contribution of a node and its edges to the objective.
  double goal_at(size_t node, size_t option) const {
    const SolverNode& of = problem_.nodes[node];
    double cost = of.cost[option], forbidden = 0;
    for (const SolverLink& link : of.links) {
      const double pair = problem_.pair_cost(link, option, options_[link.other]);
      (std::isinf(pair) ? forbidden : cost) += std::isinf(pair) ? problem_.penalty : pair;
    }
    return goal_.cost_weight * cost + goal_.error_weight * of.error[option] +
           std::max(goal_.cost_weight, goal_.error_weight) * forbidden;
  }
  double error_at(size_t node, size_t option) const {
    return problem_.nodes[node].error[option] - problem_.nodes[node].error[options_[node]];
  }
  // Differences in the last bits do not count as gains: the moves would not terminate.
  bool gains(double difference, double size) const { return difference < -1e-12 * std::abs(size); }
  bool fits(double difference) const { return difference <= 0 || error_ + difference <= goal_.budget; }
  void take(size_t node, size_t option) {
    error_ += error_at(node, option);
    options_[node] = option;
  }

  bool move_one(size_t node) {
    const double now = goal_at(node, options_[node]);
    size_t best = options_[node];
    double best_goal = now;
    for (size_t o = 0; o < problem_.nodes[node].count(); ++o) {
      const double goal = goal_at(node, o);
      if (goal >= best_goal || !gains(goal - now, now) || !fits(error_at(node, o))) continue;
      best = o;
      best_goal = goal;
    }
    if (best == options_[node]) return false;
    take(node, best);
    return true;
  }

  // The change of the objective by two nodes together; the edge between them counts once.
  double pair_difference(size_t a, size_t option_a, size_t b, size_t option_b) {
    const double change_b = goal_at(b, option_b) - goal_at(b, options_[b]);
    const size_t old_b = options_[b];
    options_[b] = option_b;
    const double change_a = goal_at(a, option_a) - goal_at(a, options_[a]);
    options_[b] = old_b;
    return change_a + change_b;
  }

  bool move_pair(size_t a, size_t b) {
    const double size = goal_at(a, options_[a]) + goal_at(b, options_[b]);
    const size_t old_a = options_[a], old_b = options_[b];
    size_t best_a = old_a, best_b = old_b;
    double best = 0;
    for (size_t j = 0; j < problem_.nodes[b].count(); ++j) {
      if (j == old_b) continue;
      for (size_t i = 0; i < problem_.nodes[a].count(); ++i) {
        if (i == old_a || !fits(error_at(a, i) + error_at(b, j))) continue;
        const double difference = pair_difference(a, i, b, j);
        if (difference >= best || !gains(difference, size)) continue;
        best = difference;
        best_a = i;
        best_b = j;
      }
    }
    if (best_a == old_a) return false;
    take(a, best_a);
    take(b, best_b);
    return true;
  }

  // Lowers the error of one node and raises the error of another node, if that saves cost in total.
  bool exchange() {
    std::vector<Move> moves;
    for (size_t node = 0; node < problem_.nodes.size(); ++node) {
      const double now = goal_at(node, options_[node]);
      for (size_t o = 0; o < problem_.nodes[node].count(); ++o) {
        if (o != options_[node]) moves.push_back({node, o, goal_at(node, o) - now, error_at(node, o)});
      }
    }
    std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.error < b.error; });
    std::vector<size_t> best_until;  // the move with the smallest objective among the first ones
    for (size_t i = 0; i < moves.size(); ++i)
      best_until.push_back(i == 0 || moves[i].goal < moves[best_until[i - 1]].goal ? i : best_until[i - 1]);
    const Move *first = nullptr, *second = nullptr;
    double best = 0;
    for (const Move& move : moves) {
      const double room = goal_.budget - error_ - move.error;
      const auto end = std::upper_bound(moves.begin(), moves.end(), room,
                                        [](double limit, const Move& m) { return limit < m.error; });
      if (end == moves.begin()) continue;
      const Move& partner = moves[best_until[static_cast<size_t>(end - moves.begin()) - 1]];
      if (partner.node == move.node || move.goal + partner.goal >= best) continue;
      best = move.goal + partner.goal;
      first = &move;
      second = &partner;
    }
    if (first == nullptr || !fits(first->error + second->error)) return false;
    const double size = goal_at(first->node, options_[first->node]) + goal_at(second->node, options_[second->node]);
    if (!gains(pair_difference(first->node, first->option, second->node, second->option), size)) return false;
    take(first->node, first->option);
    take(second->node, second->option);
    return true;
  }

  const SolverProblem& problem_;
  std::vector<size_t> options_;
  DescentGoal goal_;
  double error_;
};

struct Point {
  std::vector<size_t> options;
  double cost = 0, error = 0;
};

class Pricing {
 public:
  Pricing(const SolverProblem& problem, const FrontierPlan* plan) : problem_(problem), plan_(plan) {}

  Point least_error() const {
    if (plan_ != nullptr) return swept({.first_error = 1, .first_cost = 0, .second_error = 0, .second_cost = 1});
    return descended({.error_weight = 1, .cost_weight = 0}, {});
  }
  Point cheapest(double price, const std::vector<const Point*>& starts) const {
    if (plan_ != nullptr) return swept({.first_error = price, .first_cost = 1, .second_error = 1, .second_cost = 0});
    return descended({.error_weight = price, .cost_weight = 1}, starts);
  }

 private:
  Point point(std::vector<size_t> options) const {
    const double cost = problem_.cost_of(options), error = problem_.error_of(options);
    return {std::move(options), cost, error};
  }
  Point swept(const SweepMeasure& measure) const {
    const Sweep sweep(problem_, *plan_, measure, {.bound = infinity, .scale = 1, .entries = 1});
    return sweep.entries().empty() ? Point{{}, infinity, infinity} : point(sweep.options(sweep.entries().front()));
  }
  Point descended(const DescentGoal& goal, const std::vector<const Point*>& starts) const {
    std::vector<std::vector<size_t>> from;
    for (const Point* start : starts) from.push_back(start->options);
    std::vector<size_t>& alone = from.emplace_back();  // the best option of each node alone
    size_t most_options = 0;
    for (const SolverNode& node : problem_.nodes) {
      const auto value = [&](size_t o) { return goal.cost_weight * node.cost[o] + goal.error_weight * node.error[o]; };
      size_t best = 0;
      for (size_t o = 1; o < node.count(); ++o) best = value(o) < value(best) ? o : best;
      alone.push_back(best);
      most_options = std::max(most_options, node.count());
    }
    for (size_t o = 0; o < most_options; ++o) {  // the same option everywhere: the fewest conversions
      std::vector<size_t>& uniform = from.emplace_back();
      for (const SolverNode& node : problem_.nodes) uniform.push_back(std::min(o, node.count() - 1));
    }
    Point best{{}, infinity, infinity};
    double best_goal = infinity;
    for (std::vector<size_t>& start : from) {
      Point found = point(descend(problem_, std::move(start), goal));
      const double reached =
          std::isinf(found.cost) ? infinity : goal.cost_weight * found.cost + goal.error_weight * found.error;
      if (!best.options.empty() && reached >= best_goal) continue;
      best_goal = reached;
      best = std::move(found);
    }
    return best;
  }

  const SolverProblem& problem_;
  const FrontierPlan* plan_;
};

}  // namespace

std::vector<size_t> descend(const SolverProblem& problem, std::vector<size_t> options, const DescentGoal& goal) {
  std::vector<size_t> start = options;
  std::vector<size_t> out = Descent(problem, std::move(options), goal).run();
  // Moves accumulate differences; if rounding lets the sum exceed the budget, the start is the answer.
  return problem.error_of(out) > goal.budget && problem.error_of(start) <= goal.budget ? start : out;
}

std::optional<PricedAnswer> solve_priced(const SolverProblem& problem, const FrontierPlan* plan, double budget,
                                         const std::function<bool()>& out_of_time) {
  const Pricing pricing(problem, plan);
  Point inside = pricing.least_error();
  if (std::isinf(inside.cost) || inside.error > budget) return std::nullopt;
  Point outside = pricing.cheapest(0, {&inside});
  PricedAnswer out;
  if (outside.error <= budget && !std::isinf(outside.cost)) {
    if (outside.cost <= inside.cost) inside = std::move(outside);
    if (plan != nullptr) out.bound = problem.cost_of(inside.options);
    out.options = std::move(inside.options);
    return out;
  }
  // Both ends lie on the lower hull of the front; the price given by the slope between them finds a point below the
  // line, if there is one.
  for (int i = 0; i < most_hull_points && !(out_of_time && out_of_time()); ++i) {
    if (inside.cost <= outside.cost || outside.error <= inside.error || std::isinf(outside.cost)) break;
    const double price = (inside.cost - outside.cost) / (outside.error - inside.error);
    Point found = pricing.cheapest(price, {&inside, &outside});
    const double bound = found.cost + price * (found.error - budget);
    if (plan != nullptr && bound > out.bound) {
      out.bound = bound;
      out.price = price;
    }
    const double line = inside.cost + price * inside.error;
    if (std::isinf(found.cost) || !(found.cost + price * found.error < line - 1e-9 * std::abs(line))) break;
    (found.error <= budget ? inside : outside) = std::move(found);
  }
  out.options = descend(problem, std::move(inside.options), {.budget = budget});
  return out;
}

}  // namespace hoist
