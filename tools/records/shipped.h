// Data files of tools/records/shipped, embedded in the program at build time. Only for the code that loads them.
#pragma once

#include <span>
#include <string_view>

namespace hoist::tuning {

/// cost_models/*.json in the order of their names, in the form of CostModel::save.
extern const std::span<const std::string_view> shipped_cost_models;
extern const std::string_view shipped_records;  ///< records.txt, in the form of records_text.h

}  // namespace hoist::tuning
