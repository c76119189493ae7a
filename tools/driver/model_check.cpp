#include "tools/driver/model_check.h"

#include <algorithm>
#include <cstring>

#include "ir/evaluate/evaluate.h"
#include "ir/properties/properties.h"
#include "ir/text/text.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// About a quarter of a second for the evaluator.
constexpr int64_t most_operations = 5'000'000, most_bytes = int64_t{64} << 20;
constexpr int64_t positions_of_output = 64;
// Error bounds for a chain of kernels on a device with inexact division.
constexpr double chain_relative = 1e-3, chain_absolute = 1e-4;

bool is_small(const Plan& plan, int runs) {
  int64_t operations = 0, bytes = 0;
  if (!plan.controls.empty()) return false;  // the number of step executions depends on the inputs
  // Seeded inputs are not valid text, images or other formats of host ops.
  if (std::any_of(plan.kernels.begin(), plan.kernels.end(), [](const PlanKernel& k) { return !k.host.empty(); }))
    return false;
  for (const PlanStep& step : plan.steps) {
    const int64_t more = plan.kernels[static_cast<size_t>(step.kernel)].operations;
    if (__builtin_add_overflow(operations, more, &operations) || operations > most_operations / runs) return false;
  }
  for (const PlanArray& array : plan.arrays) {
    bytes += byte_size(array.scalar, array.shape);
    if (bytes > most_bytes) return false;
  }
  return true;
}

// The kind of comparison between an array on a device and its expected value.
enum class Certainty : uint8_t {
  exact,    // bit for bit
  divided,  // bit for bit if the device divides exactly, else close
  close,    // the result of an inexact kernel with exact operands
  unknown
};

// True if a small error of the operands may become a large error of the result.
bool jumps(Expr term) {
  if (!is_float(leaf_of(term->type)->scalar)) return true;
  return any_node(term, [](Expr e) {
    if (e->pattern == Pattern::cast) return is_float(e->children[0]->type->scalar) && !is_float(e->type->scalar);
    return e->pattern == Pattern::call &&
           (e->function == Function::round || e->function == Function::floor || e->function == Function::ceiling ||
            e->function == Function::truncate || e->function == Function::sign);
  });
}

Certainty certainty_of(const PlanKernel& kernel, Expr term, Certainty reads) {
  if (!kernel.tolerance.exact) return reads == Certainty::exact ? Certainty::close : Certainty::unknown;
  if (reads > Certainty::divided) return Certainty::unknown;
  if (reads == Certainty::exact && !kernel.tolerance.divides) return Certainty::exact;
  return jumps(term) ? Certainty::unknown : Certainty::divided;
}

struct Values {
  std::vector<Tensor> arrays;
  std::vector<Certainty> certainty;
};

// The values before the first run.
Values initial(const Plan& plan) {
  Values out;
  out.certainty.assign(plan.arrays.size(), Certainty::exact);
  for (const PlanArray& array : plan.arrays) {
    Tensor tensor = array.place == Place::weights ? array.constant : Tensor(array.scalar, array.shape);
    if (array.place == Place::cleared) std::memset(tensor.data(), array.fill, tensor.bytes().size());
    out.arrays.push_back(std::move(tensor));
  }
  for (const PlanState& state : plan.states) {
    if (state.initial >= 0)
      out.arrays[static_cast<size_t>(state.read)] = out.arrays[static_cast<size_t>(state.initial)];
  }
  return out;
}

// A run begins: new inputs, and exact arrays apart from states.
void begin_run(const Plan& plan, uint64_t seed, Values& values) {
  for (size_t i = 0; i < plan.model_inputs(); ++i) {
    const Domain domain = i < plan.input_domains.size() ? plan.input_domains[i] : Domain{};
    const PlanArray& array = plan.arrays[static_cast<size_t>(plan.inputs[i])];
    values.arrays[static_cast<size_t>(plan.inputs[i])] =
        seeded_tensor(array.scalar, array.shape, seed, static_cast<uint32_t>(i), domain.low, domain.high);
  }
  std::vector<Certainty> certainty(plan.arrays.size(), Certainty::exact);
  for (const PlanState& state : plan.states)
    certainty[static_cast<size_t>(state.read)] = values.certainty[static_cast<size_t>(state.read)];
  values.certainty = std::move(certainty);
}

void end_run(const Plan& plan, Values& values) {
  for (const PlanState& state : plan.states) {
    values.arrays[static_cast<size_t>(state.read)] = values.arrays[static_cast<size_t>(state.written)];
    values.certainty[static_cast<size_t>(state.read)] = values.certainty[static_cast<size_t>(state.written)];
  }
}

void write(const Tensor& result, const Region& region, Tensor& array) {
  const auto bytes = static_cast<size_t>(byte_size(array.scalar(), {1}));
  for (int64_t i = 0; i < region.size(); ++i) {
    const size_t at = static_cast<size_t>(region.position(i)) * bytes;
    std::memcpy(array.data() + at, result.data() + at, bytes);
  }
}

// Returns false if the evaluator has no form for the kernel's term.
Result<bool> run_step(const Plan& plan, const PlanStep& step, Values& values) {
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  HOIST_TRY(const Expr term, parse(kernel.expression));
  Bindings reads;
  Certainty worst = Certainty::exact;
  size_t target = 0;
  Region region;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const KernelParameter& parameter = kernel.parameters[i];
    const auto index = static_cast<size_t>(step.arguments[i]);
    if (parameter.written) {
      target = index;
      region = parameter.regions_or_whole().front();
      continue;
    }
    const Tensor& array = values.arrays[index];
    // An array may be stored with another shape of the same size.
    reads[parameter.name] = array.shape() == parameter.shape ? array : array.reshaped(parameter.shape);
    worst = std::max(worst, values.certainty[index]);
  }
  HOIST_TRY(const std::optional<Tensor> result, evaluate_within(term, reads, most_bytes));
  if (!result) return false;
  write(*result, region, values.arrays[target]);
  // An array written by several steps is as exact as its least exact part.
  values.certainty[target] = std::max(values.certainty[target], certainty_of(kernel, term, worst));
  return true;
}

// Adds a check of the output, unless an intermediate error may have grown.
Result<Nothing> add_output(Plan& plan, int run, size_t output, const Values& values) {
  const auto index = static_cast<size_t>(plan.outputs[output]);
  const Certainty certainty = values.certainty[index];
  const Tensor& value = values.arrays[index];
  if (certainty == Certainty::unknown || value.size() == 0) return Nothing{};
  Plan::ModelCheck check;
  check.run = run;
  check.output = static_cast<int>(output);
  check.positions =
      sample_positions(value.size(), std::min(positions_of_output, value.size()), plan.check_seed + output);
  const Expr all = parameter("value", array_type(value.size(), scalar_type(value.scalar())));
  HOIST_TRY(const Tensor sampled, interpret_at(all, {{"value", value.reshaped({value.size()})}}, check.positions));
  check.values.assign(sampled.bytes().begin(), sampled.bytes().end());
  if (is_packed(sampled.scalar())) {  // one element per byte
    check.values.clear();
    for (int64_t k = 0; k < sampled.size(); ++k)
      check.values.push_back(static_cast<std::byte>(load_element(sampled.data(), row(sampled.scalar()).bits, k)));
  }
  plan.model_check.push_back(std::move(check));
  plan.model_tolerance.exact &= certainty != Certainty::close;
  plan.model_tolerance.divides |= certainty == Certainty::divided;
  if (certainty == Certainty::exact) return Nothing{};
  plan.model_tolerance.relative = chain_relative;
  plan.model_tolerance.absolute = chain_absolute;
  return Nothing{};
}

}  // namespace

Result<Nothing> add_model_check(Plan& plan) {
  const auto runs = static_cast<int>(plan.checked_runs());
  if (!is_small(plan, runs)) return Nothing{};
  plan.check_seed = plan.model_hash;
  Values values = initial(plan);
  for (int run = 0; run < runs; ++run) {
    begin_run(plan, plan.check_seed + static_cast<uint64_t>(run), values);
    for (const PlanStep& step : plan.steps) {
      HOIST_TRY(const bool evaluated, run_step(plan, step, values));
      if (!evaluated) return Nothing{};
    }
    for (size_t i = 0; i < plan.outputs.size(); ++i) HOIST_TRY_VOID(add_output(plan, run, i, values));
    end_run(plan, values);
  }
  return Nothing{};
}

}  // namespace hoist
