// The passes over a program, one list in order, used by everything that compiles: `hoist compile` and `inspect`,
// studies of neural rules, tests. Passes of the first part change operator calls, "unfold" puts definitions in their
// place, and those behind it change terms. What follows the list (storage, strategies, memory) works on one definition
// at a time and stands in lower.cpp. Every pass runs on any program of its part, also on one that was read from text.
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

/// The form of convolutions. Winograd's forms are for windows of 3x3 and 5x5 at stride 1 without groups in f32, and not
/// for strict compilations then, and for windows of 3x3 of bytes, where they are exact; all others stay stencils.
///
/// Automatic is the stencil, and on CPUs Winograd's where an estimate (winograd.h) says that it is clearly less work.
/// On an H100, 256 channels of 14x14 take 0.43 of the stencil's time with it, 64 of 56x56 0.79, and squeezenet1.1,
/// whose convolutions are as short as a launch, 1.8. The im2col form moves the same multiplications behind an array
/// that is written and read once more: on PoCL it takes 1.1 to 9 times as long for every convolution larger than 3 us
/// of five models, on an H200 1.03 to 2.8 times for six whole ones. Once a device or a shape turns up where another
/// form wins as a rule, the choice belongs here.
enum class ConvolutionForm : uint8_t { automatic, stencil, im2col, winograd };

/// Which small layers are one launch: none but those that records name; on CPUs also kernels one after the other, where
/// that pays (joined_steps.h); or all chains whose values fit in local memory, as one kernel (launches.h), whatever
/// records say.
enum class LaunchFusion : uint8_t { none, automatic, launch };

/// Knobs that records may have for a definition as these passes find it: whether the windows of its convolutions are
/// kept in memory, and in how many blocks its long reductions are formed side by side, 0 for none.
inline constexpr std::string_view im2col_knob = "im2col", blocks_knob = "blocks";

struct PassOptions {
  bool strict = false;  ///< leaves out passes that are not exact, and those that only serve them
  TableOptions tables;
  ConstantUse constants = ConstantUse::computed;
  FoldingBudget folding;
  ConvolutionForm convolution = ConvolutionForm::automatic;
  LaunchFusion fusion = LaunchFusion::none;
  bool joins_steps = false;    ///< launches perform several kernels, so that one kernel more is no launch more
  Profile profile;             ///< what launches are made for
  TuningRecords records = {};  ///< of kernels that were measured
  int64_t unrolled_steps =
      most_unrolled_steps;           ///< of one loop that become definitions; longer ones are performed, or refused
  bool perform = false;              ///< bodies may be performed as the program runs: Program::controls may come of it
  bool share_equal = true;           ///< layers that stand twice are one; not where neural rules may differ by layer
  const UserRules* rules = nullptr;  ///< the user's own; lives as long as the passes run
};

struct Pass {
  std::string_view name;
  std::string_view meaning;  ///< one line
  enum Part : uint8_t { calls, terms } part = calls;
  bool only_with_rounding = false;  ///< not under strict
  /// Null where the pass applies the rules between operator calls whose rows name it, and does nothing else.
  Result<Nothing> (*function)(Program& program, const PassOptions& options);
  /// Whether a compilation with these options runs the pass; null where all do. Who calls `run` has chosen.
  bool (*wanted)(const PassOptions& options) = nullptr;

  Result<Nothing> run(Program& program, const PassOptions& options) const;
};
std::span<const Pass> passes();

/// Keeps the windows of all convolutions in the term in memory, each a row of a matrix; false where there is none.
bool keep_windows(Rewriter& rewriter);
/// The numbers of blocks that the term's first long reduction may be formed in; none where it has none that is long.
std::vector<int64_t> block_counts(Expr term, const Profile& profile);
const Pass* find_pass(std::string_view name);  ///< null when there is none

/// Called after each pass; says whether to go on.
using PassObserver = std::function<bool(const Pass& pass, const Program& program)>;
/// The passes of one part, in order. Errors: a program with sizes that are no numbers, or all layers that a pass cannot
/// take, in one go. `stopped` is set where the observer has said so.
Result<Nothing> run_passes(Program& program, Pass::Part part, const PassOptions& options,
                           const PassObserver& observer = {}, bool* stopped = nullptr);

}  // namespace hoist
