#include "backends/bundle/bundle_text.h"

#include <fmt/format.h>

#include <map>

#include "backends/bundle/plan_format.h"
#include "backends/runtime/plan/plan_file.h"

namespace hoist {
namespace {

/// Names come from the model, so they must not end a comment, continue a line or form preprocessor syntax.
std::string harmless(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto code = static_cast<unsigned char>(c);
    const bool control = code < 0x20 || code == 0x7f;
    if (control || c == '\\' || c == '*' || c == '?')
      out += '_';
    else
      out += c;
  }
  return out;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + harmless(name);
  return out;
}

// OpenCL 1.2 defines no order of memory accesses between groups; on CPUs fences with atomic operations provide one.
constexpr const char* launch_functions = R"(
// Fused launches: `items` work-items share the groups of several steps. The share of a work-item in each step consists
// of adjacent groups, so that it reads its own results. A work-item takes half of its share, then half of the rest, and
// at last groups of other shares. It computes a taken group without waiting for work-items that have not begun. One
// item computes all groups; without items a step is launched alone, with a work-item for each group. `words` has a row
// for each work-item, with the number of taken groups of its share of each step; a row with the number of finished
// groups of each step; and a row with the number of work-items that have ended. No two rows share a cache line.
#define HOIST_ROW(STEPS) (((STEPS) + 15) / 16 * 16)
static int hoist_take(volatile __global int *words, int row, int groups, int items, int *tried, int *first, int *behind)
{
 if (items <= 1) {
  *first = items == 0 ? (int)get_group_id(0) : 0;
  *behind = items == 0 ? *first + 1 : groups;
  return (*tried)++ == 0;
 }
 for (; *tried < items; ++*tried) {
  const int share = ((int)get_group_id(0) + *tried) % items;
  const int begin = (long)groups * share / items, all = (long)groups * (share + 1) / items - begin;
  volatile __global int *taken = words + share * row;
  const int left = all - *taken;
  if (left <= 0) continue;
  const int wanted = max((left + 1) / 2, min(left, (all + 7) / 8)), at = atomic_add(taken, wanted);
  if (at >= all) continue;
  *first = begin + at;
  *behind = begin + min(at + wanted, all);
  return 1;
 }
 return 0;
}
static void hoist_count_done(volatile __global int *done, int count, int items)
{
 if (items <= 1 || count == 0) return;
 mem_fence(CLK_GLOBAL_MEM_FENCE);
 atomic_add(done, count);
}
// 0 after `longest` loads: the work-items that compute the groups continue without this one.
static int hoist_all_done(volatile __global int *done, int groups, int items, int longest)
{
 if (items <= 1) return 1;
 for (; *done < groups; --longest)
  if (longest == 0) return 0;
 const int count = atomic_add(done, 0);
 mem_fence(CLK_GLOBAL_MEM_FENCE);
 return count == groups;
}
static void hoist_leave(volatile __global int *words, int row, int items)
{
 if (items > 1 && atomic_inc(words + (items + 1) * row) == items - 1)
  for (int i = 0; i <= (items + 1) * row; ++i) words[i] = 0;
}
#define HOIST_STEP(STEP, CALL) \
 case STEP: \
  for (int group = first; group < behind; ++group) CALL; \
  break;
)";

uint64_t group_extent(const PlanKernel& kernel, size_t dimension) {
  return kernel.global[dimension] / kernel.local[dimension];
}

uint64_t group_count(const PlanKernel& kernel) {
  return group_extent(kernel, 0) * group_extent(kernel, 1) * group_extent(kernel, 2);
}

// The indices of a group from its number: adjacent numbers differ in the divided dimension last.
std::array<std::string, 3> group_indices(const PlanKernel& kernel) {
  std::array<size_t, 3> dimensions = {0, 1, 2};
  std::rotate(dimensions.begin() + static_cast<std::ptrdiff_t>(kernel.divided),
              dimensions.begin() + static_cast<std::ptrdiff_t>(kernel.divided) + 1, dimensions.end());
  std::array<std::string, 3> out;
  uint64_t inside = 1, left = group_count(kernel);
  for (const size_t d : dimensions) {
    const uint64_t extent = group_extent(kernel, d);
    const std::string quotient = inside == 1 ? "group" : fmt::format("group / {}", inside);
    left /= extent;
    out[d] = extent == 1 ? "0" : left == 1 ? quotient : fmt::format("{} % {}", quotient, extent);
    inside *= extent;
  }
  return out;
}

// The number of loads that a work-item waits for the others, besides `shortest_wait`. A work-item that leaves is
// missing in all later steps: R3D-18 on two cores took twice the time. One that waits keeps a core from the others if
// there are fewer cores than work-items: two on one core take 1.2 times the time, and 1.5 times if they always wait for
// 2^23 loads. So the wait follows from the step: a work-item may wait for half of the share of another one, and 8
// operations, or an element from memory, take as long as a load in kernels that reach a third of a core's peak.
constexpr int shortest_wait = 1 << 20;

int64_t loads_of_wait(const PlanKernel& kernel) {
  constexpr int64_t operations_per_load = 8, most = 1 << 29;
  int64_t elements = 0;
  for (const KernelParameter& parameter : kernel.parameters)
    elements = std::max(elements, element_count(parameter.shape));
  return std::min(kernel.operations / operations_per_load + elements, most);
}

// A kernel that runs the steps from `begin` to `end` of a launch. Arrays are pointers to void, which C converts to any
// pointer type. The code that shares groups appears once and not per step, since PoCL generates code for it three
// times.
std::string launch_text(const Plan& plan, const PlanLaunch& launch) {
  std::map<std::pair<int, int>, std::string> names;  // names of an array and of its repetition in the same step
  std::string parameters, groups, waits, calls;
  for (int i = 0; i < launch.count; ++i) {
    const PlanStep& step = plan.steps[static_cast<size_t>(launch.first + i)];
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
    std::string call = group_function(kernel.name) + "(";
    const std::array<std::string, 3> indices = group_indices(kernel);
    call += fmt::format("{}, {}, {}", indices[0], indices[1], indices[2]);
    std::map<int, int> times;
    for (int argument : step.arguments) {
      const auto [name, is_new] = names.try_emplace({argument, times[argument]++}, "a" + std::to_string(names.size()));
      if (is_new) parameters += "    __global void *" + name->second + ",\n";
      call += ", " + name->second;
    }
    groups += fmt::format("{}{}", groups.empty() ? "" : ", ", group_count(kernel));
    waits += fmt::format("{}{}", waits.empty() ? "" : ", ", loads_of_wait(kernel));
    calls += fmt::format("    HOIST_STEP({}, {}))\n", i, call);
  }
  return fmt::format(R"(
// launch {name}: {count} steps
__constant int hoist_groups_{name}[{count}] = {{{groups}}};
__constant int hoist_waits_{name}[{count}] = {{{waits}}};
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void {name}(
{parameters}    volatile __global int *words, int items, int begin, int end)
{{
 const int row = HOIST_ROW({count});
 for (int step = begin; step < end; ++step) {{
  const int groups = hoist_groups_{name}[step];
  volatile __global int *const done = words + items * row + step;
  int computed = 0, tried = 0, first = 0, behind = 0;
  while (hoist_take(words + step, row, groups, items, &tried, &first, &behind)) {{
   switch (step) {{
{calls}   }}
   computed += behind - first;
  }}
  hoist_count_done(done, computed, items);
  if (!hoist_all_done(done, groups, items, {shortest} + hoist_waits_{name}[step] / max(items, 1))) break;
 }}
 hoist_leave(words, row, items);
}}
)",
                     fmt::arg("name", launch.name), fmt::arg("count", launch.count), fmt::arg("groups", groups),
                     fmt::arg("parameters", parameters), fmt::arg("calls", calls), fmt::arg("waits", waits),
                     fmt::arg("shortest", shortest_wait));
}

}  // namespace

const char* kernels_file(const Plan& plan) { return plan.targets.empty() ? "kernels.cl" : "kernels.txt"; }

SectionedText kernels_text(const Plan& plan) {
  SectionedText out;
  out.text = plan.preamble;
  for (const PlanKernel& kernel : plan.kernels) {
    if (!out.text.empty() && out.text.back() != '\n') out.text += '\n';
    out.text += "\n// kernel " + kernel.name + ": " + joined(kernel.layers) + "\n";
    out.sections.emplace_back(out.text.size(), kernel.source.size());
    out.text += kernel.source;
  }
  if (!plan.launches.empty()) out.text += launch_functions;
  for (const PlanLaunch& launch : plan.launches) out.text += launch_text(plan, launch);
  return out;
}

SectionedText expressions_text(const Plan& plan) {
  SectionedText out;
  out.text = "-- the low-level expression of every kernel of " + harmless(plan.model_name) + "\n";
  for (const PlanKernel& kernel : plan.kernels) {
    if (out.text.back() != '\n') out.text += '\n';
    out.text += "\n-- kernel " + kernel.name + ": " + joined(kernel.layers) + "\n";
    out.sections.emplace_back(out.text.size(), kernel.expression.size());
    out.text += kernel.expression;
  }
  if (out.text.back() != '\n') out.text += '\n';
  return out;
}

std::map<std::string, std::string> host_libraries(const Plan& plan) {
  std::map<std::string, std::string> out;
  for (const PlanKernel& kernel : plan.kernels) {
    const hoist_host_operator* host = hoist_host_operator_named(kernel.host.c_str());
    if (host != nullptr && *host->library != '\0') out[host->library] = host->macro;
  }
  return out;
}

std::string makefile_text(const Plan& plan, bool several) {
  std::string flags, libraries;
  for (const auto& [library, macro] : host_libraries(plan)) {
    flags += " -D" + macro + " $(shell pkg-config --cflags " + library + ")";
    libraries += " $(shell pkg-config --libs " + library + ")";
  }
  if (!plan.targets.empty()) {
    const std::string library = "native/kernels-$(shell uname -m).a";
    return "# Builds the example with the runtime that lies beside it; yours to edit. No OpenCL is needed.\n"
           "CC ?= cc\n"
           "CFLAGS ?= -O2\n"
           "RUNTIME = -std=c99 -DHOIST_WITHOUT_OPENCL" +
           flags +
           " example.c runtime/hoist_runtime.c\n"
           "LIBRARIES = -lpthread -ldl -lm" +
           libraries +
           "\n\n"
           "# Loads native/kernels-ARCHITECTURE.so.\n"
           "example: example.c runtime/hoist_runtime.c runtime/hoist_runtime.h\n"
           "\t$(CC) $(CFLAGS) -o $@ $(RUNTIME) $(LIBRARIES)\n\n"
           "# Has the kernels in itself.\n"
           "example-static: example.c runtime/hoist_runtime.c runtime/hoist_runtime.h native/kernels.c\n"
           "\t$(CC) $(CFLAGS) -DHOIST_LINKED_KERNELS -o $@ $(RUNTIME) native/kernels.c "
           "$(wildcard " +
           library + (several ? " specialisation-*/" + library : "") +
           ") $(LIBRARIES)\n\n"
           "verify: example\n"
           "\t./example --verify\n\n"
           "clean:\n"
           "\trm -f example example-static\n\n"
           ".PHONY: verify clean\n";
  }
  return "# Builds the example with the runtime that lies beside it; yours to edit.\n"
         "CC ?= cc\n"
         "CFLAGS ?= -O2\n\n"
         "example: example.c runtime/hoist_runtime.c runtime/hoist_runtime.h\n"
         "\t$(CC) -std=c99 $(CFLAGS)" +
         flags + " -o $@ example.c runtime/hoist_runtime.c -lOpenCL -lpthread -ldl -lm" + libraries +
         "\n\n"
         "verify: example\n"
         "\t./example --verify\n\n"
         "clean:\n"
         "\trm -f example\n\n"
         ".PHONY: verify clean\n";
}

}  // namespace hoist
