#include "tools/tuning/search.h"
#include "tools/tuning/strategies/strategies.h"
#ifdef HOIST_NEIGHBOURHOOD_SEARCH
#include "tools/tuning/strategies/g_bfs_search.h"
#include "tools/tuning/strategies/n_a2c_search.h"
#endif

namespace hoist::tuning {

std::span<const SearchStrategy> search_strategies() {
  static constexpr SearchStrategy strategies[] = {
      {"boosted-trees",
       "points that gradient-boosted trees rank first after each batch, points adjacent to the best, a few others",
       boosted_trees_search},
      {"random", "random points, each once", random_search},
      {"genetic", "crossings of the best points, moved by some steps", genetic_search},
      {"annealing", "steps to adjacent points, worse ones less and less often", annealing_search},
#ifdef HOIST_NEIGHBOURHOOD_SEARCH
      {"g-bfs", "points adjacent to the best point with untried adjacent points", g_bfs_search},
      {"n-a2c", "steps from the best point by a policy that learns from their gains", n_a2c_search},
#endif
  };
  return strategies;
}

const SearchStrategy* find_search_strategy(std::string_view name) {
  for (const SearchStrategy& strategy : search_strategies())
    if (strategy.name == name) return &strategy;
  return nullptr;
}

}  // namespace hoist::tuning
