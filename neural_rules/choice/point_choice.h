// The choice among the points of a study: which points pins, preferences and the budget allow, and the best of them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "neural_rules/choice/choose.h"
#include "neural_rules/choice/cost.h"
#include "neural_rules/choice/verification.h"

namespace hoist {

/// Times that differ by less are the same to a user.
inline constexpr double same_time = 0.05;

/// True if a rule of the point rounds weights, so that retraining can change them.
bool rounds_weights(const StudyPoint& point);

/// A view of a study; all members outlive it.
struct PointChoice {
  const Sensitivity& sensitivity;
  const CostModel& costs;
  const Verifier& verifier;
  const ChooseOptions& settings;

  /// Sets the predictions and the size of a point; NaN for predictions that do not follow from the measurements.
  void predict(StudyPoint& point) const;
  /// True if no pin forbids the unchanged model.
  bool may_stay() const;
  /// True if pins and preferences allow the options, and each contraction finds the format that it reads. Measurements
  /// of rules do not matter: the solver cannot propose a rule whose error is unknown, and a verified point with it can
  /// still be chosen.
  bool allowed(const std::vector<size_t>& options) const;
  bool allowed(const StudyPoint& point) const;
  /// True if a verified point other than the unchanged model may be chosen. Pins are considered once the costs are
  /// known.
  bool has_choice() const;
  /// The cheapest point that keeps the budget, or the one with the least error; 0 (the reference) if there is none.
  size_t best(bool keeping) const;
  /// False if a point is faster by more than same_time than the chosen one, but their intervals overlap: more runs
  /// could tell.
  bool is_clear() const;
  /// The cheapest point that breaks the budget, is cheaper than the best one and was not retrained yet.
  std::optional<size_t> to_retrain() const;

 private:
  std::optional<size_t> least(bool keeping) const;
  /// Points without a time cannot be compared with timed ones.
  bool competes(size_t point) const;
  double cost_of(const StudyPoint& point) const;
  /// If the intervals of two points' times overlap, it is unknown which is faster, and the more accurate one is taken.
  size_t most_accurate_besides(size_t cheapest) const;
};

}  // namespace hoist
