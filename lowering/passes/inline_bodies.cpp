#include "lowering/graph/steps.h"
#include "lowering/loops/unroll.h"
#include "lowering/passes/rows.h"

namespace hoist {
namespace {

// A call of constants alone may exceed the limit: "fold-constants" evaluates it.
Result<bool> inline_bodies_or_fold(ProgramIndex& index, const std::string& value, int64_t most) {
  auto changed = inline_bodies(index, value, most);
  if (changed.ok()) return changed;
  const Definition& call = *index.find(value);
  if (constant_term(index.program(), call, call.expression) != nullptr) return false;
  return changed;
}

}  // namespace

Result<Nothing> inline_bodies(Program& program, const PassOptions& options) {
  const auto change = [&](ProgramIndex& changed, const std::string& value) {
    return options.execute && wants_execution(changed, value, options.unrolled_steps)
               ? execute_bodies(changed, value)
               : inline_bodies_or_fold(changed, value, options.unrolled_steps);
  };
  HOIST_TRY(const bool any, at_definitions(program, change));
  if (any) drop_unused(program);
  return Nothing{};
}

Done replay_inline_bodies(Program& program, Definition&, const ProgramStep& step) {
  HOIST_TRY(const int64_t most, unrolled_steps_of(step));
  ProgramIndex index(program);
  HOIST_TRY(const bool done, inline_bodies(index, step.value, most));
  if (!done) return Diagnostic{"", "the definition is not a call with programs as attributes", ""};
  return Nothing{};
}

Done replay_execute_bodies(Program& program, Definition&, const ProgramStep& step) {
  ProgramIndex index(program);
  HOIST_TRY(const bool done, execute_bodies(index, step.value));
  if (!done) return Diagnostic{"", "the definition is not a call of If, Loop or Scan", ""};
  return Nothing{};
}

}  // namespace hoist
