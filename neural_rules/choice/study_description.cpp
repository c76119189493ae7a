#include "neural_rules/choice/study_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hoist {
namespace {

std::string words_of_time(const StudyPoint& point) {
  if (point.is_timed()) return time_text(point.time.value);
  return std::isfinite(point.predicted_time) ? time_text(point.predicted_time) + " (predicted)" : "an unknown time";
}

void add_sites(Study& study, const std::vector<StudySite>& studied, const StudyPoint& point) {
  study.sites = studied;
  double accumulated = 0;
  for (StudySite& site : study.sites) {
    if (const auto found = point.assignment.find(site.site.key()); found != point.assignment.end()) {
      site.chosen = found->second;
      for (const Candidate& candidate : site.candidates) {
        if (candidate.rule == site.chosen)
          accumulated += std::isnan(candidate.error_alone) ? candidate.predicted_error : candidate.error_alone;
      }
    }
    site.accumulated_error = accumulated;
  }
}

void add_notes(Study& study, const ChoiceFindings& findings, const StudyPoint& point) {
  study.notes = findings.sensitivity.notes;
  study.notes.insert(study.notes.end(), findings.sensitivity.left_out.begin(), findings.sensitivity.left_out.end());
  if (const std::string note = resolution_note(findings.options.budget, study.verification_samples); !note.empty())
    study.notes.push_back(note);
  if (study.verification_samples < findings.verification.count && point.verified && !findings.verification.runs.empty())
    study.notes.push_back(fmt::format("verified on the first {} of {} samples: the time is not enough for more",
                                      study.verification_samples, findings.verification.count));
  if (!findings.unsteady.empty()) study.notes.push_back(findings.unsteady);
  if (std::any_of(study.points.begin(), study.points.end(), [](const StudyPoint& each) { return !each.is_timed(); }))
    study.notes.push_back(
        "the time limit ended before all points were timed: points without a time are not chosen, or all are compared "
        "by predicted times");
  if (study.points.size() == 1 && !study.sites.empty())
    study.notes.push_back("no rule was verified before the run ended: the model stays unchanged; give more --time");
  if (point.assignment.empty()) {
    const bool is_time = findings.options.objective == Objective::time;
    study.notes.push_back(fmt::format("no choice within the budget is known to be {} than the unchanged model{}",
                                      is_time ? "faster on this device" : "smaller",
                                      is_time ? "; --objective size searches for the fewest bytes" : ""));
  }
}

}  // namespace

Study describe_study(const ChoiceFindings& findings, size_t chosen) {
  Study study;
  study.budget = findings.options.budget.text();
  study.objective = name_of(findings.options.objective);
  study.seed = findings.options.sensitivity.seed;
  study.calibration_hash = findings.calibration.hash;
  study.verification_hash = findings.verification.hash;
  study.calibration_samples = findings.sensitivity.samples;
  study.verification_samples = findings.verifier.points[0].samples;
  study.output_power = findings.sensitivity.output_power;
  if (output_kinds(findings.program).main_kind() != OutputKind::values) study.classes = class_count(findings.program);
  study.points = findings.verifier.points;
  study.confidence = confidence(findings.options.budget, findings.verifier.evidence(chosen));
  const StudyPoint& point = study.points[chosen];
  add_sites(study, findings.sensitivity.studied, point);
  add_notes(study, findings, point);
  study.summary = fmt::format(
      "{} of {} sites changed: {}; {} a run against {}, {:.1f} kB of weights in their formats against {:.1f} kB",
      point.assignment.size(), study.sites.size(), verdict(findings.options.budget, findings.verifier.evidence(chosen)),
      words_of_time(point), words_of_time(study.points[0]), point.size / 1e3, study.points[0].size / 1e3);
  return study;
}

std::string unchanged_note(bool reference_is_verified, double seconds) {
  const char* reached = reference_is_verified ? "a model under rules" : "the unchanged model";
  const std::string reason =
      seconds > 0 ? fmt::format("the time is too short for {}, since each takes {:.1f} s here", reached, seconds)
                  : fmt::format("the time was over before {} was verified", reached);
  return fmt::format("the model stays unchanged: {}; give more --time, or fewer samples", reason);
}

}  // namespace hoist
