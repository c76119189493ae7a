// Statistics of the values of a model on calibration data. They are independent of the order of samples and of
// batching, bit for bit: the first pass finds minima and maxima, the second fills histograms over this fixed range and
// sums in fixed point.
//
// Sums are 60-bit integers relative to the largest magnitude: the range is known from the first pass, integer addition
// is associative, and the rounding error is 2^-60 of the largest number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"
#include "ir/program/program_builder.h"

namespace hoist {

/// The number of windows of a feature map, or rows of a matrix, per sample that enter second moments: adjacent windows
/// are similar.
inline constexpr int64_t most_sample_windows = 64;

/// Second moments of the vectors that a contraction sums over: rows of a matrix, windows of a feature map.
struct SecondMoments {
  int64_t terms = 0;             ///< terms of one sum
  int64_t count = 0;             ///< count of vectors, per group of channels
  std::vector<double> means;     ///< [groups][terms]: E[x_i]
  std::vector<double> products;  ///< [groups][terms][terms]: E[x_i x_j]
};

/// Statistics of all elements of a value over all samples; per channel (dimension `channel_axis`) if `channels` is not
/// empty.
struct ValueStatistics {
  int64_t count = 0;
  int64_t zeros = 0;  ///< elements that are exactly zero
  double low = 0, high = 0;
  double mean = 0, mean_square = 0;
  std::vector<uint64_t> histogram;  ///< equal bins over [low, high]; all elements in the first bin if low = high
  struct Channel {
    double low = 0, high = 0, mean = 0, mean_square = 0;
  };
  std::vector<Channel> channels;
  double block_noise = 0;    ///< mean squared error of rounding in blocks of channels (formats.h); 0 without channels
  int64_t channel_axis = 1;  ///< -1 is the last dimension: for operands of matrix products
  /// By the consuming layer; only for layers for which they were requested.
  std::map<std::string, std::shared_ptr<const SecondMoments>> second_moments;
  /// Weights rounded with these moments, as numbers of the rule's format: by layer, then by rule. They are small while
  /// moments are large, and replace the moments.
  std::map<std::string, std::map<std::string, std::shared_ptr<const Tensor>>> rounded;
};
using Statistics = std::map<std::string, ValueStatistics>;  ///< by value name

inline constexpr int histogram_bins = 2048;

/// Collects the statistics of any number of values in two passes over the same data: every tensor is passed to
/// `observe_min_max` before the first one is passed to `observe`. The caller has to exclude constants among the
/// model's values. Integer tensors and empty tensors are ignored. A value with a dynamic channel dimension has no
/// statistics per channel.
class Calibrator {
 public:
  explicit Calibrator(const Program& program);
  ~Calibrator();
  Calibrator(Calibrator&&) noexcept;
  Calibrator& operator=(Calibrator&&) noexcept;

  /// Requests the second moments of a contraction's input, for rules that round weights with data; must be called
  /// before the second pass. They take 8 bytes times the square of the terms per sum, per group of channels. At most
  /// `most_windows` windows per sample are used. Returns false if they cannot be collected (patches.h gives the
  /// reason).
  bool collect_second_moments(const Program& program, const std::string& layer,
                              int64_t most_windows = most_sample_windows);

  /// Threads may observe different values at the same time. Errors: NaN or an infinity in the tensor.
  Result<Nothing> observe_min_max(const std::string& value, const Tensor& tensor);
  /// Errors: numbers or values that did not occur in the first pass.
  Result<Nothing> observe(const std::string& value, const Tensor& tensor);
  /// Errors: no data, a model input that is zero everywhere, a second pass with less data than the first.
  Result<Statistics> finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hoist
