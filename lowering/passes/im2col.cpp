#include "lowering/passes/rows.h"
#include "lowering/rules/rules.h"

namespace hoist {

bool wants_im2col(const PassOptions& options) {
  return options.convolution == ConvolutionForm::im2col ||
         (options.convolution == ConvolutionForm::automatic && options.records);
}

// All convolutions, or the recorded ones if only records request the pass.
Result<Nothing> im2col(Program& program, const PassOptions& options) {
  const bool all = !options.records || options.convolution == ConvolutionForm::im2col;
  for (Definition& definition : program.definitions) {
    const bool wanted = all || recorded(options, definition.expression, im2col_knob).value_or(0) != 0;
    if (!wanted) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    if (materialise_windows(rewriter)) take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

bool materialise_windows(Rewriter& rewriter) {
  bool any = false;
  for (const std::string_view rule : rules_within_terms("im2col")) {
    while (rewriter.apply_first(std::string(rule))) any = true;
  }
  return any;
}

}  // namespace hoist
