// Layers that contract an activation with constant weights, and the layout of the weights: the dimension of output
// channels and the summed dimensions. Derived from the layer's definition (ProductForm).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace hoist {

/// A contraction; its weights are a matrix or a stack of matrices: one dimension runs over output channels, the other
/// over the terms of a sum.
struct Product {
  std::string input, weights;
  std::string bias;  ///< "" unless it is a constant f32 vector with one element per output channel
  std::string output;
  std::vector<int64_t> shape;  ///< shape of the weights
  size_t channel_axis = 0;     ///< axis of output channels
  size_t sum_axis = 0;         ///< the first of `sum_axes` consecutive summed dimensions
  size_t sum_axes = 1;
  int64_t groups = 1;
  bool images = false;      ///< channels are the second dimension of input and output, not the last
  bool whole_sums = true;   ///< every output sums over all terms; false if taps are separate (transposed convolution)
  bool stacked = false;     ///< true for a stack of matrices
  bool reads_rows = false;  ///< a sum reads a row of the input, along its last dimension

  int64_t channels() const { return shape[channel_axis]; }
  int64_t terms() const;  ///< number of terms per sum
};

/// The layer as a contraction with constant f32 weights, or nothing.
std::optional<Product> product_of(const Program& program, const Definition& layer);

/// The position of weight `term` (0 .. terms() - 1, row-major over the summed dimensions) of a channel in the tensor;
/// for a stack, in matrix 0.
int64_t position_of(const Product& product, int64_t channel, int64_t term);

}  // namespace hoist
