// How a value lies in an array of a plan: a decision of the pass choose-storage that a program's text contains.
// Logically the value is as in ONNX; its storage gives the order of the dimensions and the surroundings inside the
// array: a border of zeros for convolutions, padding to whole vectors, the other parts of a concatenation.
// lowering/layout/storage.h has both directions as views of the language.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/language/type.h"
#include "ir/plan/region.h"

namespace hoist {

struct Storage {
  std::string array;  ///< array of the plan; the parts of a concatenation share one
  Type logical = nullptr;
  std::vector<int64_t> permutation;    ///< stored dimension i is logical dimension permutation[i]
  std::vector<int64_t> before, after;  ///< elements around the value, per stored dimension
  /// The byte that fills the surroundings, if consumers depend on them: 0 or a zero point.
  std::optional<uint8_t> border;
  int64_t vector_padding = 0;  ///< elements of `after` in the last dimension that are computed with undefined values
  int64_t panel = 0;           ///< weights: columns per panel of the last dimension; panels are outermost; 0: no panels
  int64_t interleave = 0;      ///< weights: rows of the second to last dimension that are interleaved, innermost; 0:
                               ///< none
  int64_t joined = 0;          ///< arrays in local memory: the number of leading dimensions that are collapsed with the
                               ///< next one

  std::vector<int64_t> stored_shape() const;  ///< the value's own extents in stored order
  std::vector<int64_t> array_shape()
      const;  ///< including the surroundings; panels outermost, interleaved rows innermost
  Type array_type() const;
  /// True if several values share a byte. Kernels read such arrays directly and write whole bytes, since work-items
  /// cannot share a byte.
  bool is_packed() const { return hoist::is_packed(leaf_of(logical)->scalar); }
  /// The array that a kernel writes, and the region of the value in it.
  Region written_region() const;
  bool operator==(const Storage&) const = default;
};

/// Row-major as in ONNX.
Storage plain_storage(const std::string& array, Type logical);

}  // namespace hoist
