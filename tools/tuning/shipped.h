// Data that come with hoist, as texts in the program: made at build time of the files of tools/tuning/shipped. For who
// loads them alone.
#pragma once

#include <string_view>

namespace hoist::tuning {

extern const std::string_view shipped_cost_model;  ///< cost_model.json, as CostModel::save writes it
extern const std::string_view shipped_records;     ///< records.txt, as records_text.h has it

}  // namespace hoist::tuning
