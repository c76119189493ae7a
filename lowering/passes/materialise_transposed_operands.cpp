#include <algorithm>

#include "lowering/passes/rows.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/terms.h"

namespace hoist {

void materialise_transposed_operands(Program& program) {
  const auto is_constant = [&](const std::string& name) { return program.constants.count(name) != 0; };
  materialise_at(program, [&](const Definition& definition) {
    std::vector<RuleAtPlace> out;
    const bool by_constants = std::all_of(definition.weights.begin(), definition.weights.end(),
                                          [&](const Weights& w) { return is_constant(w.value); });
    if (by_constants) return out;  // also true for terms that are not contractions
    if (const auto operand = transposed_operand(definition.expression, is_constant))
      out.push_back({operand->place, operand->rule});
    return out;
  });
}

}  // namespace hoist
