// What stands between two 8-bit values as a table: definitions that compute each element of an 8-bit value from that
// element of another give one of 256 results, so they become one look-up. Exact: the table holds what the definitions
// give, evaluated at compile time. Whether a definition is of this kind is read off its term (ir/properties.h); no
// operator is named. Not for values of more bits, nor where an element's result depends on where it stands, as with
// scales by channel.
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
