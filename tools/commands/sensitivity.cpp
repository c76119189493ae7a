// hoist sensitivity: what each layer of a model tolerates.
#include "neural_rules/calibration/sensitivity.h"

#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/device_models.h"
#include "tools/json_answer.h"
#include "tools/model.h"
#include "tools/report/report.h"
#include "tools/samples.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

struct SensitivityCommand {
  std::string model, calibration, json, scaling = "auto";
  ModelOptions options;
};

std::string number(double value) { return std::isnan(value) ? "-" : fmt::format("{:.3g}", value); }

Attempt<> sensitivity(const SensitivityCommand& command) {
  HOIST_ATTEMPT(StudiedModel model, open_for_study(command.model, command.options));
  HOIST_STEP(Samples samples, ExitCode::bad_input,
             read_samples(command.calibration, input_infos(model.program), {.numbers = true}));
  Progress progress;
  SensitivityOptions options;
  HOIST_STEP(options.scaling, ExitCode::usage, parse_channel_scaling(command.scaling));
  options.half = model.profile.half;
  options.progress = [&](const std::string& text) { progress.show(text); };
  HOIST_STEP(Sensitivity found, ExitCode::device, find_sensitivity(model.program, samples, model.prepare, options));
  found.notes.insert(found.notes.end(), found.left_out.begin(), found.left_out.end());
  for (const std::string& note : found.notes) complain("note", note);
  if (!command.json.empty()) {
    Study study;
    study.model = model.program.name;
    study.model_hash = fmt::format("{:016x}", model.program.hash);
    study.calibration_hash = samples.hash;
    study.device = model.device;
    study.version = HOIST_VERSION;
    study.seed = options.seed;
    study.calibration_samples = samples.count;
    study.output_power = found.output_power;
    study.sites = found.studied;
    study.notes = found.notes;
    HOIST_STEP_VOID(ExitCode::bad_input, write_json(command.json, to_json(study)));
  }
  if (command.json == "-") return ExitCode::done;
  std::vector<std::vector<std::string>> rows = {{"site", "sensitivity", "masked", "rule", "local error", "predicted",
                                                 "alone", "SQNR alone", "clipped", "proof or measurement"}};
  for (const StudySite& site : found.studied) {
    for (const Candidate& candidate : site.candidates) {
      const double error = std::isnan(candidate.error_alone) ? candidate.predicted_error : candidate.error_alone;
      rows.push_back({site.site.key(), number(site.sensitivity), site.sensitivity < 1 ? "yes" : "no", candidate.rule,
                      number(candidate.local_error), number(candidate.predicted_error), number(candidate.error_alone),
                      fmt::format("{:.1f} dB", sqnr_of(found.output_power, error)),
                      fmt::format("{:.2g} %", 100 * candidate.clipped_share), candidate.proof});
    }
  }
  say(table(rows));
  return ExitCode::done;
}

}  // namespace

void add_sensitivity(CLI::App& program, Action& action) {
  auto options = std::make_shared<SensitivityCommand>();
  CLI::App& command = add_command(
      program, action, "sensitivity", "measure what each layer tolerates, and what each rule would cost at the output",
      "  hoist sensitivity models/digits_residual.onnx --calibrate models/digits_residual_calibration.npz", options,
      sensitivity);
  command.add_option("model", options->model, "an ONNX file")->required()->type_name("MODEL");
  command.add_option("--calibrate", options->calibration, calibration_help)->required()->type_name("DATA");
  add_scaling_option(command, options->scaling);
  add_model_options(command, options->options);
  add_json_option(command, options->json, "the sites with their rules");
}

}  // namespace hoist
