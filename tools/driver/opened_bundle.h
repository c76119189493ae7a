// Opens a bundle for every command that runs one. To read only its files, use backends/bundle.
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
#include "tools/base/exit_code.h"
#include "tools/data/media.h"

namespace hoist {

/// Reads the files of a bundle for the specialisation of these sizes (sizes.h). The error for another kind of file
/// names that kind.
Result<BundleInfo> bundle_info(const std::filesystem::path& folder, const Sizes& sizes = {});

/// The device for a bundle of this target description: the device named `wanted`, or the first that matches. Errors
/// state why there is none.
Result<Device> device_for(const Profile& profile, const std::string& wanted);
/// The device for a plan. For native code it is this processor, if it runs one of the targets and the bundle has a
/// library to load.
Result<Device> device_for(const Plan& plan, const Profile& profile, const std::string& wanted);
/// The device that an open bundle runs on.
Result<Device> device_of(const BundleRunner& bundle, const Plan& plan);
/// The target description of that device; for native code, of the target that the plan's kernels are compiled for.
Result<Profile> profile_of(const BundleRunner& bundle, const Plan& plan);

/// Shows a progress line while the driver compiles the bundle's kernels, and starts the helper processes.
DriverProgress driver_progress(const std::filesystem::path& folder, const RunOptions& options);

/// Opens a bundle whose files have been checked, on the given or the best matching device. Warns if the bundle was
/// compiled for another kind of device (CPU or not): kernels are correct there but far slower. Prints a note for
/// another device of the same kind.
Result<BundleRunner> open_checked(const std::filesystem::path& folder, RunOptions options);

/// Checks the files first, so that a damaged bundle is bad input and only later errors are device errors.
Result<BundleRunner> open_bundle(const std::filesystem::path& folder, const RunOptions& options);

/// The kind of the error of a failed run: of the input if it depends on the values of the inputs, else of the device.
ErrorKind kind_of_failed_run(const BundleRunner& bundle);

/// The result of a run of the bundle, with errors of their kind.
template <class T>
Result<T> of_run(const BundleRunner& bundle, Result<T> returned) {
  return with_kind(kind_of_failed_run(bundle), std::move(returned));
}

/// The position of the input (output) with this name.
Result<size_t> input_called(const BundleRunner& bundle, const std::string& name);
Result<size_t> output_called(const BundleRunner& bundle, const std::string& name);

/// The inputs as values of a graph.
std::vector<ValueInfo> inputs_of(const BundleRunner& bundle);
/// The inputs and outputs of a plan; needs no device.
std::vector<ValueInfo> inputs_of(const Plan& plan);
std::vector<ValueInfo> outputs_of(const Plan& plan);
Result<size_t> output_called(const Plan& plan, const std::string& name);

/// Fills options that are not given from the bundle's description of this input.
ImageOptions as_stored(const BundleRunner& bundle, size_t input, ImageOptions options);
/// The same without a device; `first` is the first plan of the bundle.
ImageOptions as_stored(const Plan& first, size_t input, ImageOptions options);

/// Random elements for every input, drawn from its domain.
std::vector<Tensor> seeded_inputs(const BundleRunner& bundle, const Plan& plan, uint64_t seed);

/// The file name of an output without its ending: characters outside A-Z a-z 0-9 _ . - become _, and a
/// long name ends with a hash of the whole.
std::string file_name(const std::string& value);

}  // namespace hoist
