// The factories of the search strategies, one file each. Only for the table of strategies.
#pragma once

#include <memory>

#include "tools/tuning/search.h"

namespace hoist::tuning {

std::unique_ptr<Search> boosted_trees_search(const KnobSpace& space, uint64_t seed);
std::unique_ptr<Search> random_search(const KnobSpace& space, uint64_t seed);
std::unique_ptr<Search> genetic_search(const KnobSpace& space, uint64_t seed);
std::unique_ptr<Search> annealing_search(const KnobSpace& space, uint64_t seed);

}  // namespace hoist::tuning
