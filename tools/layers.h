// Finding a layer by the name that a user types, in a compiled model or in a bundle. For inspect and explain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/plan.h"
#include "tools/attempt.h"
#include "tools/model.h"

namespace hoist {

bool holds(const std::vector<std::string>& layers, const std::string& layer);

/// All names a user may ask for: the graph's layers, then those that lowering adds.
std::vector<std::string> layer_names(const CompiledModel& model);
std::vector<std::string> layer_names(const Plan& plan);
/// The layer is bad input with the near miss as its hint when nothing has that name.
Attempt<> check_layer(const std::string& layer, const std::vector<std::string>& names);

/// The first step that computes the layer; nothing for one that was folded into others or evaluated at compile time.
std::optional<size_t> step_of(const std::vector<PlanStep>& steps, const std::string& layer);
std::optional<size_t> group_of(const LoweredModel& model, const std::string& layer);
/// Why no kernel computes it: for people.
std::string fate(const std::vector<PlanRuleUse>& rules, const std::string& layer);

std::string joined_names(const std::vector<std::string>& names);  ///< "conv1, relu1"

}  // namespace hoist
