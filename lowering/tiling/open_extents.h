// The extents that a run chooses. A model with open sizes is lowered for a few values of each size (lowering/sizes),
// and its kernels have one form only if every choice is the same at all of them: a choice about an open extent goes by
// its typical value, and a form for an open extent holds at any value, with a tail.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hoist {

struct OpenExtent {
  int64_t probe = 0;    ///< the value of the size in this lowering: a prime that divides no other extent
  int64_t padded = 0;   ///< the value in whole vectors
  int64_t typical = 0;  ///< the value for which choices are made, a number of whole vectors

  bool decides(int64_t extent) const { return extent > 0 && (extent % probe == 0 || extent == padded); }
};

/// Empty for a model of fixed sizes.
struct OpenExtents {
  std::vector<OpenExtent> sizes;

  /// True for an extent that depends on a size: a multiple of its value, or its value in whole vectors.
  bool contain(int64_t extent) const {
    return std::any_of(sizes.begin(), sizes.end(), [&](const OpenExtent& size) { return size.decides(extent); });
  }
  /// The number of rows, at most `most`, of a block of an open extent: small sizes fill a block, and others leave a
  /// small tail. Never two: at the probes, which are odd, a tail of one row looks like a constant.
  int64_t block_rows(int64_t extent, int64_t most) const {
    const int64_t rows = std::clamp<int64_t>(most, 1, std::max<int64_t>(1, typical(extent) / 8));
    return rows == 2 ? 1 : rows;
  }
  /// The extent, or its value for the typical sizes.
  int64_t typical(int64_t extent) const {
    for (const OpenExtent& size : sizes) {
      if (size.decides(extent)) extent = extent == size.padded ? size.typical : extent / size.probe * size.typical;
    }
    return extent;
  }
};

}  // namespace hoist
