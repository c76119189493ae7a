#include "tools/driver/compile.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "ir/base/cancellation.h"
#include "ir/base/seeded.h"
#include "ir/base/stopwatch.h"
#include "ir/base/strings.h"
#include "ir/base/threads.h"
#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/interpret_cost.h"
#include "ir/language/size_operations.h"
#include "ir/plan/region.h"
#include "ir/properties/properties.h"
#include "ir/text/text.h"
#include "lowering/terms/terms.h"
#include "tools/driver/model_check.h"
#include "tools/driver/native_files.h"

namespace hoist {
namespace {

Scalar element_of(Expr parameter) { return leaf_of(parameter->type)->scalar; }

KernelParameter describe(Expr parameter, Domain domain) {
  KernelParameter out;
  out.name = parameter->name;
  out.scalar = element_of(parameter);
  out.shape = shape_of(parameter->type);
  out.low = domain.low;
  out.high = domain.high;
  if (out.scalar == Scalar::string) out.low = 0, out.high = 0x1p53;  // any string
  return out;
}

std::string on_host_text(const std::string& function) { return "// computed on the host: " + function + "\n"; }

KernelParameter result_of(const LoweredKernel& kernel) {
  KernelParameter result;
  result.name = "result";
  result.scalar = leaf_of(kernel.expression->type)->scalar;
  result.shape = shape_of(kernel.expression->type);
  result.written = true;
  if (!kernel.region.is_whole()) result.regions = {kernel.region};
  return result;
}

// A host op takes its operands in order; an operand that is used twice is passed twice.
PlanKernel host_kernel(const LoweredKernel& kernel, std::vector<int>& order) {
  PlanKernel out;
  out.name = kernel.name;
  out.layers = kernel.layers;
  out.host = kernel.host;
  out.source = on_host_text(kernel.host);
  out.expression = print(kernel.expression);
  for (Expr array : kernel.expression->children) {
    const auto place = std::find(kernel.parameters.begin(), kernel.parameters.end(), array);
    HOIST_CHECK(place != kernel.parameters.end(), "a host op reads an array that is not a parameter");
    order.push_back(static_cast<int>(place - kernel.parameters.begin()));
    out.parameters.push_back(describe(array, {}));
  }
  out.parameters.push_back(result_of(kernel));
  order.push_back(static_cast<int>(kernel.parameters.size()));
  return out;
}

// The extreme numbers for which every device computes the same results. 1e30 is left out if the order of additions is
// free, since cancellation then differs between devices. There are no extreme numbers if the kernel converts floats to
// integers, because the conversion of NaN depends on the device, or if it reads at data-dependent positions, which are
// proved to be inside their arrays for ordinary elements alone.
Extremes extremes_of(const PlanKernel& kernel, Expr term) {
  constexpr uint8_t all = 0xFF, without_large = 0x3F;
  const bool reads_floats = std::any_of(kernel.parameters.begin(), kernel.parameters.end(), [](const auto& p) {
    return !p.written && is_float(p.scalar) && row(p.scalar).bits >= 16;
  });
  const bool makes_integers = any_node(term, [](Expr e) {
    return e->pattern == Pattern::cast && is_float(e->children[0]->type->scalar) && !is_float(e->type->scalar);
  });
  if (!reads_floats || !kernel.unproved.empty() || makes_integers) return {};
  // A result of n operations depends on about n / 2 elements, so some results depend on an extreme one and some do not.
  constexpr int64_t least = 8, most = 1 << 20;
  const int64_t results = std::max<int64_t>(1, element_count(shape_of(term->type)));
  const int64_t one_in = std::clamp(2 * (count_operations(term) / results), least, most);
  return {std::bit_ceil(static_cast<uint64_t>(one_in)), kernel.tolerance.exact ? all : without_large};
}

Result<Nothing> add_extremes(PlanKernel& kernel, Expr term, const std::map<std::string, uint32_t>& numbers) {
  kernel.extremes = extremes_of(kernel, term);
  if (kernel.extremes.one_in == 0) return Nothing{};
  const auto drawn = [&](const std::string& name, int64_t position) {
    const uint32_t number = numbers.at(name);
    const KernelParameter& p = kernel.parameters[number];
    const auto extreme = seeded_extreme(p.scalar, kernel.check_seed, number, position, kernel.extremes);
    return extreme ? *extreme : seeded_bits(p.scalar, kernel.check_seed, number, p.low, p.high, position);
  };
  HOIST_TRY(Tensor expected, interpret_made_at(term, drawn, kernel.check_positions));
  kernel.extreme_values.assign(expected.bytes().begin(), expected.bytes().end());
  return Nothing{};
}

// The parts of a compiled kernel that the plan as a whole needs.
struct KernelParts {
  std::vector<int> order;            // of the kernel's parameters in its arguments
  std::vector<std::string> objects;  // native code for each target
  std::array<Nat, 2> open_global = {1, 1};
};

Result<PlanKernel> compile_kernel(const LoweredKernel& kernel, const std::vector<std::string>& sizes,
                                  const CompileOptions& options, const Profile& profile, uint64_t seed,
                                  KernelParts& parts) {
  std::vector<int>& order = parts.order;
  if (!kernel.host.empty()) return host_kernel(kernel, order);
  HOIST_TRY(EmittedKernel emitted, emit_kernel(kernel, profile, options.targets, options.emitted.get(), sizes));
  parts.open_global = emitted.open_global;
  parts.objects = std::move(emitted.objects);
  PlanKernel out;
  out.name = kernel.name;
  out.layers = kernel.layers;
  out.source = emitted.source;
  out.global = emitted.global;
  out.local = emitted.local;
  out.divided = emitted.divided;
  out.local_bytes = emitted.local_bytes;
  const Expr term = reading_only(kernel.expression, emitted.arguments);
  out.expression = print(term);
  out.operations = kernel.operations;
  out.unproved = kernel.unproved;
  out.tolerance.exact = emitted.exact;
  out.tolerance.divides = emitted.divides;
  if (!emitted.exact || emitted.divides) {  // devices with inexact division are checked with these bounds
    out.tolerance.relative = 1e-4;
    out.tolerance.absolute = 1e-5;
  }
  for (const std::string& name : emitted.arguments) {
    if (name == "result") {
      out.parameters.push_back(result_of(kernel));
      order.push_back(static_cast<int>(kernel.parameters.size()));
      continue;
    }
    auto place =
        std::find_if(kernel.parameters.begin(), kernel.parameters.end(), [&](Expr p) { return p->name == name; });
    HOIST_CHECK(place != kernel.parameters.end(),
                "the Halide layer uses the argument " + name + ", which the kernel lacks");
    auto index = static_cast<size_t>(place - kernel.parameters.begin());
    out.parameters.push_back(describe(*place, kernel.domains[index]));
    const std::vector<Region>& reads = kernel.reads[index];
    if (std::none_of(reads.begin(), reads.end(), [](const Region& r) { return r.is_whole(); }))
      out.parameters.back().regions = reads;
    order.push_back(static_cast<int>(index));
  }
  out.check_seed = seed;
  if (options.check_positions == 0) return out;
  out.check_positions = sample_positions(kernel.region, affordable_elements(term, options.check_positions), seed);
  // Seeds only the elements that are read: a kernel may read one element of an array of gigabytes.
  std::map<std::string, uint32_t> numbers;
  for (size_t i = 0; i < out.parameters.size(); ++i) numbers[out.parameters[i].name] = static_cast<uint32_t>(i);
  const auto drawn = [&](const std::string& name, int64_t position) {
    const uint32_t number = numbers.at(name);
    const KernelParameter& p = out.parameters[number];
    return seeded_bits(p.scalar, seed, number, p.low, p.high, position);
  };
  HOIST_TRY(Tensor expected, interpret_made_at(term, drawn, out.check_positions));
  out.check_values.assign(expected.bytes().begin(), expected.bytes().end());
  HOIST_TRY_VOID(add_extremes(out, term, numbers));
  return out;
}

// The strings of the handles in constants and in the kernels' terms.
Result<std::vector<std::string>> strings_of(const LoweredModel& lowered) {
  std::set<std::string> out;
  Diagnostics problems;
  const auto add = [&](uint64_t word) {
    if (const auto text = string_of_word(word))
      out.insert(*text);
    else
      problems.push_back({"", fmt::format("no string is known for the handle {:x}", word), ""});
  };
  const auto add_all = [&](const Tensor& tensor) {
    if (tensor.scalar() != Scalar::string) return;
    for (int64_t i = 0; i < tensor.size(); ++i) add(load_element(tensor.data(), 64, i));
  };
  for (const PlanArray& array : lowered.arrays) {
    if (array.place == Place::weights) add_all(array.constant);
  }
  for (const LoweredKernel& kernel : lowered.kernels) {
    any_node(kernel.expression, [&](Expr e) {
      if (e->pattern == Pattern::constant) add_all(e->constant);
      if (e->pattern == Pattern::literal && e->type == scalar_type(Scalar::string)) add(e->bits);
      return false;
    });
  }
  if (!problems.empty()) return problems;
  out.erase("");
  return std::vector<std::string>(out.begin(), out.end());
}

// The domain of each seeded model input; empty if every input has the default domain.
std::vector<Domain> input_domains(const Program& program) {
  std::vector<Domain> out;
  bool any = false;
  for (const ValueInfo& input : input_infos(program)) {
    auto found = program.domains.find(input.name);
    const bool is_string = input.scalar == Scalar::string;  // seeded strings are empty
    out.push_back(is_string ? Domain{0, 0} : found == program.domains.end() ? Domain{} : found->second);
    any |= is_string || found != program.domains.end();
  }
  out.resize(input_count(program));  // states are not seeded
  return any ? out : std::vector<Domain>{};
}

PlanNumber open_number(PlanNumber::Kind kind, size_t owner, size_t dimension, const Nat& value,
                       const std::vector<PlanSize>& sizes) {
  PlanNumber out = {kind, static_cast<int>(owner), static_cast<int>(dimension), {}};
  for (const SizeOperation& operation : operations_of(value)) {
    const auto size =
        std::find_if(sizes.begin(), sizes.end(), [&](const PlanSize& s) { return s.name == operation.text; });
    out.value.push_back(
        {operation.kind, operation.kind == SizeOperation::name ? size - sizes.begin() : operation.value});
  }
  return out;
}

// The numbers that depend on sizes; sets the launch sizes for the largest ones.
void add_open_sizes(const LoweredModel& lowered, const std::vector<KernelParts>& parts,
                    std::vector<PlanKernel>& kernels, Plan& plan) {
  plan.open_sizes = lowered.open_sizes;
  if (plan.open_sizes.empty()) return;
  std::map<std::string, Nat> largest;
  for (const PlanSize& size : plan.open_sizes) largest.emplace(size.name, size.most);
  const auto add = [&](PlanNumber::Kind kind, size_t owner, size_t dimension, const Nat& value) {
    if (!value.is_constant()) plan.open_numbers.push_back(open_number(kind, owner, dimension, value, plan.open_sizes));
  };
  for (size_t i = 0; i < lowered.open_shapes.size(); ++i) {
    for (size_t d = 0; d < lowered.open_shapes[i].size(); ++d)
      add(PlanNumber::Kind::extent, i, d, lowered.open_shapes[i][d]);
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    for (size_t d = 0; d < parts[i].open_global.size(); ++d) {
      kernels[i].global[d] = static_cast<uint64_t>(parts[i].open_global[d].substitute(largest).value());
      add(PlanNumber::Kind::global, i, d, parts[i].open_global[d]);
    }
    add(PlanNumber::Kind::operations, i, 0, lowered.kernels[i].open_operations);
  }
}

}  // namespace

std::string options_text(const CompileOptions& options) {
  const char* forms[] = {"auto", "stencil", "im2col", "winograd"};
  const char* uses[] = {"auto", "on", "off"};
  const char* fusions[] = {" fuse=none", "", " fuse=launch"};
  const FoldingBudget& folding = options.lower.folding;
  std::string scripted;
  for (const ScheduleScript& script : options.lower.steps) scripted += " steps=" + script.layer;
  for (const std::string& target : options.targets) scripted += " target=native:" + target;
  return fmt::format("conv={}{} tables={}{}{}{}{}{}{}{}{}", forms[static_cast<int>(options.lower.convolution)],
                     fusions[static_cast<int>(options.lower.fusion)], uses[static_cast<int>(options.lower.tables.use)],
                     options.lower.layouts == LayoutChoice::rule ? " layouts=rule" : "",
                     options.lower.batches == BatchDivision::none ? " batches=whole" : "",
                     options.lower.constants == ConstantUse::stored ? " constants=stored" : "",
                     folding == FoldingBudget{}
                         ? ""
                         : fmt::format(" fold-operations={} fold-memory={}", folding.operations, folding.bytes >> 20),
                     options.lower.memory > 0 ? fmt::format(" memory={}", options.lower.memory) : "",
                     options.lower.strict ? " strict" : "", options.lower.records ? " tuned" : "", scripted);
}

Result<EmittedKernel> EmittedKernels::emit(Expr low_level, const EmitOptions& options) {
  const auto key = std::make_pair(low_level, options);
  {
    std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  HOIST_TRY(EmittedKernel out, hoist::emit(low_level, options));
  std::lock_guard lock(mutex_);
  return known_.emplace(key, std::move(out)).first->second;
}

Result<EmittedKernel> emit_kernel(const LoweredKernel& kernel, const Profile& profile,
                                  const std::vector<std::string>& targets, EmittedKernels* known,
                                  const std::vector<std::string>& sizes) {
  if (!kernel.host.empty()) {
    EmittedKernel none;
    none.source = on_host_text(kernel.host);
    return none;
  }
  EmitOptions options;
  options.gpu = profile.gpu;
  options.half = profile.half;
  options.is_fused = kernel.is_fused;
  options.kernel_name = kernel.name;
  options.native = targets;
  options.cold = kernel.cold;
  options.computed = kernel.computed;
  options.sizes = sizes;
  const Expr term = kernel.open != nullptr ? kernel.open : kernel.expression;
  auto emitted = known ? known->emit(term, options) : emit(term, options);
  if (emitted && emitted->local_bytes > static_cast<uint64_t>(profile.local_memory)) {
    return Diagnostic{
        "kernel " + kernel.name,
        fmt::format("needs {} bytes of local memory, the device has {}", emitted->local_bytes, profile.local_memory),
        "compile without --pass fusion=launch"};
  }
  if (emitted) return emitted;
  Diagnostics errors = emitted.errors();
  for (Diagnostic& d : errors)
    d.where = fmt::format("kernel {}{}{}", kernel.name, d.where.empty() ? "" : ", ", d.where);
  return errors;
}

// A parameter that the code does not read (a choice between equal values, a slice that leaves nothing of a part) is not
// an argument of the kernel, so the term reads zeros in its place.
Expr reading_only(Expr term, const std::vector<std::string>& arguments) {
  std::map<std::string, Expr> zeros;
  for (Expr p : parameters_of(term)) {
    if (std::find(arguments.begin(), arguments.end(), p->name) != arguments.end()) continue;
    const std::vector<Nat> sizes = sizes_of(p->type);
    Expr zero = literal(element_of(p), 0);
    zeros[p->name] = sizes.empty() ? zero : repeat(sizes, zero);
  }
  return zeros.empty() ? term : substitute_parameters(term, zeros);
}

Result<Plan> make_plan(LoweredModel lowered, const CompileOptions& options, const Profile& profile) {
  const Stopwatch stopwatch;
  for (LoweredKernel& kernel : lowered.kernels) kernel.name += options.kernel_suffix;
  for (PlanLaunch& launch : lowered.launches) launch.name += options.kernel_suffix;
  size_t count = lowered.kernels.size();
  std::vector<PlanKernel> kernels(count);
  std::vector<KernelParts> parts(count);
  std::vector<std::string> sizes;
  for (const PlanSize& size : lowered.open_sizes) sizes.push_back(size.name);
  Diagnostics problems;
  std::mutex mutex;
  size_t done = 0;
  const auto compile = [&](size_t i) {
    cancellation_point();
    const Stopwatch one;
    auto compiled = compile_kernel(lowered.kernels[i], sizes, options, profile, lowered.program.hash + i, parts[i]);
    if (compiled)
      spdlog::debug("kernel {}: {} bytes of source, {:.3f} s", compiled->name, compiled->source.size(), one.seconds());
    std::lock_guard lock(mutex);
    if (options.progress) options.progress(++done, count);
    if (compiled)
      kernels[i] = std::move(*compiled);
    else
      problems.insert(problems.end(), compiled.errors().begin(), compiled.errors().end());
  };
  for_each_in_threads(count, compile, 4);
  if (!problems.empty()) {
    std::sort(problems.begin(), problems.end(),
              [](const Diagnostic& a, const Diagnostic& b) { return a.text() < b.text(); });
    return problems;
  }

  Plan plan;
  HOIST_TRY(plan.strings, strings_of(lowered));
  plan.model_name = lowered.program.name;
  plan.model_hash = lowered.program.hash;
  plan.profile = print(profile);
  plan.options = options_text(options);
  if (options.targets.empty()) {
    plan.preamble = preamble();
    plan.build_options = build_options();
  } else {
    std::vector<std::vector<std::string>> objects;
    for (KernelParts& part : parts) objects.push_back(std::move(part.objects));
    HOIST_TRY(plan.native_files, native_files(kernels, objects, options.targets));
    plan.targets = options.targets;
  }
  plan.arena_bytes = lowered.arena_bytes;
  add_open_sizes(lowered, parts, kernels, plan);
  plan.arrays = std::move(lowered.arrays);
  plan.kernels = std::move(kernels);
  plan.inputs = lowered.inputs;
  plan.outputs = lowered.outputs;
  plan.states = std::move(lowered.states);
  plan.extents = lowered.extents;
  plan.controls = std::move(lowered.controls);
  plan.items = std::move(lowered.items);
  if (options.targets.empty()) {
    plan.launches = std::move(lowered.launches);
    plan.is_serial = lowered.is_serial;
  }
  plan.steps = std::move(lowered.steps);
  for (PlanStep& step : plan.steps) {
    std::vector<int> arguments;
    for (int i : parts[static_cast<size_t>(step.kernel)].order)
      arguments.push_back(step.arguments[static_cast<size_t>(i)]);
    step.arguments = arguments;
  }
  plan.layers = lowered.layers;
  plan.rounding = lowered.program.rounding;
  if (options.lower.packs_weights) plan.derivation = print_derivation(lowered.derivation);  // has hashes of weights
  plan.input_domains = input_domains(lowered.program);
  if (options.check_positions > 0 && options.check_model) HOIST_TRY_VOID(add_model_check(plan));
  spdlog::info("{} kernels, {} steps, {:.1f} s", plan.kernels.size(), plan.steps.size(), stopwatch.seconds());
  return plan;
}

}  // namespace hoist
