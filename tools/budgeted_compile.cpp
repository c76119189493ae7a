#include "tools/budgeted_compile.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <CLI/CLI.hpp>

#include "ir/stopwatch.h"
#include "tools/certificate.h"
#include "tools/files.h"
#include "tools/npy.h"
#include "tools/opened_bundle.h"
#include "tools/samples.h"
#include "tools/terminal.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

std::string hash_text(uint64_t hash) { return fmt::format("{:016x}", hash); }
std::string hash_of(const std::string& text) { return hash_text(XXH3_64bits(text.data(), text.size())); }

Attempt<std::string> preferences_text(const BudgetOptions& options) {
  if (options.preferences.empty()) return std::string();
  HOIST_STEP(std::string text, ExitCode::bad_input, read_file(options.preferences, size_t{1} << 20));
  return text;
}

RecordOrigin origin_of(const StudiedModel& model, const ModelOptions& options, const Budget& budget,
                       Objective objective, const std::string& preferences, const std::string& scaling) {
  RecordOrigin out;
  out.model_hash = hash_text(model.program.hash);
  // Options change times as a device does.
  out.profile_hash = hash_of(print(model.profile) + options_text(compile_options(options)) + " " + scaling);
  out.device = model.device;
  out.budget = budget.text();
  out.objective = name_of(objective);
  if (!preferences.empty()) out.preferences_hash = hash_of(preferences);
  out.seed = SensitivityOptions{}.seed;
  return out;
}

struct StudyData {
  Samples calibration, verification;
};

Attempt<StudyData> read_data(const Program& program, const BudgetOptions& options) {
  if (options.calibration.empty())
    return usage_failure("--budget", "needs data to choose by", "give --calibrate DATA, or a --record that exists");
  HOIST_STEP(Samples samples, ExitCode::bad_input,
             read_samples(options.calibration, input_infos(program), {.numbers = true}));
  StudyData out;
  if (options.verification.empty()) {
    HOIST_STEP(SplitSamples split, ExitCode::bad_input, keep_apart(samples, options.calibration));
    complain("note", fmt::format("the last {} of {} samples are kept apart for verification (--verify-data gives other "
                                 "data)",
                                 split.kept_apart.count, samples.count));
    out = {std::move(split.first), std::move(split.kept_apart)};
  } else {
    HOIST_STEP(out.verification, ExitCode::bad_input,
               read_samples(options.verification, input_infos(program), {.numbers = true}));
    out.calibration = std::move(samples);
    if (out.verification.hash == out.calibration.hash)
      complain("warning", "the verification data are the calibration data: what is measured is too good");
  }
  if (const OutputKinds kinds = output_kinds(program); kinds.main_kind() != OutputKind::values) {
    const int64_t classes = class_count(program);
    const std::string& scores = program.outputs[kinds.main];
    HOIST_STEP_VOID(ExitCode::bad_input, check_labels(out.calibration, classes, scores, options.calibration));
    const std::string& data = options.verification.empty() ? options.calibration : options.verification;
    HOIST_STEP_VOID(ExitCode::bad_input, check_labels(out.verification, classes, scores, data));
  }
  return out;
}

Record record_of(const Choosing& found, RecordOrigin origin) {
  Record out;
  out.origin = std::move(origin);
  out.origin.calibration_hash = found.study.calibration_hash;
  out.origin.verification_hash = found.study.verification_hash;
  out.hoist_version = HOIST_VERSION;
  out.output_power = found.study.output_power;
  out.factors = found.factors;
  out.statistics = found.statistics;
  for (const StudySite& site : found.study.sites)
    out.sites.push_back({site.site.key(), site.sensitivity, site.time, site.bytes, site.candidates});
  out.conversions = found.conversions;
  out.chosen = found.chosen;
  return out;
}

Attempt<ChosenModel> from_record(StudiedModel model, CompileOptions compile, RecordOrigin wanted,
                                 const BudgetOptions& options) {
  HOIST_STEP(Record record, ExitCode::bad_input, read_record(options.record));
  if (!options.calibration.empty()) {
    HOIST_ATTEMPT(StudyData data, read_data(model.program, options));
    wanted.calibration_hash = data.calibration.hash;
    wanted.verification_hash = data.verification.hash;
  }
  HOIST_STEP_VOID(ExitCode::bad_input, check_origin(record, wanted, options.record));
  HOIST_STEP_VOID(ExitCode::bad_input, scale_channels(model.program, record.factors));
  HOIST_STEP(RewrittenModel rewritten, ExitCode::bad_input, rewrite(model.program, record.chosen, record.statistics));
  HOIST_STEP(bool kept, ExitCode::bad_input, certificate_says_met(record.certificate, options.record));
  return ChosenModel{std::move(model), compile, std::move(rewritten), std::move(record), std::nullopt, kept};
}

}  // namespace

void add_budget_options(CLI::App& command, BudgetOptions& options) {
  command.add_option("--calibrate", options.calibration, calibration_help)->type_name("DATA");
  command
      .add_option("--verify-data", options.verification,
                  "data that the budget is verified on (default: the last quarter of the calibration data)")
      ->type_name("DATA");
  command.add_option("--objective", options.objective, "what to save")
      ->check(CLI::IsMember({"time", "size"}))
      ->capture_default_str();
  add_scaling_option(command, options.scaling);
  command.add_option("--preferences", options.preferences, "pin, forbid or prefer rules by layer, one a line")
      ->type_name("FILE");
  command
      .add_option(
          "--time", options.seconds,
          "stop measuring after so many seconds and use what is known; no run of metric=CMD takes longer (without "
          "--time: 600)")
      ->check(CLI::Range(1.0, 1e6))
      ->type_name("SECONDS");
}

Attempt<> refuse_budget_options(const BudgetOptions& options) {
  const char* given = nullptr;
  if (!options.calibration.empty()) given = "--calibrate";
  if (!options.verification.empty()) given = "--verify-data";
  if (!options.preferences.empty()) given = "--preferences";
  if (!options.record.empty()) given = "--record";
  if (options.seconds > 0) given = "--time";
  if (options.objective != "time") given = "--objective";
  if (options.scaling != "auto") given = "--scale-channels";
  if (given == nullptr) return ExitCode::done;
  return usage_failure(given, "requires --budget", "say how much may be given up: --budget top1=0.5%");
}

UserMetric command_metric(const std::string& command, const Program& program, double seconds) {
  return [command, seconds, names = program.outputs](const RunOutputs& runs) -> Result<double> {
    HOIST_TRY(TemporaryFolder folder, TemporaryFolder::make());
    for (size_t run = 0; run < runs.size(); ++run) {
      const fs::path place = folder.path() / std::to_string(run);
      std::error_code failed;
      fs::create_directory(place, failed);
      if (failed) return Diagnostic{place.string(), "cannot be made: " + failed.message(), ""};
      for (size_t i = 0; i < runs[run].size(); ++i) {
        if (!numpy_has(runs[run][i].scalar()))
          return Diagnostic{"output " + names[i], "has a type that .npy lacks", "use another budget"};
        HOIST_TRY_VOID(write_npy(place / (file_name(names[i]) + ".npy"), runs[run][i]));
      }
    }
    return number_of_command(command, folder.path(), seconds);
  };
}

std::string best_point(const ChosenModel& chosen) {
  if (!chosen.study) return "the one that the record names";
  for (const StudyPoint& point : chosen.study->points) {
    if (point.chosen) return point.name + ": " + chosen.study->summary;
  }
  return "the model as it is";
}

Attempt<ChosenModel> choose_model(const fs::path& path, const ModelOptions& model_options,
                                  const BudgetOptions& options) {
  HOIST_STEP(Budget budget, ExitCode::usage, parse_budget(options.budget));
  HOIST_STEP(Objective objective, ExitCode::usage, parse_objective(options.objective));
  HOIST_ATTEMPT(std::string preferences, preferences_text(options));
  ChooseOptions choosing;
  HOIST_STEP(choosing.sensitivity.scaling, ExitCode::usage, parse_channel_scaling(options.scaling));
  HOIST_STEP(choosing.sensitivity.preferences, ExitCode::bad_input,
             parse_preferences(preferences, options.preferences));
  ModelOptions studied = model_options;
  if (objective == Objective::size && studied.constants == "auto") studied.constants = "stored";
  HOIST_ATTEMPT(StudiedModel model, open_for_study(path, studied));
  RecordOrigin origin = origin_of(model, studied, budget, objective, preferences, options.scaling);
  std::error_code ignored;
  if (!options.record.empty() && fs::exists(options.record, ignored))
    return from_record(std::move(model), compile_options(studied), std::move(origin), options);
  HOIST_ATTEMPT(StudyData data, read_data(model.program, options));
  Progress progress;
  choosing.sensitivity.half = model.profile.half;
  choosing.budget = budget;
  choosing.objective = objective;
  choosing.sensitivity.measure_all = false;
  choosing.sensitivity.progress = [&](const std::string& text) { progress.show(text); };
  if (options.seconds > 0) {
    choosing.spent = [stopwatch = Stopwatch(), all = options.seconds] { return stopwatch.seconds() / all; };
    choosing.sensitivity.noise_seconds = std::min(choosing.sensitivity.noise_seconds, options.seconds / 8);
    choosing.sensitivity.alone_seconds = std::min(choosing.sensitivity.alone_seconds, options.seconds / 4);
    choosing.sensitivity.rounding_seconds = std::min(choosing.sensitivity.rounding_seconds, options.seconds / 8);
  }
  if (budget.measure == BudgetMeasure::metric) {
    constexpr double usual_metric_seconds = 600;
    choosing.metric =
        command_metric(budget.command, model.program, options.seconds > 0 ? options.seconds : usual_metric_seconds);
  }
  HOIST_STEP(Choosing found, ExitCode::bad_input,
             choose(model.program, data.calibration, data.verification, model.prepare, choosing));
  Study& study = found.study;
  study.model = model.program.name;
  study.model_hash = hash_text(model.program.hash);
  study.device = model.device;
  study.profile = print(model.profile);
  study.version = HOIST_VERSION;
  HOIST_STEP_VOID(ExitCode::bad_input, scale_channels(model.program, found.factors));
  HOIST_STEP(RewrittenModel rewritten, ExitCode::bad_input, rewrite(model.program, found.chosen, found.statistics));
  Record record = record_of(found, std::move(origin));
  record.certificate = certificate_text(found);
  const bool kept = study.budget_met;
  return ChosenModel{std::move(model),  compile_options(studied), std::move(rewritten),
                     std::move(record), std::move(study),         kept};
}

}  // namespace hoist
