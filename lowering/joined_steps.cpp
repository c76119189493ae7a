#include "lowering/joined_steps.h"

#include <algorithm>
#include <set>

#include "ir/properties.h"

namespace hoist {
namespace {

// Drivers may take no more than 1,024 bytes of arguments, says OpenCL.
constexpr size_t most_arguments = 120;
// One launch for so many is nearly as good as one for all, and bounds what a driver compiles as one function.
constexpr int most_joined = 32;

// Nanoseconds that a launch takes PoCL 3.1 on two Zen 5 cores beside what the kernel computes: where the device waits
// for the host to queue it, and where it has been queued in the meantime.
constexpr double usual_launch = 3500, queued_launch = 1000;

// A core's, of small layers: operations of f32 lanes, how many more there are where what is read are bytes, and bytes
// of arrays that come from its caches.
constexpr double operations_per_lane = 20, operations_on_bytes = 2, bytes_per_nanosecond = 64;

double bytes_of(Type array) { return static_cast<double>(byte_size(leaf_of(array)->scalar, shape_of(array))); }

// 0 where the host computes it, which no launch does.
double nanoseconds_of(const LoweredKernel& kernel, const Profile& profile) {
  if (!kernel.host.empty()) return 0;
  double bytes = bytes_of(kernel.expression->type);
  for (Expr p : kernel.parameters) bytes += bytes_of(p->type);
  const bool reads_bytes = std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                                       [](Expr p) { return row(leaf_of(p->type)->scalar).bits == 8; });
  const double operations =
      operations_per_lane * static_cast<double>(profile.vector_width) * (reads_bytes ? operations_on_bytes : 1);
  return std::max(static_cast<double>(kernel.operations) / operations, bytes / bytes_per_nanosecond);
}

// One work-item that goes through all groups does what the kernel does: groups of one work-item share no memory.
bool may_be_joined(const LoweredKernel& kernel) {
  return kernel.host.empty() && !any_node(kernel.expression, [](Expr e) {
           return e->mode == Mode::local || (e->pattern == Pattern::materialise && e->memory == Memory::local);
         });
}

}  // namespace

std::vector<PlanLaunch> join_steps(const LoweredModel& model, const Profile& profile) {
  // What a launch of native code costs, other cores do in the meantime.
  constexpr int64_t least_launch = 1000;
  const bool launches_are_cheap = profile.launch > 0 && profile.launch < least_launch;
  if (profile.gpu || launches_are_cheap || !model.controls.empty()) return {};
  const double launch = profile.launch > 0 ? static_cast<double>(profile.launch) : usual_launch;
  const double queued = std::min(launch, queued_launch), cores = static_cast<double>(profile.compute_units);
  std::vector<bool> joinable;
  std::vector<double> computing;  // on one core
  for (const LoweredKernel& kernel : model.kernels) {
    joinable.push_back(may_be_joined(kernel));
    computing.push_back(nanoseconds_of(kernel, profile));
  }
  const auto kernel_of = [&](size_t step) { return static_cast<size_t>(model.steps[step].kernel); };
  // The host queues while the device computes: whether the device waits for it decides what a launch costs.
  const size_t count = model.steps.size();
  std::vector<double> launching(count);
  double host = 0, device = 0;
  for (size_t i = 0; i < count; ++i) {
    host += launch;
    launching[i] = host > device ? launch : queued;
    device = std::max(device, host) + computing[kernel_of(i)] / cores;
  }
  std::vector<double> best(count + 1, 0);    // of the first steps, the least that they take
  std::vector<size_t> begins(count + 1, 0);  // and where the last of their launches begins
  for (size_t end = 1; end <= count; ++end) {
    std::set<int> arguments;
    double computed = 0;  // from `begin` on
    for (size_t begin = end; begin-- > 0 && end - begin <= most_joined;) {
      const PlanStep& step = model.steps[begin];
      arguments.insert(step.arguments.begin(), step.arguments.end());
      const bool is_alone = end - begin == 1, fits = joinable[kernel_of(begin)] && arguments.size() <= most_arguments;
      if (!is_alone && !fits) break;
      computed += computing[kernel_of(begin)];
      const double cost = best[begin] + launching[begin] + (is_alone ? computed / cores : computed);
      if (is_alone || cost < best[end]) best[end] = cost, begins[end] = begin;
      if (!fits) break;
    }
  }
  std::vector<PlanLaunch> out;
  for (size_t end = count; end > 0; end = begins[end]) {
    if (end - begins[end] > 1) out.push_back({"", static_cast<int>(begins[end]), static_cast<int>(end - begins[end])});
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace hoist
