#include "lowering/passes/rows.h"
#include "lowering/rules/rules.h"
#include "lowering/search/exploration.h"

namespace hoist {

// Applies rewrites that a search has measured to be faster than the unchanged term.
Result<Nothing> explore(Program& program, const PassOptions& options) {
  for (Definition& definition : program.definitions) {
    const int64_t walk = recorded(options, definition.expression, exploration_knob).value_or(0);
    if (walk == 0) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    if (explore(rewriter, walk, options.strict)) take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

}  // namespace hoist
