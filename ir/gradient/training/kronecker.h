// Kronecker statistics of a gradient, and the gradient between their inverse roots (Shampoo: Gupta, Koren and Singer,
// 2018; Anil et al., 2020), as terms of a training step. A weight of more than two dimensions is the matrix of its
// first dimension and the others, because small windows give small, poor factors. Dimensions are split into equal
// blocks, filled with zeros, so that all blocks of a dimension are one batched product. Roots are inputs of the
// program: tools/training computes them on the host while the device runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

/// One dimension of a weight: arrays of [blocks][size][size].
struct KroneckerFactor {
  std::string statistics;  ///< a state: memory * statistics + the sum of products of the gradient with itself
  std::string root;        ///< an input: statistics to the power -1 / (2 * dimensions)
  int64_t dimensions = 2;  ///< 1 or 2
};

/// A weight's gradient in blocks.
class KroneckerBlocks {
 public:
  KroneckerBlocks(std::vector<int64_t> shape, int64_t largest_block);

  size_t dimensions() const { return shape_.size() == 1 ? 1 : 2; }
  /// [blocks][size][size] of the factor of this dimension.
  std::vector<int64_t> factor_shape(size_t dimension) const;
  /// [blocks][rows][columns]; a vector has one column.
  Expr in_blocks(Expr array) const;
  /// The array of these blocks.
  Expr from_blocks(Expr blocks) const;

 private:
  struct Side {
    int64_t extent = 1, count = 1, size = 1;
  };
  std::vector<int64_t> shape_;
  Side rows_, columns_;
};

/// Makes a value of the program.
using DefineValue = std::function<Expr(const std::string& name, Expr term)>;
/// The matrix products for the dimension's factor. `blocks` is a parameter.
Expr kronecker_products(size_t dimension, Expr blocks, const DefineValue& define);
/// The blocks between the roots, one for each dimension. `blocks` and roots are parameters.
Expr between_roots(Expr blocks, const std::vector<Expr>& roots, const DefineValue& define);

}  // namespace hoist
