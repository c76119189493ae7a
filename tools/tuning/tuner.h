// Tuning a model: for each kernel that takes a share of the run, the knobs that a search finds fastest on the device at
// hand. Every candidate is compared with the interpreter before it is timed, and timed by turns with the kernel that
// the estimate makes; the best of each kernel are timed once more, and whole bundles at the end, since a kernel that is
// faster alone may be slower among others: choices that do not make the whole faster are not kept. What was measured is
// in the database at once, so that nothing is lost by an end at any time, and a later search begins with it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/tuning/search.h"
#include "tools/tuning/tuning_database.h"
#include "tools/tuning/variants.h"

namespace hoist::tuning {

struct TuneOptions {
  const SearchStrategy* strategy = nullptr;  ///< null: the default
  int measurements = 32;                     ///< of each kernel at most
  size_t batch = 4;                          ///< candidates of a kernel that are timed together
  size_t groups = 1;                         ///< of kernels in a round, each of which may be timed elsewhere
  size_t explored = 0;                       ///< random rewrites of each kernel's term
  double least_share = 0.005;                ///< of the run: kernels below are left as they are
  uint64_t seed = 1;
  std::function<bool()> stop = [] { return false; };  ///< asked often
  /// Whether somebody wants it to end, whatever there is to show by now; where `stop` says that time is over.
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(const std::string& text)> progress = [](const std::string&) {};
};

struct TunedKernel {
  TuningTask task;
  std::vector<std::string> layers;
  int64_t points = 0;        ///< of the space, legal or not; at most 2^40
  double share = 0;          ///< of the run, before
  double seconds = 0;        ///< as the estimate makes it
  double ratio = 1;          ///< of the best over that, measured once more at the end
  KnobValues usual, chosen;  ///< `chosen` is empty where nothing is better
  size_t measured = 0, refused = 0;
};

struct TuneOutcome {
  std::vector<TunedKernel> kernels;     ///< the largest share first
  double noise = 0;                     ///< how far ratios of equal kernels are from 1 (95 % of them are nearer)
  double before = 0, after = 0;         ///< lower quartiles of whole runs, by turns, in seconds; 0 where none was timed
  bool kept = false;                    ///< the database has the choices
  std::vector<RecordedChoice> choices;  ///< those
  bool stopped = false;                 ///< before the searches were done
};

Result<TuneOutcome> tune(const TunedProgram& tuned, const TuneOptions& options, TuningDatabase& database);

}  // namespace hoist::tuning
