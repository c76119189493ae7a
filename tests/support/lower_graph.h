// For tests that write their models as lists of layers: the way from there into lowering.
#pragma once

#include "ir/import_graph.h"
#include "lowering/lower.h"

namespace hoist {

inline Result<Program> lower_graph(const Graph& graph, bool strict, const TableOptions& tables = {},
                                   ConstantUse constants = ConstantUse::computed, const FoldingBudget& folding = {}) {
  HOIST_TRY(Program program, program_of(graph));
  PassOptions options;
  options.strict = strict;
  options.tables = tables;
  options.constants = constants;
  options.folding = folding;
  HOIST_TRY_VOID(run_passes(program, Pass::calls, options));
  return program;
}

inline Result<LoweredModel> lower_model(const Graph& graph, const LowerOptions& options, const Profile& profile) {
  HOIST_TRY(Program program, program_of(graph));
  return lower_model(std::move(program), options, profile);
}

}  // namespace hoist
