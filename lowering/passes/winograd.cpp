#include "lowering/cost/winograd.h"

#include <algorithm>

#include "lowering/passes/rows.h"
#include "lowering/rules/rules.h"

namespace hoist {

bool wants_winograd(const PassOptions& options) {
  return options.convolution == ConvolutionForm::automatic || options.convolution == ConvolutionForm::winograd;
}

// A record decides an automatic choice; without one, convolutions stay stencils unless a form is clearly less work.
// Either way the filters have to be constants: their transform on the device would take longer, in every run, than it
// saves.
Result<Nothing> winograd(Program& program, const PassOptions& options) {
  const bool wanted = options.convolution == ConvolutionForm::winograd;
  int64_t left = options.folding.operations / 2;  // the budget of folding for large results
  for (Definition& definition : program.definitions) {
    if (!wanted && !has_known_weights(program, definition)) continue;
    const bool may_round = !options.strict && has_fit_filters(program, definition);
    constexpr int64_t unknown = -1;
    const int64_t results =
        wanted ? unknown : recorded(options, definition.expression, winograd_knob).value_or(unknown);
    const auto choose = [&](const std::vector<WinogradChoice>& choices) -> const WinogradChoice* {
      if (results == unknown) return cheapest(choices);
      const auto found = std::find_if(choices.begin(), choices.end(),
                                      [&](const WinogradChoice& choice) { return choice.results == results; });
      return found == choices.end() ? nullptr : &*found;
    };
    Rewriter rewriter(lowering_rules(), definition.expression);
    for (;;) {
      const std::vector<WinogradChoice> choices =
          winograd_choices(rewriter.term(), options.profile, options.fuses_launches, may_round);
      const WinogradChoice* form = choose(choices);
      if (form == nullptr || (!wanted && form->transform > left)) break;
      if (!wanted && results == unknown && !is_clearly_less(*form)) break;
      left -= form->transform;
      if (!form->phases.empty()) rewriter.apply(dilated_phases, form->dilated, form->phases);
      rewriter.apply(form->rule, form->place, form->arguments);
      if (form->error > 0)
        program.rounding.push_back({layer_name(definition), form->rule, form->error,
                                    "the largest sum of magnitudes over the channels at a position of a result's own "
                                    "window, times the sum over the positions of the largest magnitude of its filter"});
    }
    take_steps(program, definition, rewriter);
  }
  return Nothing{};
}

}  // namespace hoist
