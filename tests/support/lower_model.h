// Lowers models that tests write as lists of calls.
#pragma once

#include "lowering/pipeline/lower.h"
#include "tests/support/named_model.h"

namespace hoist {

/// The program after the passes over calls, in which every layer stays separate.
inline Result<Program> lower_calls(Program program, bool strict, const TableOptions& tables = {},
                                   ConstantUse constants = ConstantUse::computed, const FoldingBudget& folding = {}) {
  PassOptions options;
  options.strict = strict;
  options.tables = tables;
  options.constants = constants;
  options.folding = folding;
  options.share_equal = false;
  HOIST_TRY_VOID(run_passes(program, Pass::calls, options));
  return program;
}

inline Result<Program> lower_calls(const NamedModel& model, bool strict, const TableOptions& tables = {},
                                   ConstantUse constants = ConstantUse::computed, const FoldingBudget& folding = {}) {
  HOIST_TRY(Program program, program_of(model));
  return lower_calls(std::move(program), strict, tables, constants, folding);
}

inline Result<LoweredModel> lower_model(const NamedModel& model, const LowerOptions& options, const Profile& profile) {
  HOIST_TRY(Program program, program_of(model));
  return lower_model(std::move(program), options, profile);
}

struct Compilation {
  LowerOptions options;
  Profile profile;
};

/// The options of compilation, varied by a seed.
inline Compilation varied_compilation(uint64_t seed) {
  Compilation out;
  out.options.strict = seed % 3 == 0;
  if (seed % 2 == 0) out.options.convolution = ConvolutionForm::im2col;
  if (seed % 5 == 1) out.options.convolution = ConvolutionForm::winograd;
  const LaunchFusion fusions[] = {LaunchFusion::none, LaunchFusion::automatic, LaunchFusion::launch,
                                  LaunchFusion::automatic};
  out.options.fusion = fusions[seed % 4];
  out.profile.gpu = seed % 5 == 0;
  out.profile.vector_width = seed % 4 == 0 ? 4 : 16;
  return out;
}

}  // namespace hoist
