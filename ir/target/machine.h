// Properties of the two kinds of machine, CPUs and GPUs, on which decisions outside the strategies depend. Layouts,
// tiles, passes and the plan ask for the property that a decision rests on, and never for the kind of machine:
// strategies and costs alone know Profile::gpu. Sizes and counts of a device are in the target description itself.
#pragma once

#include "ir/target/profile.h"

namespace hoist {

/// True if the lanes of an instruction are work-items, each with loads of its own. False if they are the lanes of a
/// vector, which one instruction loads from adjacent elements: then panels of weights, whole vectors of a row and
/// NHWC copies pay.
bool lanes_are_work_items(const Profile& profile);
/// True if kernels run on the processor of the host: no array is copied, the next step finds a result in the caches,
/// and the work-groups of a launch can wait for each other.
bool runs_on_host(const Profile& profile);
/// True if the costs of loads are known (Profile::loads), so that layouts can be compared.
bool has_load_costs(const Profile& profile);
/// True if f16 is only a storage format, whose operands are no slower to read as f32.
bool widens_halves(const Profile& profile);
/// True if an exponential takes longer than a load, so that exponentials with two uses are materialised.
bool materialises_exponentials(const Profile& profile);
/// The number of independent reductions that use the whole device.
int64_t parallel_reductions(const Profile& profile);

}  // namespace hoist
