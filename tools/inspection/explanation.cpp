#include "tools/inspection/explanation.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "ir/text/text.h"
#include "tools/inspection/layers.h"

namespace hoist {
namespace {

bool share(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& layer) { return holds(b, layer); });
}

// The steps that led to the term of this definition: steps at the definition and at definitions merged into it, and
// earlier steps between operator calls, which are matched by their layers.
std::vector<const ReplayedStep*> steps_towards(const std::vector<ReplayedStep>& all, const std::string& value,
                                               const std::vector<std::string>& layers) {
  std::set<std::string> values = {value};
  std::vector<const ReplayedStep*> out;
  for (size_t i = all.size(); i-- > 0;) {
    const ReplayedStep& seen = all[i];
    const bool between_calls = seen.before == nullptr || seen.after == nullptr ||
                               seen.before->pattern == Pattern::operator_call ||
                               seen.step.rule_class == RuleClass::neural;
    const bool cut_from = std::any_of(seen.added.begin(), seen.added.end(),
                                      [&](const auto& added) { return values.count(added.first) != 0; });
    const bool concerns =
        cut_from || values.count(seen.step.value) != 0 || (between_calls && share(seen.layers, layers));
    if (!concerns) continue;
    // The kernel was split from another one. A neural rule adds definitions that only read the value.
    if (cut_from && seen.after != seen.before) values.insert(seen.step.value);
    if (auto producer = seen.step.parameters.find("producer"); producer != seen.step.parameters.end())
      values.insert(producer->second);
    out.push_back(&seen);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

ExplainedStep explained(size_t number, const ReplayedStep& seen, bool with_terms) {
  ExplainedStep out;
  out.number = number;
  out.step = seen.step;
  out.layer = seen.layer;
  out.place = seen.step.value.empty() ? "" : text(seen.step.place);
  out.note = seen.note;
  out.absorbed = seen.absorbed;
  if (seen.step.rule_class == RuleClass::neural) {
    for (const auto& [value, term] : seen.added)
      out.added.emplace_back(value, print(term, {.declare_parameters = false}));
  }
  if (seen.before == nullptr) return out;
  if (seen.after == nullptr) {
    for (const StepConstant& constant : seen.step.constants)
      out.folded.emplace_back(constant.name, text(constant.type));
    return out;
  }
  Expr before = at(seen.before, seen.step.place), after = at(seen.after, seen.step.place);
  if (before == nullptr || after == nullptr || before == after) return out;
  std::tie(out.before, out.after) = sides_of_step(before, after);
  if (with_terms) out.term = print(seen.after);
  return out;
}

std::vector<ExplainedStep> explained(const std::vector<const ReplayedStep*>& steps, bool with_terms) {
  std::vector<ExplainedStep> out;
  for (const ReplayedStep* seen : steps) out.push_back(explained(out.size() + 1, *seen, with_terms));
  return out;
}

nlohmann::ordered_json steps_json(const std::vector<ExplainedStep>& steps) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const ExplainedStep& each : steps) {
    out.push_back({{"number", each.number},
                   {"rule", each.step.rule},
                   {"parameters", each.step.parameters},
                   {"layer", each.layer},
                   {"value", each.step.value},
                   {"place", each.place},
                   {"class", name_of(each.step.rule_class)},
                   {"note", each.note},
                   {"absorbed", each.absorbed}});
    if (each.before.empty()) continue;
    out.back()["before"] = each.before;
    out.back()["after"] = each.after;
    if (!each.term.empty()) out.back()["term"] = each.term;
  }
  return out;
}

}  // namespace

Result<Explanation> explanation_of(const std::string& layer, const Derived& from, const std::vector<PlanLayer>& layers,
                                   const std::vector<PlanStep>& steps, const std::vector<std::string>& kernels,
                                   bool with_terms) {
  HOIST_TRY(const std::vector<size_t> wanted, steps_of(layer, layers, steps));
  std::vector<ReplayedStep> all;
  HOIST_TRY(const Replayed replayed,
            replay(from.derivation, from.options, [&](const ReplayedStep& seen) { all.push_back(seen); }));
  Explanation out;
  out.layer = layer;
  if (wanted.empty()) {
    out.absence = absence_of(layer, layers);
    std::vector<const ReplayedStep*> of_layer;
    for (const ReplayedStep& seen : all) {
      if (holds(seen.layers, layer)) of_layer.push_back(&seen);
    }
    out.steps = explained(of_layer, with_terms);
  }
  std::map<int, size_t> places;
  for (size_t step : wanted) {
    if (const auto [found, first] = places.emplace(steps[step].kernel, out.kernels.size()); !first) {
      ++out.kernels[found->second].launches;
      continue;
    }
    const Definition& definition = replayed.program.definitions.at(step);
    const std::vector<std::string>& computed = steps[step].layers;
    out.kernels.push_back({kernels[static_cast<size_t>(steps[step].kernel)], 1, computed,
                           explained(steps_towards(all, definition.value, computed), with_terms),
                           print(definition.expression)});
  }
  return out;
}

nlohmann::ordered_json to_json(const Explanation& explanation) {
  nlohmann::ordered_json out = {{"layer", explanation.layer}, {"kernels", nlohmann::ordered_json::array()}};
  if (!explanation.absence.empty()) out["absence"] = explanation.absence;
  if (!explanation.steps.empty()) out["steps"] = steps_json(explanation.steps);
  for (const ExplainedKernel& kernel : explanation.kernels) {
    out["kernels"].push_back({{"name", kernel.name},
                              {"launches", kernel.launches},
                              {"layers", kernel.layers},
                              {"steps", steps_json(kernel.steps)},
                              {"term", kernel.term}});
  }
  return out;
}

}  // namespace hoist
