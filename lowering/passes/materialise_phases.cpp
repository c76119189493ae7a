#include <algorithm>

#include "lowering/layout/planes.h"
#include "lowering/passes/rows.h"
#include "lowering/rules/rules.h"

namespace hoist {

// Strided windows along the rows of channel planes load, for instance, every second element, which takes two loads and
// a blend or a shuffle per product. Rows in polyphase order make these elements contiguous.
Result<Nothing> materialise_phases(Program& program, const PassOptions& options) {
  const auto is_input = [&](const std::string& name) {
    return std::any_of(program.inputs.begin(), program.inputs.end(), [&](const auto& i) { return i.first == name; });
  };
  for (Definition& definition : program.definitions) {
    if (!is_output(program, definition.value)) continue;  // all other arrays are NHWC
    const auto phases = plane_phases(definition, options.profile, is_input);
    if (!phases) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    rewriter.apply("polyphase-planes", phases->place, phases->arguments);
    take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

}  // namespace hoist
