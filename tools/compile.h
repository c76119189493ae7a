// The whole way from a graph to a plan: lowering, the Halide layer and the self-check joined. This is where the parts
// that must not know each other meet.
#pragma once

#include <string>

#include "ir/graph.h"
#include "ir/plan.h"
#include "lowering/lower.h"

namespace hoist {

struct CompileOptions {
  LowerOptions lower;
  int64_t check_positions = 12;  ///< sampled positions of each kernel that the bundle checks on the device
  bool progress = false;         ///< a line per stage on a terminal
};

struct Compilation {
  LoweredModel lowered;
  Plan plan;
  std::vector<std::string> schedules;  ///< of each kernel, as the Halide layer describes it
};

/// Compiles; errors of all kernels in one go. `profile_text` goes into the plan as it is.
Result<Compilation> compile_graph(const Graph& graph, const CompileOptions& options, const Profile& profile);

}  // namespace hoist
