#include "lowering/passes/rows.h"
#include "lowering/rules/program_rules.h"

namespace hoist {

bool has_user_rules(const PassOptions& options) {
  return options.rules != nullptr && !options.rules->between_calls.empty();
}

Result<Nothing> user_rules(Program& program, const PassOptions& options) {
  if (!has_user_rules(options))
    return Diagnostic{"user-rules", "the rules of --rules include none between operator calls",
                      "name a file with such rules in --rules"};
  for (const ProgramRule* rule : options.rules->between_calls) HOIST_TRY_VOID(check_strict(*rule, options.strict));
  HOIST_TRY_VOID(apply_program_rules(options.rules->between_calls, program));
  return Nothing{};
}

}  // namespace hoist
