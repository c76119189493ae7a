// Statistics of every value that the sites of a model ask about, from a model that runs on calibration data. Needs a
// device or an evaluator only through PrepareModel. Not for how they are formed: calibration.h.
#pragma once

#include <functional>
#include <vector>

#include "neural_rules/calibration.h"
#include "neural_rules/rounding_plan.h"
#include "neural_rules/runner.h"
#include "neural_rules/site.h"

namespace hoist {

/// Two passes over all samples. Has second moments and rounded weights of what is planned. `seen` gets the model's own
/// outputs of each run of the first pass. Errors: what preparing and running give, and data that nothing can be learnt
/// from (Calibrator).
Result<Statistics> site_statistics(
    const Graph& graph, const std::vector<Site>& sites, const Samples& samples, const PrepareModel& prepare,
    const RoundingPlan& plan,
    const std::function<void(const std::vector<Tensor>&)>& seen = [](const std::vector<Tensor>&) {});

/// The named rules at every site where they apply; an earlier name goes first where two want one site. A rule for
/// products that reads a quantised activation applies where a rule in the list gives its input that format. Errors: an
/// unknown rule (with the near miss), one that applies nowhere (with the first reason).
Result<Assignment> uniform_assignment(const Graph& graph, const std::vector<Site>& sites,
                                      const std::vector<std::string>& rules);

}  // namespace hoist
