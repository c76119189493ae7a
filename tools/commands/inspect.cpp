// hoist inspect: a layer at every stage between ONNX and OpenCL.
#include <nlohmann/json.hpp>

#include "ir/text/counted.h"
#include "ir/text/program_text.h"
#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/cli/show_passes.h"
#include "tools/cli/terminal.h"
#include "tools/driver/model.h"
#include "tools/driver/opened_bundle.h"
#include "tools/driver/program_file.h"
#include "tools/driver/sizes.h"
#include "tools/inspection/layer_stages.h"
#include "tools/inspection/layers.h"
#include "tools/inspection/model_summary.h"

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

Attempt<> show_layer(const InspectCommand& command, const LayerStages& shown) {
  for (const LayerStage& stage : shown.stages) {
    say_line("-- {}: {}", stage.stage, stage.title);
    say(stage.text);
  }
  if (!shown.absence.empty()) say_line("-- {}", shown.absence);
  if (shown.refused) return *shown.refused;
  return answer_json(command.json, to_json(shown));
}

StageOptions stage_options(const InspectCommand& command) { return {command.stages, command.types}; }

// A summary of the model in one sentence, and each of its layers.
Attempt<> show_whole(const InspectCommand& command, const ModelSummary& summary, const std::vector<PlanLayer>& layers,
                     const std::vector<PlanStep>& steps, const std::vector<std::string>& kernels,
                     const std::vector<Sizes>& specialisations) {
  say_line("{}", sentence_of(summary));
  if (!specialisations.empty()) {
    std::string there;
    for (const Sizes& sizes : specialisations) there += (there.empty() ? "" : "; ") + sizes_text(sizes);
    say_line("compiled for {} (--dim selects other sizes than the first)", there);
  }
  say(arrays_table(summary));
  say_line("");
  say(layer_table(layers, steps, kernels));
  nlohmann::ordered_json answer = to_json(summary);
  for (const Sizes& sizes : specialisations) answer["specialisations"].push_back(sizes_json(sizes));
  answer["layers"] = layers_json(layers, steps, kernels);
  return answer_json(command.json, answer);
}

// A model's unchanged calls, and the calls after rules between calls.
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
    return usage_failure("--output", "applies to the program of a whole model",
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
  HOIST_ATTEMPT(const LayerStages shown, stages_of(model, command.layer, stage_options(command)));
  return show_layer(command, shown);
}

Attempt<> inspect_bundle(const InspectCommand& command) {
  HOIST_ATTEMPT(const Sizes sizes, parse_sizes(command.options.dimensions));
  HOIST_ATTEMPT(BundleInfo info, bundle_info(command.subject, sizes));
  HOIST_ATTEMPT([[maybe_unused]] ExitCode code, refuse_model_options(command.options));
  const Plan& plan = info.plan;
  if (!command.layer.empty()) {
    HOIST_ATTEMPT(const LayerStages shown, stages_of(plan, command.layer, stage_options(command)));
    return show_layer(command, shown);
  }
  HOIST_ATTEMPT([[maybe_unused]] ExitCode kept, refuse_stages_of_models(stage_options(command)));
  return show_whole(command, summary_of(plan), plan.layers, plan.steps, names_of(plan.kernels), info.sizes);
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
                  "print a layer at every stage: graph, high-level and low-level Lift, Halide's schedule, OpenCL",
                  "  hoist inspect models/digits_residual.onnx conv1 --stage high,low\n"
                  "  hoist inspect digits.hoist conv1 --stage opencl",
                  options, inspect);
  command.add_option("subject", options->subject, "an ONNX file, or a bundle")->required()->type_name("MODEL|DIR");
  command.add_option("layer", options->layer, "the layer's name; without it all layers are listed with their kernels")
      ->type_name("LAYER");
  command.add_option("--stage", options->stages, "print only these stages: graph, high, low, halide, opencl")
      ->delimiter(',')
      ->check(CLI::IsMember(stage_names()))
      ->type_name("STAGE,...");
  command.add_flag("--types", options->types, "print the type after each pattern");
  command
      .add_option(
          "-o,--output", options->output,
          "with --stage graph and no layer: write the program there, and its large constants in files next to it")
      ->type_name("FILE.lift");
  add_model_options(command, options->options);
  add_steering_options(command, options->options);
  add_shown_passes(command, options->shown);
  exclude_shown_passes(command, add_json_option(command, options->json));
}

}  // namespace hoist
