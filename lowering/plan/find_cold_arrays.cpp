#include <algorithm>

#include "ir/target/machine.h"
#include "lowering/plan/rows.h"

namespace hoist {
namespace {

// Collects for each kernel the parameters whose array satisfies `holds` (by its index) in any of its steps.
template <typename Holds>
void list_parameters(LoweredModel& model, std::vector<std::string> LoweredKernel::*list, const Holds& holds) {
  for (const PlanStep& step : model.steps) {
    LoweredKernel& kernel = model.kernels[static_cast<size_t>(step.kernel)];
    std::vector<std::string>& names = kernel.*list;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const std::string& name = kernel.parameters[i]->name;
      const bool is_listed = std::find(names.begin(), names.end(), name) != names.end();
      if (!is_listed && holds(static_cast<size_t>(step.arguments[i]))) names.push_back(name);
    }
  }
}

}  // namespace

// A run that fits into the caches finds its arrays there. In a larger run other arrays are loaded between two uses of
// an array, so only the results of the step before are in the cache, unless they are too large.
Result<Nothing> find_cold_arrays(LoweredModel& model, const PassOptions& options) {
  const Profile& profile = options.profile;
  list_parameters(model, &LoweredKernel::computed, [&](size_t array) {
    return model.arrays[array].place != Place::weights && model.arrays[array].place != Place::input;
  });
  if (!runs_on_host(profile)) return Nothing{};
  std::vector<int64_t> bytes;
  int64_t all = model.arena_bytes;
  for (const PlanArray& array : model.arrays) {
    bytes.push_back(byte_size(array.scalar, array.shape));
    if (array.place != Place::arena) all += bytes.back();
  }
  if (all <= profile.second_caches) return Nothing{};
  list_parameters(model, &LoweredKernel::cold, [&](size_t array) {
    const Place place = model.arrays[array].place;
    return place == Place::weights || place == Place::input || bytes[array] > profile.second_caches;
  });
  return Nothing{};
}

}  // namespace hoist
