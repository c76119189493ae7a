// What stands between two 8-bit values as a table: layers of one element each behind DequantizeLinear and before
// QuantizeLinear give one of 256 results, so they become one look-up. Exact: the table holds what those layers give,
// evaluated at compile time. In ONNX's own operators, Cast and Gather. Not for values of more bits, nor for scales by
// channel.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/graph.h"

namespace hoist {

/// Always where a table can stand, never, or where it is faster: `automatic` leaves layers alone that take an
/// instruction or two (lowering/README.md has the times).
enum class TableUse : uint8_t { automatic, on, off };

/// Which parts of a graph become tables.
struct TableOptions {
  TableUse use = TableUse::off;
  std::set<std::string> except;  ///< layers that somebody has other plans for: no table takes them in
};

/// Puts a table in place of every QuantizeLinear and the layers before it, where these compute its input from one 8-bit
/// value and constants of one element, and nobody else reads what they give. Dequantise layers that others read stay.
/// The layer before QuantizeLinear keeps its name: it has an exact step in the graph's steps, which names the layers
/// that went into it. Layers that cannot be lowered are left for lower_graph to report. How many tables there are now.
int use_integer_tables(Graph& graph, const TableOptions& options);

}  // namespace hoist
