// How values lie in memory. Every value is logically what ONNX says; its Storage says which dimension order it is kept
// in, what surrounds it inside its array (a border of zeros for the convolutions that read it, padding to whole
// vectors, the other parts of a concatenation), and both directions as views of the language. Because views cost
// nothing, any operator reads and writes any storage; storage only decides speed.
// Model inputs and outputs keep ONNX's row-major order and have nothing around them.
//
// Padding to vectors is `pad ... undefined`: elements that nobody reads may hold anything, so no guard is needed for
// them. A row with a border of zeros behind it is not padded to whole vectors, since the padding would lie between.
// Weights of a dot instruction lie in groups of four input channels, images with channels innermost and in whole
// groups.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/plan/region.h"
#include "ir/target/profile.h"
#include "lowering/graph/program.h"

namespace hoist {

struct Storage {
  std::string array;  ///< of the plan; the parts of a concatenation share one
  Type logical = nullptr;
  std::vector<int64_t> permutation;    ///< stored dimension i is logical dimension permutation[i]
  std::vector<int64_t> before, after;  ///< elements around the value, per stored dimension
  /// The byte that every element around the value is made of, where readers depend on those: 0 but for zero points.
  std::optional<uint8_t> border;
  int64_t vector_padding = 0;  ///< so many of the last dimension's `after` are computed along, and undefined
  int64_t panel = 0;           ///< weights: the last dimension is cut into panels of so many, outermost
  int64_t interleave = 0;      ///< weights: so many of the last dimension but one lie together, innermost
  int64_t joined = 0;          ///< arrays in local memory: so many of the first dimensions are one with the next

  std::vector<int64_t> stored_shape() const;  ///< the value's own extents in stored order
  std::vector<int64_t> array_shape()
      const;  ///< with what surrounds it; panels outermost, what is interleaved innermost
  Type array_type() const;
  /// Whether several values lie in a byte. Kernels read such arrays as they are and write them byte by byte, since
  /// work-items cannot share one.
  bool is_packed() const { return hoist::is_packed(leaf_of(logical)->scalar); }
  /// Of the array that a kernel writes, and where in it the value lies.
  Region written_region() const;
};

struct Padding;

/// What a row of so many elements takes in an array of the program, padded to whole vectors where it is long enough.
int64_t padded_row(int64_t columns, const Profile& profile);

/// Row-major as ONNX has it.
Storage plain_storage(const std::string& array, Type logical);

/// The logical value as a view of the stored array (a term of type array_type()).
Expr read_storage(const Storage& storage, Expr stored);
/// The stored value as a view of the logical one, with its padding to vectors but without what surrounds it.
Expr interior(const Storage& storage, Expr logical);
/// Places an interior into its array; elements around are undefined.
Expr surround(const Storage& storage, Expr interior);
/// Like read_storage, with elements of the border around (not more than there are).
Expr read_with_border(const Storage& storage, Expr stored, const Padding& padding);
/// The array as a kernel writes it: its bytes where values are packed, itself elsewhere.
Expr written(const Storage& storage, Expr stored);
/// Constants: the whole array with zeros around.
Expr pack(const Storage& storage, Expr logical);

/// Elements around a value that a definition reads as one number, per logical dimension.
struct Padding {
  std::vector<int64_t> before, after;
  uint8_t byte = 0;  ///< that the number is made of
};
/// The paddings of whole parameters in a term, by parameter name: map (pad l r 0), at any depth, of %x. The number is
/// zero, or any of 8 bits; where one parameter is padded with two numbers, it is the one that was found first.
std::map<std::string, Padding> constant_paddings(Expr e);
/// Where in the term a view of an array stands that is padded in that way, a reshaped one say, and that only a
/// definition of its own can store with a border.
std::optional<Path> padded_view(Expr term);
/// Where an array stands that is padded with a number that is computed, a zero point say, which no border has.
std::optional<Path> computed_padding(Expr term);

/// The term with every parameter as a view of its stored array; a padding that the array's own border provides is
/// read from there.
Expr over_storage(Expr e, const std::map<std::string, Storage>& values);

}  // namespace hoist
