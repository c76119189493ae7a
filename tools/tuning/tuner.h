// Tunes a model: for each kernel with a share of the run, finds the fastest knobs on this device by search. Every
// candidate is compared with the interpreter, then timed interleaved with the estimate's kernel. The best candidates of
// each kernel are timed again, and whole bundles at the end, since a kernel that is faster alone may be slower among
// others: choices that do not make the whole model faster are dropped. Measurements are written to the database at
// once, so a stop at any time loses nothing, and a later search begins with them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/records/tuning_database.h"
#include "tools/tuning/search.h"
#include "tools/tuning/variants.h"

namespace hoist::tuning {

struct TuneOptions {
  const SearchStrategy* strategy = nullptr;  ///< null: the default
  int measurements = 32;                     ///< maximum number per kernel
  size_t batch = 4;                          ///< candidates of a kernel that are timed together
  size_t groups = 1;                         ///< groups of kernels per round; each group may be timed on another
                                             ///< machine
  size_t explored = 0;                       ///< random rewrites per kernel term
  double least_share = 0.005;                ///< share of the run below which kernels are not tuned
  uint64_t seed = 1;
  std::function<bool()> stop = [] { return false; };  ///< called often; true at the time limit
  /// True if the user wants to end the search at once, even without a result.
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(const std::string& text)> progress = [](const std::string&) {};
};

struct TunedKernel {
  TuningTask task;
  std::vector<std::string> layers;
  int64_t points = 0;        ///< size of the space, illegal points included; at most 2^40
  double share = 0;          ///< share of the run before tuning
  double seconds = 0;        ///< seconds with the estimate's knobs
  double ratio = 1;          ///< ratio of the best time to `seconds`, measured again at the end
  KnobValues usual, chosen;  ///< `chosen` is empty if no candidate is faster
  size_t measured = 0, refused = 0;
};

struct TuneOutcome {
  std::vector<TunedKernel> kernels;     ///< in decreasing order of share
  double noise = 0;                     ///< 95 % of the ratios of equal kernels are nearer to 1 than this
  double before = 0, after = 0;         ///< lower quartiles of whole interleaved runs, in seconds; 0 if not timed
  bool kept = false;                    ///< the choices are in the database
  std::vector<RecordedChoice> choices;  ///< the choices made
  bool stopped = false;                 ///< true if stopped before the searches were done
};

Result<TuneOutcome> tune(const TunedProgram& tuned, const TuneOptions& options, TuningDatabase& database);

}  // namespace hoist::tuning
