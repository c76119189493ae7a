#include "tools/inspection/layer_stages.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "tools/data/data.h"
#include "tools/inspection/layers.h"

namespace hoist {
namespace {

// The definitions of a layer, with the values that they read.
Program part_of(const Program& program, const std::string& layer) {
  Program part;
  part.name = program.name;
  part.version = program.version;
  const std::map<std::string, Type> types = value_types(program);
  std::set<std::string> known;
  for (const Definition& definition : program.definitions) {
    if (!holds(definition.layers, layer)) continue;
    for (Expr p : parameters_of(definition.expression)) {
      if (!known.insert(p->name).second) continue;
      if (auto constant = program.constants.find(p->name); constant != program.constants.end())
        part.constants.insert(*constant);
      else
        part.inputs.emplace_back(p->name, types.at(p->name));
    }
    known.insert(definition.value);
    part.definitions.push_back(definition);
    part.outputs.push_back(definition.value);
  }
  return part;
}

LayerStage graph_stage(const Program& program, const std::string& layer) {
  const Program part = part_of(program, layer);
  if (part.definitions.empty()) return {"graph", layer + " is evaluated while the program is built", ""};
  return {"graph", layer + " as the model has it", print_program(part)};
}

template <class Launch>
std::string launch_text(const std::string& name, const Launch& launch) {
  return fmt::format("kernel {}, {} x {} x {} work-items in groups of {} x {} x {}", name, launch.global[0],
                     launch.global[1], launch.global[2], launch.local[0], launch.local[1], launch.local[2]);
}

// The last stage: the code of a kernel in the form of the target.
const char* code_stage(const std::vector<std::string>& targets) { return targets.empty() ? "opencl" : "native"; }

Result<Nothing> refuse_other_code(const StageOptions& options, const std::vector<std::string>& targets) {
  const std::string own = code_stage(targets), other = own == "native" ? "opencl" : "native";
  if (!holds(options.stages, other)) return Nothing{};
  return usage_error("--stage " + other, "is not the code of this target",
                     "write --stage " + own + ", or choose another target with --target");
}

bool wanted(const StageOptions& options, const std::string& stage) {
  return options.stages.empty() || holds(options.stages, stage);
}

void add_group(const OpenedModel& model, const LoweredGroup& group, const StageOptions& options, LayerStages& out) {
  PrintOptions printing;
  printing.show_types = options.types;
  const LoweredKernel& kernel = model.lowered.kernels[static_cast<size_t>(group.kernel)];
  if (wanted(options, "high") && group.layers.size() > 1) {
    out.stages.push_back({"high", out.layer + " is part of kernel " + kernel.name + ": " + joined_names(group.layers),
                          print(group.high, printing) + "\n"});
  }
  if (wanted(options, "low"))
    out.stages.push_back({"low", joined_names(group.layers), print(group.low, printing) + "\n"});
  const std::string code = code_stage(model.targets);
  if (!wanted(options, "halide") && !wanted(options, code)) return;
  auto emitted = emit_kernel(kernel, model.profile, model.targets);
  if (!emitted) {
    out.refused = emitted.errors();
    return;
  }
  if (wanted(options, "halide")) out.stages.push_back({"halide", "loop nests and memories", emitted->schedule + "\n"});
  if (wanted(options, code)) out.stages.push_back({code, launch_text(kernel.name, *emitted), emitted->source + "\n"});
}

void add_step(const Plan& plan, const PlanStep& step, const StageOptions& options, LayerStages& out) {
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  if (wanted(options, "graph")) {
    std::string arrays;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const PlanArray& array = plan.arrays[static_cast<size_t>(step.arguments[i])];
      arrays +=
          fmt::format("  {} = {} : {}\n", kernel.parameters[i].name, array.name, type_text(array.scalar, array.shape));
    }
    out.stages.push_back(
        {"graph", out.layer + " is part of kernel " + kernel.name + ": " + joined_names(step.layers), arrays});
  }
  if (wanted(options, "low")) out.stages.push_back({"low", joined_names(step.layers), kernel.expression + "\n"});
  const std::string code = code_stage(plan.targets);
  if (wanted(options, code)) out.stages.push_back({code, launch_text(kernel.name, kernel), kernel.source + "\n"});
}

}  // namespace

const std::vector<std::string>& stage_names() {
  static const std::vector<std::string> names = {"graph", "high", "low", "halide", "opencl", "native"};
  return names;
}

Result<LayerStages> stages_of(const OpenedModel& model, const std::string& layer, const StageOptions& options) {
  const LoweredModel& lowered = model.lowered;
  HOIST_TRY_VOID(refuse_other_code(options, model.targets));
  HOIST_TRY(const std::vector<size_t> steps, steps_of(layer, lowered.layers, lowered.steps));
  PrintOptions printing;
  printing.show_types = options.types;
  LayerStages out{layer, {}, ""};
  if (wanted(options, "graph")) out.stages.push_back(graph_stage(model.program, layer));
  if (wanted(options, "high")) {
    for (const Definition& definition : lowered.original.definitions) {
      if (!holds(definition.layers, layer)) continue;
      const std::string what = definition.layers.size() == 1 ? layer + " alone" : joined_names(definition.layers);
      out.stages.push_back(
          {"high", what + ", with the value " + definition.value, print(definition.expression, printing) + "\n"});
    }
  }
  if (steps.empty()) out.absence = absence_of(layer, lowered.layers);
  for (size_t step : steps) {
    add_group(model, lowered.groups[step], options, out);
    if (!out.refused.empty()) break;
  }
  return out;
}

Result<Nothing> refuse_stages_of_models(const StageOptions& options) {
  for (const char* stage : {"high", "halide"}) {
    if (holds(options.stages, stage))
      return Diagnostic{"--stage " + std::string(stage), "is not stored in a bundle", "inspect the model instead"};
  }
  if (options.types) return usage_error("--types", "needs the model: a bundle stores terms as text");
  return Nothing{};
}

Result<LayerStages> stages_of(const Plan& plan, const std::string& layer, const StageOptions& options) {
  HOIST_TRY_VOID(refuse_stages_of_models(options));
  HOIST_TRY_VOID(refuse_other_code(options, plan.targets));
  HOIST_TRY(const std::vector<size_t> steps, steps_of(layer, plan.layers, plan.steps));
  LayerStages out{layer, {}, ""};
  if (steps.empty()) out.absence = absence_of(layer, plan.layers);
  for (size_t step : steps) add_step(plan, plan.steps[step], options, out);
  return out;
}

nlohmann::ordered_json to_json(const LayerStages& layer) {
  nlohmann::ordered_json out = {{"layer", layer.layer}, {"stages", nlohmann::ordered_json::array()}};
  for (const LayerStage& stage : layer.stages)
    out["stages"].push_back({{"stage", stage.stage}, {"title", stage.title}, {"text", stage.text}});
  if (!layer.absence.empty()) out["absence"] = layer.absence;
  return out;
}

}  // namespace hoist
