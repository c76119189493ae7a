// hoist inspect: a layer at every stage between ONNX and OpenCL.
#include <set>
#include <sstream>

#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "tools/command.h"
#include "tools/data.h"
#include "tools/layers.h"
#include "tools/model.h"
#include "tools/opened_bundle.h"
#include "tools/program_file.h"
#include "tools/show_passes.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct InspectCommand {
  std::string subject, layer;
  std::vector<std::string> stages;
  bool types = false;
  std::string output;
  ModelOptions options;
  ShownPasses shown;
};

const std::vector<std::string> all_stages = {"graph", "high", "low", "halide", "opencl"};

void heading(const std::string& stage, const std::string& text) { say_line("-- {}: {}", stage, text); }

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

Attempt<> show_graph(const Program& program, const std::string& layer, const std::string& output) {
  if (!output.empty()) return write_program(program, output);
  if (layer.empty()) {
    say(print_program(program));
    return ExitCode::done;
  }
  const Program part = part_of(program, layer);
  if (part.definitions.empty()) {
    heading("graph", layer + " is evaluated while the program is built");
    return ExitCode::done;
  }
  heading("graph", layer + " as the model has it");
  say(print_program(part));
  return ExitCode::done;
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
                     const PrintOptions& printing) {
  const LoweredKernel& kernel = model.lowered.kernels[static_cast<size_t>(group.kernel)];
  if (wanted(command, "high") && group.layers.size() > 1) {
    heading("high", command.layer + " is part of kernel " + kernel.name + ": " + joined_names(group.layers));
    say(print(group.high, printing) + "\n");
  }
  if (wanted(command, "low")) {
    heading("low", joined_names(group.layers));
    say(print(group.low, printing) + "\n");
  }
  if (!wanted(command, "halide") && !wanted(command, "opencl")) return ExitCode::done;
  HOIST_STEP(EmittedKernel emitted, ExitCode::bad_input, emit_kernel(kernel, model.profile));
  if (wanted(command, "halide")) {
    heading("halide", "what is computed where");
    say(emitted.schedule + "\n");
  }
  if (wanted(command, "opencl")) {
    heading("opencl", launch_text(kernel.name, emitted));
    say(emitted.source + "\n");
  }
  return ExitCode::done;
}

Attempt<> inspect_model(const InspectCommand& command) {
  const bool whole_graph = command.layer.empty() && command.stages == std::vector<std::string>{"graph"};
  if (!command.output.empty() && !whole_graph)
    return usage_failure("--output", "is for the program of a whole model",
                         "inspect MODEL --stage graph --output FILE");
  if (whole_graph || !command.shown.print_after.empty() || !command.shown.stop_after.empty()) {
    HOIST_ATTEMPT(const Program program, read_program(command.subject, command.options));
    if (whole_graph) return show_graph(program, "", command.output);
    HOIST_ATTEMPT(const bool goes_on, show_passes(program, command.options, command.shown));
    if (!goes_on) return ExitCode::done;
  }
  HOIST_ATTEMPT(OpenedModel model, open_model(command.subject, command.options));
  const LoweredModel& lowered = model.lowered;
  if (command.layer.empty()) {
    say(layer_table(lowered.layers, lowered.steps, names_of(lowered.kernels)));
    return ExitCode::done;
  }
  HOIST_ATTEMPT(std::vector<size_t> steps, steps_of(command.layer, lowered.layers, lowered.steps));
  PrintOptions printing;
  printing.show_types = command.types;
  if (wanted(command, "graph")) {
    HOIST_ATTEMPT([[maybe_unused]] ExitCode shown, show_graph(model.program, command.layer, ""));
  }
  if (wanted(command, "high")) {
    for (const Definition& definition : lowered.original.definitions) {
      if (!holds(definition.layers, command.layer)) continue;
      const bool alone = definition.layers.size() == 1;
      heading("high", (alone ? command.layer + " alone" : joined_names(definition.layers)) +
                          ", which gives the value " + definition.value);
      say(print(definition.expression, printing) + "\n");
    }
  }
  if (steps.empty()) say_line("-- {}", absence_of(command.layer, lowered.layers));
  for (size_t step : steps) {
    HOIST_ATTEMPT([[maybe_unused]] ExitCode shown, show_group(command, model, lowered.groups[step], printing));
  }
  return ExitCode::done;
}

void show_step(const InspectCommand& command, const Plan& plan, const PlanStep& step) {
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  if (wanted(command, "graph")) {
    heading("graph", command.layer + " is part of kernel " + kernel.name + ": " + joined_names(step.layers));
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const PlanArray& array = plan.arrays[static_cast<size_t>(step.arguments[i])];
      say_line("  {} = {} : {}", kernel.parameters[i].name, array.name, type_text(array.scalar, array.shape));
    }
  }
  if (wanted(command, "low")) {
    heading("low", joined_names(step.layers));
    say(kernel.expression + "\n");
  }
  if (wanted(command, "opencl")) {
    heading("opencl", launch_text(kernel.name, kernel));
    say(kernel.source + "\n");
  }
}

Attempt<> inspect_bundle(const InspectCommand& command) {
  HOIST_ATTEMPT(BundleInfo info, bundle_info(command.subject));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, refuse_model_options(command.options));
  const Plan& plan = info.plan;
  for (const char* stage : {"high", "halide"}) {
    if (holds(command.stages, stage))
      return input_failure("--stage " + std::string(stage), "is not kept in a bundle", "inspect the model instead");
  }
  if (command.types) return usage_failure("--types", "needs the model: a bundle keeps expressions as text");
  if (command.layer.empty()) {
    say(layer_table(plan.layers, plan.steps, names_of(plan.kernels)));
    return ExitCode::done;
  }
  HOIST_ATTEMPT(std::vector<size_t> steps, steps_of(command.layer, plan.layers, plan.steps));
  if (steps.empty()) say_line("-- {}", absence_of(command.layer, plan.layers));
  for (size_t step : steps) show_step(command, plan, plan.steps[step]);
  return ExitCode::done;
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
}

}  // namespace hoist
