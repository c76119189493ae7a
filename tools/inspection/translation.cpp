#include "tools/inspection/translation.h"

#include <fmt/format.h>

#include "tools/base/terminal.h"
#include "tools/inspection/derivation.h"

namespace hoist {

Result<Validation> validate_derivation(ProgramDerivation derivation, const Profile& profile, bool only_first) {
  HOIST_TRY(const Derived from, derived(std::move(derivation), profile));
  Progress progress;
  ValidationOptions validation;
  validation.only_first = only_first;
  validation.progress = [&](size_t done, size_t all) {
    progress.show(fmt::format("comparing both sides of step {} of {}", done + 1, all),
                  static_cast<double>(done) / static_cast<double>(all));
  };
  HOIST_TRY(Validation out, validate(from.derivation, from.options, validation));
  return out;
}

Diagnostic described(const StepDifference& difference) {
  const std::string layer = difference.layer.empty() ? difference.value : difference.layer;
  return {fmt::format("step {}, {} at {}", difference.step + 1, difference.rule, layer),
          fmt::format("is {} and changes {}: {}", name_of(difference.rule_class), difference.value, difference.what),
          "inputs: " + difference.inputs};
}

std::string summary_of(const Validation& validation) {
  std::string out = fmt::format("{} steps, {} comparisons of definitions, {} elements", validation.steps,
                                validation.compared, validation.elements);
  if (validation.neural > 0) out += fmt::format("; {} neural steps change numbers on purpose", validation.neural);
  if (validation.left > 0)
    out += fmt::format("; {} not compared (too long, or stored as another type)", validation.left);
  return out + (validation.differences.empty() ? ": every step keeps the values"
                                               : fmt::format(": {} differences", validation.differences.size()));
}

}  // namespace hoist
