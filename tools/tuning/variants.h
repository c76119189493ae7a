// Compiles kernels of a model with other knobs, compares them with the interpreter and times them, interleaved. The
// whole program is lowered for each variant, so that a kernel's arrays have the layouts of the model; only the steps to
// be timed are compiled, each kernel once, on arrays with the initial content of a new bundle. So operands may be in a
// cache while a kernel is timed; decisions need a final comparison of whole bundles. timed_bundles.h decides on which
// machine bundles are measured.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "lowering/search/tuning.h"
#include "lowering/tiling/knobs.h"
#include "tools/records/tuning_database.h"
#include "tools/study/device_models.h"
#include "tools/tuning/timed_bundles.h"

namespace hoist::tuning {

/// The data that all variants share.
struct TunedProgram {
  Program program;            ///< after the passes over operator calls
  PrepareOptions options;     ///< for lowering and running it
  TimeBundles time_bundles;   ///< measures bundles
  double launch_seconds = 0;  ///< seconds of a run outside its kernels, per step
  bool is_serial = false;     ///< as in Plan, the same for all variants, so that they are timed on one device
};

/// The kinds of choices, in the order in which they are made: each kind changes the terms or layouts that later kinds
/// see, so earlier kinds are fixed. Two choices of one kind never concern the same kernel.
enum class ChoiceKind : uint8_t {
  convolutions,  ///< Winograd's forms, materialised windows, and random rewrites of terms
                 ///< (lowering/search/exploration.h)
  reductions,    ///< the number of blocks of long reductions
  launches,      ///< the number of layers in one launch
  layouts,       ///< layouts of images that are inputs or outputs of the model
  tiles,
};
inline constexpr std::array all_choices = {ChoiceKind::convolutions, ChoiceKind::reductions, ChoiceKind::launches,
                                           ChoiceKind::layouts, ChoiceKind::tiles};

/// A definition with knobs, and the steps whose time counts for them: for tiles the steps of this term; for other kinds
/// the steps that compute the layers, since another form has other terms.
struct Subject {
  ChoiceKind kind = ChoiceKind::tiles;
  TuningTask task;
  std::vector<std::string> layers;  ///< the first layer of each definition that the choice concerns
  KnobSpace space;
  KnobValues usual;  ///< the estimate's choice; empty if only the pass that makes the choice knows it
};

/// For messages: "forms of convolutions".
std::string_view name_of(ChoiceKind kind);
/// The subjects of a kind, with all other choices as in `fixed`, including this number of random rewrites per term.
Result<std::vector<Subject>> subjects_of(const TunedProgram& tuned, ChoiceKind kind, const TuningRecords& fixed,
                                         size_t explored = 0);

/// Knobs for some subjects, by index.
using Assignment = std::map<size_t, KnobValues>;

/// The program with the knobs of a variant; subjects without an assignment have their usual knobs, and all other
/// choices are as in `fixed`.
struct LoweredVariant {
  LoweredModel model;
  std::vector<size_t> steps;                  ///< the steps that compute an assigned subject, in order
  std::vector<std::vector<size_t>> subjects;  ///< subjects of each of these steps
};
Result<LoweredVariant> lower_variant(const TunedProgram& tuned, const std::vector<Subject>& subjects,
                                     const TuningRecords& fixed, const Assignment& assignment);

/// A model as a bundle without self-check, in a temporary folder that it owns.
struct WrittenModel {
  TemporaryFolder folder;
  std::filesystem::path bundle;
};
Result<WrittenModel> written_model(const TunedProgram& tuned, LoweredModel lowered);

/// Seconds of each subject in a variant: lower quartiles of all its steps plus their launch times. Infinity if its
/// kernel was not compiled, differs from the interpreter, or crashes the process; missing if the variant could not be
/// compiled.
using VariantTimes = std::map<size_t, double>;

/// Times variants of some subjects. The first variant of a group is the baseline; it stays compiled for later groups.
class VariantTimer {
 public:
  /// All other choices are as in `fixed`. The arguments must outlive the timer.
  VariantTimer(const TunedProgram& tuned, const std::vector<Subject>& subjects, TuningRecords fixed);
  ~VariantTimer();
  VariantTimer(VariantTimer&&) = delete;

  /// Times groups of variants, each interleaved with the others of its group. If a group has no answer, its variants
  /// and then their kernels are timed one by one, until the failing kernels are known. Ends early, with the results so
  /// far, if `stop` returns true. Errors: the baseline cannot be timed either.
  Result<std::vector<std::vector<VariantTimes>>> time(const std::vector<std::vector<Assignment>>& groups,
                                                      const Turns& turns, const std::function<bool()>& stop);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hoist::tuning
