// A sweep over the nodes of a choice problem with a frontier: the processed nodes with unprocessed edges. For each
// combination of options at the frontier there is a list of non-dominated entries, each with a trace to its choices.
// Two uses: lists of (error, cost), which contain the whole front, and a single entry of a priced sum, which is its
// exact minimum. Internal to the solver; the interface is solver.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "neural_rules/choice/solver/solver_problem.h"

namespace hoist {

/// One processed node: it enters the frontier, then nodes without unprocessed edges leave.
struct FrontierStep {
  size_t node = 0;
  std::vector<size_t> before, after;  ///< the frontier, as nodes
  size_t states = 1;                  ///< combinations of options at the frontier after the step
};

struct FrontierPlan {
  std::vector<FrontierStep> steps;
  size_t states = 0;  ///< states of all steps
};

/// An order with few states, found greedily from several starts; nullopt if the best order exceeds `most_states` in
/// total.
std::optional<FrontierPlan> frontier_plan(const SolverProblem& problem, size_t most_states);

/// The two numbers of an entry: first = error * first_error + cost * first_cost, second likewise. Lists are sorted by
/// the first number and contain no dominated entries.
struct SweepMeasure {
  double first_error = 1, first_cost = 0;
  double second_error = 0, second_cost = 1;
};

/// A transition into a state: the previous state, the chosen option, and the added numbers.
struct FrontierSource {
  size_t state, option;
  double first, second;
};

/// The minimum cost from each state after each step to the end if an error costs `price`; infinite if no path leads to
/// the end.
using CostToGo = std::vector<std::vector<double>>;
CostToGo cost_to_go(const SolverProblem& problem, const FrontierPlan& plan, double price);

/// Drops entries that cannot become cheaper than a known answer: entries of (error, cost) whose cost + price * error
/// plus the minimum of the rest exceeds the ceiling.
struct SweepCeiling {
  double price = 0, ceiling = 0;
  CostToGo to_go;
};

struct SweepLimits {
  double bound = 0;    ///< bound of the first number; may be infinite
  double scale = 1;    ///< longer lists keep the best second number per step of sqrt(first / scale)
  size_t entries = 1;  ///< maximum per list
  const std::function<bool()>* out_of_time = nullptr;
  const SweepCeiling* ceiling = nullptr;
};

struct SweepEntry {
  double first = 0, second = 0;
  uint32_t trace = 0;
};

class Sweep {
 public:
  Sweep(const SolverProblem& problem, const FrontierPlan& plan, const SweepMeasure& measure, const SweepLimits& limits);
  const std::vector<SweepEntry>& entries() const { return entries_; }  ///< by increasing first number
  bool thinned() const { return thinned_; }                            ///< true if lists were too long
  bool stopped() const { return stopped_; }                            ///< out of time; there are no entries
  std::vector<size_t> options(const SweepEntry& entry) const;          ///< one per node

 private:
  struct Trace {
    uint32_t before, option;
  };
  struct Candidate {
    double first, second;
    Trace trace;
  };
  using Lists = std::vector<std::vector<SweepEntry>>;

  void step(size_t step, double rest, Lists& lists);
  std::vector<Candidate> merged(const std::vector<FrontierSource>& sources, const Lists& lists, double rest) const;
  void cut(std::vector<Candidate>& list, double to_go) const;
  void thin(std::vector<Candidate>& list);

  const SolverProblem& problem_;
  const FrontierPlan& plan_;
  SweepMeasure measure_;
  SweepLimits limits_;
  std::vector<std::vector<Trace>> traces_;  ///< per step
  std::vector<SweepEntry> entries_;
  bool thinned_ = false, stopped_ = false;
};

}  // namespace hoist
