#include "tools/inspection/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "ir/properties/properties.h"
#include "ir/text/text.h"
#include "neural_rules/choice/solver/interval.h"

namespace hoist {
namespace {

// True if threads share the work-groups of a term.
bool is_shared(Expr term) {
  return any_node(term, [](Expr e) {
    return e->pattern == Pattern::map && e->mode == Mode::group && e->type->is_array() && e->type->size.value() > 1;
  });
}

// The name of a kernel's argument in its term.
std::string argument_name(const PlanKernel& kernel, size_t argument) {
  return argument < kernel.parameters.size() ? kernel.parameters[argument].name : "";
}
std::string argument_name(const LoweredKernel& /*kernel*/, size_t argument) { return "p" + std::to_string(argument); }

template <class Model, class TermOf>
Prediction predicted(const Model& model, const Profile& profile, const tuning::KernelTimes& times,
                     const TermOf& term_of) {
  if (!profile.rates.known() && times.empty()) return {};  // work is counted for nothing
  struct Kernel {
    KernelLoad load;
    double measured = 0;
  };
  int64_t all_weights = 0;
  for (const PlanArray& array : model.arrays)
    if (array.place == Place::weights) all_weights += byte_size(array.scalar, array.shape);
  std::vector<Kernel> kernels;
  for (const auto& kernel : model.kernels) {
    Kernel& out = kernels.emplace_back();
    const Expr term = kernel.host.empty() ? term_of(kernel) : nullptr;
    if (term == nullptr) continue;
    if (!times.empty()) {
      const auto found = times.find(tuning_task(term));
      if (found != times.end()) out.measured = found->second;
    }
    out.load = {.work = executed_work(term), .all_weights = all_weights, .shared = is_shared(term)};
    int of_bytes = 0;
    for (const Expr parameter : parameters_of(term)) {
      const Type leaf = leaf_of(parameter->type);
      of_bytes += leaf->is_scalar() && !is_float(leaf->scalar) && row(leaf->scalar).bits == 8 ? 1 : 0;
    }
    out.load.on_bytes = of_bytes >= 2;
  }
  Prediction out;
  out.is_known = !model.steps.empty();
  const std::vector<int64_t> runs = counted_runs(model.items, model.controls, model.steps.size());
  for (const PlanStep& step : model.steps) {
    const auto place = static_cast<size_t>(step.kernel);
    const auto times = static_cast<double>(runs[out.steps.size()]);
    KernelLoad load = kernels[place].load;
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const auto read = load.work.read.find(argument_name(model.kernels[place], i));
      if (read != load.work.read.end() && model.arrays[static_cast<size_t>(step.arguments[i])].place == Place::weights)
        load.weights += read->second;
    }
    PredictedStep& one = out.steps.emplace_back();
    one.is_measured = kernels[place].measured > 0;
    if (model.kernels[place].host.empty()) {
      one.time = predicted_time(load, profile);
      for (double& part : one.time.parts) part *= times;
      one.seconds = one.is_measured ? kernels[place].measured * times : one.time.seconds();
      out.is_known &= one.seconds > 0;
    } else {
      one.is_measured = true;
    }
    out.measured += one.is_measured ? 1 : 0;
    out.seconds += one.seconds;
  }
  return out;
}

}  // namespace

Spread Prediction::spread() const { return measured == steps.size() ? measured_spread : predicted_spread; }

Prediction prediction_of(const Plan& plan, const Profile& profile, const tuning::KernelTimes& times) {
  return predicted(plan, profile, times, [](const PlanKernel& kernel) -> Expr {
    const auto term = parse(kernel.expression);
    return term.ok() ? *term : nullptr;
  });
}

Prediction prediction_of(const LoweredModel& model, const Profile& profile, const tuning::KernelTimes& times) {
  return predicted(model, profile, times, [](const LoweredKernel& kernel) { return kernel.expression; });
}

std::string text_of(const Prediction& prediction) {
  if (!prediction.is_known) return "";
  const Spread spread = prediction.spread();
  const bool all = prediction.measured == prediction.steps.size();
  const std::string measured =
      prediction.measured == 0 || all
          ? std::string(all ? "all steps measured, " : "")
          : fmt::format("{} of {} steps measured, ", prediction.measured, prediction.steps.size());
  return fmt::format("predicted: {} a run ({}{} of 10 networks within {} %)", time_text(prediction.seconds), measured,
                     spread.of_ten, spread.percent);
}

nlohmann::ordered_json to_json(const Prediction& prediction) {
  if (!prediction.is_known) return nullptr;
  const Spread spread = prediction.spread();
  nlohmann::ordered_json parts = nlohmann::ordered_json::object(), steps = nlohmann::ordered_json::array();
  for (const PredictedStep& step : prediction.steps) steps.push_back(step.seconds * 1e3);
  for (size_t i = 0; i < time_parts; ++i) {
    double sum = 0;
    for (const PredictedStep& step : prediction.steps) sum += step.is_measured ? 0 : step.time.parts[i];
    parts[std::string(name_of(static_cast<TimePart>(i)))] = sum * 1e3;
  }
  return {{"ms", prediction.seconds * 1e3},
          {"measured_steps", prediction.measured},
          {"of_ten", spread.of_ten},
          {"within_percent", spread.percent},
          {"parts_ms", parts},
          {"steps_ms", steps}};
}

tuning::KernelTimes kernel_times(const Plan& plan, const std::vector<double>& steps, double run) {
  tuning::KernelTimes out;
  const double all = std::accumulate(steps.begin(), steps.end(), 0.0);
  if (steps.size() != plan.steps.size() || !(all > 0) || !(run > 0)) return out;
  const double scale = plan.targets.empty() ? run / all : 1;
  std::vector<std::pair<double, int>> by_kernel(plan.kernels.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    auto& [sum, count] = by_kernel[static_cast<size_t>(plan.steps[i].kernel)];
    sum += steps[i] * scale;
    ++count;
  }
  for (size_t i = 0; i < by_kernel.size(); ++i) {
    const auto& [sum, count] = by_kernel[i];
    if (count == 0 || !(sum > 0) || !plan.kernels[i].host.empty()) continue;
    if (const auto term = parse(plan.kernels[i].expression)) out[tuning_task(*term)] = sum / count;
  }
  return out;
}

}  // namespace hoist
