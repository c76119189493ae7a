// Runs a bundle for the hoist program: the C runtime that ships in every bundle, in terms of tensors and results. What
// a user's C program would do, and what `hoist verify` and `hoist bench` need besides: single steps, what lies between
// them, and their times. One object, one thread at a time.
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

/// Sizes by name, as `hoist compile --dim batch=1,8` has them.
using Sizes = std::vector<std::pair<std::string, int64_t>>;

/// Told how many of `total` parts the driver has compiled, and which kernel is next ("" for none; see hoist_options).
using DriverProgress = std::function<void(size_t done, size_t total, const std::string& kernel)>;

struct RunOptions {
  std::string device;             ///< an index, a name or a part of one; "" is the one that fits the bundle's profile
  int threads = 0;                ///< of a CPU device; 0 for all
  bool separate_buffers = false;  ///< a buffer for each array, full of NaN at first
  bool use_cache = true;          ///< of compiled programs
  std::string cache_folder;       ///< "" for ${XDG_CACHE_HOME:-~/.cache}/hoist
  Sizes sizes = {};               ///< of the specialisation to begin with, those of the first where not named
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
  std::vector<int> arguments;  ///< array indices, parameter by parameter
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
  /// Bad files are told from device trouble by read_bundle (backends/bundle), which checks the same files and needs no
  /// device: call it first where the difference matters.
  static Result<BundleRunner> open(const std::filesystem::path& folder, const RunOptions& options = {});
  BundleRunner(BundleRunner&&) noexcept = default;
  BundleRunner& operator=(BundleRunner&&) noexcept = default;

  std::string model_name() const;
  std::string device_name() const;
  int device_index() const;          ///< among all devices
  std::string profile_name() const;  ///< what the bundle is compiled for
  bool profile_is_cpu() const;
  bool fits_profile() const;          ///< the device is of the profile's kind, a CPU or not
  int threads() const;                ///< compute units in use
  std::string cache_outcome() const;  ///< "hit" or "miss: REASON"

  /// Of all specialisations; one of no sizes where the bundle is compiled for one set of them.
  const std::vector<Sizes>& specialisations() const { return specialisations_; }
  size_t specialisation() const;  ///< the one in use, of which everything below speaks
  /// Inputs are to be set again.
  Result<Nothing> choose(size_t specialisation);
  Result<Nothing> choose_sizes(const Sizes& sizes);
  /// What gives the input this shape; an error names the shapes that there are.
  Result<Nothing> choose_input_shape(size_t input, const std::vector<int64_t>& shape);

  const std::vector<ArrayInfo>& inputs() const { return inputs_; }
  const std::vector<ArrayInfo>& outputs() const { return outputs_; }
  const std::vector<ArrayInfo>& arrays() const { return arrays_; }
  const std::vector<StepInfo>& steps() const { return steps_; }

  /// How pictures become the input, where the bundle says it.
  std::optional<hoist_preprocessing> preprocessing(size_t input) const;

  /// Scalar type and shape must be the input's.
  Result<Nothing> set_input(size_t index, const Tensor& tensor);
  Result<Nothing> set_input(const std::string& name, const Tensor& tensor);
  /// From now on inputs and outputs stand in memory that the host writes and reads itself (hoist_input_memory): runs
  /// transfer what the device needs to have transferred, and no more.
  Result<Nothing> share_memory();
  Result<Nothing> run();
  /// As long as the last run made it: outputs() gives the most where data decide.
  Result<Tensor> output(size_t index);
  /// Whether what the inputs hold is why a run, or one of its outputs, has failed last: more elements than there is
  /// room for, a string that is no number, a loop that does not end.
  bool refuses_data() const { return refuses_data_; }
  /// All inputs in order, a run, all outputs in order.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);

  Result<Nothing> run_steps(size_t first, size_t count);
  /// How often the step has run since the run began; 0 where data have not chosen it.
  uint64_t step_runs(size_t index) const;
  /// The array's present content; arrays in the arena are overwritten by later steps.
  Result<Tensor> read_array(size_t index);
  /// Seconds of each step of one run, as the device measures them.
  Result<std::vector<double>> profile();

  /// The runtime's self-check. Findings that did not pass are part of the answer, not errors.
  Result<std::vector<Finding>> verify();
  /// The part of it that runs launches of several steps, each beside the steps launched alone, from seeded inputs on.
  Result<std::vector<Finding>> verify_launches(uint64_t seed);

 private:
  struct Close {
    void operator()(hoist_bundle* bundle) const;
  };
  BundleRunner() = default;
  Diagnostic failure() const;
  Diagnostic failed_run(int status);  ///< of the C runtime
  Result<Nothing> describe();

  std::unique_ptr<DriverProgress> progress_;  ///< the handle has its address
  std::unique_ptr<hoist_bundle, Close> bundle_;
  std::string folder_;
  std::vector<ArrayInfo> inputs_, outputs_, arrays_;
  std::vector<StepInfo> steps_;
  std::vector<Sizes> specialisations_;
  bool refuses_data_ = false;
};

}  // namespace hoist
