// Tables between 8-bit values. Definitions that compute each element of an 8-bit value from the same element of another
// 8-bit value have 256 possible results, so they become one look-up. Exact: the table holds the results of the
// definitions, evaluated at compile time. A definition qualifies by its term (ir/properties/properties.h); no operator
// is named. Not for wider values, nor if an element's result depends on its position, as with scales per channel.
//
// Tables are made before the rounding rules for quantised layers. Under strict, kernels compute the same bits with and
// without a table; otherwise a quantise layer outside of a table multiplies by the reciprocal and may give an adjacent
// integer. A layer with a chosen function rule is in no table.
//
// By default a table replaces parts in which some layer takes more than a few instructions. Time with a table relative
// to time without, as a kernel of its own and fused with the preceding convolution (PoCL, two cores of an EPYC with
// AVX-512, 32 x 56 x 56 bytes, lower quartiles of interleaved runs): Mish 0.24 and 0.51, Erf 0.26 and 0.45, Gelu 0.28
// and 0.50, Softplus 0.39 and 0.65, Tanh 0.57 and 0.73, HardSwish 0.58 and 0.82, Exp 0.60 and 0.68, Sigmoid 0.63 and
// 0.71, HardSigmoid 0.72 and 0.82, Elu 0.73 and 0.88, Log 0.75 and 0.74; Clip, Floor, Sqrt, Relu, LeakyRelu, Add, Neg,
// Abs and Mul 0.94 to 1.22 and 0.95 to 1.03. GPUs have the same default, unmeasured.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/program/program.h"

namespace hoist {

/// Tables wherever possible, never, or only where they are faster: `automatic` skips parts whose layers need few
/// instructions each.
enum class TableUse : uint8_t { automatic, on, off };

/// Selects the parts of a program that become tables.
struct TableOptions {
  TableUse use = TableUse::off;
  std::set<std::string> except;  ///< layers that no table may include
};

/// Replaces definitions that compute an 8-bit value from one other 8-bit value and constants by a table, if their
/// intermediate values have no other use. A definition that widens the source stays for its other consumers. Each table
/// is recorded as an exact step that names the absorbed layers. Returns the number of tables.
int use_integer_tables(Program& program, const TableOptions& options);

}  // namespace hoist
