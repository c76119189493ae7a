#include "ir/operators/operators.h"
#include "lowering/cost/winograd.h"
#include "lowering/graph/copies.h"
#include "lowering/passes/rows.h"
#include "lowering/rules/program_rules.h"

namespace hoist {

// This pass runs before calls are inlined, so that one rule covers all forms of contractions. Bytes stay if Winograd's
// form will be chosen, whose transform loads each byte once.
Result<Nothing> widen_bytes(Program& program, const PassOptions& options) {
  static const std::vector<const ProgramRule*> rules = operator_rules_of("widen-bytes");
  const auto takes_winograd = [&](const Program& changed, Expr call) -> Result<bool> {
    if (!wants_winograd(options) || call->children.empty() ||
        leaf_of(call->children[0]->type) != scalar_type(Scalar::u8))
      return false;
    HOIST_TRY(const Expr term, inline_call(*call, changed.constants));
    const std::vector<WinogradChoice> choices =
        winograd_choices(term, options.profile, options.fuses_launches, !options.strict);
    return !choices.empty() &&
           (options.convolution == ConvolutionForm::winograd || is_clearly_less(*cheapest(choices)));
  };
  const auto widened = [&](ProgramIndex& index, const std::string& value) -> Result<bool> {
    const Expr call = index.find(value)->expression;
    if (call->pattern != Pattern::operator_call || leaf_of(call->type) != scalar_type(Scalar::i32)) return false;
    HOIST_TRY(const bool stays, takes_winograd(index.program(), call));
    if (stays) return false;
    for (const ProgramRule* rule : rules) {
      HOIST_TRY(const bool applies, apply_program_rule(*rule, index, value));
      if (applies) return true;
    }
    return false;
  };
  HOIST_TRY(const bool any, at_definitions(program, widened));
  if (any) drop_copies(program, options.share_equal);  // contractions that read the same value
  return Nothing{};
}

}  // namespace hoist
