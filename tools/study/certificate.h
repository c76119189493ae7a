// The certificate of a bundle that was made under a budget, as JSON for its manifest: what was allowed, what was
// measured on which data, and what a device must still give on them. Also running a user's metric, which certificates
// quote. Not for choosing: budget.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "backends/opencl/bundle_runner.h"
#include "neural_rules/choice/choose.h"
#include "tools/cli/attempt.h"

namespace hoist {

std::string certificate_text(const Choosing& found);
/// Errors: `text` is no certificate; `where` names its file.
Result<bool> certificate_says_met(const std::string& text, const std::string& where);

/// Runs the model on the data and compares with the certificate: the power of each output, classes and right answers
/// where one is scores. Nothing where the data are others than those that the certificate names.
Attempt<std::optional<Finding>> check_certificate(BundleRunner& bundle, const std::string& certificate,
                                                  const std::string& data);

/// What the shell's command prints when it is given the folder as one more word: one number and white space. Errors: it
/// fails, prints anything else, or takes longer than `seconds`.
Result<double> number_of_command(const std::string& command, const std::filesystem::path& folder, double seconds);

}  // namespace hoist
