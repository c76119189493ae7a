// How long a kernel will take on a device, estimated from its term alone, without compiling it, by what was learned
// from kernels that were measured (programs/kernel_times.cpp): a sum of what it does, each amount at its price, times
// what trees say of a kernel with such features. Amounts and features are made by hand: the loops by their modes, the
// operations by their kinds, each as often as the loops around it say, the arrays, and what the profile says of the
// device. Not the last word where a kernel can be measured; and of kernels unlike all that it learned from, the model
// says nothing.
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

/// What the time of a kernel depends on beside its term and the profile.
struct Circumstances {
  bool native = false;  ///< no driver launches it
  /// How much longer the reference kernel of kernel_times took in that moment than on a machine that nobody else uses,
  /// which slows some kernels more than others.
  double contention = 1;
};

/// What a model looks at.
struct KernelNumbers {
  std::vector<float> features;  ///< one for each name of kernel_feature_names, many of them logarithms
  std::vector<double> amounts;  ///< of what takes time, one for each name of kernel_amount_names, none below 0
  bool native = false;          ///< as in the circumstances
  bool of_layers = false;       ///< a launch that computes several layers one after the other
};
std::span<const std::string_view> kernel_feature_names();
std::span<const std::string_view> kernel_amount_names();
/// Of a low-level term with numbers for its sizes.
KernelNumbers kernel_numbers(Expr term, const Profile& profile, const Circumstances& circumstances = {});

/// How many numbers or tuples an array has, whatever 64 bits hold.
double elements_of(Type type);

/// A measurement, as programs/kernel_times.cpp writes it: a line of JSON.
struct KernelTime {
  std::string model, kernel;
  std::string device;
  std::string driver;  ///< its version, or that native code has none
  Profile profile;     ///< of the device
  Expr term = nullptr;
  double seconds = 0;
  double launch = 0;            ///< seconds that its run took for each step beside the kernels
  Circumstances circumstances;  ///< contention is beside the best moment of that device in the file
};
/// Errors name the line.
Result<std::vector<KernelTime>> read_kernel_times(const std::filesystem::path& file);

class CostModel {
 public:
  /// From at least one measurement.
  static CostModel fit(const std::vector<KernelTime>& times);
  /// Those that come with hoist, each of other devices.
  static std::span<const CostModel> shipped();
  /// Seconds of one launch; nothing where the kernel or the device lies outside of what the model learned from.
  std::optional<double> seconds(Expr term, const Profile& profile, const Circumstances& circumstances = {}) const;

  /// What a run takes for each step beside the kernel, where other programs on the machine did not make it longer: the
  /// tenth percentile of what the model learned from.
  double launch_seconds(bool native) const { return native ? native_launch_ : driver_launch_; }

  /// Whether it has learned from launches of several layers; else it says nothing of any.
  bool knows_layers() const { return layers_; }

  /// As JSON, with the devices, networks and numbers of kernels that it has learned from.
  std::string save() const;
  static Result<CostModel> load(std::string_view text, const std::string& where);
  /// A line for each device.
  const std::vector<std::string>& learned_from() const { return learned_from_; }

 private:
  struct Example;
  /// What the trees look at, by its place among all features, and how far that reached in what they learned from.
  struct Feature {
    size_t place = 0;
    float least = 0, most = 0;
  };
  /// Seconds for one of each amount. Native code has its own, since no driver is in its way.
  struct Prices {
    std::vector<double> native, driver;

    /// Seconds of all amounts.
    double of(const KernelNumbers& kernel) const;
  };
  CostModel(Prices prices, BoostedTrees trees) : prices_(std::move(prices)), trees_(std::move(trees)) {}
  static std::vector<Example> examples_of(const std::vector<KernelTime>& times);
  /// None below 0, such that sums of prices differ least from what was measured, as shares of it.
  static Prices learn_prices(const std::vector<const Example*>& examples);
  /// Without the scale by which the model errs least, and with it.
  static CostModel learn(const std::vector<const Example*>& examples);
  static CostModel fit(const std::vector<const Example*>& examples);
  std::optional<double> seconds(const KernelNumbers& kernel) const;

  friend const CostModel& model_for(std::span<const CostModel> models, std::span<const Expr> kernels,
                                    const Profile& profile, const Circumstances& circumstances);
  friend std::vector<std::optional<double>> held_out_predictions(const std::vector<KernelTime>& times, size_t parts);

  Prices prices_;
  BoostedTrees trees_;  // of the logarithm of measured seconds over those of the prices
  std::vector<std::string> learned_from_;
  float native_launch_ = 0, driver_launch_ = 0;
  float scale_ = 1;  // of what both say
  bool layers_ = false;
  std::vector<Feature> features_;
};

/// The model that knows the most of these kernels, the first of equals: times of two models are not compared with each
/// other, so one has to answer for all. There is at least one model.
const CostModel& model_for(std::span<const CostModel> models, std::span<const Expr> kernels, const Profile& profile,
                           const Circumstances& circumstances);

/// How well a model predicts kernels that it has not seen.
struct CostModelQuality {
  size_t kernels = 0;
  size_t outside = 0;     ///< of which the model says nothing
  double mean_error = 0;  ///< of |predicted - measured| / measured
  double median_error = 0;
  double rank_correlation = 0;  ///< Spearman's
  size_t pairs = 0;             ///< of variants of one kernel, one at least a tenth slower than the other
  double ordered_pairs = 0;     ///< the share that the model puts in the right order
};
CostModelQuality quality_of(const std::vector<KernelTime>& times, const std::vector<std::optional<double>>& predicted);
/// What models say of each measurement that have not seen the network that it is from: the networks in `parts` parts,
/// one each where there are fewer, of which one after the other is left out. Nothing where there is one network.
std::vector<std::optional<double>> held_out_predictions(const std::vector<KernelTime>& times, size_t parts);

}  // namespace hoist::tuning
