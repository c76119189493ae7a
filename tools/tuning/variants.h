// Kernels of a model with other knobs, on a device: compiled, compared with the interpreter, timed by turns. The whole
// program is lowered for each variant, so that a kernel reads and writes arrays as they lie in the model; only the
// steps that are to be timed are compiled, each kernel once, over arrays that hold what a fresh bundle's do. So times
// are those of a kernel whose operands may be in a cache; whoever decides by them compares whole bundles at the end.
// Where bundles are measured is timed_bundles.h's: what they do there to a driver is a time of no kernel here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "lowering/knobs.h"
#include "lowering/tuning.h"
#include "tools/device_models.h"
#include "tools/tuning/timed_bundles.h"
#include "tools/tuning/tuning_database.h"

namespace hoist::tuning {

/// What all variants share.
struct TunedProgram {
  Program program;            ///< behind the passes over operator calls
  PrepareOptions options;     ///< how it is lowered and runs
  TimeBundles time_bundles;   ///< and where it is measured
  double launch_seconds = 0;  ///< that a run takes for each step beside the kernel
};

/// What knobs are chosen for, and which steps its time is: those of this term, or where `forms` is set, those that
/// compute the layers, since another form of a convolution is other terms.
struct Subject {
  TuningTask task;
  bool forms = false;
  std::vector<std::string> layers;  ///< the first of each definition that has the term
  KnobSpace space;
  KnobValues usual;  ///< what an estimate chooses
};

/// The choices that there are: Winograd's forms, and so many random rewrites of each term (lowering/exploration.h), or,
/// with knobs for these fixed, tiles.
Result<std::vector<Subject>> form_subjects(const TunedProgram& tuned, size_t explored = 0);
Result<std::vector<Subject>> tile_subjects(const TunedProgram& tuned, const TuningRecords& fixed);

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
