#include "lowering/loops/unroll.h"

#include <algorithm>
#include <optional>

#include "ir/properties/properties.h"
#include "ir/target/machine.h"
#include "lowering/passes/rows.h"
#include "lowering/rules/rules.h"
#include "lowering/terms/materialised.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

constexpr const char* steps_in_rows = "fold-of-materialised-map";

// A materialised loop whose steps change rows in place, so that each row has its own loop. Longer rows are divided
// among work-groups.
bool changes_rows(Expr array) {
  constexpr int64_t longest_row = 1 << 14;
  if (!is_materialised_in_global(array)) return false;
  const Expr e = array->children[0];
  if (e->pattern != Pattern::fold || e->free != 0 || !is_materialised_in_global(e->children[0]->children[0]))
    return false;
  if (!e->type->is_array() || shape_of(e->type).size() != 2 || shape_of(e->type)[1] >= longest_row) return false;
  Rewriter rewriter(lowering_rules(), e);
  return rewriter.apply(steps_in_rows, {}) && changes_in_place(at(rewriter.term(), {0, 0}));
}

// Such loops stay one kernel on CPUs, with one work-group per row: a step is less work than a launch.
void keep_steps_together(Program& program) {
  for (Definition& definition : program.definitions) {
    Rewriter rewriter(lowering_rules(), definition.expression);
    for (;;) {
      std::optional<Path> place = first_closed(rewriter.term(), changes_rows);
      if (!place) break;
      place->push_back(0);
      if (!rewriter.apply(steps_in_rows, *place)) break;
    }
    take_steps(program, definition, rewriter);
  }
}

}  // namespace

Result<Nothing> unroll(Program& program, const PassOptions& options) {
  const std::set<std::string> before = defined_values(program);
  if (!lanes_are_work_items(options.profile)) keep_steps_together(program);
  const auto change = [&](ProgramIndex& changed, const std::string& value) {
    return unroll_definition(changed, value, options.execute, options.unrolled_steps);
  };
  HOIST_TRY(const bool any, at_definitions(program, change));
  return any ? fold_added(program, before, options) : Result<Nothing>(Nothing{});
}

Done replay_unroll(Program& program, Definition&, const ProgramStep& step) {
  HOIST_TRY(const int64_t most, unrolled_steps_of(step));
  ProgramIndex index(program);
  HOIST_TRY(const bool done, unroll_definition(index, step.value, true, most));
  if (!done) return Diagnostic{"", "the definition has no loop over materialised arrays", ""};
  return Nothing{};
}

}  // namespace hoist
