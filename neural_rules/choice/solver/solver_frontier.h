// Going through a choice problem node by node with a frontier: the nodes that were passed and still have neighbours to
// come. For each choice of options at the frontier a list of entries, each the best known of its kind, and from each a
// trace back to the choices that led there. Two uses: lists of (error, cost), which hold the whole front, and a single
// entry of a priced sum, which is its exact minimum. Inside the solver only; users see solver.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "neural_rules/choice/solver/solver_problem.h"

namespace hoist {

/// One node passed: it joins the frontier, then those leave that have no neighbours to come.
struct FrontierStep {
  size_t node = 0;
  std::vector<size_t> before, after;  ///< the frontier, as nodes
  size_t states = 1;                  ///< choices at the frontier after the step
};

struct FrontierPlan {
  std::vector<FrontierStep> steps;
  size_t states = 0;  ///< of all steps
};

/// An order with few states, found greedily from some starts; nullopt where even the best has more than `most_states`
/// in all.
std::optional<FrontierPlan> frontier_plan(const SolverProblem& problem, size_t most_states);

/// What an entry's two numbers are: first = error * error_share + cost * cost_share, second likewise. Lists are sorted
/// by the first; an entry stays only while no other is as good in both.
struct SweepMeasure {
  double first_error = 1, first_cost = 0;
  double second_error = 0, second_cost = 1;
};

/// A way into a state: the state before and the option taken, and what these add.
struct FrontierSource {
  size_t state, option;
  double first, second;
};

/// What each state after each step costs at least until the end, when an error costs `price`; infinite where nothing
/// leads to the end.
using CostToGo = std::vector<std::vector<double>>;
CostToGo cost_to_go(const SolverProblem& problem, const FrontierPlan& plan, double price);

/// Leaves out what cannot become cheaper than an answer that is known: entries of (error, cost) whose cost + price *
/// error, with what is to come, is past the ceiling.
struct SweepCeiling {
  double price = 0, ceiling = 0;
  CostToGo to_go;
};

struct SweepLimits {
  double bound = 0;    ///< of the first number; may be infinite
  double scale = 1;    ///< longer lists keep the best second number in each of the steps of sqrt(first / scale)
  size_t entries = 1;  ///< of a list
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
  const std::vector<SweepEntry>& entries() const { return entries_; }  ///< by growing first number
  bool thinned() const { return thinned_; }                            ///< lists were too long
  bool stopped() const { return stopped_; }                            ///< out of time; there are no entries
  std::vector<size_t> options(const SweepEntry& entry) const;          ///< one a node

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
  std::vector<std::vector<Trace>> traces_;  ///< of each step
  std::vector<SweepEntry> entries_;
  bool thinned_ = false, stopped_ = false;
};

}  // namespace hoist
