// Steps of passes whose functions belong to other folders: copies, tables, definitions of calls, knobs, stored terms.
#include "ir/text/text.h"
#include "lowering/graph/copies.h"
#include "lowering/graph/steps.h"
#include "lowering/layout/stored_terms.h"
#include "lowering/passes/rows.h"

namespace hoist {

Done replay_drop_copies(Program& program, Definition& definition, const ProgramStep& step) {
  const auto copy = step.parameters.find("copy"), of = step.parameters.find("of");
  if (copy == step.parameters.end() || of == step.parameters.end())
    return Diagnostic{"", "the step does not name a copy and its original", ""};
  if (!repeats(program, copy->second, of->second))
    return Diagnostic{"", "the value " + copy->second + " is not the value " + of->second + " here", ""};
  read_instead(program, *find_definition(program, copy->second), of->second, find_definition(program, of->second),
               definition);
  return Nothing{};
}

Done replay_integer_tables(Program& program, Definition&, const ProgramStep& step) {
  if (!use_integer_table(program, step.value)) return Diagnostic{"", "no table can replace the definition", ""};
  return Nothing{};
}

Done replay_inline_definitions(Program& program, Definition& definition, const ProgramStep&) {
  return inline_definition(program, definition);
}

Done replay_choose_knobs(Program& program, Definition& definition, const ProgramStep& step) {
  KnobValues knobs;
  for (const auto& [name, number] : step.parameters) {
    HOIST_TRY(const Nat size, parse_size(number));
    if (!size.is_constant()) return Diagnostic{"", "the knob " + name + " is not a number", ""};
    knobs[present_knob_name(name)] = size.value();
  }
  take_knobs(program, definition, knobs);
  return Nothing{};
}

Done replay_store(Program& program, Definition& definition, const ProgramStep& step) {
  if (program.storage.count(step.value) == 0) return Diagnostic{"", "no storage is chosen yet", ""};
  store_definition(definition, program.storage);
  return Nothing{};
}

}  // namespace hoist
