// Where the layers of a model stand in a drawing of it, from top to bottom in the direction of the data. graphviz finds
// the places (the program dot, from the Debian package graphviz); it sees numbers instead of names. Nothing is drawn
// here: the report page does that.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/result.h"
#include "ir/program/program_builder.h"

namespace hoist {

/// One unit is a pixel of the page; x goes right, y down, from the left upper corner.
struct NetworkPicture {
  struct Node {
    std::vector<std::string> layers;             ///< one, or consecutive ones of a large model
    double x = 0, y = 0, width = 0, height = 0;  ///< x and y are the middle
  };
  struct Edge {
    size_t from = 0, to = 0;                        ///< of `nodes`
    std::vector<std::pair<double, double>> points;  ///< a spline of cubic pieces: 1 + 3 n points
  };
  double width = 0, height = 0;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

/// The layers of a program, in its order, in at most `most_nodes` nodes: where there are more, each node stands for
/// several that follow one another, so that no cycle appears. Errors: dot is missing, fails or answers what is no
/// layout.
Result<NetworkPicture> lay_out(const std::vector<NamedCall>& layers, size_t most_nodes = 1500);

}  // namespace hoist
