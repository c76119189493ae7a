#include "ir/gradient/training/step_parts.h"

#include <algorithm>
#include <set>

namespace hoist {
namespace {

std::set<std::string> read_in(const Program& program) {
  std::set<std::string> out;
  for (const Definition& d : program.definitions) {
    for (const std::string& name : values_read(d)) out.insert(name);
  }
  return out;
}

Result<Program> run_of(const TrainingStep& step) {
  Program out = step.program;
  out.outputs = step.contributions;
  out.states.clear();
  remove_unused(out);
  const std::set<std::string> read = read_in(out);
  for (const StateValue& state : step.program.states) {
    const bool is_weight = std::find(step.weights.begin(), step.weights.end(), state.name) != step.weights.end();
    if (read.contains(state.name) && !is_weight && state.name != step.counter)
      return Diagnostic{state.name, "is a state of single runs, which cannot be shared",
                        "choose --gradients without feedback"};
  }
  std::erase_if(out.inputs, [&](const auto& input) { return !read.contains(input.first); });
  return out;
}

}  // namespace

Result<StepParts> split_step(TrainingStep step) {
  StepParts out;
  std::erase_if(step.contributions, [&](const std::string& name) { return !is_definition(step.program, name); });
  HOIST_TRY(out.run, run_of(step));
  Program& program = step.program;
  ValueNames names(program);
  const std::set<std::string> contributed(step.contributions.begin(), step.contributions.end());
  std::vector<std::pair<std::string, Type>> given;
  for (Definition& d : program.definitions) {
    if (!contributed.contains(d.value)) continue;
    const Type type = d.expression->type;
    out.given[d.value] = names.make(d.value + ".given");
    given.emplace_back(out.given[d.value], type);
    d.expression = parameter(given.back().first, type);
  }
  remove_unused(program);
  const std::set<std::string> read = read_in(program);
  std::set<std::string> kept = {step.rate};
  for (const StateValue& state : program.states) kept.insert(state.name);
  std::erase_if(program.inputs,
                [&](const auto& input) { return !read.contains(input.first) && !kept.contains(input.first); });
  program.inputs.insert(program.inputs.begin(), given.begin(), given.end());
  out.update = std::move(step);
  return out;
}

}  // namespace hoist
