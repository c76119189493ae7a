// Data that come with hoist, as texts in the program: made at build time of the files of tools/tuning/shipped. For who
// loads them alone.
#pragma once

#include <span>
#include <string_view>

namespace hoist::tuning {

/// cost_models/*.json in the order of their names, as CostModel::save writes them.
extern const std::span<const std::string_view> shipped_cost_models;
extern const std::string_view shipped_records;  ///< records.txt, as records_text.h has it

}  // namespace hoist::tuning
