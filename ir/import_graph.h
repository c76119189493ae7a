// Between programs of operator calls and the form in which neural rules edit them.
#pragma once

#include "ir/graph.h"

namespace hoist {

/// Errors: those of ProgramBuilder.
Result<Program> program_of(const Graph& graph);

/// A program of one operator call a definition. Shapes that are attributes of calls become constants.
Graph graph_of(const Program& program);

}  // namespace hoist
