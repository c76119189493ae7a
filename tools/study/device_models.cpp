#include "tools/study/device_models.h"

#include <algorithm>
#include <numeric>

#include "backends/bundle/bundle.h"
#include "backends/opencl/device.h"
#include "ir/base/stopwatch.h"
#include "lowering/graph/steps.h"
#include "neural_rules/choice/solver/interval.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/model/constants.h"

namespace hoist {
namespace {

constexpr int warm_up_profiles = 3, least_profiles = 15, most_profiles = 200;
constexpr double profile_seconds = 0.25;
// Slow models are profiled less often; on a busy machine runs are repeated until their time is accurate enough.
constexpr int least_slow_profiles = 3;
constexpr double most_profile_seconds = 1, steady = 0.05;

class DeviceModel : public RunnableModel {
 public:
  explicit DeviceModel(ModelOnDevice opened) : folder_(std::move(opened.folder)), runner_(std::move(opened.runner)) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override { return runner_.run(inputs); }

  // Profiled steps run one by one, with other threads, caches and waits than in a run; turns of both give their ratio.
  Result<std::vector<StepTime>> step_times() override {
    std::vector<std::vector<double>> samples(runner_.steps().size());
    std::vector<double> runs;
    const Stopwatch stopwatch;
    for (int i = -warm_up_profiles; goes_on(i, stopwatch.seconds(), runs); ++i) {
      const double begin = stopwatch.seconds();
      HOIST_TRY(std::vector<double> seconds, runner_.profile());
      HOIST_TRY(const std::vector<double> run, run_times(1));
      if (i < 0 && stopwatch.seconds() - begin > most_profile_seconds / least_profiles) i = -1;  // warm by now
      if (i < 0) continue;
      for (size_t k = 0; k < seconds.size(); ++k) samples[k].push_back(seconds[k]);
      runs.push_back(run[0]);
    }
    std::vector<StepTime> out;
    double sum = 0;
    for (size_t k = 0; k < samples.size(); ++k) {
      out.push_back({runner_.steps()[k].layers, quantile(std::move(samples[k]), 0.25)});
      sum += out.back().seconds;
    }
    const double run = summarise_times(runs).lower_quartile.value;
    for (StepTime& step : out) step.seconds = sum > 0 ? step.seconds * run / sum : 0;
    return out;
  }

  Result<std::vector<double>> run_times(int count) override {
    std::vector<double> out;
    for (int i = 0; i < count; ++i) {
      const Stopwatch stopwatch;
      HOIST_TRY_VOID(runner_.run());
      out.push_back(stopwatch.seconds());
    }
    return out;
  }

 private:
  static bool goes_on(int profiles, double seconds, const std::vector<double>& runs) {
    if (profiles < least_slow_profiles) return true;
    if (seconds > most_profile_seconds || profiles >= most_profiles) return false;
    if (profiles < least_profiles || seconds < profile_seconds) return true;
    const Interval time = summarise_times(runs).lower_quartile;
    return !(time.high - time.low <= steady * time.value);
  }

  TemporaryFolder folder_;
  BundleRunner runner_;
};

}  // namespace

Result<Program> prepared_program(Program program) {
  HOIST_TRY_VOID(check_calls(program));
  begin_derivation(program);
  HOIST_TRY_VOID(find_pass("fold-batch-norm")->run(program, {}));
  fold_constant_shapes(program);
  return program;
}

Result<StudiedModel> open_for_study(const std::filesystem::path& path, const ModelOptions& options,
                                    MakeRunnable make_runnable) {
  if (!options.profile.empty())
    return usage_error("--profile", "describes a device that this machine does not have",
                       "choosing rules needs measurements: name a device with --device");
  if (options.strict) return usage_error("--strict", "keeps every bit", "leave it out: neural rules change values");
  const bool native = !options.targets.empty();
  HOIST_TRY(Device device,
            with_kind(ErrorKind::device, native ? native_device(options.targets) : find_device(options.device)));
  HOIST_TRY(Program program, read_program(path, options));
  HOIST_TRY(program, prepared_program(std::move(program)));
  PrepareOptions prepare;
  if (native) {
    HOIST_TRY(prepare.profile, choose_profile(options));
    prepare.targets = options.targets;
  } else {
    prepare.profile = profile_of(device);
  }
  prepare.run.device = options.device;
  prepare.lower = compile_options(options).lower;
  prepare.make_runnable = std::move(make_runnable);
  return StudiedModel{std::move(program), prepare.profile, device.name, prepare, prepare_on_device(prepare)};
}

Result<LoweredModel> lower_rewritten(const RewrittenModel& model, const LowerOptions& options, const Profile& profile) {
  // A table would hold the function itself, not the rule's approximation.
  PassOptions passes = pass_options(options, profile);
  for (const auto& [layer, rule] : model.functions) passes.tables.except.insert(layer);
  passes.share_equal = false;
  passes.execute = false;  // for neural rules, values of dynamic control flow belong to no layer
  Program program = model.program;
  HOIST_TRY_VOID(run_passes(program, Pass::calls, passes));
  for (Definition& definition : program.definitions) {
    for (const std::string& layer : definition.layers) {
      HOIST_TRY(UnderFunctions under, under_functions(definition.expression, {layer}, model.functions));
      definition.expression = under.term;
      for (ProgramStep& step : under.steps) {
        step.value = definition.value;
        program.steps.push_back(std::move(step));
      }
    }
  }
  return lower_program(std::move(program), options, profile);
}

Result<ModelOnDevice> open_on_device(Plan plan, const RunOptions& run) {
  HOIST_TRY(TemporaryFolder folder, TemporaryFolder::make());
  const std::filesystem::path path = folder.path() / "bundle";
  HOIST_TRY_VOID(write_bundle(plan, path));
  HOIST_TRY(BundleRunner runner, BundleRunner::open(path, run));
  HOIST_TRY_VOID(runner.share_memory());
  return ModelOnDevice{std::move(folder), std::move(plan), std::move(runner)};
}

Result<ModelOnDevice> open_on_device(LoweredModel lowered, const PrepareOptions& options, const Profile& profile) {
  CompileOptions compile;
  compile.lower = options.lower;
  compile.check_positions = 0;
  compile.targets = options.targets;
  compile.emitted = options.emitted;
  RunOptions run = options.run;
  if (options.progress) {
    compile.progress = [&](size_t done, size_t all) { options.progress(fmt::format("kernel {} of {}", done, all)); };
    run.progress = [progress = options.progress](size_t done, size_t total, const std::string&) {
      if (done > 0 && done < total) progress(fmt::format("the driver compiles kernel {} of {}", done, total - 1));
    };
  }
  HOIST_TRY(Plan plan, make_plan(std::move(lowered), compile, profile));
  return open_on_device(std::move(plan), run);
}

Result<std::unique_ptr<RunnableModel>> runnable_on_device(LoweredModel lowered, const PrepareOptions& options,
                                                          const Profile& profile) {
  HOIST_TRY(ModelOnDevice opened, open_on_device(std::move(lowered), options, profile));
  return options.make_runnable ? options.make_runnable(std::move(opened)) : runnable_here(std::move(opened));
}

std::unique_ptr<RunnableModel> runnable_here(ModelOnDevice opened) {
  return std::make_unique<DeviceModel>(std::move(opened));
}

PrepareModel prepare_on_device(PrepareOptions options) {
  return [options = std::move(options)](const RewrittenModel& model) -> Result<std::unique_ptr<RunnableModel>> {
    Profile profile = options.profile;
    // OpenCL drivers of CPUs take minutes for large register tiles followed by long terms. Values do not depend on the
    // tile.
    if (model.only_values && !profile.gpu && options.targets.empty())
      profile.vector_registers = std::min<int64_t>(profile.vector_registers, 8);
    HOIST_TRY(LoweredModel lowered, lower_rewritten(model, options.lower, profile));
    return runnable_on_device(std::move(lowered), options, profile);
  };
}

}  // namespace hoist
