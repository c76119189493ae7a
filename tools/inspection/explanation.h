// The derivation of a layer's kernels from the model, step by step: a replayed derivation, restricted to one layer. For
// explain and for the Python package. For a layer at each stage use layer_stages.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/result.h"
#include "ir/plan/plan.h"
#include "tools/inspection/derivation.h"

namespace hoist {

struct ExplainedStep {
  size_t number = 0;  ///< from 1
  ProgramStep step;
  std::string layer;                                        ///< the layer of the step; "" for the whole program
  std::string place;                                        ///< in the term, as a path
  std::string note;                                         ///< one sentence
  std::vector<std::string> absorbed;                        ///< layers that became part of `layer`
  std::vector<std::pair<std::string, std::string>> added;   ///< by a neural rule: values and their terms
  std::vector<std::pair<std::string, std::string>> folded;  ///< constants that replaced the definition, with types
  std::string before, after;  ///< both sides in the form of sides_of_step; "" if there are none
  std::string term;           ///< the whole term after the step, if requested
};

struct ExplainedKernel {
  std::string name;
  size_t launches = 1;  ///< steps of the plan that launch it; the other fields describe the first
  std::vector<std::string> layers;
  std::vector<ExplainedStep> steps;
  std::string term;
};

struct Explanation {
  std::string layer;
  std::vector<ExplainedKernel> kernels;
  std::string absence;               ///< the reason why no kernel computes the layer; "" if one does
  std::vector<ExplainedStep> steps;  ///< steps of the layer if no kernel computes it
};

/// Explains a layer. `steps` are the plan's, in the order of the kernels' definitions; `kernels` are their names.
/// Errors: no layer has that name, or the replay fails.
Result<Explanation> explanation_of(const std::string& layer, const Derived& from, const std::vector<PlanLayer>& layers,
                                   const std::vector<PlanStep>& steps, const std::vector<std::string>& kernels,
                                   bool with_terms);

/// The JSON that json.md describes for explain.
nlohmann::ordered_json to_json(const Explanation& explanation);

}  // namespace hoist
