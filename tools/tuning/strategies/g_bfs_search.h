// Greedy best-first search, G-BFS of Zhang, Cheng, Zang and Park, "Compiler-Level Matrix Multiplication Optimization
// for Deep Learning" (arXiv 1909.10616): measures some random points adjacent to the fastest point that was not
// expanded yet. It begins at the given start point, else at the best of some random points.
//
// A patent, US 11,842,178 B2 (Huawei), claims this method for the tiling of matrix products. Users of this file must
// judge for themselves if it applies to their use; so the file is compiled only with the CMake option
// HOIST_NEIGHBOURHOOD_SEARCH and used only if it is selected by name.
#pragma once

#include <memory>

#include "tools/tuning/search.h"

namespace hoist::tuning {

std::unique_ptr<Search> g_bfs_search(const KnobSpace& space, uint64_t seed);

}  // namespace hoist::tuning
