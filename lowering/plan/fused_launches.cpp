#include "lowering/plan/fused_launches.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/properties/properties.h"
#include "ir/target/machine.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// OpenCL guarantees only 1,024 bytes of arguments; four arguments are not arrays.
constexpr size_t most_arguments = 120;
// A driver compiles a launch as a unit and several launches in parallel.
constexpr size_t most_fused = 32;

// In nanoseconds, on two Zen 5 cores with PoCL 3.1, in addition to the kernels' own time. usual_launch: per launch.
// waking: for waking threads and waiting for them, per run and wherever the host reads a result. serial_launch: per
// launch without threads. sharing: per step that work-items share.
constexpr double usual_launch = 10000, waking = 17000, serial_launch = 1000, sharing = 500;

// Rates of one core in small layers: operations per f32 lane, the factor for 8-bit operands, and bytes from its caches.
constexpr double operations_per_lane = 20, operations_on_bytes = 2, bytes_per_nanosecond = 64;

// Nanoseconds. Cheaper launches, as in native code, are hidden by the work of other cores.
constexpr int64_t least_launch = 1000;

const LoweredKernel& kernel_of(const LoweredModel& model, size_t step) {
  return model.kernels[static_cast<size_t>(model.steps[step].kernel)];
}

double bytes_of(Type array) { return static_cast<double>(byte_size(leaf_of(array)->scalar, shape_of(array))); }

double nanoseconds_of(const LoweredKernel& kernel, const Profile& profile) {
  double bytes = bytes_of(kernel.expression->type);
  const auto is_usual = [&](Expr p) { return any_usual_node(kernel.expression, [&](Expr e) { return e == p; }); };
  for (Expr p : kernel.parameters) bytes += is_usual(p) ? bytes_of(p->type) : 0;
  const bool reads_bytes = std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                                       [](Expr p) { return row(leaf_of(p->type)->scalar).bits == 8; });
  const double operations =
      operations_per_lane * static_cast<double>(profile.vector_width) * (reads_bytes ? operations_on_bytes : 1);
  return std::max(static_cast<double>(count_operations(kernel.expression)) / operations, bytes / bytes_per_nanosecond);
}

bool may_be_fused(const LoweredKernel& kernel) {
  return kernel.host.empty() && !any_node(kernel.expression, [](Expr e) {
           return e->mode == Mode::local || (e->pattern == Pattern::materialise && e->memory == Memory::local);
         });
}

// The starts of runs of steps that no host action interrupts, and the number of steps.
std::set<size_t> rows_of(const LoweredModel& model) {
  std::set<size_t> out = {0, model.steps.size()};
  size_t next = 0;
  for (const PlanItem& item : model.items) {
    if (item.kind == PlanItem::Kind::step)
      next = static_cast<size_t>(item.index) + 1;
    else
      out.insert(next);  // the host reads a control's values to choose the next step
  }
  for (size_t i = 0; i < model.steps.size(); ++i) {
    if (!kernel_of(model, i).host.empty()) out.insert({i, i + 1});
  }
  return out;
}

// Splits the steps from `begin` to `end` into as few launches as possible with about equally many steps.
void cut(const LoweredModel& model, size_t begin, size_t end, std::vector<PlanLaunch>& out) {
  const size_t pieces = (end - begin + most_fused - 1) / most_fused;
  for (size_t left = pieces; begin<end; left -= left> 1 ? 1 : 0) {
    const size_t wanted = begin + (end - begin + left - 1) / left, first = begin;
    for (std::set<std::pair<int, int>> arguments; begin < wanted; ++begin) {  // an array, and its occurrence within a
                                                                              // step
      std::map<int, int> times;
      std::set<std::pair<int, int>> more = arguments;
      for (int array : model.steps[begin].arguments) more.insert({array, times[array]++});
      if (more.size() > most_arguments && begin > first) break;
      arguments = std::move(more);
    }
    out.push_back({"", static_cast<int>(first), static_cast<int>(begin - first)});
  }
}

}  // namespace

bool fuses_launches(const Profile& profile) {
  return runs_on_host(profile) && (profile.launch == 0 || profile.launch >= least_launch);
}

std::vector<PlanLaunch> fuse_launches(const LoweredModel& model, const Profile& profile) {
  std::vector<PlanLaunch> out;
  if (!fuses_launches(profile)) return out;
  const std::set<size_t> rows = rows_of(model);
  size_t begin = 0;
  for (size_t i = 0; i <= model.steps.size(); ++i) {
    const bool fits = i < model.steps.size() && may_be_fused(kernel_of(model, i));
    if (fits && rows.count(i) == 0) continue;
    cut(model, begin, i, out);
    begin = fits ? i : i + 1;
  }
  return out;
}

bool is_serial(const LoweredModel& model, const Profile& profile) {
  if (!fuses_launches(profile)) return false;
  double computing = 0;
  size_t on_device = 0;
  for (size_t i = 0; i < model.steps.size(); ++i) {
    if (!kernel_of(model, i).host.empty()) continue;
    computing += nanoseconds_of(kernel_of(model, i), profile);
    ++on_device;
  }
  const auto launches = static_cast<double>(count_launches(on_device, model.launches));
  const double cores = static_cast<double>(profile.compute_units),
               rows = static_cast<double>(rows_of(model).size()) - 1,
               launch = profile.launch > 0 ? static_cast<double>(profile.launch) : usual_launch;
  return computing + launches * serial_launch <
         computing / cores + launches * launch + rows * waking + static_cast<double>(model.steps.size()) * sharing;
}

}  // namespace hoist
