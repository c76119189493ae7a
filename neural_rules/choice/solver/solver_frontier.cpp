#include "neural_rules/choice/solver/solver_frontier.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/base/result.h"

namespace hoist {
namespace {

constexpr size_t many = size_t{1} << 40;  // exceeds the states of every plan
constexpr size_t most_starts = 8;

// Makes a plan from one first node. Ties are broken in favour of the node adjacent to the oldest or the newest frontier
// node: neither is always better.
class Planner {
 public:
  Planner(const SolverProblem& problem, bool oldest_first) : problem_(problem), oldest_first_(oldest_first) {
    for (const SolverNode& node : problem.nodes) open_.push_back(node.links.size());
    passed_.assign(problem.nodes.size(), false);
  }

  FrontierPlan plan(size_t first, size_t most_states) {
    size_t next_unconnected = 0;
    return plan(most_states, [&](size_t n) {
      const size_t node = n == 0 ? first : best_adjacent();
      while (node == none && passed_[next_unconnected]) ++next_unconnected;
      return node == none ? next_unconnected : node;
    });
  }

  /// `next` returns the n-th node of the order.
  template <class Next>
  FrontierPlan plan(size_t most_states, const Next& next) {
    FrontierPlan out;
    for (size_t n = 0; n < problem_.nodes.size(); ++n) {
      out.steps.push_back(pass(next(n)));
      out.states = std::min(many, out.states + out.steps.back().states);
      if (out.states > most_states) return out;
    }
    return out;
  }

 private:
  static constexpr size_t none = static_cast<size_t>(-1);

  FrontierStep pass(size_t node) {
    FrontierStep step{node, frontier_, {}, 1};
    passed_[node] = true;
    for (const SolverLink& link : problem_.nodes[node].links) --open_[link.other];
    frontier_.push_back(node);
    std::erase_if(frontier_, [&](size_t other) { return open_[other] == 0; });
    for (size_t other : frontier_) step.states = std::min(many, step.states * problem_.nodes[other].count());
    step.after = frontier_;
    return step;
  }

  // The logarithm of the factor by which the frontier's states grow.
  double growth(size_t node) const {
    double out = open_[node] > 0 ? std::log(static_cast<double>(problem_.nodes[node].count())) : 0;
    for (const SolverLink& link : problem_.nodes[node].links) {
      if (passed_[link.other] && open_[link.other] == 1)
        out -= std::log(static_cast<double>(problem_.nodes[link.other].count()));
    }
    return out;
  }

  size_t best_adjacent() const {
    size_t best = none;
    double best_growth = 0;
    for (size_t i = 0; i < frontier_.size(); ++i) {
      const size_t from = frontier_[oldest_first_ ? i : frontier_.size() - 1 - i];
      for (const SolverLink& link : problem_.nodes[from].links) {
        if (passed_[link.other]) continue;
        const double found = growth(link.other);
        if (best != none && found > best_growth - 1e-9) continue;
        best = link.other;
        best_growth = found;
      }
    }
    return best;
  }

  const SolverProblem& problem_;
  bool oldest_first_;
  std::vector<size_t> open_;  ///< number of adjacent nodes that are not in the order yet
  std::vector<bool> passed_;
  std::vector<size_t> frontier_;
};

// All transitions of a step, by the state after the step.
std::vector<std::vector<FrontierSource>> sources_of(const SolverProblem& problem, const FrontierStep& step,
                                                    const SweepMeasure& measure) {
  const SolverNode& node = problem.nodes[step.node];
  // The weights of the old frontier's nodes, and of the node itself, in the index of the next state.
  std::vector<size_t> weights(step.before.size(), 0);
  size_t own_weight = 0, weight = 1;
  for (size_t other : step.after) {
    if (other == step.node)
      own_weight = weight;
    else
      weights[static_cast<size_t>(std::find(step.before.begin(), step.before.end(), other) - step.before.begin())] =
          weight;
    weight *= problem.nodes[other].count();
  }
  std::vector<const SolverLink*> links(step.before.size(), nullptr);
  for (const SolverLink& link : node.links) {
    const auto found = std::find(step.before.begin(), step.before.end(), link.other);
    if (found != step.before.end()) links[static_cast<size_t>(found - step.before.begin())] = &link;
  }
  std::vector<std::vector<FrontierSource>> out(step.states);
  std::vector<size_t> digits(step.before.size(), 0);
  for (size_t state = 0;; ++state) {
    size_t kept = 0;
    for (size_t i = 0; i < digits.size(); ++i) kept += digits[i] * weights[i];
    for (size_t o = 0; o < node.count(); ++o) {
      double cost = node.cost[o];
      for (size_t i = 0; i < digits.size(); ++i) {
        if (links[i] != nullptr) cost += problem.pair_cost(*links[i], o, digits[i]);
      }
      if (std::isinf(cost)) continue;
      out[kept + o * own_weight].push_back({state, o, measure.first_error * node.error[o] + measure.first_cost * cost,
                                            measure.second_error * node.error[o] + measure.second_cost * cost});
    }
    size_t digit = 0;
    while (digit < digits.size() && ++digits[digit] == problem.nodes[step.before[digit]].count()) digits[digit++] = 0;
    if (digit == digits.size()) break;
  }
  return out;
}

// Each node follows its largest branch and precedes its others: only nodes with an unfinished smaller branch stay open,
// and each such branch has less than half of the nodes of the whole branch. Suits trees.
std::vector<size_t> largest_branch_first(const SolverProblem& problem, size_t root) {
  const size_t count = problem.nodes.size(), none = count;
  std::vector<size_t> found, parent(count, none), size(count, 1);
  std::vector<bool> seen(count, false);
  std::vector<std::vector<size_t>> branches(count);
  for (size_t start = 0; start <= count; ++start) {  // the root, then unreachable nodes
    std::vector<size_t> open = {start == 0 ? root : start - 1};
    while (!open.empty()) {
      const size_t node = open.back();
      open.pop_back();
      if (seen[node]) continue;
      seen[node] = true;
      found.push_back(node);
      if (parent[node] != none) branches[parent[node]].push_back(node);
      for (const SolverLink& link : problem.nodes[node].links) {
        if (seen[link.other]) continue;
        parent[link.other] = node;  // the last node to reach it is its parent
        open.push_back(link.other);
      }
    }
  }
  for (size_t i = count; i-- > 0;) {
    if (parent[found[i]] != none) size[parent[found[i]]] += size[found[i]];
  }
  struct Visit {
    size_t node;
    bool whole;  ///< including its branches
  };
  std::vector<size_t> out;
  for (size_t start : found) {
    if (parent[start] != none) continue;
    std::vector<Visit> open = {{start, true}};
    while (!open.empty()) {
      const auto [node, whole] = open.back();
      open.pop_back();
      std::vector<size_t>& of = branches[node];
      if (!whole || of.empty()) {
        out.push_back(node);
        continue;
      }
      std::stable_sort(of.begin(), of.end(), [&](size_t a, size_t b) { return size[a] < size[b]; });
      for (size_t i = 0; i + 1 < of.size(); ++i) open.push_back({of[i], true});
      open.push_back({node, false});
      open.push_back({of.back(), true});
    }
  }
  return out;
}

}  // namespace

CostToGo cost_to_go(const SolverProblem& problem, const FrontierPlan& plan, double price) {
  const SweepMeasure measure{.first_error = price, .first_cost = 1, .second_error = 0, .second_cost = 0};
  CostToGo out(plan.steps.size());
  if (!out.empty()) out.back() = {0};
  for (size_t i = plan.steps.size(); i-- > 1;) {
    out[i - 1].assign(plan.steps[i - 1].states, std::numeric_limits<double>::infinity());
    const std::vector<std::vector<FrontierSource>> sources = sources_of(problem, plan.steps[i], measure);
    for (size_t state = 0; state < sources.size(); ++state) {
      for (const FrontierSource& source : sources[state]) {
        double& before = out[i - 1][source.state];
        before = std::min(before, source.first + out[i][state]);
      }
    }
  }
  return out;
}

std::optional<FrontierPlan> frontier_plan(const SolverProblem& problem, size_t most_states) {
  std::vector<size_t> starts(problem.nodes.size());
  std::iota(starts.begin(), starts.end(), 0);
  std::stable_sort(starts.begin(), starts.end(),
                   [&](size_t a, size_t b) { return problem.nodes[a].links.size() < problem.nodes[b].links.size(); });
  starts.resize(std::min(starts.size(), most_starts));
  std::optional<FrontierPlan> best;
  if (problem.nodes.empty()) return FrontierPlan{};
  const auto keep_better = [&](FrontierPlan found) {
    const size_t limit = best ? best->states - 1 : most_states;
    if (found.steps.size() == problem.nodes.size() && found.states <= limit) best = std::move(found);
  };
  for (size_t start : starts) {
    const size_t limit = best ? best->states : most_states;
    for (bool oldest_first : {true, false}) keep_better(Planner(problem, oldest_first).plan(start, limit));
    const std::vector<size_t> order = largest_branch_first(problem, start);
    keep_better(Planner(problem, true).plan(limit, [&](size_t n) { return order[n]; }));
  }
  return best;
}

Sweep::Sweep(const SolverProblem& problem, const FrontierPlan& plan, const SweepMeasure& measure,
             const SweepLimits& limits)
    : problem_(problem), plan_(plan), measure_(measure), limits_(limits) {
  // The minimum contribution of the remaining nodes to the first number, without edges.
  std::vector<double> rest(plan.steps.size() + 1, 0);
  for (size_t i = plan.steps.size(); i-- > 0;) {
    const SolverNode& node = problem.nodes[plan.steps[i].node];
    double least = 0;
    for (size_t o = 0; o < node.count(); ++o) {
      const double first = measure.first_error * node.error[o] + measure.first_cost * node.cost[o];
      least = o == 0 ? first : std::min(least, first);
    }
    rest[i] = rest[i + 1] + least;
  }
  Lists lists = {{SweepEntry{}}};
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (limits_.out_of_time != nullptr && *limits_.out_of_time && (*limits_.out_of_time)()) {
      stopped_ = true;
      return;
    }
    step(i, rest[i + 1], lists);
  }
  entries_ = std::move(lists[0]);
}

std::vector<Sweep::Candidate> Sweep::merged(const std::vector<FrontierSource>& sources, const Lists& lists,
                                            double rest) const {
  // Sums in another order than the final one may differ in their last bits.
  const double bound = limits_.bound * (1 + 1e-12) - rest;
  std::vector<std::vector<Candidate>> open;
  for (const FrontierSource& source : sources) {
    std::vector<Candidate> shifted;
    shifted.reserve(lists[source.state].size());
    for (const SweepEntry& entry : lists[source.state]) {
      const double first = entry.first + source.first;
      if (first > bound) break;
      shifted.push_back({first, entry.second + source.second, {entry.trace, static_cast<uint32_t>(source.option)}});
    }
    if (!shifted.empty()) open.push_back(std::move(shifted));
  }
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  };
  while (open.size() > 1) {
    std::vector<std::vector<Candidate>> next;
    for (size_t i = 0; i + 1 < open.size(); i += 2) {
      const std::vector<Candidate>&a = open[i], &b = open[i + 1];
      std::vector<Candidate>& list = next.emplace_back();
      list.reserve(a.size() + b.size());
      for (size_t x = 0, y = 0; x < a.size() || y < b.size();) {
        const bool from_b = x == a.size() || (y < b.size() && before(b[y], a[x]));
        const Candidate& taken = from_b ? b[y++] : a[x++];
        if (list.empty() || taken.second < list.back().second) list.push_back(taken);
      }
    }
    if (open.size() % 2 == 1) next.push_back(std::move(open.back()));
    open = std::move(next);
  }
  return open.empty() ? std::vector<Candidate>{} : std::move(open[0]);
}

// The entry with the smallest first number always stays: otherwise a feasible bound might become infeasible. The last
// entry of a step is its cheapest.
void Sweep::thin(std::vector<Candidate>& list) {
  if (list.size() <= limits_.entries) return;
  thinned_ = true;
  const size_t steps = limits_.entries - 1;
  const auto step_of = [&](const Candidate& candidate) {
    const double place = std::sqrt(std::max(0.0, candidate.first / limits_.scale)) * static_cast<double>(steps);
    return place < static_cast<double>(steps) ? static_cast<size_t>(place) : steps - 1;
  };
  size_t kept = 1;
  for (size_t i = 1; i < list.size() && steps > 0; ++i) {
    if (i + 1 == list.size() || step_of(list[i]) != step_of(list[i + 1])) list[kept++] = list[i];
  }
  list.resize(kept);
}

// A tolerance, so that rounding does not cut the known answer.
void Sweep::cut(std::vector<Candidate>& list, double to_go) const {
  const double price = limits_.ceiling->price, ceiling = limits_.ceiling->ceiling;
  const double limit = ceiling + 1e-11 * std::abs(ceiling) - to_go;
  std::erase_if(list, [&](const Candidate& c) { return c.second + price * c.first > limit; });
}

void Sweep::step(size_t step, double rest, Lists& lists) {
  const size_t states = plan_.steps[step].states;
  Lists next(states);
  std::vector<Trace>& traces = traces_.emplace_back();
  const std::vector<std::vector<FrontierSource>> sources = sources_of(problem_, plan_.steps[step], measure_);
  for (size_t state = 0; state < states; ++state) {
    std::vector<Candidate> list = merged(sources[state], lists, rest);
    if (limits_.ceiling != nullptr) cut(list, limits_.ceiling->to_go[step][state]);
    thin(list);
    next[state].reserve(list.size());
    for (const Candidate& candidate : list) {
      next[state].push_back({candidate.first, candidate.second, static_cast<uint32_t>(traces.size())});
      traces.push_back(candidate.trace);
    }
  }
  lists = std::move(next);
}

std::vector<size_t> Sweep::options(const SweepEntry& entry) const {
  std::vector<size_t> out(problem_.nodes.size(), 0);
  uint32_t place = entry.trace;
  for (size_t i = plan_.steps.size(); i-- > 0;) {
    const Trace& trace = traces_[i][place];
    out[plan_.steps[i].node] = trace.option;
    place = trace.before;
  }
  return out;
}

}  // namespace hoist
