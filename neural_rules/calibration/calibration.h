// What is known of the values that flow through a model on calibration data. Independent of the order of samples and of
// how they are batched, bit for bit: extremes first, then histograms over the fixed range between them and sums in
// fixed point.
//
// Sums are whole numbers of 60 bits below the largest magnitude: the extremes are known from the first pass, integers
// add up to the same in any order, and the rounding is 2^-60 of the largest number.
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

/// Neighbouring windows of a picture, or rows of a matrix, say much the same: so many of a sample stand for all of it.
inline constexpr int64_t most_sample_windows = 64;

/// Of the vectors that the sums of a product read: rows of a matrix, windows of a picture.
struct SecondMoments {
  int64_t terms = 0;             ///< of one sum
  int64_t count = 0;             ///< of vectors, for each group of channels
  std::vector<double> means;     ///< [groups][terms]: E[x_i]
  std::vector<double> products;  ///< [groups][terms][terms]: E[x_i x_j]
};

/// Of all elements of a value over all samples; per channel (dimension `channel_axis`) where `channels` is not empty.
struct ValueStatistics {
  int64_t count = 0;
  int64_t zeros = 0;  ///< elements that are exactly zero
  double low = 0, high = 0;
  double mean = 0, mean_square = 0;
  std::vector<uint64_t> histogram;  ///< equal bins over [low, high]; all in the first one where low = high
  struct Channel {
    double low = 0, high = 0, mean = 0, mean_square = 0;
  };
  std::vector<Channel> channels;
  double block_noise = 0;    ///< mean squared, of numbers rounded in blocks of channels (formats.h); 0 without channels
  int64_t channel_axis = 1;  ///< -1 is the last dimension: for values that matrix products read
  /// By the layer of a product that reads the value; only of layers for which they were asked.
  std::map<std::string, std::shared_ptr<const SecondMoments>> second_moments;
  /// Weights that were rounded with these, as numbers of the rule's format: by the layer of the product, by rule. They
  /// are small where moments are large, and whoever has them needs no moments.
  std::map<std::string, std::map<std::string, std::shared_ptr<const Tensor>>> rounded;
};
using Statistics = std::map<std::string, ValueStatistics>;  ///< by value name

inline constexpr int histogram_bins = 2048;

/// Collects the statistics of any number of values in two passes over the same data: every tensor goes to
/// `observe_extremes` before the first one goes to `observe`. Constants that are values of the model are the caller's
/// to leave out. Tensors of integers and empty ones count for nothing.
class Calibrator {
 public:
  explicit Calibrator(const Program& program);
  ~Calibrator();
  Calibrator(Calibrator&&) noexcept;
  Calibrator& operator=(Calibrator&&) noexcept;

  /// Asks for the second moments of what a product reads: for rules that round weights with data. Call it before the
  /// second pass. They take 8 bytes times the square of the terms of one sum, a group of channels. At most
  /// `most_windows` of a sample are looked at. False where they cannot be collected (patches.h says why).
  bool collect_second_moments(const Program& program, const std::string& layer,
                              int64_t most_windows = most_sample_windows);

  /// Errors: NaN or an infinity in the tensor, another number of channels than before.
  Result<Nothing> observe_extremes(const std::string& value, const Tensor& tensor);
  /// Errors: numbers or values that the first pass has not seen.
  Result<Nothing> observe(const std::string& value, const Tensor& tensor);
  /// Errors: no data at all, a model input that is zero everywhere, a second pass that saw less than the first one.
  Result<Statistics> finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hoist
