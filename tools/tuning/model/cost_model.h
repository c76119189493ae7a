// Predicts the time of a kernel on a device from its term, without compiling it, by a model learnt from measured
// kernels (programs/kernel_times.cpp): the sum of the kernel's amounts times their prices, times a correction that
// boosted trees predict from its features. Amounts and features are hand-made: loops by mode, operations by kind, both
// weighted by the surrounding loops' trip counts, arrays, and the target description. A measurement is better if the
// kernel can be measured. For kernels unlike the training data there is no prediction.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/language/expression.h"
#include "ir/target/profile.h"
#include "tools/tuning/strategies/boosted_trees.h"

namespace hoist::tuning {

/// The conditions besides the term and the target description that affect the time of a kernel.
struct Circumstances {
  bool native = false;  ///< launched without a driver
  /// The slow-down of the reference kernel of kernel_times at that moment, relative to an idle machine. Contention
  /// slows some kernels more than others.
  double contention = 1;
};

/// The inputs of a model for one kernel.
struct KernelNumbers {
  std::vector<float> features;  ///< one per name of kernel_feature_names, many of them logarithms
  std::vector<double> amounts;  ///< the amounts of work, one per name of kernel_amount_names, non-negative
  bool native = false;          ///< as in the circumstances
  bool of_layers = false;       ///< a fused launch
};
std::span<const std::string_view> kernel_feature_names();
std::span<const std::string_view> kernel_amount_names();
/// The numbers of a low-level term whose sizes are constants.
KernelNumbers kernel_numbers(Expr term, const Profile& profile, const Circumstances& circumstances = {});

/// The number of elements (scalars or tuples) of an array, also beyond 64 bits.
double elements_of(Type type);

/// A measurement; programs/kernel_times.cpp writes it as a line of JSON.
struct KernelTime {
  std::string model, kernel;
  std::string device;
  std::string driver;  ///< the driver's version, or a text for native code
  Profile profile;     ///< target description of the device
  Expr term = nullptr;
  double seconds = 0;
  double launch = 0;            ///< seconds of the run outside its kernels, per step
  Circumstances circumstances;  ///< contention is relative to the best moment of that device in the file
};
/// Reads measurements. Errors name the line.
Result<std::vector<KernelTime>> read_kernel_times(const std::filesystem::path& file);

class CostModel {
 public:
  /// Fits a model to at least one measurement.
  static CostModel fit(const std::vector<KernelTime>& times);
  /// The models that hoist ships, each for other devices.
  static std::span<const CostModel> shipped();
  /// Seconds of one launch; empty if the kernel or the device is outside of the training range.
  std::optional<double> seconds(Expr term, const Profile& profile, const Circumstances& circumstances = {}) const;

  /// The seconds of a run per step outside the kernel, on an undisturbed machine: the tenth percentile of the training
  /// data.
  double launch_seconds(bool native) const { return native ? native_launch_ : driver_launch_; }

  /// True if the training data include fused launches; without them, the model predicts none.
  bool knows_layers() const { return layers_; }

  /// The model as JSON, with the devices, networks and numbers of kernels of its training data.
  std::string save() const;
  static Result<CostModel> load(std::string_view text, const std::string& where);
  /// The training data, one line per device.
  const std::vector<std::string>& learned_from() const { return learned_from_; }

 private:
  struct Example;
  /// A feature that the trees use, by its index among all features, and its range in the training data.
  struct Feature {
    size_t place = 0;
    float least = 0, most = 0;
  };
  /// Seconds per unit of each amount. Native code has its own prices, since it is launched without a driver.
  struct Prices {
    std::vector<double> native, driver;

    /// Seconds of all amounts of a kernel.
    double of(const KernelNumbers& kernel) const;
  };
  CostModel(Prices prices, BoostedTrees trees) : prices_(std::move(prices)), trees_(std::move(trees)) {}
  static std::vector<Example> examples_of(const std::vector<KernelTime>& times);
  /// Non-negative prices that minimise the squared relative error of the sums.
  static Prices learn_prices(const std::vector<const Example*>& examples);
  /// learn() fits prices and trees; fit() also fits a scale, which reduces the mean relative error.
  static CostModel learn(const std::vector<const Example*>& examples);
  static CostModel fit(const std::vector<const Example*>& examples);
  std::optional<double> seconds(const KernelNumbers& kernel) const;

  friend const CostModel& model_for(std::span<const CostModel> models, std::span<const Expr> kernels,
                                    const Profile& profile, const Circumstances& circumstances);
  friend std::vector<std::optional<double>> held_out_predictions(const std::vector<KernelTime>& times, size_t parts);

  Prices prices_;
  BoostedTrees trees_;  // predict the logarithm of measured over priced seconds
  std::vector<std::string> learned_from_;
  float native_launch_ = 0, driver_launch_ = 0;
  float scale_ = 1;  // factor of the product of both
  bool layers_ = false;
  std::vector<Feature> features_;
};

/// The model that covers most of these kernels, the first of equals. Predictions of two models are not comparable, so
/// one model must predict all. There must be at least one model.
const CostModel& model_for(std::span<const CostModel> models, std::span<const Expr> kernels, const Profile& profile,
                           const Circumstances& circumstances);

/// The quality of a model's predictions for kernels of unseen networks.
struct CostModelQuality {
  size_t kernels = 0;
  size_t outside = 0;     ///< kernels without a prediction
  double mean_error = 0;  ///< mean of |predicted - measured| / measured
  double median_error = 0;
  double rank_correlation = 0;  ///< Spearman's
  size_t pairs = 0;             ///< variants of one kernel whose times differ by at least a tenth
  double ordered_pairs = 0;     ///< share of the pairs that the model orders correctly
};
CostModelQuality quality_of(const std::vector<KernelTime>& times, const std::vector<std::optional<double>>& predicted);
/// The prediction for each measurement by a model that has not seen its network: the networks are split into at most
/// `parts` parts, and each part is left out in turn. Empty if there is only one network.
std::vector<std::optional<double>> held_out_predictions(const std::vector<KernelTime>& times, size_t parts);

}  // namespace hoist::tuning
