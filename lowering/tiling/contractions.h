// Properties of contractions that layouts depend on: the terms that are contiguous, and the words in which instructions
// load them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/target/profile.h"

namespace hoist {

/// True if all results of a row share one operand and all results of a column share the other.
bool is_product(const Definition& d);

/// The number of dimensions that together with the result's last dimension are the columns of the definition's only
/// matrix: a view divides the columns of a product into heads, for example. Empty if the results of a row share no
/// operand, if the columns are not all columns of the matrix in order, or for images.
std::optional<int64_t> collapsed_columns(const Definition& d);

/// The largest power of two that divides n, up to `width`, which is one too.
int64_t lanes_dividing(int64_t n, int64_t width);

/// The lanes of vectors along the output channels, which have to divide the filters of a group; `width` for one filter
/// a channel, whose lanes read channels of their own, and for weights without groups.
int64_t lanes_in_group(const Definition& d, const Weights& w, int64_t width);

/// The number of contiguous products of a sum, for weights of these extents: over the input channels, or over the
/// dimension of a matrix that is not the output dimension.
int64_t contiguous_terms(const Definition& d, const Weights& w, const std::vector<int64_t>& extents);

/// The number of products in each sum of a contraction with these weights.
int64_t terms_of_sum(const Definition& d, const Weights& w);

/// Products of contiguous elements in words of four bytes, which one instruction adds to a sum.
struct WordProducts {
  int64_t together = 0;      ///< products per word; 0 if no instruction computes the sums
  bool of_vectors = false;   ///< dot instructions sum vectors
  bool of_matrices = false;  ///< matrix instructions sum tiles
};

/// Four products of an unsigned and a signed byte, two of 16-bit integers (the right ones may be stored in 8 bits), or
/// two of bf16.
WordProducts products_in_word(const Definition& d, const std::map<std::string, Type>& types, const Weights& w,
                              const Profile& profile);

}  // namespace hoist
