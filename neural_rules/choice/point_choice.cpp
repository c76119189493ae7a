#include "neural_rules/choice/point_choice.h"

#include <algorithm>
#include <cmath>

namespace hoist {
namespace {

// True if every rule of a point is a candidate: points of earlier runs may have other rules.
bool has_options(const StudyPoint& point, const std::vector<size_t>& options) {
  const auto changed = std::count_if(options.begin(), options.end(), [](size_t option) { return option != 0; });
  return static_cast<size_t>(changed) == point.assignment.size();
}

}  // namespace

bool rounds_weights(const StudyPoint& point) {
  return std::any_of(point.assignment.begin(), point.assignment.end(),
                     [](const auto& choice) { return find_scheme(choice.second) != nullptr; });
}

void PointChoice::predict(StudyPoint& point) const {
  point.predicted_error = point.predicted_time = std::nan("");
  point.size = weight_bytes(sensitivity, point.assignment);
  const std::vector<size_t> options = options_of(sensitivity, costs, point.assignment);
  if (!has_options(point, options)) return;
  const Choice choice = evaluate_choice(costs.problem, options);
  if (!std::isfinite(choice.cost)) return;
  if (point.retraining == nullptr) point.predicted_error = choice.error;
  point.predicted_time = settings.objective == Objective::time ? choice.cost + costs.base : std::nan("");
}

bool PointChoice::may_stay() const {
  return std::all_of(sensitivity.may_stay.begin(), sensitivity.may_stay.end(), [](bool may) { return may; });
}

bool PointChoice::has_choice() const {
  if (costs.problem.nodes.empty() && !may_stay()) return false;
  for (size_t i = 1; i < verifier.points.size(); ++i) {
    if ((costs.problem.nodes.empty() || allowed(verifier.points[i])) && verifier.keeps_budget(i)) return true;
  }
  return false;
}

bool PointChoice::allowed(const std::vector<size_t>& options) const {
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i] == 0 && !sensitivity.may_stay[i]) return false;
  }
  const auto fits = [&](const ChoiceEdge& edge) {
    const size_t row = options[edge.from] * costs.problem_options(edge.to);
    return std::isfinite(edge.cost[row + options[edge.to]]);
  };
  return std::all_of(costs.problem.edges.begin(), costs.problem.edges.end(), fits);
}

bool PointChoice::allowed(const StudyPoint& point) const {
  if (point.retraining != nullptr && !settings.retrain) return false;
  const std::vector<size_t> options = options_of(sensitivity, costs, point.assignment);
  return has_options(point, options) && allowed(options);
}

bool PointChoice::competes(size_t point) const {
  return settings.objective == Objective::size || !verifier.points[0].is_timed() || verifier.points[point].is_timed();
}

double PointChoice::cost_of(const StudyPoint& point) const {
  if (settings.objective == Objective::size) return point.size;
  return point.is_timed() ? point.time.value : point.predicted_time;
}

size_t PointChoice::best(bool keeping) const {
  const std::optional<size_t> found = least(keeping);
  if (!found) return 0;
  return keeping && settings.objective == Objective::time ? most_accurate_besides(*found) : *found;
}

bool PointChoice::is_clear() const {
  const std::optional<size_t> cheapest = least(true);
  if (!cheapest) return true;
  const StudyPoint &chosen = verifier.points[best(true)], &fastest = verifier.points[*cheapest];
  return !fastest.is_timed() || chosen.time.value <= (1 + same_time) * fastest.time.value;
}

std::optional<size_t> PointChoice::to_retrain() const {
  const std::vector<StudyPoint>& points = verifier.points;
  const size_t chosen = best(true);
  const bool has_chosen = allowed(points[chosen]) && verifier.keeps_budget(chosen);
  std::optional<size_t> out;
  for (size_t i = 1; i < points.size(); ++i) {
    const auto is_of_it = [&](const StudyPoint& other) {
      return other.retraining != nullptr && other.assignment == points[i].assignment;
    };
    if (!points[i].verified || !allowed(points[i]) || verifier.keeps_budget(i) || !rounds_weights(points[i])) continue;
    if (std::any_of(points.begin(), points.end(), is_of_it)) continue;
    if (has_chosen && !(cost_of(points[i]) < cost_of(points[chosen]))) continue;
    if (!out || cost_of(points[i]) < cost_of(points[*out])) out = i;
  }
  return out;
}

std::optional<size_t> PointChoice::least(bool keeping) const {
  size_t out = 0;
  bool found = allowed(verifier.points[0]);
  for (size_t i = 1; i < verifier.points.size(); ++i) {
    const StudyPoint& point = verifier.points[i];
    if (!allowed(point) || (keeping && !(verifier.keeps_budget(i) && competes(i)))) continue;
    const StudyPoint& known = verifier.points[out];
    const bool is_same = !keeping || cost_of(point) == cost_of(known);
    const bool better = is_same ? point.error < known.error : cost_of(point) < cost_of(known);
    if (found && !better) continue;
    out = i;
    found = true;
  }
  return found ? std::optional(out) : std::nullopt;
}

size_t PointChoice::most_accurate_besides(size_t cheapest) const {
  size_t out = cheapest;
  const Interval time = verifier.points[cheapest].time;
  for (size_t i = 0; i < verifier.points.size(); ++i) {
    const StudyPoint& point = verifier.points[i];
    if (!(point.is_timed() && point.time.low <= time.high) || !(point.error < verifier.points[out].error)) continue;
    if (allowed(point) && verifier.keeps_budget(i)) out = i;
  }
  return out;
}

}  // namespace hoist
