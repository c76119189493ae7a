// What stands between two 8-bit values as a table: definitions that compute each element of an 8-bit value from that
// element of another give one of 256 results, so they become one look-up. Exact: the table holds what the definitions
// give, evaluated at compile time. Whether a definition is of this kind is read off its term
// (ir/properties/properties.h); no operator is named. Not for values of more bits, nor where an element's result
// depends on where it stands, as with scales by channel.
//
// Tables are made before the rounding rules for quantised layers: under strict, kernels mean the same bits with and
// without one, else a quantise layer outside of a table multiplies by the reciprocal and may give the next number. A
// layer that a function rule was chosen for is in no table.
//
// By itself a table stands for parts in which some layer takes more than an instruction or two. On PoCL (two cores of
// an EPYC with AVX-512, 32 x 56 x 56 bytes, lower quartiles of interleaved runs) it takes, of the time without, as a
// kernel of its own and behind the convolution that it is fused with: Mish 0.24 and 0.51, Erf 0.26 and 0.45, Gelu 0.28
// and 0.50, Softplus 0.39 and 0.65, Tanh 0.57 and 0.73, HardSwish 0.58 and 0.82, Exp 0.60 and 0.68, Sigmoid 0.63 and
// 0.71, HardSigmoid 0.72 and 0.82, Elu 0.73 and 0.88, Log 0.75 and 0.74; but Clip, Floor, Sqrt, Relu, LeakyRelu, Add,
// Neg, Abs and Mul 0.94 to 1.22 and 0.95 to 1.03. GPUs have the same default, unmeasured.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/program/program.h"

namespace hoist {

/// Always where a table can stand, never, or where it is faster: `automatic` leaves definitions alone that take an
/// instruction or two (lowering/README.md has the times).
enum class TableUse : uint8_t { automatic, on, off };

/// Which parts of a program become tables.
struct TableOptions {
  TableUse use = TableUse::off;
  std::set<std::string> except;  ///< layers that somebody has other plans for: no table takes them in
};

/// Puts a table in place of every definition of an 8-bit value, and of those before it, where these compute it from one
/// other 8-bit value and constants, and nobody else reads what they give. What widens the 8-bit value itself stays for
/// others that read it. Recorded as exact steps, which name the layers that went into a table. How many there are now.
int use_integer_tables(Program& program, const TableOptions& options);

}  // namespace hoist
