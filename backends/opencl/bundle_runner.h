// Runs a bundle for the hoist program: the C runtime that ships in every bundle, with tensors and results. Besides the
// functions of a user's C program it offers the needs of `hoist verify` and `hoist bench`: single steps, intermediate
// arrays and times. An object may be used by one thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/runtime/hoist_runtime.h"
#include "ir/base/result.h"
#include "ir/language/tensor.h"

struct hoist_bundle;

namespace hoist {

/// Sizes by name, as in `hoist compile --dim batch=1,8`.
using Sizes = std::vector<std::pair<std::string, int64_t>>;

/// Called with the number of parts of `total` that the driver has compiled, and the next kernel ("" for none; see
/// hoist_options).
using DriverProgress = std::function<void(size_t done, size_t total, const std::string& kernel)>;

struct RunOptions {
  std::string device;             ///< an index, a name or a part of a name; "" selects a device that fits the target
                                  ///< description
  int threads = 0;                ///< threads of a CPU device; 0 for all
  bool separate_buffers = false;  ///< a buffer for each array, initially NaN
  bool use_cache = true;          ///< use the cache of compiled programs
  std::string cache_folder;       ///< "" for ${XDG_CACHE_HOME:-~/.cache}/hoist
  Sizes sizes = {};               ///< sizes of the initial specialisation; a size that is not named is the first one's
  DriverProgress progress = {};
};

struct ArrayInfo {
  std::string name;
  Scalar scalar = Scalar::f32;
  std::vector<int64_t> shape;
};

struct StepInfo {
  std::string kernel;
  int kernel_index = 0;
  std::vector<std::string> layers;
  std::vector<int> arguments;  ///< array indices, one per parameter
  int64_t operations = 0;
  bool on_host = false;  ///< no kernel is launched
};

/// One line of the self-check.
struct Finding {
  std::string subject;  ///< "file weights.bin", "kernel conv1", "output logits"
  bool passed = false;
  std::string message;
  uint64_t compared = 0;
  double largest_error = 0;
};

class BundleRunner {
 public:
  /// Opens a bundle. Its errors do not distinguish bad files from device failures: if the difference matters, call
  /// read_bundle (backends/bundle) first, which checks the same files and needs no device.
  static Result<BundleRunner> open(const std::filesystem::path& folder, const RunOptions& options = {});
  BundleRunner(BundleRunner&&) noexcept = default;
  BundleRunner& operator=(BundleRunner&&) noexcept = default;

  std::string model_name() const;
  std::string device_name() const;
  std::string engine_name() const;   ///< see hoist_engine_name
  int device_index() const;          ///< among all devices
  std::string profile_name() const;  ///< the target that the bundle is compiled for
  bool profile_is_cpu() const;
  bool fits_profile() const;          ///< both are CPUs, or neither is
  int threads() const;                ///< compute units in use
  std::string cache_outcome() const;  ///< "hit" or "miss: REASON"

  /// The sizes of all specialisations; one entry without sizes if the bundle is compiled for one set of sizes.
  const std::vector<Sizes>& specialisations() const { return specialisations_; }
  size_t specialisation() const;  ///< the one in use; all functions below refer to it
  /// True if inputs of other shapes choose other sizes: there are several specialisations, or open sizes.
  bool has_sizes() const;
  /// Selects a specialisation. Inputs have to be set again.
  Result<Nothing> choose(size_t specialisation);
  Result<Nothing> choose_sizes(const Sizes& sizes);
  /// Selects the specialisation in which the input has this shape; an error lists the available shapes.
  Result<Nothing> choose_input_shape(size_t input, const std::vector<int64_t>& shape);

  const std::vector<ArrayInfo>& inputs() const { return inputs_; }
  const std::vector<ArrayInfo>& outputs() const { return outputs_; }
  const std::vector<ArrayInfo>& arrays() const { return arrays_; }
  const std::vector<StepInfo>& steps() const { return steps_; }

  /// The preprocessing of images for the input, if the bundle defines it.
  std::optional<hoist_preprocessing> preprocessing(size_t input) const;

  /// Scalar type and shape must be the input's.
  Result<Nothing> set_input(size_t index, const Tensor& tensor);
  Result<Nothing> set_input(const std::string& name, const Tensor& tensor);
  /// Moves inputs and outputs into memory that the host accesses directly (hoist_input_memory): further runs only
  /// transfer data that the device needs to have transferred.
  Result<Nothing> share_memory();
  Result<Nothing> run();
  /// The output with the actual shape of the last run; outputs() has the maximum of dynamic dimensions.
  Result<Tensor> output(size_t index);
  /// True if the input data caused the last failure of a run or output: more elements than the capacity, a string that
  /// is not a number, a loop that does not end.
  bool refuses_data() const { return refuses_data_; }
  /// Sets all inputs in order, runs, and returns all outputs in order.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);

  /// Values that live between runs (hoist_state_count in hoist_runtime.h).
  const std::vector<ArrayInfo>& states() const { return states_; }
  Result<Tensor> state(size_t index);
  Result<Nothing> set_state(size_t index, const Tensor& tensor);
  Result<Nothing> reset_states();
  Result<Nothing> save_states(const std::filesystem::path& file);
  Result<Nothing> load_states(const std::filesystem::path& file);

  Result<Nothing> run_steps(size_t first, size_t count);
  /// The number of executions of the step since the run began; 0 if no branch or loop selected it.
  uint64_t step_runs(size_t index) const;
  /// The array's present content; arrays in the arena are overwritten by later steps.
  Result<Tensor> read_array(size_t index);
  /// Seconds of each step of one run, as measured by the device.
  Result<std::vector<double>> profile();

  /// The runtime's self-check. A failed comparison is a finding, not an error.
  Result<std::vector<Finding>> verify();
  /// The part of the self-check that compares each fused launch with its steps launched alone, from seeded inputs, and
  /// runs a sequence if there are states.
  Result<std::vector<Finding>> verify_launches(uint64_t seed);

 private:
  struct Close {
    void operator()(hoist_bundle* bundle) const;
  };
  BundleRunner() = default;
  Diagnostic failure() const;
  Result<Nothing> outcome(int status) const;
  Diagnostic failed_run(int status);  ///< a status of the C runtime
  Result<Nothing> describe();

  std::unique_ptr<DriverProgress> progress_;  ///< the handle has its address
  std::unique_ptr<hoist_bundle, Close> bundle_;
  std::string folder_;
  std::vector<ArrayInfo> inputs_, outputs_, states_, arrays_;
  std::vector<StepInfo> steps_;
  std::vector<Sizes> specialisations_;
  bool refuses_data_ = false;
};

}  // namespace hoist
