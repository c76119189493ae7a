// hoist inspect: a layer at every stage between ONNX and OpenCL.
#include <nlohmann/json.hpp>

#include "ir/text/counted.h"
#include "ir/text/program_text.h"
#include "tools/base/json_answer.h"
#include "tools/base/terminal.h"
#include "tools/cli/command.h"
#include "tools/driver/model.h"
#include "tools/driver/opened_bundle.h"
#include "tools/driver/program_file.h"
#include "tools/driver/sizes.h"
#include "tools/inspection/layer_stages.h"
#include "tools/inspection/layers.h"
#include "tools/inspection/model_summary.h"
#include "tools/inspection/prediction.h"
#include "tools/inspection/show_passes.h"
#include "tools/records/records_text.h"

namespace hoist {
namespace {

Result<ExitCode> show_layer(const Options& command, const LayerStages& shown) {
  for (const LayerStage& stage : shown.stages) {
    print_line("-- {}: {}", stage.stage, stage.title);
    say(stage.text);
  }
  if (!shown.absence.empty()) print_line("-- {}", shown.absence);
  if (!shown.refused.empty()) return shown.refused;
  return done(answer_json(command.json, to_json(shown)));
}

StageOptions stage_options(const Options& command) { return {command.stages, command.types}; }

// A summary of the model in one sentence, its predicted time, and each of its layers.
Result<ExitCode> show_whole(const Options& command, const ModelSummary& summary, const Prediction& time,
                            const std::vector<PlanLayer>& layers, const std::vector<PlanStep>& steps,
                            const std::vector<std::string>& kernels, const std::vector<Sizes>& specialisations) {
  print_line("{}", sentence_of(summary));
  if (time.is_known) print_line("{}", text_of(time));
  if (!specialisations.empty()) {
    std::string there;
    for (const Sizes& sizes : specialisations) there += (there.empty() ? "" : "; ") + sizes_text(sizes);
    print_line("compiled for {} (--dim selects other sizes than the first)", there);
  }
  say(arrays_table(summary));
  print_line("");
  say(layer_table(layers, steps, kernels));
  nlohmann::ordered_json answer = to_json(summary);
  if (time.is_known) answer["predicted"] = to_json(time);
  for (const Sizes& sizes : specialisations) answer["specialisations"].push_back(sizes_json(sizes));
  answer["layers"] = layers_json(layers, steps, kernels);
  return done(answer_json(command.json, answer));
}

// A model's unchanged calls, and the calls after rules between calls.
Result<ExitCode> show_calls(const Options& command, const Program& program) {
  HOIST_TRY(const Program rewritten, rewritten_calls(program, command.model));
  const std::string before = print_program(program), after = print_program(rewritten);
  const auto calls = [](const Program& p) { return counted(p.definitions.size(), "operator call"); };
  print_line("-- graph: as the model has it, {}", calls(program));
  say(before);
  print_line("-- graph: what kernels are made of, {}", calls(rewritten));
  say(after);
  return done(answer_json(command.json, {{"program", before}, {"rewritten", after}}));
}

Result<ExitCode> inspect_model(const Options& command) {
  const bool whole_graph = command.layer.empty() && command.stages == std::vector<std::string>{"graph"};
  if (!command.output.empty() && !whole_graph)
    return usage_error("--output", "applies to the program of a whole model",
                       "inspect MODEL --stage graph --output FILE");
  if (whole_graph || !command.shown.print_after.empty() || !command.shown.stop_after.empty()) {
    HOIST_TRY(const Program program, read_program(command.subject, command.model));
    if (whole_graph && !command.output.empty()) return done(show_program(program, command.output, command.json));
    if (whole_graph) return show_calls(command, program);
    HOIST_TRY(const bool goes_on, show_passes(program, command.model, command.shown));
    if (!goes_on) return ExitCode::done;
  }
  HOIST_TRY(OpenedModel model, open_model(command.subject, command.model));
  const LoweredModel& lowered = model.lowered;
  if (command.layer.empty())
    return show_whole(command, summary_of(lowered), prediction_of(lowered, model.profile, model.times), lowered.layers,
                      lowered.steps, names_of(lowered.kernels), {});
  HOIST_TRY(const LayerStages shown, stages_of(model, command.layer, stage_options(command)));
  return show_layer(command, shown);
}

Result<ExitCode> inspect_bundle(const Options& command) {
  HOIST_TRY(const Sizes sizes, parse_sizes(command.model.dimensions));
  HOIST_TRY(BundleInfo info, bundle_info(command.subject, sizes));
  HOIST_TRY_VOID(refuse_given("inspect", command, OptionNeeds::model));
  const Plan& plan = info.plan;
  if (!command.layer.empty()) {
    HOIST_TRY(const LayerStages shown, stages_of(plan, command.layer, stage_options(command)));
    return show_layer(command, shown);
  }
  HOIST_TRY_VOID(refuse_stages_of_models(stage_options(command)));
  HOIST_TRY(const Profile profile, parse_profile(plan.profile, command.subject));
  tuning::KernelTimes times;
  if (!command.model.tuning.empty()) {
    HOIST_TRY(times, tuning::read_times(command.model.tuning, tuning::tuned_device(profile, plan.targets)));
  }
  return show_whole(command, summary_of(plan), prediction_of(plan, profile, times), plan.layers, plan.steps,
                    names_of(plan.kernels), info.sizes);
}

}  // namespace

Result<ExitCode> commands::inspect(const Options& command) {
  std::error_code ignored;
  return std::filesystem::is_directory(command.subject, ignored) ? inspect_bundle(command) : inspect_model(command);
}

}  // namespace hoist
