// Statistics of the values at a model's sites, from runs of the model on calibration data. calibration.h defines the
// statistics.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "neural_rules/calibration/runner.h"
#include "neural_rules/formats/rounding_plan.h"
#include "neural_rules/model/equalisation.h"
#include "neural_rules/model/site.h"

namespace hoist {

struct CalibratedProgram {
  Program program;         ///< with channels scaled
  ChannelFactors factors;  ///< the factors; empty if the program is unchanged
  Statistics statistics;   ///< statistics of that program
  size_t runs = 0;         ///< number of samples used for calibration, from the first on
  bool unscaled = false;   ///< there was no time to scale channels
};

/// The time limits of calibration, and its observer.
struct CalibrationWatch {
  double seconds =
      std::numeric_limits<double>::infinity();  ///< approximate time limit; only as many samples are used as fit
  /// Until everything has to be finished. An automatic choice scales channels only if another calibration and a changed
  /// model, which takes about as long, fit.
  std::function<double()> seconds_left = [] { return std::numeric_limits<double>::infinity(); };
  std::function<void(size_t done, size_t all)> progress = [](size_t, size_t) {};  ///< runs of the model, all passes
};

/// Makes two passes over all samples, and two more if channels are scaled. Includes second moments and rounded weights
/// for the planned layers. `seen` receives the outputs of each run of the unchanged model. Errors: the errors of
/// preparing and running, and unusable data (Calibrator).
Result<CalibratedProgram> calibrate(
    const Program& program, const std::vector<Site>& sites, const Samples& samples, const PrepareModel& prepare,
    const RoundingPlan& plan, ChannelScaling scaling,
    const std::function<void(const std::vector<Tensor>&)>& seen = [](const std::vector<Tensor>&) {},
    const CalibrationWatch& watch = {});

/// Assigns the named rules to every site where they apply; of two rules for one site, the earlier name wins. A rule for
/// contractions with a quantised activation applies if a rule in the list gives its input this format. Errors: an
/// unknown rule (with the near miss), a rule that applies nowhere (with the first reason).
Result<Assignment> uniform_assignment(const Program& program, const std::vector<Site>& sites,
                                      const std::vector<std::string>& rules);

}  // namespace hoist
