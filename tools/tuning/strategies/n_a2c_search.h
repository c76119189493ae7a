// Neighbourhood actor advantage critic, N-A2C of Zhang, Cheng, Zang and Park, "Compiler-Level Matrix Multiplication
// Optimization for Deep Learning" (arXiv 1909.10616): from the fastest point it takes some steps to neighbours, by
// chance or by a small network that learns which steps make kernels faster, and what it comes by is measured. It begins
// where it is told to, else at the best of some random points.
//
// A patent, US 11,842,178 B2 (Huawei), claims this method for the tiling of matrix products. Whether it covers what
// anybody does with this file is for that person to decide; so it is compiled only with the CMake option
// HOIST_NEIGHBOURHOOD_SEARCH and used only where it is asked for by name.
#pragma once

#include <memory>

#include "tools/tuning/search.h"

namespace hoist::tuning {

std::unique_ptr<Search> n_a2c_search(const KnobSpace& space, uint64_t seed);

}  // namespace hoist::tuning
