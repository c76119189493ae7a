// Opening a bundle as every command that runs one does it. Not for the files alone: backends/bundle.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "backends/opencl/device.h"
#include "ir/plan/plan.h"
#include "ir/program/program.h"
#include "tools/cli/attempt.h"
#include "tools/data/media.h"

namespace CLI {
class App;
}

namespace hoist {

/// The bundle's folder, --device, --threads and --dim.
void add_bundle_options(CLI::App& command, std::string& folder, RunOptions& options);

/// What the files of a bundle say of the specialisation of these sizes (sizes.h); what is no bundle at all is named as
/// what it is.
Attempt<BundleInfo> bundle_info(const std::filesystem::path& folder, const Sizes& sizes = {});

/// The device that a bundle of this profile is for: the wanted one where there is a name, else the first of that
/// profile. An error says why there is none.
Result<Device> device_for(const Profile& profile, const std::string& wanted);
/// The same for a plan, whose kernels may be native code: this processor then, where it runs one of the targets and the
/// bundle has a library to load.
Result<Device> device_for(const Plan& plan, const Profile& profile, const std::string& wanted);
/// What an open bundle runs on.
Result<Device> device_of(const BundleRunner& bundle, const Plan& plan);
/// Its profile; for native code that of the target that the plan's kernels are shaped for.
Result<Profile> profile_of(const BundleRunner& bundle, const Plan& plan);

/// A line on the terminal while the driver compiles the bundle's kernels, and other processes that help it.
DriverProgress driver_progress(const std::filesystem::path& folder, const RunOptions& options);

/// A bundle whose files are checked, on the wanted device or the one that fits it best; with a warning where that is of
/// another kind, a CPU or not, than the bundle is made for: kernels are right there and far slower. Of another device
/// of its kind there is a note.
Attempt<BundleRunner> open_checked(const std::filesystem::path& folder, RunOptions options);

/// Checks the files first, so that a damaged bundle is bad input and only what follows is device trouble.
Attempt<BundleRunner> open_bundle(const std::filesystem::path& folder, const RunOptions& options);

/// What a run that failed comes to: bad input where that is over what the inputs hold, else device trouble.
ExitCode failed_run(const BundleRunner& bundle);

/// The position of the input (output) called `name`.
Attempt<size_t> input_called(const BundleRunner& bundle, const std::string& name);
Attempt<size_t> output_called(const BundleRunner& bundle, const std::string& name);

/// The inputs as a graph describes them.
std::vector<ValueInfo> inputs_of(const BundleRunner& bundle);
/// The same of a plan, where no device is needed, and its outputs.
std::vector<ValueInfo> inputs_of(const Plan& plan);
std::vector<ValueInfo> outputs_of(const Plan& plan);
Attempt<size_t> output_called(const Plan& plan, const std::string& name);

/// The options with what the bundle says of this input in place of those that are not given.
PictureOptions as_stored(const BundleRunner& bundle, size_t input, PictureOptions options);
/// The same without a device; `first` is the plan that the bundle begins with.
PictureOptions as_stored(const Plan& first, size_t input, PictureOptions options);

/// Numbers for every input, drawn from its domain.
std::vector<Tensor> seeded_inputs(const BundleRunner& bundle, const Plan& plan, uint64_t seed);

/// How an output's file is called without its ending: characters outside A-Z a-z 0-9 _ . - become _.
std::string file_name(const std::string& value);

}  // namespace hoist
