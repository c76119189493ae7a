#include "ir/target/machine.h"

namespace hoist {

bool lanes_are_work_items(const Profile& profile) { return profile.gpu; }

bool runs_on_host(const Profile& profile) { return !profile.gpu; }

bool has_load_costs(const Profile& profile) { return !profile.gpu; }

bool widens_halves(const Profile& profile) { return !profile.gpu && !profile.half; }

bool materialises_exponentials(const Profile& profile) { return !profile.gpu; }

int64_t parallel_reductions(const Profile& profile) { return profile.compute_units * (profile.gpu ? 64 : 8); }

}  // namespace hoist
