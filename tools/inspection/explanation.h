// How the kernels of a layer follow from the model, step by step: a derivation replayed, and what of it concerns one
// layer. For explain and for the Python package. Not for what a layer is at each stage: layer_stages.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ir/plan/plan.h"
#include "tools/cli/attempt.h"
#include "tools/inspection/derivation.h"

namespace hoist {

struct ExplainedStep {
  size_t number = 0;  ///< from 1
  ProgramStep step;
  std::string layer;                                        ///< that it is told of; "" for the whole program
  std::string place;                                        ///< in the term, as a path
  std::string note;                                         ///< one plain sentence
  std::vector<std::string> absorbed;                        ///< layers that are part of that layer now
  std::vector<std::pair<std::string, std::string>> added;   ///< by a neural rule: values and their terms
  std::vector<std::pair<std::string, std::string>> folded;  ///< constants that the definition became, with types
  std::string before, after;  ///< both sides as sides_of_step has them; "" where there are none
  std::string term;           ///< all of it after the step, where it is asked for
};

struct ExplainedKernel {
  std::string name;
  size_t launches = 1;  ///< steps of the plan that launch it; what follows is of the first
  std::vector<std::string> layers;
  std::vector<ExplainedStep> steps;
  std::string term;
};

struct Explanation {
  std::string layer;
  std::vector<ExplainedKernel> kernels;
  std::string absence;               ///< why no kernel computes the layer; "" where one does
  std::vector<ExplainedStep> steps;  ///< of the layer then
};

/// `steps` are the plan's, in the order of the kernels' definitions; `kernels` their names. Errors: no layer has that
/// name, or the derivation does not replay.
Attempt<Explanation> explanation_of(const std::string& layer, const Derived& from, const std::vector<PlanLayer>& layers,
                                    const std::vector<PlanStep>& steps, const std::vector<std::string>& kernels,
                                    bool with_terms);

/// As json.md has it of explain.
nlohmann::ordered_json to_json(const Explanation& explanation);

}  // namespace hoist
