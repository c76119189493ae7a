// Kernels of a model with other knobs, on a device: compiled, compared with the interpreter, timed by turns. The whole
// program is lowered for each variant, so that a kernel reads and writes arrays as they lie in the model; only the
// steps that are to be timed are compiled, each kernel once, over arrays that hold what a fresh bundle's do. So times
// are those of a kernel whose operands may be in a cache; whoever decides by them compares whole bundles at the end.
// Where bundles are measured is timed_bundles.h's: what they do there to a driver is a time of no kernel here.
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
#include "tools/study/device_models.h"
#include "tools/tuning/timed_bundles.h"
#include "tools/tuning/tuning_database.h"

namespace hoist::tuning {

/// What all variants share.
struct TunedProgram {
  Program program;            ///< behind the passes over operator calls
  PrepareOptions options;     ///< how it is lowered and runs
  TimeBundles time_bundles;   ///< and where it is measured
  double launch_seconds = 0;  ///< that a run takes for each step beside the kernel
  bool is_serial = false;     ///< as in Plan, of all variants, so that they are timed on one device
};

/// What may be chosen, in the order in which it is: each kind changes the terms, or how arrays lie, that the next ones
/// find, so those before it are fixed. Choices of one kind concern no kernel together.
enum class ChoiceKind : uint8_t {
  convolutions,  ///< Winograd's forms, windows in memory, and random rewrites of terms (lowering/search/exploration.h)
  reductions,    ///< in how many blocks long ones are formed
  launches,      ///< how many layers are computed in one
  layouts,       ///< of pictures that are inputs and outputs of the model
  tiles,
};
inline constexpr std::array all_choices = {ChoiceKind::convolutions, ChoiceKind::reductions, ChoiceKind::launches,
                                           ChoiceKind::layouts, ChoiceKind::tiles};

/// What knobs are chosen for, and which steps its time is: those of this term for tiles, for other choices those that
/// compute the layers, since another form is other terms.
struct Subject {
  ChoiceKind kind = ChoiceKind::tiles;
  TuningTask task;
  std::vector<std::string> layers;  ///< the first of each definition that the choice concerns
  KnobSpace space;
  KnobValues usual;  ///< what an estimate chooses; empty where only the pass that makes the choice knows
};

/// For people: "forms of convolutions".
std::string_view name_of(ChoiceKind kind);
/// The choices of a kind, where others are as `fixed` says; of each term so many random rewrites are among them.
Result<std::vector<Subject>> subjects_of(const TunedProgram& tuned, ChoiceKind kind, const TuningRecords& fixed,
                                         size_t explored = 0);

/// Knobs for some subjects, by index.
using Assignment = std::map<size_t, KnobValues>;

/// The program with the knobs of a variant, and usual ones for what the assignment leaves out. `fixed` says what holds
/// for all else.
struct LoweredVariant {
  LoweredModel model;
  std::vector<size_t> steps;                  ///< those that compute an assigned subject, in order
  std::vector<std::vector<size_t>> subjects;  ///< of each of these steps
};
Result<LoweredVariant> lower_variant(const TunedProgram& tuned, const std::vector<Subject>& subjects,
                                     const TuningRecords& fixed, const Assignment& assignment);

/// A model as a bundle in a folder that goes with it, without values for a self-check.
struct WrittenModel {
  TemporaryFolder folder;
  std::filesystem::path bundle;
};
Result<WrittenModel> written_model(const TunedProgram& tuned, LoweredModel lowered);

/// Seconds of each subject in a variant: lower quartiles of all its steps, and what their launches take. Infinity where
/// its kernel was not compiled, differs from the interpreter, or ends the process that runs it; nothing where the whole
/// variant could not be made.
using VariantTimes = std::map<size_t, double>;

/// Times variants of some subjects. The first of those that are timed together is what the others are compared with: it
/// stays compiled for the next time.
class VariantTimer {
 public:
  /// `fixed` says what holds for all else. What is referred to lives as long as the timer.
  VariantTimer(const TunedProgram& tuned, const std::vector<Subject>& subjects, TuningRecords fixed);
  ~VariantTimer();
  VariantTimer(VariantTimer&&) = delete;

  /// Groups of variants, each timed by turns with the others of its group. Where a group has no answer, its variants
  /// are asked one by one, and their kernels, until those that are to blame are known. Ends early where `stop` says so,
  /// with what there is. Errors: what the others are compared with cannot be timed either.
  Result<std::vector<std::vector<VariantTimes>>> time(const std::vector<std::vector<Assignment>>& groups,
                                                      const Turns& turns, const std::function<bool()>& stop);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hoist::tuning
