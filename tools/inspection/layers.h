// Finding a layer by the name that a user types, in a lowered model or in a bundle: both list the model's layers and
// the steps that compute them. For inspect and explain.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "tools/cli/attempt.h"

namespace hoist {

bool holds(const std::vector<std::string>& layers, const std::string& layer);

/// The positions of the steps that compute the layer, in order: several where views are read by several kernels. The
/// layer is bad input with the near miss as its hint when nothing has that name.
Attempt<std::vector<size_t>> steps_of(const std::string& layer, const std::vector<PlanLayer>& layers,
                                      const std::vector<PlanStep>& steps);
/// "shape: evaluated at compile time", of a layer that no step computes.
std::string absence_of(const std::string& layer, const std::vector<PlanLayer>& layers);

/// Every layer with its operator and its kernels; `kernels` are their names.
std::string layer_table(const std::vector<PlanLayer>& layers, const std::vector<PlanStep>& steps,
                        const std::vector<std::string>& kernels);
/// The same: [{"name", "operator", "kernels", "absence"}, ...]
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
