// Layers that multiply an activation by constant weights, and how their weights are laid out: which dimension runs over
// output channels, which numbers are summed up. Read off the layer's definition (ProductForm).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace hoist {

/// Weights as a matrix of `rows` by `columns`, or a stack of them: one of the two dimensions runs over output channels,
/// the other one over the numbers that are summed up.
struct Product {
  std::string input, weights;
  std::string bias;  ///< "" where it is not one constant f32 number an output channel
  std::string output;
  std::vector<int64_t> shape;  ///< of the weights
  size_t channel_axis = 0;     ///< of output channels
  size_t sum_axis = 0;         ///< of the first dimension that is summed over; those after it up to `sum_axes` follow
  size_t sum_axes = 1;
  int64_t groups = 1;
  bool pictures = false;    ///< channels are the second dimension of input and output, not the last
  bool whole_sums = true;   ///< every output sums over all terms; not where taps are apart (transposed convolution)
  bool stacked = false;     ///< a stack of matrices, not one
  bool reads_rows = false;  ///< a sum reads a row of the input, its last dimension

  int64_t channels() const { return shape[channel_axis]; }
  int64_t terms() const;  ///< numbers in one sum
};

/// The layer as a product with constant f32 weights, or nothing.
std::optional<Product> product_of(const Program& program, const Definition& layer);

/// Position of weight `term` (0 .. terms() - 1, row-major over the summed dimensions) of a channel in the tensor, for
/// a stack of matrices in matrix 0.
int64_t position_of(const Product& product, int64_t channel, int64_t term);

}  // namespace hoist
