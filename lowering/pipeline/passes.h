// The passes over a program, one ordered list for everything that compiles: `hoist compile` and `inspect`, studies of
// neural rules, tests. Passes of the first part change operator calls, `unfold` inlines definitions, and later passes
// change terms. The steps after the list (storage, strategies, memory) work on one definition at a time and are in
// lower.cpp. Every pass runs on any program of its part, also on one that was read from text.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/rules/rewrite.h"
#include "ir/target/profile.h"
#include "lowering/fusion/launches.h"
#include "lowering/graph/integer_table.h"
#include "lowering/graph/program.h"
#include "lowering/loops/unroll.h"
#include "lowering/rules/user_rules.h"
#include "lowering/search/tuning.h"

namespace hoist {

/// The form of convolutions. Winograd's forms are for 3x3 and 5x5 windows at stride 1 without groups in f32, except in
/// strict compilations, and for 3x3 windows of bytes, where they are exact; all other convolutions stay stencils.
///
/// Automatic is the stencil, and on CPUs Winograd's form if an estimate (winograd.h) shows it to be clearly less work.
/// On an H100 Winograd's form takes 0.43 of the stencil's time for 256 channels of 14x14, 0.79 for 64 of 56x56, and 1.8
/// for squeezenet1.1, whose convolutions are as short as a launch. The im2col form moves the same multiplications after
/// an array that is written and read once more: on PoCL it takes 1.1 to 9 times as long for every convolution above 3
/// us of five models, on an H200 1.03 to 2.8 times for six whole models. If another form is faster on a device or for a
/// shape in general, the choice belongs here.
enum class ConvolutionForm : uint8_t { automatic, stencil, im2col, winograd };

/// Fused launches of small layers: only the recorded ones; on CPUs also kernels in sequence, if that pays
/// (joined_steps.h); or all chains whose values fit in local memory, as one kernel (launches.h), whatever records
/// contain.
enum class LaunchFusion : uint8_t { none, automatic, launch };

/// Knobs that records may have for a definition as it enters these passes: whether the windows of its convolutions are
/// materialised, and the number of parallel blocks of its long reductions, 0 for none.
inline constexpr std::string_view im2col_knob = "im2col", blocks_knob = "blocks";

struct PassOptions {
  bool strict = false;  ///< leaves out rounding passes, and passes that only prepare them
  TableOptions tables;
  ConstantUse constants = ConstantUse::computed;
  FoldingBudget folding;
  ConvolutionForm convolution = ConvolutionForm::automatic;
  LaunchFusion fusion = LaunchFusion::none;
  bool joins_steps = false;    ///< launches run several kernels, so that one more kernel is no more launch
  Profile profile;             ///< the purpose of the launches
  TuningRecords records = {};  ///< of measured kernels
  int64_t unrolled_steps =
      most_unrolled_steps;           ///< of one loop; longer loops run as dynamic control flow, or are refused
  bool perform = false;              ///< bodies may run as dynamic control flow: may set Program::controls
  bool share_equal = true;           ///< merges equal layers; not if neural rules may differ by layer
  const UserRules* rules = nullptr;  ///< the user's own rules; live as long as the passes run
};

struct Pass {
  std::string_view name;
  std::string_view meaning;  ///< one line
  enum Part : uint8_t { calls, terms } part = calls;
  bool only_with_rounding = false;  ///< not under strict
  /// Null if the pass only applies the rules between operator calls whose rows name it.
  Result<Nothing> (*function)(Program& program, const PassOptions& options);
  /// True if a compilation with these options runs the pass; null for always. The caller of `run` has decided already.
  bool (*wanted)(const PassOptions& options) = nullptr;

  Result<Nothing> run(Program& program, const PassOptions& options) const;
};
std::span<const Pass> passes();

/// Materialises the windows of all convolutions in the term, each as a row of a matrix; false if it has none.
bool keep_windows(Rewriter& rewriter);
/// The possible numbers of blocks of the term's first long reduction; empty if it has none.
std::vector<int64_t> block_counts(Expr term, const Profile& profile);
const Pass* find_pass(std::string_view name);  ///< null when there is none

/// Called after each pass; returns whether to continue.
using PassObserver = std::function<bool(const Pass& pass, const Program& program)>;
/// The passes of one part, in order. Errors: a program with symbolic sizes, or all layers that a pass cannot handle,
/// together. `stopped` is set if the observer ended the run.
Result<Nothing> run_passes(Program& program, Pass::Part part, const PassOptions& options,
                           const PassObserver& observer = {}, bool* stopped = nullptr);

}  // namespace hoist
