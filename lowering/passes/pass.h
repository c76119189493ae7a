// A pass, and the options of a compilation that passes read.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/rules/rewrite.h"
#include "ir/rules/rule_class.h"
#include "ir/target/profile.h"
#include "lowering/graph/integer_table.h"
#include "lowering/graph/program.h"
#include "lowering/loops/unroll.h"
#include "lowering/rules/user_rules.h"
#include "lowering/search/tuning.h"
#include "lowering/strategies/schedule_script.h"
#include "lowering/strategies/strategy.h"
#include "lowering/tiling/open_extents.h"

namespace hoist {

/// The form of convolutions. Winograd's forms are for 3x3 and 5x5 windows at stride 1 without groups in f32, except in
/// strict compilations, and for 3x3 windows of bytes, where they are exact; all other convolutions stay stencils.
///
/// Automatic is the stencil, and on CPUs Winograd's form if an estimate (winograd.h) shows it to be clearly less work.
/// On an H100 Winograd's form is 2.3x as fast as the stencil for 256 channels of 14x14 and 1.27x for 64 of 56x56, and
/// takes 1.8x the time for squeezenet1.1, whose convolutions are as short as a launch. The im2col form executes the
/// same multiplications on an array that is written and read in addition: on PoCL it takes 1.1 to 9 times as long for
/// every convolution above 3 us of five models, on an H200 1.03 to 2.8 times for six whole models. If another form is
/// faster on a device or for a shape in general, the choice belongs here.
enum class ConvolutionForm : uint8_t { automatic, stencil, im2col, winograd };

/// Fused launches of small layers. `automatic`: the recorded ones, and on CPUs also kernels in sequence, if that pays
/// (fused_launches.h). `launch`: every chain whose values fit in local memory becomes one kernel (launches.h), whatever
/// the records contain.
enum class LaunchFusion : uint8_t { none, automatic, launch };

/// The order of dimensions in which values between kernels are stored: images in NHWC and other values as in ONNX, or
/// on CPUs the orders of least cost over the whole program (lowering/layout/orders.h). GPUs have the rule alone. On a
/// processor with AVX-512, among 39 published networks, the choice makes ConvNeXt-T 6.7x, EdgeNeXt 1.7x and MLP-Mixer
/// 1.12x faster; the others change by at most 4 %.
enum class LayoutChoice : uint8_t { rule, cost };

/// Layers that run for a few samples of a batch at a time (lowering/loops/micro_batches.h), on CPUs: `automatic` where
/// fewer bytes then leave the caches.
enum class BatchDivision : uint8_t { automatic, none };

/// Knobs that records may have for a definition as it enters these passes: whether the windows of its convolutions are
/// materialised, and the number of parallel blocks of its long reductions, 0 for none.
inline constexpr std::string_view im2col_knob = "im2col", blocks_knob = "blocks";

struct LowerOptions {
  bool strict = false;  ///< exact rules only: no rounding passes, and no passes that only prepare them
  TableOptions tables = {TableUse::automatic, {}};
  ConstantUse constants = ConstantUse::computed;
  FoldingBudget folding;
  ConvolutionForm convolution = ConvolutionForm::automatic;
  LaunchFusion fusion = LaunchFusion::automatic;
  LayoutChoice layouts = LayoutChoice::cost;
  BatchDivision batches = BatchDivision::automatic;
  TuningRecords records = {};                    ///< records of measured kernels
  int64_t unrolled_steps = most_unrolled_steps;  ///< limit of steps of one unrolled loop; longer loops run as dynamic
                                                 ///< control flow, or are refused
  bool execute = true;                           ///< If and Loop may run as dynamic control flow (unroll.h)
  const UserRules* rules = nullptr;              ///< rules of the user, which must outlive the compilation
  std::vector<ScheduleScript> steps;             ///< the user's own steps for kernels, instead of the strategy
  const std::vector<Strategy>* strategies = nullptr;  ///< instead of strategies(); live as long as the compilation
  OpenExtents open;                                   ///< the extents that a run chooses
  int64_t memory = 0;            ///< limit of bytes between layers, beyond which values are computed again; 0: none
  bool packs_weights = true;     ///< false: no values of weights and no derivation, for a plan that is not written
  bool separate_arrays = false;  ///< no reuse of memory in the arena, so that a simulated device detects every overrun
};

/// The options of passes; the defaults are the options of passes that run alone.
struct PassOptions : LowerOptions {
  PassOptions() {
    tables.use = TableUse::off;
    fusion = LaunchFusion::none;
    execute = false;
  }

  Profile profile;  ///< the device
  /// Launches run several kernels, so that an additional kernel needs no additional launch.
  bool fuses_launches = false;
  bool share_equal = true;  ///< merges equal layers; false if neural rules may differ by layer
};

struct LoweredModel;

/// Changes a program, or a program and the plan that is made from it.
struct PassFunction {
  constexpr PassFunction() = default;
  constexpr PassFunction(Result<Nothing> (*function)(Program&, const PassOptions&)) : program(function) {}
  constexpr PassFunction(Result<Nothing> (*function)(LoweredModel&, const PassOptions&)) : model(function) {}
  constexpr PassFunction(void (*function)(Program&)) : plain(function) {}

  Result<Nothing> (*program)(Program& program, const PassOptions& options) = nullptr;
  Result<Nothing> (*model)(LoweredModel& model, const PassOptions& options) = nullptr;
  void (*plain)(Program& program) = nullptr;
};

struct Pass {
  std::string_view name;
  std::string_view meaning;  ///< one line
  /// `within`: a step of derivations that other passes record; only replay runs it.
  enum Part : uint8_t { calls, terms, plan, within } part = calls;
  RuleClass rule_class = RuleClass::exact;  ///< passes of other classes than exact are omitted under strict
  /// True if a compilation with these options runs the pass; null: always. `run` itself does not test it.
  bool (*wanted)(const PassOptions& options) = nullptr;
  /// Empty: the pass applies the rules between operator calls whose rows name it, and nothing else.
  PassFunction function = {};
  /// Replays a step of a derivation in its definition. Null: the steps of the pass are rules, or concern the whole
  /// program, for which the pass runs again.
  Result<Nothing> (*replay)(Program& program, Definition& definition, const ProgramStep& step) = nullptr;
  bool adds_definitions = false;  ///< true if a replayed step adds definitions

  bool is_run(const PassOptions& options) const {
    return (rule_class == RuleClass::exact || !options.strict) && (wanted == nullptr || wanted(options));
  }
  Result<Nothing> run(Program& program, const PassOptions& options) const;
  Result<Nothing> run(LoweredModel& model, const PassOptions& options) const;
};
/// Materialises the windows of all convolutions in the term, each as a row of a matrix; false if it has none.
bool materialise_windows(Rewriter& rewriter);
/// The possible numbers of blocks of the term's first long reduction; empty if it has none.
std::vector<int64_t> block_counts(Expr term, const Profile& profile);

}  // namespace hoist
