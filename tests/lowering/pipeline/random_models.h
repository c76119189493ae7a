// Random models, lowered with a profile and options of their seed, and the derivations of their kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "lowering/pipeline/passes.h"
#include "tests/lowering/random_graphs.h"
#include "tests/support/lower_model.h"

namespace hoist {

/// The number of random models: HOIST_RANDOM_GRAPHS, or 150.
uint64_t number_of_cases();

Profile profile_for(uint64_t seed);
LowerOptions options_for(uint64_t seed, bool strict);
LoweredModel lowered(const RandomGraph& random, uint64_t seed, bool strict);

/// Expects that the derivation leads to the kernel, and that a device can run its loops.
void expect_derived(const LoweredGroup& group);

/// Calls `body` with each random model, the values of its definitions, and its seed.
template <class Body>
void for_random_graphs(const Body& body) {
  for (uint64_t seed = 0; seed < number_of_cases(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    RandomGraph graph = random_graph(random);
    body(graph, values_of(graph), seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace hoist
