// K-TanH (Kundu et al., arXiv 1909.07729) for any 16-bit float and any odd function that is x near 0 and tends to 1:
// the result's bits are a table entry plus the input's mantissa shifted right; the input's two lowest exponent bits and
// three highest mantissa bits select the entry. Inputs below a quarter are returned unchanged, inputs from four on give
// 1, and 32 entries cover the range between. The table is found by search: every shift and every offset, for each
// interval. Useful between 16-bit tensors; in f32 a quotient (approximation.h) is as fast and far more accurate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/language/scalar.h"

namespace hoist {

struct MantissaTable {
  struct Entry {
    int shift = 0;   ///< shift of the mantissa
    int offset = 0;  ///< added to it: the result's exponent and initial mantissa, in the format's bits
    bool operator==(const Entry&) const = default;
  };
  Scalar format = Scalar::bf16;
  std::vector<Entry> entries;  ///< 32
  double error = 0;            ///< the largest error on inputs that use the table
};

/// The table with the smallest squared error per interval, among entries whose largest error does not exceed the
/// unavoidable error of the worst interval. `format` is bf16 or f16.
MantissaTable search_mantissa_table(double (*function)(double), Scalar format);

/// A term from x to a result of the same type, that of the table. NaN stays NaN, infinities give 1 and -1, -0 gives -0.
std::string formula_of(const MantissaTable& table, const std::string& x);

}  // namespace hoist
