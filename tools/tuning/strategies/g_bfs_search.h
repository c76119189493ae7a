// Greedy best-first search over neighbours, G-BFS of Zhang, Cheng, Zang and Park, "Compiler-Level Matrix Multiplication
// Optimization for Deep Learning" (arXiv 1909.10616): of the fastest point whose turn has not come, some neighbours
// drawn at random are measured. It begins where it is told to, else at the best of some random points.
//
// A patent, US 11,842,178 B2 (Huawei), claims this method for the tiling of matrix products. Whether it covers what
// anybody does with this file is for that person to decide; so it is compiled only with the CMake option
// HOIST_NEIGHBOURHOOD_SEARCH and used only where it is asked for by name.
#pragma once

#include <memory>

#include "tools/tuning/search.h"

namespace hoist::tuning {

std::unique_ptr<Search> g_bfs_search(const KnobSpace& space, uint64_t seed);

}  // namespace hoist::tuning
