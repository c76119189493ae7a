// hoist inspect: a layer at every stage between ONNX and OpenCL.
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "ir/text/counted.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "tools/command.h"
#include "tools/data.h"
#include "tools/json_answer.h"
#include "tools/layers.h"
#include "tools/model.h"
#include "tools/model_summary.h"
#include "tools/opened_bundle.h"
#include "tools/program_file.h"
#include "tools/show_passes.h"
#include "tools/sizes.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct InspectCommand {
  std::string subject, layer;
  std::vector<std::string> stages;
  bool types = false;
  std::string output, json;
  ModelOptions options;
  ShownPasses shown;
};

const std::vector<std::string> all_stages = {"graph", "high", "low", "halide", "opencl"};

using InspectAnswer = nlohmann::ordered_json;  // of a layer: what was shown, stage by stage

void show_stage(InspectAnswer& answer, const std::string& stage, const std::string& title, const std::string& text) {
  say_line("-- {}: {}", stage, title);
  say(text);
  answer["stages"].push_back({{"stage", stage}, {"title", title}, {"text", text}});
}

void show_absence(InspectAnswer& answer, const std::string& layer, const std::vector<PlanLayer>& layers) {
  say_line("-- {}", absence_of(layer, layers));
  answer["absence"] = absence_of(layer, layers);
}

InspectAnswer layer_answer(const std::string& layer) { return {{"layer", layer}, {"stages", InspectAnswer::array()}}; }

// What is in a model as a whole, in a sentence, and each of its layers.
Attempt<> show_whole(const InspectCommand& command, const ModelSummary& summary, const std::vector<PlanLayer>& layers,
                     const std::vector<PlanStep>& steps, const std::vector<std::string>& kernels,
                     const std::vector<Sizes>& specialisations) {
  say_line("{}", sentence_of(summary));
  if (!specialisations.empty()) {
    std::string there;
    for (const Sizes& sizes : specialisations) there += (there.empty() ? "" : "; ") + sizes_text(sizes);
    say_line("compiled for {} (--dim shows another than the first)", there);
  }
  say(arrays_table(summary));
  say_line("");
  say(layer_table(layers, steps, kernels));
  InspectAnswer answer = to_json(summary);
  for (const Sizes& sizes : specialisations) answer["specialisations"].push_back(sizes_json(sizes));
  answer["layers"] = layers_json(layers, steps, kernels);
  return answer_json(command.json, answer);
}

// The part of a model's program that a layer is: its definitions, with what they read.
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

void show_graph(const Program& program, const std::string& layer, InspectAnswer& answer) {
  const Program part = part_of(program, layer);
  if (part.definitions.empty())
    show_stage(answer, "graph", layer + " is evaluated while the program is built", "");
  else
    show_stage(answer, "graph", layer + " as the model has it", print_program(part));
}

template <class Launch>
std::string launch_text(const std::string& name, const Launch& launch) {
  return fmt::format("kernel {}, {} x {} x {} work-items in groups of {} x {} x {}", name, launch.global[0],
                     launch.global[1], launch.global[2], launch.local[0], launch.local[1], launch.local[2]);
}

bool wanted(const InspectCommand& command, const std::string& stage) {
  return command.stages.empty() || holds(command.stages, stage);
}

Attempt<> show_group(const InspectCommand& command, const OpenedModel& model, const LoweredGroup& group,
                     const PrintOptions& printing, InspectAnswer& answer) {
  const LoweredKernel& kernel = model.lowered.kernels[static_cast<size_t>(group.kernel)];
  if (wanted(command, "high") && group.layers.size() > 1) {
    show_stage(answer, "high", command.layer + " is part of kernel " + kernel.name + ": " + joined_names(group.layers),
               print(group.high, printing) + "\n");
  }
  if (wanted(command, "low")) show_stage(answer, "low", joined_names(group.layers), print(group.low, printing) + "\n");
  if (!wanted(command, "halide") && !wanted(command, "opencl")) return ExitCode::done;
  HOIST_STEP(EmittedKernel emitted, ExitCode::bad_input, emit_kernel(kernel, model.profile));
  if (wanted(command, "halide")) show_stage(answer, "halide", "what is computed where", emitted.schedule + "\n");
  if (wanted(command, "opencl")) show_stage(answer, "opencl", launch_text(kernel.name, emitted), emitted.source + "\n");
  return ExitCode::done;
}

// A model's calls as it has them, and what is left of them when rules have been applied between calls.
Attempt<> show_calls(const InspectCommand& command, const Program& program) {
  HOIST_ATTEMPT(const Program rewritten, rewritten_calls(program, command.options));
  const std::string before = print_program(program), after = print_program(rewritten);
  const auto calls = [](const Program& p) { return counted(p.definitions.size(), "operator call"); };
  say_line("-- graph: as the model has it, {}", calls(program));
  say(before);
  say_line("-- graph: what kernels are made of, {}", calls(rewritten));
  say(after);
  return answer_json(command.json, {{"program", before}, {"rewritten", after}});
}

Attempt<> inspect_model(const InspectCommand& command) {
  const bool whole_graph = command.layer.empty() && command.stages == std::vector<std::string>{"graph"};
  if (!command.output.empty() && !whole_graph)
    return usage_failure("--output", "is for the program of a whole model",
                         "inspect MODEL --stage graph --output FILE");
  if (whole_graph || !command.shown.print_after.empty() || !command.shown.stop_after.empty()) {
    HOIST_ATTEMPT(const Program program, read_program(command.subject, command.options));
    if (whole_graph && !command.output.empty()) return show_program(program, command.output, command.json);
    if (whole_graph) return show_calls(command, program);
    HOIST_ATTEMPT(const bool goes_on, show_passes(program, command.options, command.shown));
    if (!goes_on) return ExitCode::done;
  }
  HOIST_ATTEMPT(OpenedModel model, open_model(command.subject, command.options));
  const LoweredModel& lowered = model.lowered;
  if (command.layer.empty())
    return show_whole(command, summary_of(lowered), lowered.layers, lowered.steps, names_of(lowered.kernels), {});
  HOIST_ATTEMPT(std::vector<size_t> steps, steps_of(command.layer, lowered.layers, lowered.steps));
  PrintOptions printing;
  printing.show_types = command.types;
  InspectAnswer answer = layer_answer(command.layer);
  if (wanted(command, "graph")) show_graph(model.program, command.layer, answer);
  if (wanted(command, "high")) {
    for (const Definition& definition : lowered.original.definitions) {
      if (!holds(definition.layers, command.layer)) continue;
      const bool alone = definition.layers.size() == 1;
      show_stage(answer, "high",
                 (alone ? command.layer + " alone" : joined_names(definition.layers)) + ", which gives the value " +
                     definition.value,
                 print(definition.expression, printing) + "\n");
    }
  }
  if (steps.empty()) show_absence(answer, command.layer, lowered.layers);
  for (size_t step : steps) {
    HOIST_ATTEMPT([[maybe_unused]] ExitCode shown, show_group(command, model, lowered.groups[step], printing, answer));
  }
  return answer_json(command.json, answer);
}

void show_step(const InspectCommand& command, const Plan& plan, const PlanStep& step, InspectAnswer& answer) {
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  if (wanted(command, "graph")) {
    std::string arrays;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const PlanArray& array = plan.arrays[static_cast<size_t>(step.arguments[i])];
      arrays +=
          fmt::format("  {} = {} : {}\n", kernel.parameters[i].name, array.name, type_text(array.scalar, array.shape));
    }
    show_stage(answer, "graph", command.layer + " is part of kernel " + kernel.name + ": " + joined_names(step.layers),
               arrays);
  }
  if (wanted(command, "low")) show_stage(answer, "low", joined_names(step.layers), kernel.expression + "\n");
  if (wanted(command, "opencl")) show_stage(answer, "opencl", launch_text(kernel.name, kernel), kernel.source + "\n");
}

Attempt<> inspect_bundle(const InspectCommand& command) {
  HOIST_ATTEMPT(const Sizes sizes, parse_sizes(command.options.dimensions));
  HOIST_ATTEMPT(BundleInfo info, bundle_info(command.subject, sizes));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, refuse_model_options(command.options));
  const Plan& plan = info.plan;
  for (const char* stage : {"high", "halide"}) {
    if (holds(command.stages, stage))
      return input_failure("--stage " + std::string(stage), "is not kept in a bundle", "inspect the model instead");
  }
  if (command.types) return usage_failure("--types", "needs the model: a bundle keeps expressions as text");
  if (command.layer.empty())
    return show_whole(command, summary_of(plan), plan.layers, plan.steps, names_of(plan.kernels), info.sizes);
  HOIST_ATTEMPT(std::vector<size_t> steps, steps_of(command.layer, plan.layers, plan.steps));
  InspectAnswer answer = layer_answer(command.layer);
  if (steps.empty()) show_absence(answer, command.layer, plan.layers);
  for (size_t step : steps) show_step(command, plan, plan.steps[step], answer);
  return answer_json(command.json, answer);
}

Attempt<> inspect(const InspectCommand& command) {
  std::error_code ignored;
  return std::filesystem::is_directory(command.subject, ignored) ? inspect_bundle(command) : inspect_model(command);
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  auto options = std::make_shared<InspectCommand>();
  CLI::App& command =
      add_command(program, action, "inspect",
                  "show a layer at every stage: graph, high-level and low-level Lift, Halide's schedule, OpenCL",
                  "  hoist inspect models/digits_residual.onnx conv1 --stage high,low\n"
                  "  hoist inspect digits.hoist conv1 --stage opencl",
                  options, inspect);
  command.add_option("subject", options->subject, "an ONNX file, or a bundle")->required()->type_name("MODEL|DIR");
  command.add_option("layer", options->layer, "the layer's name; without it all layers are listed with their kernels")
      ->type_name("LAYER");
  command.add_option("--stage", options->stages, "only these stages: graph, high, low, halide, opencl")
      ->delimiter(',')
      ->check(CLI::IsMember(all_stages))
      ->type_name("STAGE,...");
  command.add_flag("--types", options->types, "with the type after each pattern");
  command
      .add_option("-o,--output", options->output,
                  "with --stage graph and no layer: write the program there, its large constants beside it")
      ->type_name("FILE.lift");
  add_model_options(command, options->options);
  add_steering_options(command, options->options);
  add_shown_passes(command, options->shown);
  exclude_shown_passes(command, add_json_option(command, options->json));
}

}  // namespace hoist
