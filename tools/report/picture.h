// Computes the positions of a model's layers in a drawing, from top to bottom in the direction of the data. The program
// dot of graphviz (Debian package graphviz) computes the layout; it gets numbers instead of names. The report page does
// the drawing.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/result.h"
#include "ir/program/program_builder.h"

namespace hoist {

/// Units are pixels of the page; x goes right, y down, from the upper left corner.
struct NetworkPicture {
  struct Node {
    std::vector<std::string> layers;             ///< one layer, or consecutive layers of a large model
    double x = 0, y = 0, width = 0, height = 0;  ///< x and y are the centre
  };
  struct Edge {
    size_t from = 0, to = 0;                        ///< indices into `nodes`
    std::vector<std::pair<double, double>> points;  ///< a cubic spline: 1 + 3 n points
  };
  double width = 0, height = 0;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

/// Lays out the layers of a program, in its order, in at most `most_nodes` nodes. If there are more layers, each node
/// holds several consecutive ones, which excludes cycles. Errors: dot is missing, fails, or returns no valid layout.
Result<NetworkPicture> lay_out(const std::vector<NamedCall>& layers, size_t most_nodes = 1500);

}  // namespace hoist
