// What rules cost on a device. Times come from uniform models, in which every site that can has the rules of one kind;
// each kernel's time there belongs to the sites whose layers it computes. From them the problem of the solver is put
// together: a node a site, and edges for how a kernel's time depends on the formats that it reads and writes. Not for
// errors: sensitivity.h.
//
// Uniform models give times since formats of a kernel's inputs and results change its time too; what formats change is
// shared between reading and writing by their sizes. Integer products are timed first: the time limit gives sensitivity
// the first half and uniform models the next quarter, and what is not timed by then is not chosen.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "neural_rules/calibration/runner.h"
#include "neural_rules/calibration/sensitivity.h"
#include "neural_rules/choice/budget.h"
#include "neural_rules/choice/solver/solver.h"

namespace hoist {

/// Every site that can under one rule for values, or one for products (with the formats that they need).
struct UniformModel {
  std::string name;        ///< "u8", "w8a8", ...; "" is the model as it is
  std::string cost_class;  ///< of its rules
  Assignment assignment;
  std::unique_ptr<RunnableModel> runnable;
  std::vector<double> site_seconds;  ///< of the kernels that belong to each site, then of those that belong to none
};

/// The model as it is, from the times of its steps.
UniformModel unchanged_model(const Sensitivity& sensitivity, const std::vector<StepTime>& steps);

/// Takes each model when it is timed; its `runnable` may be moved away.
using TakeUniform = std::function<Result<Nothing>(UniformModel& model)>;

/// The model as it is first; those that are in `models` already are not timed again. When the time is out only rules
/// that a site has to have are timed; the others are not chosen. Whether all are timed.
Result<bool> add_uniform_models(
    std::vector<UniformModel>& models, const Sensitivity& sensitivity, const PrepareModel& prepare,
    const SensitivityOptions& options, const TakeUniform& take = [](UniformModel&) { return Nothing{}; });

/// A node a site; option 0 leaves it as it is, the others are the site's rules in the order of sensitivity.rules.
/// Errors of options are those measured alone, or predicted. Costs are seconds, or bytes.
struct CostModel {
  ChoiceProblem problem;
  std::vector<std::vector<size_t>> rules;  ///< by site: indices into sensitivity.rules
  double base = 0;                         ///< of what belongs to no site

  size_t problem_options(size_t site) const;  ///< of the node: its rules and leaving it as it is
};
CostModel cost_model(Sensitivity& sensitivity, const std::vector<UniformModel>& uniform, Objective objective);

Assignment assignment_of(const Sensitivity& sensitivity, const CostModel& model, const std::vector<size_t>& options);
std::vector<size_t> options_of(const Sensitivity& sensitivity, const CostModel& model, const Assignment& assignment);

/// Bytes of the weights of all products under the assignment.
double weight_bytes(const Sensitivity& sensitivity, const Assignment& assignment);

}  // namespace hoist
