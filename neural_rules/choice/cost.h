// The costs of rules on a device. Times come from uniform-precision models, in which every possible site has the rules
// of one kind; the time of each kernel belongs to the sites whose layers it computes. They are the input of the
// solver's problem: one node per site, and edges for the effect of formats on the time of kernels that read and write
// them. Errors of rules are in sensitivity.h.
//
// Whole models are timed because the formats of a kernel's inputs and results change its time too; this effect is
// divided between reading and writing by their sizes. Integer contractions are timed first: the time limit gives
// sensitivity the first half and uniform-precision models the next quarter, and rules that are not timed by then are
// not chosen.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "neural_rules/calibration/runner.h"
#include "neural_rules/calibration/sensitivity.h"
#include "neural_rules/choice/budget.h"
#include "neural_rules/choice/solver/solver.h"
#include "neural_rules/choice/study.h"

namespace hoist {

/// A model with one rule at every site where it applies: a rule for values, or a rule for contractions with the formats
/// that it needs.
struct UniformBaseline {
  std::string name;        ///< "u8", "w8a8", ...; "" is the unchanged model
  std::string cost_class;  ///< cost class of its rules
  Assignment assignment;
  std::unique_ptr<RunnableModel> runnable;
  std::vector<double> site_seconds;  ///< seconds of the kernels of each site, and then of all other kernels
  /// Models are timed one after the other on a machine whose speed varies: the model's time in interleaved runs over
  /// the sum of `site_seconds`, once it is known. Costs are scaled by it; a study states its sites' times as measured.
  double change = 1;

  double seconds(size_t site) const { return site_seconds[site] * change; }
  double seconds_of_run() const;
};

/// The unchanged model, from the times of its steps.
UniformBaseline unchanged_model(const Sensitivity& sensitivity, const std::vector<StepTime>& steps);

/// Sets the `change` of each model whose assignment is a timed point.
void scale_to_runs(std::vector<UniformBaseline>& models, const std::vector<StudyPoint>& points);

/// Receives each model when it is timed; it may move `runnable`.
using TakeUniform = std::function<Result<Nothing>(UniformBaseline& model)>;

/// Times the unchanged model first; models in `models` are not timed again. When the time limit has passed, only rules
/// that a site must have are timed; others cannot be chosen. Returns true if all are timed.
Result<bool> add_uniform_baselines(
    std::vector<UniformBaseline>& models, const Sensitivity& sensitivity, const PrepareModel& prepare,
    const SensitivityOptions& options, const TakeUniform& take = [](UniformBaseline&) { return Nothing{}; });

/// One node per site; option 0 leaves it unchanged, the others are the site's rules in the order of sensitivity.rules.
/// Errors of options are those measured alone, or predicted. Costs are seconds, or bytes.
struct CostModel {
  ChoiceProblem problem;
  std::vector<std::vector<size_t>> rules;  ///< by site: indices into sensitivity.rules
  double base = 0;                         ///< cost of kernels that belong to no site

  size_t problem_options(size_t site) const;  ///< number of options of the node: its rules, and unchanged
};
CostModel cost_model(Sensitivity& sensitivity, const std::vector<UniformBaseline>& uniform, Objective objective);

Assignment assignment_of(const Sensitivity& sensitivity, const CostModel& model, const std::vector<size_t>& options);
std::vector<size_t> options_of(const Sensitivity& sensitivity, const CostModel& model, const Assignment& assignment);

/// Bytes of the weights of all products under the assignment.
double weight_bytes(const Sensitivity& sensitivity, const Assignment& assignment);

}  // namespace hoist
