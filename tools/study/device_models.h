// Rewritten models on a device, for measurements of errors and times by neural rules (PrepareModel). Each model becomes
// a bundle in a private folder that is removed with it. For permanent bundles: commands/compile.cpp.
#pragma once

#include "backends/opencl/bundle_runner.h"
#include "ir/base/temporary_folder.h"
#include "neural_rules/calibration/runner.h"
#include "tools/driver/compile.h"
#include "tools/driver/model.h"

namespace hoist {

struct ModelOnDevice;
/// Makes a RunnableModel from a prepared model.
using MakeRunnable = std::function<std::unique_ptr<RunnableModel>(ModelOnDevice)>;

/// The device and the options for runs of models. Kernels have no values for a self-check, because temporary bundles
/// are never verified.
struct PrepareOptions {
  Profile profile;
  RunOptions run;
  LowerOptions lower;
  std::vector<std::string> targets = {};  ///< targets of native code, used instead of OpenCL
  MakeRunnable make_runnable = {};        ///< runnable_here by default
  std::shared_ptr<EmittedKernels> emitted = std::make_shared<EmittedKernels>();  ///< of all models prepared so far
  std::function<void(const std::string& part)> progress = {};  ///< "kernel 3 of 40", by any thread, one at a time
};

PrepareModel prepare_on_device(PrepareOptions options);

/// A model as a bundle in a folder that is removed with it.
struct ModelOnDevice {
  TemporaryFolder folder;
  Plan plan;
  BundleRunner runner;
};
Result<ModelOnDevice> open_on_device(Plan plan, const RunOptions& run);
Result<ModelOnDevice> open_on_device(LoweredModel lowered, const PrepareOptions& options, const Profile& profile);
/// In this process.
std::unique_ptr<RunnableModel> runnable_here(ModelOnDevice opened);
/// The same as a model that can be run and timed.
Result<std::unique_ptr<RunnableModel>> runnable_on_device(LoweredModel lowered, const PrepareOptions& options,
                                                          const Profile& profile);

/// The kernels of a rewritten model: its layers as expressions, function rules applied to them, then all passes.
Result<LoweredModel> lower_rewritten(const RewrittenModel& model, const LowerOptions& options, const Profile& profile);

/// A model under study on a device: the program for rules (prepared_program), and the way to run rewritten models.
struct StudiedModel {
  Program program;
  Profile profile;
  std::string device;
  PrepareOptions options;  ///< how it runs
  PrepareModel prepare;
};
/// Neural rules are chosen on a device: --profile alone is an error, and so are targets that this processor cannot run.
/// With several targets, the one that it runs is measured.
Result<StudiedModel> open_for_study(const std::filesystem::path& path, const ModelOptions& options,
                                    MakeRunnable make_runnable = {});

inline constexpr char calibration_help[] =
    "an .npz with one array per input of the model, [samples][the input's axes after the first], or a folder of "
    "test_data_set_K";

/// Batch normalisation folded, and reshaped weights as constants, which sites and rules require. The derivation begins
/// with the given program.
Result<Program> prepared_program(Program program);

}  // namespace hoist
