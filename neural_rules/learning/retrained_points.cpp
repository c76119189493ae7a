#include "neural_rules/learning/retrained_points.h"

#include <cmath>

#include "ir/base/cancellation.h"
#include "neural_rules/choice/point_choice.h"

namespace hoist {
namespace {

constexpr double progress_share = 0.95;

bool is_over(const ChooseOptions& options) { return options.stopped() || options.spent() > 1; }

PointChoice choice_of(const RetrainingStudy& study) {
  return {study.sensitivity, study.costs, study.verifier, study.options};
}

enum class Outcome : uint8_t { keeps, breaks, nothing };

// Nothing is added if the time ends first or the training fails.
Result<Outcome> add_retrained(const RetrainingStudy& study, size_t origin) {
  StudyPoint point = study.verifier.points[origin];
  study.options.sensitivity.progress("retraining " + point.name, progress_share);
  Outcome outcome = Outcome::nothing;
  HOIST_TRY([[maybe_unused]] const bool done, within(study.options.seconds_until(1), [&]() -> Result<Nothing> {
              Sensitivity& of = study.sensitivity;
              auto made = study.options.retrain(point.assignment, of.statistics, of.factors);
              if (!made.ok() && made.errors()[0].kind == ErrorKind::negative) {
                of.notes.push_back("retraining of " + point.name + " failed: " + made.errors()[0].text());
                return Nothing{};
              }
              if (!made.ok()) return made.errors();
              point.retraining = std::make_shared<const Retraining>(std::move(*made));
              point.name += ", retrained";
              point.predicted_error = std::nan("");
              point.chosen = false;
              HOIST_TRY_VOID(study.ensure_reference());
              HOIST_TRY(const size_t place, study.verifier.add(std::move(point)));
              outcome = study.verifier.keeps_budget(place) ? Outcome::keeps : Outcome::breaks;
              return Nothing{};
            }));
  study.keep();
  return outcome;
}

}  // namespace

Result<Nothing> add_retrained_points(const RetrainingStudy& study) {
  const ChooseOptions& options = study.options;
  if (!options.retrain) return Nothing{};
  for (int i = 0; i < options.retrainings && !is_over(options); ++i) {
    const std::optional<size_t> point = choice_of(study).to_retrain();
    if (!point) break;
    HOIST_TRY(const Outcome outcome, add_retrained(study, *point));
    if (outcome != Outcome::breaks) return Nothing{};
  }
  const size_t best = choice_of(study).best(true);
  const StudyPoint& point = study.verifier.points[best];
  if (is_over(options) || point.retraining != nullptr || !rounds_weights(point)) return Nothing{};
  HOIST_TRY([[maybe_unused]] const Outcome outcome, add_retrained(study, best));
  return Nothing{};
}

}  // namespace hoist
