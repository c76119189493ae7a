// From a graph of ONNX layers to a program of operator calls, and back. Inputs that decide shapes become attributes:
// shape arithmetic is evaluated here, and nothing else is. Only for what still holds a Graph: the way into lowering,
// and studies of neural rules.
#pragma once

#include "ir/graph.h"
#include "ir/program.h"

namespace hoist {

/// Errors: every layer that has no definition, in one go; each names the layer.
Result<Program> program_of(const Graph& graph);

/// A program of one call a definition as layers; `graph` gives everything else (inputs, outputs, notes).
Graph graph_of(const Program& program, Graph graph);

}  // namespace hoist
