#include "lowering/fusion/outline.h"
#include "lowering/graph/copies.h"
#include "lowering/passes/rows.h"

namespace hoist {

Result<Nothing> outline_kernels(Program& program, const PassOptions& options) {
  const std::set<std::string> before = defined_values(program);
  HOIST_TRY(const bool any, at_definitions(program, outline_definition));
  if (!any) return Nothing{};
  drop_copies(program, options.share_equal);  // several results of a layer materialise the same arrays
  return fold_added(program, before, options);
}

Done replay_outline_kernels(Program& program, Definition&, const ProgramStep& step) {
  HOIST_TRY(const bool done, outline_definition(program, step.value));
  if (!done) return Diagnostic{"", "the definition materialises nothing in global memory", ""};
  return Nothing{};
}

}  // namespace hoist
