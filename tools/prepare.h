// Rewritten models on a device: what neural rules ask for when they want to know an error or a time (PrepareModel).
// Each model becomes a bundle in a private folder that goes with it. Not for bundles that stay: commands/compile.cpp.
#pragma once

#include "backends/opencl/bundle_runner.h"
#include "neural_rules/runner.h"
#include "tools/compile.h"

namespace hoist {

/// Where and how models run. No kernel has values for a self-check: nobody verifies a bundle that does not stay.
struct PrepareOptions {
  Profile profile;
  RunOptions run;
  LowerOptions lower;
};

PrepareModel prepare_on_device(PrepareOptions options);

/// The kernels of a rewritten model: its layers as expressions, function rules applied to them, then all passes.
Result<LoweredModel> lower_rewritten(const RewrittenModel& model, const LowerOptions& options, const Profile& profile);

/// Batch-norm folded, and the type of every value written into the graph: what sites and rules need to see.
Result<Graph> prepared_graph(Graph graph);

}  // namespace hoist
