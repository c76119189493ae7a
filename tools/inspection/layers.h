// Finds a layer by the name that a user types, in a lowered model or in a bundle: both list the model's layers and the
// steps that compute them. For inspect and explain.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/plan/plan.h"

namespace hoist {

bool holds(const std::vector<std::string>& layers, const std::string& layer);

/// The positions of the steps that compute the layer, in order; several if a view is inlined into several consumers.
/// Errors: no layer has the name (bad input); the hint is the most similar name.
Result<std::vector<size_t>> steps_of(const std::string& layer, const std::vector<PlanLayer>& layers,
                                     const std::vector<PlanStep>& steps);
/// "shape: evaluated at compile time", for a layer that no step computes.
std::string absence_of(const std::string& layer, const std::vector<PlanLayer>& layers);

/// Every layer with its operator and its kernels; `kernels` are their names.
std::string layer_table(const std::vector<PlanLayer>& layers, const std::vector<PlanStep>& steps,
                        const std::vector<std::string>& kernels);
/// The same as JSON: [{"name", "operator", "kernels", "absence"}, ...]
nlohmann::ordered_json layers_json(const std::vector<PlanLayer>& layers, const std::vector<PlanStep>& steps,
                                   const std::vector<std::string>& kernels);
/// The names of kernels of a plan or of a lowered model.
template <class Kernels>
std::vector<std::string> names_of(const Kernels& kernels) {
  std::vector<std::string> out;
  for (const auto& kernel : kernels) out.push_back(kernel.name);
  return out;
}

std::string joined_names(const std::vector<std::string>& names);  ///< "conv1, relu1"

}  // namespace hoist
