#include "lowering/fusion/grouping.h"
#include "lowering/fusion/outline.h"
#include "lowering/graph/copies.h"
#include "lowering/passes/rows.h"

namespace hoist {

Result<Nothing> outline_kernels(Program& program, const PassOptions& options) {
  const std::set<std::string> before = defined_values(program);
  const size_t steps_before = program.steps.size();
  HOIST_TRY(const bool any, at_definitions(program, outline_definition));
  if (!any) return Nothing{};
  drop_copies(program, options.share_equal);  // several results of a layer materialise the same arrays
  std::set<std::string> outlined;
  for (size_t i = steps_before; i < program.steps.size(); ++i) {
    if (before.count(program.steps[i].value) != 0) outlined.insert(program.steps[i].value);
  }
  HOIST_TRY_VOID(fold_added(program, before, options));
  merge_rests(program, outlined);
  return Nothing{};
}

Done replay_outline_kernels(Program& program, Definition&, const ProgramStep& step) {
  ProgramIndex index(program);
  HOIST_TRY(const bool done, outline_definition(index, step.value));
  if (!done) return Diagnostic{"", "the definition materialises nothing in global memory", ""};
  return Nothing{};
}

}  // namespace hoist
