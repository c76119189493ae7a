// The study of a choice in numbers and sentences. For choose.h, which measures; budget.h has the sentences about
// budgets.
#pragma once

#include <string>

#include "neural_rules/choice/choose.h"
#include "neural_rules/choice/study.h"
#include "neural_rules/choice/verification.h"

namespace hoist {

/// All facts that a choice was made from.
struct ChoiceFindings {
  const Program& program;
  const ChooseOptions& options;
  const Samples &calibration, &verification;
  const Sensitivity& sensitivity;
  const Verifier& verifier;
  const std::string& unsteady;  ///< a note on a busy machine, or ""
};

/// The study without points that are only predicted; `chosen` is a point of the verifier.
Study describe_study(const ChoiceFindings& findings, size_t chosen);
/// The note of a choice without a verified model under rules. `seconds` is the time that each model takes if the limit
/// is too short for one, and 0 if the limit ended first.
std::string unchanged_note(bool reference_is_verified, double seconds);

}  // namespace hoist
