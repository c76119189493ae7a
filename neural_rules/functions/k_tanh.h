// K-TanH (Kundu et al., arXiv 1909.07729) for any 16-bit float and any odd function that is x near 0 and tends to 1:
// the result's bits are a table's entry plus the input's mantissa shifted right, where the entry is found by the
// input's two lowest exponent bits and three highest mantissa bits. Between inputs below a quarter (the result is the
// input) and from four on (the result is 1) there are 32 entries. The table is searched, not copied: every shift and
// every offset, for each interval. Of use between 16-bit tensors; in f32 a quotient (approximation.h) is as fast and
// far more exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/language/scalar.h"

namespace hoist {

struct MantissaTable {
  struct Entry {
    int shift = 0;   ///< of the mantissa
    int offset = 0;  ///< added to it: the result's exponent and what its mantissa starts from, in the format's bits
    bool operator==(const Entry&) const = default;
  };
  Scalar format = Scalar::bf16;
  std::vector<Entry> entries;  ///< 32
  double error = 0;            ///< the largest on the inputs that use the table
};

/// Of the smallest squared error in each interval among the entries whose largest error is not above what the worst
/// interval needs anyway. `format` is bf16 or f16.
MantissaTable search_mantissa_table(double (*function)(double), Scalar format);

/// A term from x of the table's format to the same. NaN stays NaN, infinities give 1 and -1, -0 gives -0.
std::string formula_of(const MantissaTable& table, const std::string& x);

}  // namespace hoist
