#include "lowering/graph/steps.h"
#include "lowering/passes/rows.h"
#include "lowering/rules/rules.h"
#include "lowering/search/tuning.h"

namespace hoist {

Result<bool> at_definitions(Program& program, const AtDefinition& change) {
  Diagnostics problems;
  bool any = false;
  std::set<std::string> refused;
  ProgramIndex index(program);
  for (size_t i = 0; i < program.definitions.size();) {
    const std::string value = program.definitions[i].value;
    auto changed = refused.count(value) != 0 ? Result<bool>(false) : change(index, value);
    if (!changed.ok()) {
      refused.insert(value);
      for (Diagnostic d : changed.errors()) {
        d.where = layer_name(program.definitions[i]);
        problems.push_back(std::move(d));
      }
    }
    if (!changed.ok() || !*changed) {
      ++i;
      continue;
    }
    any = true;
  }
  if (!problems.empty()) return problems;
  return any;
}

Result<Nothing> fold_added(Program& program, const std::set<std::string>& before, const PassOptions& options) {
  std::set<std::string> added;
  for (const Definition& definition : program.definitions) {
    if (before.count(definition.value) == 0) added.insert(definition.value);
  }
  HOIST_TRY_VOID(fold_constants(program, options.constants, options.folding, never_narrow, &added));
  drop_unused(program);
  return Nothing{};
}

void take_steps(Program& program, Definition& definition, const Rewriter& rewriter) {
  for (const Application& application : rewriter.derivation().steps)
    program.steps.push_back(rule_step(definition, application));
  definition.expression = rewriter.term();
}

std::optional<int64_t> recorded(const PassOptions& options, Expr term, std::string_view knob) {
  if (!options.records) return std::nullopt;
  const KnobValues knobs = options.records(tuning_task(term));
  const auto found = knobs.find(std::string(knob));
  return found == knobs.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

void materialise_at(Program& program, const std::function<std::vector<RuleAtPlace>(const Definition&)>& places_of) {
  for (Definition& definition : program.definitions) {
    const std::vector<RuleAtPlace> places = places_of(definition);
    if (places.empty()) continue;
    Rewriter rewriter(lowering_rules(), definition.expression);
    for (const auto& [place, rule] : places) rewriter.apply(rule, place);
    take_steps(program, definition, rewriter);
  }
}

}  // namespace hoist
