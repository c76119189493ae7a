#include "lowering/cost/launch_cost.h"

#include "lowering/terms/terms.h"

namespace hoist {

double launch_cost(const Profile& profile, bool fused) {
  // In multiply-adds; 100,000 to 250,000 on two Zen 4 cores with PoCL, where a launch takes two to four microseconds. A
  // step of a fused launch takes about half a microsecond (fused_launches.cpp).
  constexpr double by_drivers = 150'000, in_a_nanosecond = 50, of_a_step = 25'000;
  if (fused) return of_a_step;
  return profile.launch == 0 ? by_drivers : in_a_nanosecond * static_cast<double>(profile.launch);
}

bool is_worth_an_array(Expr term, const Profile& profile) {
  return static_cast<double>(count_operations(term)) >= 7 * launch_cost(profile);
}

}  // namespace hoist
