#include "tools/driver/opened_bundle.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "backends/halide/native/native_target.h"
#include "ir/base/seeded.h"
#include "ir/evaluate/interpreter/host_call.h"
#include "ir/text/parse/near_miss.h"
#include "tools/base/terminal.h"
#include "tools/driver/driver_helpers.h"
#include "tools/driver/sizes.h"

namespace hoist {

namespace {

template <class Array>
Result<size_t> array_called(const char* kind, const std::vector<Array>& arrays, const std::string& name) {
  std::vector<std::string> names;
  std::string all;
  for (const Array& array : arrays) {
    names.push_back(array.name);
    all += (all.empty() ? "" : ", ") + array.name;
  }
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  return Diagnostic{std::string(kind) + " " + name, std::string("the model has no such ") + kind,
                    did_you_mean(name, names, all.empty() ? "it has none" : "it has " + all)};
}

std::vector<ValueInfo> values_of(const Plan& plan, const std::vector<int>& arrays, size_t count) {
  std::vector<ValueInfo> out;
  for (size_t i = 0; i < std::min(count, arrays.size()); ++i) {
    const PlanArray& array = plan.arrays[static_cast<size_t>(arrays[i])];
    out.push_back({array.name, array.scalar, array.shape});
  }
  return out;
}

}  // namespace

Result<BundleInfo> bundle_info(const std::filesystem::path& folder, const Sizes& sizes) {
  std::error_code ignored;
  const std::string name = folder.string(), hint = "hoist compile MODEL -o DIR writes one";
  if (!std::filesystem::exists(folder, ignored)) return Diagnostic{"bundle " + name, "there is no such folder", hint};
  if (!std::filesystem::is_directory(folder, ignored))
    return Diagnostic{name, "is a file, and a bundle is a folder", hint};
  if (!std::filesystem::exists(folder / "plan.bin", ignored))
    return Diagnostic{name, "is not a bundle: it holds no plan.bin", hint};
  HOIST_TRY(BundleInfo info, read_bundle(folder));
  HOIST_TRY(const size_t wanted, specialisation_of(info, sizes));
  if (wanted == 0) return info;
  HOIST_TRY(BundleInfo other, read_bundle(folder, false, wanted));
  return other;
}

Result<Device> device_for(const Profile& profile, const std::string& wanted) {
  std::vector<Device> devices;
  if (wanted.empty()) {
    HOIST_TRY(devices, list_devices());
  } else {
    HOIST_TRY(Device device, find_device(wanted));
    devices.push_back(std::move(device));
  }
  for (Device& device : devices) {
    if (same_device(profile, profile_of(device))) return std::move(device);
  }
  return Diagnostic{"", "no device of this machine fits the target description " + profile.name, ""};
}

Result<Device> device_for(const Plan& plan, const Profile& profile, const std::string& wanted) {
  if (plan.targets.empty()) return device_for(profile, wanted);
  HOIST_TRY(Device device, native_device(plan.targets));
  const bool loads = std::any_of(plan.native_files.begin(), plan.native_files.end(),
                                 [](const PlanFile& file) { return file.path.ends_with(".so"); });
  if (!loads && !plan.kernels.empty())
    return Diagnostic{"", "this machine has no C compiler to link a shared library of the kernels", ""};
  return device;
}

Result<Device> device_of(const BundleRunner& bundle, const Plan& plan) {
  if (bundle.device_index() < 0) return native_device(plan.targets);
  return find_device(std::to_string(bundle.device_index()));
}

Result<Profile> profile_of(const BundleRunner& bundle, const Plan& plan) {
  if (!plan.targets.empty()) {
    HOIST_TRY(const NativeTarget* target, native_target(plan.targets.front()));
    return profile_of(*target);
  }
  HOIST_TRY(const Device device, device_of(bundle, plan));
  return profile_of(device);
}

DriverProgress driver_progress(const std::filesystem::path& folder, const RunOptions& options) {
  return [folder, options, line = std::shared_ptr<Progress>(), helpers = std::shared_ptr<DriverHelpers>()](
             size_t done, size_t total, const std::string& kernel) mutable {
    if (done == total) {
      helpers.reset();
      line.reset();
      return;
    }
    if (line == nullptr) line = std::make_shared<Progress>();
    // The first kernel is reported only on a cache miss, and the files that the helpers need exist by then.
    if (done == 1 && helpers == nullptr) helpers = std::make_shared<DriverHelpers>(folder, options);
    line->show(done == 0 ? "the driver reads the kernels"
                         : fmt::format("the driver compiles kernel {} of {}: {}", done, total - 1, kernel),
               static_cast<double>(done) / static_cast<double>(total));
  };
}

namespace {

// If so, a bundle runs on that device, or on its serial form, by default.
bool has_device(const std::string& name) {
  const auto devices = list_devices();
  return devices.ok() &&
         std::any_of(devices->begin(), devices->end(), [&](const Device& device) { return device.name == name; });
}

}  // namespace

Result<BundleRunner> open_checked(const std::filesystem::path& folder, RunOptions options) {
  options.progress = driver_progress(folder, options);
  HOIST_TRY(BundleRunner runner, with_kind(ErrorKind::device, BundleRunner::open(folder, options)));
  if (!runner.fits_profile()) {
    print_message(
        "warning",
        fmt::format("the bundle is made for {}, a {}, and runs on {}, which is another kind of device: it may be "
                    "a thousand times slower (--device selects another; hoist devices lists them)",
                    runner.profile_name(), runner.profile_is_cpu() ? "CPU" : "GPU", runner.device_name()));
  } else if (runner.device_index() >= 0 && runner.profile_name() != runner.device_name() &&
             !(options.device.empty() && has_device(runner.profile_name()))) {
    print_message(
        "note",
        fmt::format("the bundle is made for {} and runs on {}: its results are correct there, but it may be "
                    "slower than necessary (hoist verify checks it, compile --device makes one for this device)",
                    runner.profile_name(), runner.device_name()));
  }
  return runner;
}

Result<BundleRunner> open_bundle(const std::filesystem::path& folder, const RunOptions& options) {
  HOIST_TRY([[maybe_unused]] BundleInfo info, bundle_info(folder, options.sizes));
  return open_checked(folder, options);
}

ErrorKind kind_of_failed_run(const BundleRunner& bundle) {
  return bundle.refuses_data() ? ErrorKind::input : ErrorKind::device;
}

Result<size_t> input_called(const BundleRunner& bundle, const std::string& name) {
  return array_called("input", bundle.inputs(), name);
}

Result<size_t> output_called(const BundleRunner& bundle, const std::string& name) {
  return array_called("output", bundle.outputs(), name);
}

std::vector<ValueInfo> inputs_of(const BundleRunner& bundle) {
  std::vector<ValueInfo> out;
  for (const ArrayInfo& input : bundle.inputs()) out.push_back({input.name, input.scalar, input.shape});
  return out;
}

std::vector<ValueInfo> inputs_of(const Plan& plan) { return values_of(plan, plan.inputs, plan.model_inputs()); }

std::vector<ValueInfo> outputs_of(const Plan& plan) { return values_of(plan, plan.outputs, plan.model_outputs()); }

Result<size_t> output_called(const Plan& plan, const std::string& name) {
  return array_called("output", outputs_of(plan), name);
}

ImageOptions as_stored(const Plan& first, size_t input, ImageOptions options) {
  for (const PlanPreprocessing& one : first.preprocessing) {
    if (static_cast<size_t>(one.input) == input) options.stored = runtime_preprocessing(one);
  }
  return options;
}

ImageOptions as_stored(const BundleRunner& bundle, size_t input, ImageOptions options) {
  if (input < bundle.inputs().size()) options.stored = bundle.preprocessing(input);
  return options;
}

std::vector<Tensor> seeded_inputs(const BundleRunner& bundle, const Plan& plan, uint64_t seed) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < bundle.inputs().size(); ++i) {
    const ArrayInfo& input = bundle.inputs()[i];
    const Domain domain = i < plan.input_domains.size() ? plan.input_domains[i] : Domain{};
    out.push_back(seeded_tensor(input.scalar, input.shape, seed, static_cast<uint32_t>(i), domain.low, domain.high));
    for (const PlanStep& step : plan.steps) {
      const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
      if (kernel.host.empty() || step.arguments.front() != plan.inputs[i]) continue;
      const KernelParameter& result = kernel.parameters.back();
      seed_for_host(kernel.host, out.back(),
                    array_type({result.shape.begin(), result.shape.end()}, scalar_type(result.scalar)));
    }
  }
  return out;
}

std::string file_name(const std::string& value) {
  std::string out = value;
  for (char& c : out) {
    const bool kept =
        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    if (!kept) c = '_';
  }
  // File systems limit names to 255 bytes; the hash keeps shortened names distinct.
  constexpr size_t longest = 200;
  if (out.size() > longest)
    out = fmt::format("{}-{:016x}", out.substr(0, longest - 17), XXH64(value.data(), value.size(), 0));
  return out;
}

}  // namespace hoist
