// Statistics of every value that the sites of a model ask about, from a model that runs on calibration data. Needs a
// device or an evaluator only through PrepareModel. Not for how they are formed: calibration.h.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "neural_rules/calibration/runner.h"
#include "neural_rules/formats/rounding_plan.h"
#include "neural_rules/model/equalisation.h"
#include "neural_rules/model/site.h"

namespace hoist {

/// A model that is ready for rules.
struct CalibratedProgram {
  Program program;         ///< with channels scaled
  ChannelFactors factors;  ///< by which; none where the program is as it was
  Statistics statistics;   ///< of that program
  size_t runs = 0;         ///< of the samples, the first of which it is calibrated on
};

/// How long calibration may take, and who watches it.
struct CalibrationWatch {
  double seconds = std::numeric_limits<double>::infinity();  ///< about; only as many samples are used as fit
  std::function<void(size_t done, size_t all)> progress = [](size_t, size_t) {};  ///< runs of the model, all passes
};

/// Two passes over all samples, and two more where channels are scaled. Has second moments and rounded weights of what
/// is planned. `seen` gets the outputs of each run of the model as it was. Errors: what preparing and running give, and
/// data that nothing can be learnt from (Calibrator).
Result<CalibratedProgram> calibrate(
    const Program& program, const std::vector<Site>& sites, const Samples& samples, const PrepareModel& prepare,
    const RoundingPlan& plan, ChannelScaling scaling,
    const std::function<void(const std::vector<Tensor>&)>& seen = [](const std::vector<Tensor>&) {},
    const CalibrationWatch& watch = {});

/// The named rules at every site where they apply; an earlier name goes first where two want one site. A rule for
/// products that reads a quantised activation applies where a rule in the list gives its input that format. Errors: an
/// unknown rule (with the near miss), one that applies nowhere (with the first reason).
Result<Assignment> uniform_assignment(const Program& program, const std::vector<Site>& sites,
                                      const std::vector<std::string>& rules);

}  // namespace hoist
