#include "lowering/layout/storage_plan.h"
#include "lowering/plan/rows.h"

namespace hoist {
// The choice as attributes of the program. Strict sums are not divided.
Result<Nothing> choose_storage(LoweredModel& model, const PassOptions& options) {
  Program& program = model.program;
  StoragePlan chosen = choose_storage(program, options.profile, options.open);
  for (Definition& definition : program.definitions) {
    const auto found = chosen.tiles.find(definition.value);
    if (found == chosen.tiles.end()) continue;
    const GpuTile* items = found->second.on_gpu();
    definition.tile = attributes_of(
        options.strict && items != nullptr && items->parts > 0
            ? with_whole_sums(found->second, std::get<GpuResults>(chosen.tiled.at(definition.value)), options.profile)
            : found->second);
  }
  program.storage = std::move(chosen.values);
  program.steps.push_back(replayed_step("choose-storage"));
  model.tiled = std::move(chosen.tiled);
  model.layouts = std::move(chosen.layouts);
  return Nothing{};
}

}  // namespace hoist
