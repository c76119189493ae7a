#include "lowering/cost/winograd.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/operators/operators.h"
#include "lowering/passes/rows.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"

namespace hoist {

bool wants_winograd(const PassOptions& options) {
  return options.convolution == ConvolutionForm::automatic || options.convolution == ConvolutionForm::winograd;
}

namespace {

struct FormsOfDefinition {
  explicit FormsOfDefinition(Rewriter r) : rewriter(std::move(r)) {}
  Rewriter rewriter;
  std::vector<RoundingBound> rounding = {};
};

// A definition that may take a form.
struct Candidate {
  size_t definition = 0;
  bool may_round = false;
  std::vector<WinogradChoice> choices;
  double saving = 0;  ///< for each operation of a transform
};

// If the budget does not suffice for all transforms of filters, it goes to the definitions that save most for each
// operation: large maps first.
std::vector<Candidate> by_saving(const Program& program, const PassOptions& options) {
  std::vector<Candidate> out;
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    const Definition& definition = program.definitions[i];
    if (options.convolution != ConvolutionForm::winograd && !has_known_weights(program, definition)) continue;
    Candidate candidate{i, !options.strict && has_fit_filters(program, definition), {}, 0};
    candidate.choices =
        winograd_choices(definition.expression, options.profile, options.fuses_launches, candidate.may_round);
    const WinogradChoice* form = cheapest(candidate.choices);
    if (form == nullptr) continue;
    candidate.saving = (form->direct - form->cost) / static_cast<double>(std::max<int64_t>(1, form->transform));
    out.push_back(std::move(candidate));
  }
  std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) { return a.saving > b.saving; });
  return out;
}

// The program of a single call, whose operands are inputs.
Program alone(const Definition& definition, int64_t version) {
  Program out;
  out.version = version;
  for (Expr operand : parameters_of(definition.expression)) out.inputs.emplace_back(operand->name, operand->type);
  out.definitions = {definition};
  out.outputs = {definition.value};
  return out;
}

// The rule for the frames of the call's volumes, if a form pays for them.
const ProgramRule* rule_that_pays(const Program& program, const Definition& definition, const PassOptions& options) {
  const Expr call = definition.expression;
  const bool has_weights = call->pattern == Pattern::operator_call && call->children.size() > 1 &&
                           call->children[1]->pattern == Pattern::parameter &&
                           program.constants.count(call->children[1]->name) != 0;
  if (!has_weights) return nullptr;
  const auto pays = [&](Expr term) {
    return options.convolution == ConvolutionForm::winograd
               ? !winograd_choices(term, options.profile, options.fuses_launches, true).empty()
               : pays_for_copies(term, options.profile, options.fuses_launches);
  };
  for (const ProgramRule* rule : operator_rules_of("frames")) {
    Program trial = alone(definition, program.version);
    const auto applied = apply_program_rule(*rule, trial, definition.value);
    if (!applied.ok() || !*applied) continue;
    for (const Definition& each : trial.definitions) {
      const auto term = inline_call(*each.expression);
      if (term.ok() && pays(*term)) return rule;
    }
  }
  return nullptr;
}

}  // namespace

// A record decides an automatic choice; without one, convolutions stay stencils unless a form is clearly less work.
// Either way the filters have to be constants: their transform on the device would take longer, in every run, than it
// saves.
Result<Nothing> winograd(Program& program, const PassOptions& options) {
  const bool wanted = options.convolution == ConvolutionForm::winograd;
  int64_t left = options.folding.operations / 2;  // the budget of folding for large results
  std::vector<std::optional<FormsOfDefinition>> found(program.definitions.size());
  for (Candidate& candidate : by_saving(program, options)) {
    const Definition& definition = program.definitions[candidate.definition];
    constexpr int64_t unknown = -1;
    const int64_t results =
        wanted ? unknown : recorded(options, definition.expression, winograd_knob).value_or(unknown);
    const auto choose = [&](const std::vector<WinogradChoice>& choices) -> const WinogradChoice* {
      if (results == unknown) return cheapest(choices);
      const auto known = std::find_if(choices.begin(), choices.end(),
                                      [&](const WinogradChoice& choice) { return choice.results == results; });
      return known == choices.end() ? nullptr : &*known;
    };
    FormsOfDefinition& forms = found[candidate.definition].emplace(Rewriter(lowering_rules(), definition.expression));
    for (std::vector<WinogradChoice> choices = std::move(candidate.choices);;) {
      const WinogradChoice* form = choose(choices);
      if (form == nullptr || (!wanted && form->transform > left)) break;
      if (!wanted && results == unknown && !is_clearly_less(*form)) break;
      left -= form->transform;
      if (!form->phases.empty()) forms.rewriter.apply(dilated_phases, form->dilated, form->phases);
      forms.rewriter.apply(form->rule, form->place, form->arguments);
      if (form->error > 0)
        forms.rounding.push_back({layer_name(definition), form->rule, form->error,
                                  "the largest sum of magnitudes over the channels at a position of a result's own "
                                  "window, times the sum over the positions of the largest magnitude of its filter"});
      choices = winograd_choices(forms.rewriter.term(), options.profile, options.fuses_launches, candidate.may_round);
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    program.rounding.insert(program.rounding.end(), found[i]->rounding.begin(), found[i]->rounding.end());
    take_steps(program, program.definitions[i], found[i]->rewriter);
  }
  return Nothing{};
}

Done frames(Program& program, const PassOptions& options) {
  if (options.strict) return Nothing{};
  std::vector<std::pair<const ProgramRule*, std::string>> found;
  for (const Definition& d : program.definitions) {
    if (const ProgramRule* rule = rule_that_pays(program, d, options)) found.emplace_back(rule, d.value);
  }
  ProgramIndex index(program);
  for (const auto& [rule, value] : found) HOIST_TRY_VOID(apply_program_rule(*rule, index, value));
  return Nothing{};
}

}  // namespace hoist
