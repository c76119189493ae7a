// Storage formats of constant weights, rounded without data. The result is stored as in ONNX: numbers of a small type,
// scales, zero points, an axis, a block size. Rounding with data is in rounding.h.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "neural_rules/formats/range.h"
#include "neural_rules/model/product.h"

namespace hoist {

struct WeightFormat {
  Scalar scalar = Scalar::i8;
  int64_t block = 0;             ///< numbers along the sum that share a scale; 0: one scale per output channel
  bool symmetric = true;         ///< no zero points
  bool power_of_two = false;     ///< scales are powers of two
  bool search_clipping = false;  ///< scales minimise the squared error instead of covering the largest weight
};
/// The smallest and the largest number that an integer format uses: symmetric formats exclude the number without a
/// negative.
Range numbers_of(const WeightFormat& format);

/// The mapping from weights to scales. `shape` is the stored shape of the numbers: the weights' own, or a matrix if
/// blocks span several dimensions of the weights.
struct ScaleLayout {
  std::vector<int64_t> shape;
  int64_t axis = 0, block = 0;
  int64_t count = 1;   ///< of scales
  int64_t extent = 1;  ///< extent of the axis
  int64_t inner = 1;   ///< distance of adjacent weights along the axis

  int64_t index(int64_t weight) const;
  std::vector<int64_t> scale_shape() const;

  /// Calls f(weight, index(weight)) for all `weights` in order, without a division per weight.
  template <class F>
  void for_each(int64_t weights, F f) const;
  /// Calls f(first weight, number of weights, index of the first weight, step of the index from weight to weight: 0 or
  /// 1) for runs of adjacent weights, in order.
  template <class F>
  void for_each_run(int64_t weights, F f) const;
};
ScaleLayout layout_of(const Product& product, const WeightFormat& format);

/// Weights in a small format. `scales` is empty for formats without scales (f16, bf16).
struct PackedWeights {
  WeightFormat format;
  ScaleLayout layout;
  Tensor numbers;                    ///< of layout.shape
  std::vector<float> scales;         ///< layout.count
  std::vector<int64_t> zero_points;  ///< layout.count, or empty
  Tensor values;                     ///< the represented weights: f32, in the weights' own shape

  /// The value of number n with this scale; for formats that have scales.
  double value_at(int64_t scale, double n) const;
};
PackedWeights pack_weights(const Product& product, const Tensor& weights, const WeightFormat& format);
/// Sets the numbers that are nearest to the quotients of other weights and the scales; quotients outside the range
/// become its ends.
void round_quotients(const Tensor& quotients, PackedWeights& packed);

/// The maximum over output channels of the sum of |n - zero point|: multiplied by the largest activation it bounds
/// every partial sum of an integer contraction.
double largest_sum(const Product& product, const PackedWeights& packed);
/// The size in bytes of numbers, scales and zero points.
int64_t byte_size(const PackedWeights& packed);

template <class F>
void ScaleLayout::for_each(int64_t weights, F f) const {
  for_each_run(weights, [&](int64_t weight, int64_t run, int64_t index, int64_t step) {
    for (int64_t i = 0; i < run; ++i) f(weight + i, index + i * step);
  });
}

template <class F>
void ScaleLayout::for_each_run(int64_t weights, F f) const {
  const int64_t width = block == 0 ? 1 : block;
  for (int64_t weight = 0; weight < weights;) {
    if (inner == 1 && block == 0) {
      f(weight, extent, 0, 1);
      weight += extent;
      continue;
    }
    for (int64_t begin = 0; begin < extent; begin += width) {
      const int64_t first = index(weight), end = std::min(begin + width, extent);
      if (inner == 1) {
        f(weight, end - begin, first, 0);
        weight += end - begin;
        continue;
      }
      for (int64_t along = begin; along < end; ++along, weight += inner) f(weight, inner, first, block == 0 ? 0 : 1);
    }
  }
}

}  // namespace hoist
