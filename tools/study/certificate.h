// The certificate of a bundle that was made under a budget, as JSON for its manifest: the allowed loss, the
// measurements and their data, and the results that a device must reproduce. Also runs a user's metric, which
// certificates quote. Budgets: budget.h.
#pragma once

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>

#include "backends/opencl/bundle_runner.h"
#include "ir/base/result.h"
#include "neural_rules/choice/choose.h"

namespace hoist {

/// The right answers of the unchanged model on the verification data.
struct ReferenceScore {
  int64_t right = 0, samples = 0;  ///< no samples: no labels, or no output of scores
  double guessing = std::nan("");  ///< the share of guessing; NaN if it is unknown

  std::string text() const;     ///< "the unchanged model: 46 of 500 right, 9.20 % (95 % interval ...)"
  std::string warning() const;  ///< chance_warning() of scores.h
  /// True if the model is hardly better than guessing, so that the loss under rules is meaningless; false if there are
  /// too few samples to tell.
  bool is_chance() const;
};
ReferenceScore reference_score(const Study& study);

std::string certificate_text(const Choosing& found);
/// The share of guessing in the certificate; NaN if it has none.
double guessing_in(const std::string& certificate);
/// Errors: `text` is not a certificate; `where` names its file.
Result<bool> certificate_states_met(const std::string& text, const std::string& where);

/// Runs the model on the data and compares with the certificate: the power of each output, and classes and right
/// answers if an output has scores. Nothing if the certificate was made with other data.
Result<std::optional<Finding>> check_certificate(BundleRunner& bundle, const std::string& certificate,
                                                 const std::string& data);

/// The output of the shell's command with the folder as its last word: one number and white space. Errors: it fails,
/// prints anything else, or takes longer than `seconds`.
Result<double> number_of_command(const std::string& command, const std::filesystem::path& folder, double seconds);

}  // namespace hoist
