#include "tools/driver/self_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ir/base/seeded.h"
#include "ir/base/stopwatch.h"
#include "ir/evaluate/interpreter/interpret_cost.h"
#include "ir/program/program_values.h"
#include "ir/text/text.h"
#include "lowering/rules/rules.h"
#include "lowering/terms/terms.h"
#include "tools/base/terminal.h"
#include "tools/data/data.h"
#include "tools/driver/opened_bundle.h"

namespace hoist {
namespace {

// Bounds on devices without IEEE 754 arithmetic; the same as the runtime's.
constexpr double inexact_relative = 1e-5, inexact_absolute = 1e-6;

// Least steps per second of the interpreter, and operations per second of the evaluator for a whole model on a busy
// machine. Kernels with few elements or with halves take up to ten times as long.
constexpr double steps_a_second = 2e6, operations_a_second = 1e8;
// Limit of interpreter steps for one element.
constexpr int64_t most_steps_an_element = int64_t{1} << 24;

Tolerance tolerance_on(const Device& device, const Tolerance& tolerance) {
  if (!tolerance.exact || (device.computes_exactly && (!tolerance.divides || device.divides_exactly))) return tolerance;
  return {false, tolerance.divides, inexact_relative, inexact_absolute};
}

// Compares every element with the evaluator; empty if that takes too long.
Result<std::optional<StepComparison>> compare_whole(const StepValues& values, double seconds) {
  const double work = static_cast<double>(count_operations(values.term)) + static_cast<double>(values.result.size());
  if (work > seconds * operations_a_second) return std::optional<StepComparison>();
  HOIST_TRY(std::optional<Tensor> expected, evaluate_within(values.term, values.reads, int64_t{1} << 30));
  if (!expected) return std::optional<StepComparison>();
  const std::vector<int64_t> positions = sample_positions(values.region, values.region.size(), 0);
  const Comparison found = compare(elements_at(values.result, positions), elements_at(*expected, positions),
                                   values.tolerance.relative, values.tolerance.absolute);
  StepComparison out;
  out.compared = positions.size();
  out.different = static_cast<uint64_t>(found.different);
  out.largest_error = found.largest_error;
  if (found.agrees()) return std::optional(out);
  out.first = positions[static_cast<size_t>(std::max<int64_t>(found.first, 0))];
  out.message = fmt::format("position {}: {}, expected {}", position_text(out.first, values.result.shape()),
                            element_text(values.result, out.first), element_text(*expected, out.first));
  return std::optional(out);
}

void add(StepComparison& all, const StepComparison& more) {
  all.compared += more.compared;
  all.different += more.different;
  all.largest_error = std::max(all.largest_error, more.largest_error);
  if (all.first < 0) {
    all.first = more.first;
    all.message = more.message;
  }
}

// Compares every element if time allows, else the ends of every axis and as many other elements as possible.
Result<StepComparison> compare_in(const StepValues& values, double seconds, uint64_t seed, bool& whole) {
  const Stopwatch stopwatch;
  HOIST_TRY(std::optional<StepComparison> all, compare_whole(values, seconds));
  whole = all.has_value();
  if (all) return *all;
  StepComparison out;
  const int64_t steps = interpretation_steps(values.term);
  if (steps > most_steps_an_element) return out;
  std::vector<int64_t> positions = boundary_positions(values.region, seed);
  const double affordable = std::max(1.0, seconds * steps_a_second / static_cast<double>(steps));
  while (static_cast<double>(positions.size()) > affordable && positions.size() > 2) {
    positions.erase(positions.begin() + 1 + static_cast<int64_t>(next_random(seed) % (positions.size() - 2)));
  }
  for (int64_t count = 64;; count *= 2) {
    HOIST_TRY(StepComparison some, compare_step(values, positions));
    add(out, some);
    if (stopwatch.seconds() * 3 > seconds || out.different > 0) return out;
    positions = sample_positions(values.region, count, next_random(seed));
    if (static_cast<int64_t>(positions.size()) < count) {  // all positions were sampled
      HOIST_TRY(out, compare_step(values, positions));
      whole = true;
      return out;
    }
  }
}

// The operands of a step by array name, as the derivation's terms use them.
Bindings by_array(const StepValues& values, const Plan& plan, const PlanStep& step) {
  Bindings out;
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    auto read = values.reads.find(kernel.parameters[i].name);
    if (read != values.reads.end()) out[plan.arrays[static_cast<size_t>(step.arguments[i])].name] = read->second;
  }
  return out;
}

std::string value_text(const Tensor& tensor) { return element_text(tensor, 0); }

// Runs the plan step by step and compares each kernel at its first step, in about `seconds`.
Result<Nothing> check_run(BundleRunner& bundle, const Plan& plan, const Device& device,
                          const std::vector<LoweredGroup>& derivations, const RuleTable& rules, double seconds,
                          Progress& progress, std::set<int>& checked, SelfCheck& out) {
  const Stopwatch stopwatch;
  std::set<int> seen;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    progress.show("comparing kernels with the interpreter",
                  static_cast<double>(i) / static_cast<double>(plan.steps.size()));
    if (const Result<Nothing> ran = bundle.run_steps(i, 1); !ran.ok()) {
      // The result of a host op on seeded data is undefined: they may not be a number or an image, or may not end a
      // loop.
      if (!bundle.refuses_data()) return with_kind(ErrorKind::device, ran.errors());
      out.ended = ran.errors().front().what;
      return Nothing{};
    }
    if (bundle.step_runs(i) == 0) continue;  // the data selected another branch, or no iteration
    if (!seen.insert(plan.steps[i].kernel).second) continue;
    const size_t left = plan.kernels.size() - seen.size() + 1;
    const double share = std::max(seconds / 1000, (seconds - stopwatch.seconds()) / static_cast<double>(left));
    HOIST_TRY(StepValues values, step_values(bundle, plan, device, i));
    bool whole = false;
    HOIST_TRY(StepComparison found, compare_in(values, share, plan.model_hash + i, whole));
    out.compared += found.compared;
    if (checked.insert(plan.steps[i].kernel).second) {
      ++out.kernels;
      out.kernels_whole += whole ? 1 : 0;
      out.kernels_left += found.compared == 0 && values.region.size() > 0 ? 1 : 0;
    }
    if (found.different == 0 && found.message.empty()) continue;
    std::string origin;
    if (i < derivations.size()) {
      origin = origin_of(rules, derivations[i].derivation, by_array(values, plan, plan.steps[i]), found.first);
    }
    out.mismatch = KernelMismatch{i, std::move(found), std::move(origin)};
    return Nothing{};
  }
  return Nothing{};
}

}  // namespace

Result<StepValues> step_values(BundleRunner& bundle, const Plan& plan, const Device& device, size_t index) {
  const PlanStep& step = plan.steps[index];
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  StepValues out;
  HOIST_TRY(out.term, parse(kernel.expression));
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    HOIST_TRY(Tensor array, with_kind(ErrorKind::device, bundle.read_array(static_cast<size_t>(step.arguments[i]))));
    const KernelParameter& parameter = kernel.parameters[i];
    // An array may be stored with another shape of the same size, and packed elements are stored as bytes.
    Tensor seen = array.scalar() != parameter.scalar
                      ? Tensor(parameter.scalar, parameter.shape,
                               std::vector<std::byte>(array.bytes().begin(), array.bytes().end()))
                  : array.shape() == parameter.shape ? array
                                                     : array.reshaped(parameter.shape);
    if (parameter.written) {
      out.result = seen;
      out.region = parameter.regions_or_whole().front();
    } else {
      out.reads[parameter.name] = seen;
    }
  }
  out.tolerance = tolerance_on(device, kernel.tolerance);
  return out;
}

Result<StepComparison> compare_step(const StepValues& values, const std::vector<int64_t>& positions) {
  HOIST_TRY(Tensor expected, interpret_at(values.term, values.reads, positions));
  const Tensor got = elements_at(values.result, positions);
  const Comparison found = compare(got, expected, values.tolerance.relative, values.tolerance.absolute);
  StepComparison out;
  out.compared = positions.size();
  out.different = static_cast<uint64_t>(found.different);
  out.largest_error = found.largest_error;
  if (found.agrees()) return out;
  const int64_t first = std::max<int64_t>(found.first, 0);
  out.first = positions[static_cast<size_t>(first)];
  out.message = fmt::format("position {}: {}, expected {}", position_text(out.first, values.result.shape()),
                            element_text(got, first), element_text(expected, first));
  return out;
}

Result<StepComparison> compare_everywhere(const StepValues& values) {
  HOIST_TRY(std::optional<StepComparison> all, compare_whole(values, std::numeric_limits<double>::infinity()));
  if (all) return std::move(*all);
  return compare_step(values, sample_positions(values.region, values.region.size(), 0));
}

std::vector<int64_t> boundary_positions(const Region& region, uint64_t seed) {
  const size_t rank = region.shape.size();
  const int64_t size = region.size();
  if (size == 0) return {};
  std::set<int64_t> out;
  const auto take = [&](const std::vector<int64_t>& index) {
    int64_t flat = 0;
    for (size_t i = 0; i < rank; ++i) flat = flat * region.shape[i] + index[i];
    out.insert(region.position(flat));
  };
  for (uint64_t corner = 0; corner < (uint64_t{1} << std::min<size_t>(rank, 6)); ++corner) {
    std::vector<int64_t> index(rank, 0);
    for (size_t i = 0; i < rank; ++i) index[i] = (corner >> (i % 6) & 1) != 0 ? region.shape[i] - 1 : 0;
    take(index);
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t n = region.shape[axis];
    std::set<int64_t> places = {0, 1, 2, n / 2, n - 3, n - 2, n - 1};
    for (int64_t k = 4; k <= 64; k *= 2) {
      places.insert({k - 1, k, n / k * k - 1, n / k * k});
    }
    for (int64_t place : places) {
      if (place < 0 || place >= n) continue;
      std::vector<int64_t> index(rank, 0);
      for (size_t i = 0; i < rank; ++i)
        index[i] = static_cast<int64_t>(next_random(seed) % static_cast<uint64_t>(region.shape[i]));
      index[axis] = place;
      take(index);
    }
  }
  return {out.begin(), out.end()};
}

std::string too_large_to_check(const Plan& plan) {
  constexpr double most_bytes = 4.0 * (1 << 30), most_operations = 2e11;
  double bytes = static_cast<double>(plan.arena_bytes), operations = 0;
  for (const PlanArray& array : plan.arrays) {
    if (array.place != Place::arena) bytes += static_cast<double>(byte_size(array.scalar, array.shape));
  }
  for (const PlanStep& step : plan.steps)
    operations += static_cast<double>(plan.kernels[static_cast<size_t>(step.kernel)].operations);
  if (bytes > most_bytes) return fmt::format("its arrays have {:.1f} GiB (hoist verify checks it)", bytes / (1 << 30));
  if (operations > most_operations)
    return fmt::format("a run takes {:.2g} operations (hoist verify checks it)", operations);
  return "";
}

Result<Nothing> set_run(BundleRunner& bundle, const std::vector<std::vector<Tensor>>& samples, size_t run) {
  const std::vector<Tensor>& inputs = samples[run % samples.size()];
  for (size_t i = 0; i < inputs.size(); ++i) HOIST_TRY_VOID(bundle.set_input(i, inputs[i]));
  return Nothing{};
}

std::vector<std::vector<Tensor>> seeded_runs(const BundleRunner& bundle, const Plan& plan, uint64_t seed) {
  std::vector<std::vector<Tensor>> out;
  for (size_t run = 0; run < plan.checked_runs(); ++run) out.push_back(seeded_inputs(bundle, plan, seed + run));
  return out;
}

Result<SelfCheck> self_check(const std::filesystem::path& folder, const Plan& plan,
                             const std::vector<LoweredGroup>& derivations, double seconds, const RuleTable& rules,
                             RunOptions options) {
  SelfCheck out;
  options.progress = driver_progress(folder, options);
  const Stopwatch building;
  HOIST_TRY(BundleRunner bundle, with_kind(ErrorKind::device, BundleRunner::open(folder, options)));
  out.driver_seconds = building.seconds();
  out.driver_cache = bundle.cache_outcome();
  HOIST_TRY(const Device device, with_kind(ErrorKind::device, device_of(bundle, plan)));
  out.device = device.name;
  const std::vector<std::vector<Tensor>> samples = seeded_runs(bundle, plan, plan.model_hash);
  Progress progress;
  std::set<int> checked;  // in any run
  const Stopwatch stopwatch;
  for (size_t run = 0; run < samples.size() && !out.mismatch && out.ended.empty(); ++run) {
    HOIST_TRY_VOID(with_kind(ErrorKind::device, set_run(bundle, samples, run)));
    const double share = seconds / static_cast<double>(samples.size());
    HOIST_TRY_VOID(check_run(bundle, plan, device, derivations, rules, share, progress, checked, out));
    // The same steps once more, at whose end the states change.
    if (run + 1 < samples.size() && out.ended.empty()) HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.run()));
  }
  if (!out.mismatch && out.ended.empty()) {
    HOIST_TRY(const std::vector<Finding> launches,
              with_kind(ErrorKind::device, bundle.verify_launches(plan.model_hash)));
    const auto differs = std::find_if(launches.begin(), launches.end(), [](const Finding& f) { return !f.passed; });
    if (differs != launches.end()) out.launch_mismatch = *differs;
  }
  out.seconds = stopwatch.seconds();
  return out;
}

Result<std::vector<int64_t>> check_open_size(const std::filesystem::path& folder, const CompiledModel& model,
                                             const RunOptions& options) {
  constexpr double most_operations = operations_a_second, relative = 1e-3, absolute = 1e-4;
  const PlanSize& size = model.plan.open_sizes.front();
  double operations = 1;
  for (const PlanStep& step : model.plan.steps)
    operations += static_cast<double>(model.plan.kernels[static_cast<size_t>(step.kernel)].operations);
  const auto affordable = static_cast<int64_t>(static_cast<double>(size.most) * most_operations / operations);
  const int64_t most = std::clamp(affordable, size.least, size.most), range = most - size.least;
  uint64_t seed = model.plan.model_hash;
  const auto random = [&] { return static_cast<int64_t>(next_random(seed) % static_cast<uint64_t>(range + 1)); };
  const std::set<int64_t> sizes = {size.least, std::min((size.least + range / 2) | 1, most), size.least + random()};
  HOIST_TRY(BundleRunner bundle, with_kind(ErrorKind::device, BundleRunner::open(folder, options)));
  for (const int64_t n : sizes) {
    HOIST_TRY(const Program program, model.program_of_size(n));
    for (size_t i = 0; i < program.inputs.size(); ++i)
      HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.choose_input_shape(i, shape_of(program.inputs[i].second))));
    const std::vector<Tensor> inputs = seeded_inputs(bundle, model.plan, model.plan.model_hash);
    HOIST_TRY_VOID(with_kind(ErrorKind::device, set_run(bundle, {inputs}, 0)));
    HOIST_TRY_VOID(with_kind(ErrorKind::device, bundle.run()));
    HOIST_TRY(const std::vector<Tensor> expected, program_outputs(program, inputs));
    for (size_t i = 0; i < expected.size(); ++i) {
      HOIST_TRY(const Tensor found, with_kind(ErrorKind::device, bundle.output(i)));
      if (!is_float(found.scalar())) continue;  // a rounding may change an integer, such as the place of a maximum
      const Comparison comparison = compare(found, expected[i], relative, absolute);
      if (comparison.agrees()) continue;
      return Diagnostic{
          fmt::format("self-check at {} = {}", size.name, n),
          fmt::format("output {} differs from the model's: {}", bundle.outputs()[i].name, comparison.difference),
          "send it to the project: this is a bug of hoist", ErrorKind::difference};
    }
  }
  return std::vector<int64_t>(sizes.begin(), sizes.end());
}

std::string origin_of(const RuleTable& rules, const Derivation& derivation, const Bindings& reads, int64_t position) {
  constexpr double rounding = 1e-3;  // a step that only changes the rounding stays below this
  auto terms = replay(rules, derivation);
  if (!terms) return "its derivation cannot be replayed: " + terms.errors().front().text();
  std::optional<Tensor> before;
  for (size_t k = 0; k < terms->size(); ++k) {
    Bindings bound;
    for (Expr p : parameters_of((*terms)[k])) {
      auto found = reads.find(p->name);
      // A parameter that the kernel does not read has no value.
      bound[p->name] = found != reads.end() ? found->second : Tensor(leaf_of(p->type)->scalar, shape_of(p->type));
      if (bound[p->name].shape() != shape_of(p->type)) bound[p->name] = bound[p->name].reshaped(shape_of(p->type));
    }
    auto value = interpret_at((*terms)[k], bound, {position});
    if (!value) return "a term of its derivation has no value: " + value.errors().front().text();
    if (before) {
      const Application& step = derivation.steps[k - 1];
      const double bound_of_step = step.rule_class == RuleClass::exact ? 0 : rounding;
      if (!compare(*value, *before, bound_of_step, bound_of_step).agrees()) {
        return fmt::format("step {} of its derivation changes {} to {}: {}", k, value_text(*before), value_text(*value),
                           text(step));
      }
    }
    before = *value;
  }
  return fmt::format(
      "every term of its derivation has the value {}: the code generator or the driver causes the difference",
      before ? value_text(*before) : "nothing");
}

Program model_of_layers(const Program& program, const std::vector<std::string>& layers) {
  std::set<std::string> known, asked;
  std::map<std::string, size_t> makers;
  for (size_t i = 0; i < program.definitions.size(); ++i) {
    const Definition& d = program.definitions[i];
    makers[d.value] = i;
    const bool is_asked = std::any_of(d.layers.begin(), d.layers.end(), [&](const std::string& layer) {
      return std::find(layers.begin(), layers.end(), layer) != layers.end();
    });
    if (is_asked) asked.insert(d.value);
    const std::vector<Expr> reads = parameters_of(d.expression);
    const bool of_constants = std::all_of(reads.begin(), reads.end(), [&](Expr p) {
      return program.constants.count(p->name) != 0 || known.count(p->name) != 0;
    });
    if (of_constants) known.insert(d.value);
  }
  // Values that are computed from constants only are computed in the new model too.
  std::set<std::string> kept = asked;
  std::vector<std::string> waiting(asked.begin(), asked.end());
  while (!waiting.empty()) {
    const Definition& d = program.definitions[makers.at(waiting.back())];
    waiting.pop_back();
    for (Expr p : parameters_of(d.expression)) {
      if (known.count(p->name) != 0 && kept.insert(p->name).second) waiting.push_back(p->name);
    }
  }
  Program out;
  out.name = program.name;
  out.version = program.version;
  std::set<std::string> given, read_inside, read_outside(program.outputs.begin(), program.outputs.end());
  for (const Definition& d : program.definitions) {
    for (Expr p : parameters_of(d.expression)) (kept.count(d.value) != 0 ? read_inside : read_outside).insert(p->name);
    if (kept.count(d.value) == 0) continue;
    out.definitions.push_back(d);
    for (Expr p : parameters_of(d.expression)) {
      if (kept.count(p->name) != 0 || !given.insert(p->name).second) continue;
      if (auto constant = program.constants.find(p->name); constant != program.constants.end())
        out.constants.insert(*constant);
      else
        out.inputs.emplace_back(p->name, p->type);
    }
  }
  for (const Definition& d : out.definitions) {
    const bool wanted = read_outside.count(d.value) != 0 || read_inside.count(d.value) == 0;
    if (asked.count(d.value) != 0 && wanted && !d.expression->type->is_tuple()) out.outputs.push_back(d.value);
  }
  return out;
}

}  // namespace hoist
