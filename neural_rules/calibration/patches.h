// The inputs of a contraction's sums as vectors: rows of a matrix, windows of a feature map. Second moments are
// collected in integers, independent of order and batching. A part of the calibrator.
//
// Correlations are shrunk if few vectors were observed: covariances are multiplied by n / (n + terms). Without this,
// the error of w8a8-adaptive at a layer of 384 terms was 1.8 times the prediction from 24 vectors of calibration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "neural_rules/calibration/calibration.h"
#include "neural_rules/model/product.h"

namespace hoist {

/// The reason why the windows or rows of a layer cannot be collected, or nothing: transposed convolutions and matrices,
/// stacks of weights, sums of more than `most_terms`.
std::optional<std::string> why_no_patches(const Program& program, const Definition& layer, int64_t most_terms);

class PatchMoments {
 public:
  /// Uses at most `most_windows` windows per sample, evenly spaced.
  PatchMoments(Product product, Definition layer, int64_t most_windows);

  /// Adds windows of a tensor whose magnitudes are below 2^exponent. Errors: a shape that the layer does not accept.
  Result<Nothing> add(const Tensor& tensor, int exponent);
  SecondMoments finish(int exponent) const;

 private:
  struct Axis {
    int64_t extent, kernel, stride, dilation, before, outputs;
  };
  std::vector<Axis> axes_of(const std::vector<int64_t>& shape) const;
  void add_rows(const std::vector<int32_t>& numbers, const std::vector<int64_t>& shape);
  void add_windows(const std::vector<int32_t>& numbers, const std::vector<int64_t>& shape);
  void add_patch(const int32_t* patch, int64_t group);

  Product product_;
  Definition layer_;
  int64_t terms_;
  int64_t most_windows_;
  int64_t count_ = 0;                // patches per group
  std::vector<int64_t> sums_;        // of products: [groups][terms][terms], upper triangles
  std::vector<int64_t> plain_sums_;  // [groups][terms]
};

}  // namespace hoist
