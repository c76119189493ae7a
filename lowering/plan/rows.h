// The functions of the rows of the pass list that make the plan, one file per pass.
#pragma once

#include <map>
#include <set>
#include <string>

#include "lowering/passes/pass.h"
#include "lowering/plan/lowered_model.h"

namespace hoist {

bool wants_layouts(const PassOptions& options);
Result<Nothing> choose_layouts(LoweredModel& model, const PassOptions& options);
Result<Nothing> replay_choose_layouts(Program& program, Definition& definition, const ProgramStep& step);
Result<Nothing> share_slices(LoweredModel& model, const PassOptions& options);
Result<Nothing> replay_share_slices(Program& program, Definition& definition, const ProgramStep& step);
Result<Nothing> choose_storage(LoweredModel& model, const PassOptions& options);
Result<Nothing> map_loops(LoweredModel& model, const PassOptions& options);
Result<Nothing> share_kernels(LoweredModel& model, const PassOptions& options);
Result<Nothing> collect_arrays(LoweredModel& model, const PassOptions& options);
/// Places the constants one after the other.
void place_weights(LoweredModel& model);
Result<Nothing> place_arrays(LoweredModel& model, const PassOptions& options);
Result<Nothing> find_cold_arrays(LoweredModel& model, const PassOptions& options);
Result<Nothing> fuse_launches(LoweredModel& model, const PassOptions& options);

/// For each of the user's schedules that `wanted` accepts: the definition, by its value, that computes the layer. This
/// is the last one if several do. Errors: no definition computes the layer, or two steps name one definition.
Result<std::map<std::string, const ScheduleScript*>> find_scripted(const Program& program,
                                                                   const std::vector<ScheduleScript>& steps,
                                                                   bool (*wanted)(const ScheduleScript& script));

/// Names of OpenCL functions, which no two kernels share.
class FunctionNames {
 public:
  /// An identifier made from the name of a layer.
  std::string make(const std::string& layer);
  void take(const std::string& name) { used_.insert(name); }

 private:
  std::set<std::string> used_;
  std::map<std::string, int> next_;  // counters for names that several layers would have
};

}  // namespace hoist
