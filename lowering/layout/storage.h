// The layout of values in memory (ir/program/storage.h) as views of the language, from the value to its array and back.
// Views cost nothing, so any operator reads and writes any storage; storage only affects speed.
//
// Model inputs and outputs are row-major, without borders or padding.
//
// Padding to vectors is `pad ... undefined`: no consumer uses these elements, so they need no guard. A row with a
// border of zeros after it is not padded to whole vectors, since the padding would lie between row and border.
//
// Weights of dot instructions are interleaved in groups of four input channels; the images are NHWC with whole groups.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/program/storage.h"
#include "ir/target/profile.h"
#include "lowering/graph/program.h"

namespace hoist {

struct Padding;

/// The length of a row of `columns` elements in a temporary array: padded to whole vectors if it is long enough.
int64_t padded_row(int64_t columns, const Profile& profile);

/// The logical value as a view of the stored array (a term of type array_type()).
Expr read_storage(const Storage& storage, Expr stored);
/// The stored value as a view of the logical one, with its padding to vectors but without further surroundings.
Expr interior(const Storage& storage, Expr logical);
/// Places an interior into its array; the elements around it are undefined.
Expr surround(const Storage& storage, Expr interior);
/// Like read_storage, with elements of the border (at most as many as there are).
Expr read_with_border(const Storage& storage, Expr stored, const Padding& padding);
/// The array as a kernel writes it: packed bytes if values are packed, the array itself otherwise.
Expr written(const Storage& storage, Expr stored);
/// A constant as its whole array, surrounded by zeros.
Expr pack(const Storage& storage, Expr logical);

/// Padding with one scalar around a value that a definition uses, per logical dimension.
struct Padding {
  std::vector<int64_t> before, after;
  uint8_t byte = 0;  ///< repeated in every byte of the scalar
};
/// The paddings of whole parameters in a term, by parameter name: map (pad l r 0), at any depth, of %x. The scalar is
/// zero or any 8-bit value. If a parameter is padded with two scalars, the first one is used.
std::map<std::string, Padding> constant_paddings(Expr e);
/// The path to a padded view of an array (a reshape, for instance), which can only be stored with a border as a
/// definition of its own.
std::optional<Path> padded_view(Expr term);
/// The path to an array that is padded with a computed scalar, such as a zero point; no border can provide it.
std::optional<Path> computed_padding(Expr term);

/// The term with every parameter as a view of its stored array. A padding that the array's border provides is read from
/// the border.
Expr over_storage(Expr e, const std::map<std::string, Storage>& values);

}  // namespace hoist
