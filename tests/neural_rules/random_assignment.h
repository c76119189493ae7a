// Random assignments and their predicted errors, shared by the tests of sums of errors and of the solver.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "neural_rules/choice/cost.h"

namespace hoist {

/// Takes each rule with probability a quarter if its site is still free, in the order of sites, along with the rules
/// that it needs.
inline Assignment random_assignment(const Sensitivity& sensitivity, std::mt19937_64& random) {
  Assignment out;
  for (const SiteRule& rule : sensitivity.rules) {
    if (random() % 4 != 0 || out.count(sensitivity.sites[rule.site].key()) != 0) continue;
    const auto clashes = [&](const auto& need) {
      return out.count(need.first) != 0 && out.at(need.first) != need.second;
    };
    if (std::any_of(rule.needs.begin(), rule.needs.end(), clashes)) continue;
    out[sensitivity.sites[rule.site].key()] = rule.rule;
    out.insert(rule.needs.begin(), rule.needs.end());
  }
  return out;
}

/// The sum of the errors measured alone, or predicted if they were not measured.
inline double predicted_error(const Sensitivity& sensitivity, const Assignment& assignment) {
  double sum = 0;
  for (const StudySite& site : sensitivity.studied) {
    const auto chosen = assignment.find(site.site.key());
    if (chosen == assignment.end()) continue;
    for (const Candidate& candidate : site.candidates) {
      if (candidate.rule == chosen->second)
        sum += std::isnan(candidate.error_alone) ? candidate.predicted_error : candidate.error_alone;
    }
  }
  return sum;
}

/// Checks that the solver is no worse than assignments with one rule everywhere and than random ones. Returns the
/// number of feasible assignments among these.
inline int compare_front(const Sensitivity& sensitivity, const CostModel& costs,
                         const std::vector<UniformBaseline>& uniform, int draws, std::mt19937_64& random) {
  std::vector<Assignment> rivals;
  for (const UniformBaseline& each : uniform) rivals.push_back(each.assignment);
  for (int i = 0; i < draws; ++i) rivals.push_back(random_assignment(sensitivity, random));
  int compared = 0;
  for (const Assignment& rival : rivals) {
    const Choice choice = evaluate_choice(costs.problem, options_of(sensitivity, costs, rival));
    if (std::isinf(choice.cost)) continue;
    auto best = solve(costs.problem, choice.error);
    EXPECT_TRUE(best.ok());
    if (!best) continue;
    EXPECT_LE(best->cost, choice.cost * (1 + 1e-12));
    EXPECT_LE(best->error, choice.error * (1 + 1e-12));
    ++compared;
  }
  return compared;
}

}  // namespace hoist
