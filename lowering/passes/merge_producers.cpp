// Steps that make a producer part of its consumer: of inline-views, inline-widening, merge-producers, merge-rows,
// fuse-rows and fuse-chains.
#include "lowering/fusion/launches.h"
#include "lowering/fusion/shared_reads.h"
#include "lowering/graph/steps.h"
#include "lowering/passes/rows.h"

namespace hoist {
namespace {

// The producer that the step names; it comes before its consumer.
Result<const Definition*> producer_of(const Program& program, const Definition& consumer, const ProgramStep& step) {
  const auto named = step.parameters.find("producer");
  const std::string producer = named == step.parameters.end() ? "" : named->second;
  const Definition* found = find_definition(program, producer);
  if (found == nullptr || found >= &consumer)
    return Diagnostic{"", "the program does not define the value " + producer + " before " + step.value, ""};
  return found;
}

}  // namespace

Done replay_inlining(Program& program, Definition& definition, const ProgramStep& step) {
  HOIST_TRY(const Definition* from, producer_of(program, definition, step));
  merge_into(program, step.rule, *from, definition);
  return Nothing{};
}

Done replay_merging(Program& program, Definition& definition, const ProgramStep& step) {
  HOIST_TRY(const Definition* from, producer_of(program, definition, step));
  if (step.rule == "merge-rows" && merged_rows(from->expression, from->value, definition.expression) == nullptr)
    return Diagnostic{"", step.value + " and " + from->value + " have no rows in common", ""};
  if (step.rule == "fuse-rows" && materialised_rows(from->expression, from->value, definition.expression) == nullptr)
    return Diagnostic{"", "rows of " + step.value + " read more than one row of " + from->value, ""};
  if (step.rule == "fuse-chains")
    materialise_in_launch(program, *from, definition);
  else
    merge_into(program, step.rule, *from, definition);
  program.definitions.erase(program.definitions.begin() + (from - program.definitions.data()));
  return Nothing{};
}

}  // namespace hoist
