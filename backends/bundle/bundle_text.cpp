#include "backends/bundle/bundle_text.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "backends/bundle/plan_format.h"
#include "backends/runtime/plan/plan_file.h"

namespace hoist {
namespace {

using OrderedJson = nlohmann::ordered_json;

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

/// 64-bit hashes do not fit in the numbers of every JSON reader.
std::string hexadecimal(uint64_t value) {
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
  return out;
}

std::string_view place_name(Place place) {
  switch (place) {
    case Place::input:
      return "input";
    case Place::output:
      return "output";
    case Place::weights:
      return "weights";
    case Place::arena:
      return "arena";
    case Place::cleared:
      return "cleared";
  }
  return "";
}

OrderedJson array_json(const PlanArray& array) {
  OrderedJson out = {{"name", array.name}, {"type", row(array.scalar).name}, {"shape", array.shape}};
  out["bytes"] = byte_size(array.scalar, array.shape);
  out["place"] = place_name(array.place);
  if (array.place == Place::arena || array.place == Place::weights) out["offset"] = array.offset;
  if (array.place == Place::cleared) out["fill"] = array.fill;
  return out;
}

OrderedJson tolerance_json(const Tolerance& tolerance) {
  return {{"exact", tolerance.exact},
          {"divides", tolerance.divides},
          {"relative", tolerance.relative},
          {"absolute", tolerance.absolute}};
}

// With the names of the options of `hoist compile`.
OrderedJson preprocessing_json(const Plan& plan, const PlanPreprocessing& one) {
  const PlanArray& array = plan.arrays[static_cast<size_t>(plan.inputs[static_cast<size_t>(one.input)])];
  const size_t rank = array.shape.size();
  const auto channels = static_cast<size_t>(array.shape[one.channels_first ? rank - 3 : rank - 1]);
  OrderedJson out = {{"input", array.name},
                     {"layout", one.channels_first ? "nchw" : "nhwc"},
                     {"colours", one.blue_first ? "bgr" : "rgb"},
                     {"crop", one.crop},
                     {"scale", one.scale},
                     {"mean", std::vector<double>(one.mean.begin(), one.mean.begin() + channels)},
                     {"std", std::vector<double>(one.deviation.begin(), one.deviation.begin() + channels)}};
  if (one.resize_rows > 0)
    out["resize"] = {{"rows", one.resize_rows}, {"columns", one.resize_columns}};
  else if (one.resize_columns > 0)
    out["resize"] = {{"shorter", one.resize_columns}};
  return out;
}

OrderedJson section_json(const std::pair<size_t, size_t>& section) {
  return {{"offset", section.first}, {"bytes", section.second}};
}

// Arrays by their names, if the control has them.
OrderedJson control_json(const Plan& plan, const PlanControl& control) {
  OrderedJson out = {{"kind", control.is_loop ? "loop" : "branch"}, {"name", control.name}, {"layers", control.layers}};
  const auto name = [&](int array) { return plan.arrays[static_cast<size_t>(array)].name; };
  if (control.is_loop) out["most"] = control.most, out["fails"] = control.fails;
  for (const auto& [key, array] : {std::pair{"condition", control.condition},
                                   {"trips", control.trips},
                                   {"number", control.number},
                                   {"next", control.next},
                                   {"count", control.count}}) {
    if (array >= 0) out[key] = name(array);
  }
  for (const auto& [key, moves] :
       {std::pair{"before", &control.before}, {"after", &control.after}, {"otherwise", &control.otherwise}}) {
    for (const PlanControl::Move& move : *moves)
      out[key].push_back({{"from", name(move.from)}, {"to", name(move.to)}, {"row", move.is_row}});
  }
  return out;
}

OrderedJson kernel_json(const PlanKernel& kernel, const std::pair<size_t, size_t>& source,
                        const std::pair<size_t, size_t>& expression) {
  OrderedJson parameters = OrderedJson::array();
  for (const KernelParameter& parameter : kernel.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"type", row(parameter.scalar).name},
                          {"shape", parameter.shape},
                          {"written", parameter.written},
                          {"domain", {parameter.low, parameter.high}}});
    for (const Region& region : parameter.regions) {
      parameters.back()["regions"].push_back({{"before", region.before}, {"shape", region.shape}});
    }
  }
  OrderedJson out = {{"name", kernel.name}, {"layers", kernel.layers}};
  if (!kernel.host.empty()) {  // a host op: no launch, and no result to compare on a device
    out["host"] = kernel.host;
    out["parameters"] = parameters;
    out["source"] = section_json(source);
    out["expression"] = section_json(expression);
    return out;
  }
  out.update({{"global", kernel.global},
              {"local", kernel.local},
              {"local_bytes", kernel.local_bytes},
              {"operations", kernel.operations},
              {"tolerance", tolerance_json(kernel.tolerance)},
              {"checked_positions", kernel.check_positions.size()},
              {"inside_arrays", kernel.unproved.empty() ? "proved" : "checked by Oclgrind only: " + kernel.unproved},
              {"parameters", parameters},
              {"source", section_json(source)},
              {"expression", section_json(expression)}});
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
// 0 after a long wait: the work-items that compute the groups continue without this one.
static int hoist_all_done(volatile __global int *done, int groups, int items)
{
 if (items <= 1) return 1;
 for (int patience = 1 << 20; *done < groups; --patience)
  if (patience == 0) return 0;
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

// A kernel that runs the steps from `begin` to `end` of a launch. Arrays are pointers to void, which C converts to any
// pointer type. The code that shares groups appears once and not per step, since PoCL generates code for it three
// times.
std::string launch_text(const Plan& plan, const PlanLaunch& launch) {
  std::map<std::pair<int, int>, std::string> names;  // names of an array and of its repetition in the same step
  std::string parameters, groups, calls;
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
    calls += fmt::format("    HOIST_STEP({}, {}))\n", i, call);
  }
  return fmt::format(R"(
// launch {name}: {count} steps
__constant int hoist_groups_{name}[{count}] = {{{groups}}};
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
  if (!hoist_all_done(done, groups, items)) break;
 }}
 hoist_leave(words, row, items);
}}
)",
                     fmt::arg("name", launch.name), fmt::arg("count", launch.count), fmt::arg("groups", groups),
                     fmt::arg("parameters", parameters), fmt::arg("calls", calls));
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

std::string manifest_text(const Plan& plan, const SectionedText& kernels, const SectionedText& expressions,
                          const std::vector<ListedPlan>& listed) {
  OrderedJson out;
  out["format"] = HOIST_FORMAT_VERSION;
  out["model"] = {{"name", plan.model_name}, {"hash", hexadecimal(plan.model_hash)}};
  out["options"] = plan.options;
  out["profile"] = plan.profile;
  out["build_options"] = plan.build_options;
  if (!plan.targets.empty()) out["targets"] = plan.targets;
  out["preamble_bytes"] = plan.preamble.size();
  out["arena_bytes"] = plan.arena_bytes;
  for (const auto& [key, indices] : {std::pair{"inputs", &plan.inputs}, std::pair{"outputs", &plan.outputs}}) {
    out[key] = OrderedJson::array();
    for (int index : *indices) out[key].push_back(plan.arrays[static_cast<size_t>(index)].name);
  }
  out["outputs"].erase(out["outputs"].begin() + static_cast<std::ptrdiff_t>(plan.model_outputs()),
                       out["outputs"].end());
  for (const PlanExtent& extent : plan.extents) {
    const auto name = [&](int output) {
      return plan.arrays[static_cast<size_t>(plan.outputs[static_cast<size_t>(output)])].name;
    };
    out["extents"].push_back(
        {{"output", name(extent.output)}, {"dimension", extent.dimension}, {"count", name(extent.count)}});
  }
  for (const PlanPreprocessing& one : plan.preprocessing) out["preprocessing"].push_back(preprocessing_json(plan, one));
  out["arrays"] = OrderedJson::array();
  for (const PlanArray& array : plan.arrays) out["arrays"].push_back(array_json(array));
  out["kernels"] = OrderedJson::array();
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    out["kernels"].push_back(kernel_json(plan.kernels[i], kernels.sections[i], expressions.sections[i]));
  }
  out["steps"] = OrderedJson::array();
  for (const PlanStep& step : plan.steps) {
    OrderedJson arguments = OrderedJson::array();
    for (int argument : step.arguments) arguments.push_back(plan.arrays[static_cast<size_t>(argument)].name);
    out["steps"].push_back({{"kernel", plan.kernels[static_cast<size_t>(step.kernel)].name},
                            {"layers", step.layers},
                            {"arguments", arguments}});
  }
  if (!plan.controls.empty()) {
    for (const PlanControl& control : plan.controls) out["controls"].push_back(control_json(plan, control));
    static const char* kinds[] = {"step", "enter", "otherwise", "leave"};
    for (const PlanItem& item : plan.items) out["items"].push_back({kinds[static_cast<int>(item.kind)], item.index});
  }
  if (plan.is_serial) out["serial"] = true;
  for (const PlanLaunch& launch : plan.launches)
    out["launches"].push_back({{"name", launch.name}, {"first_step", launch.first}, {"steps", launch.count}});
  out["layers"] = OrderedJson::array();
  for (const PlanLayer& layer : plan.layers) {
    OrderedJson entry = {{"name", layer.name}, {"operator", layer.operation}};
    if (!layer.absence.empty()) entry["absence"] = layer.absence;
    out["layers"].push_back(entry);
  }
  for (const RoundingBound& one : plan.rounding)
    out["rounding"].push_back(
        {{"layer", one.layer}, {"rule", one.rule}, {"bound", one.bound}, {"relative_to", one.relative_to}});
  if (!plan.certificate.empty()) out["certificate"] = OrderedJson::parse(plan.certificate);
  out["model_check"] = {{"outputs", plan.model_check.size()}, {"tolerance", tolerance_json(plan.model_tolerance)}};
  for (size_t i = 0; i < listed.size(); ++i) {
    OrderedJson entry = {{"folder", specialisation_folder(i)}, {"sizes", OrderedJson::object()}};
    for (const auto& [name, size] : listed[i].sizes) entry["sizes"][name] = size;
    for (int input : listed[i].plan->inputs) {
      const PlanArray& array = listed[i].plan->arrays[static_cast<size_t>(input)];
      entry["inputs"].push_back({{"name", array.name}, {"shape", array.shape}});
    }
    out["specialisations"].push_back(std::move(entry));
  }
  // Names come from the model and need not be UTF-8.
  return out.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
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
