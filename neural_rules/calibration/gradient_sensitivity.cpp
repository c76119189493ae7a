#include "neural_rules/calibration/gradient_sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/base/seeded.h"
#include "ir/gradient/calls.h"
#include "ir/gradient/gradient.h"
#include "neural_rules/model/flow.h"

namespace hoist {
namespace {

Expr flat(Expr array) {
  if (!array->type->is_array()) return repeat(1, array);
  while (array->type->element->is_array()) array = join(array);
  return array;
}

Expr in_f32(Expr e) { return e->type->scalar == Scalar::f32 ? e : cast(Scalar::f32, e); }

Expr sum(Expr array) { return reduce(Function::add, literal(Scalar::f32, 0), array); }

Expr sum_of_products(Expr a, Expr b) {
  return sum(map(
      [](Expr pair) {
        return call(Function::multiply, {in_f32(get(0, pair)), in_f32(get(1, pair))});
      },
      zip({flat(a), flat(b)})));
}

}  // namespace

Result<GradientSensitivity> GradientSensitivity::make(const Program& program, const std::vector<Site>& sites,
                                                      const std::vector<SiteRule>& rules) {
  GradientSensitivity out;
  out.kinds_ = output_kinds(program);
  Program with_loss = program;
  ValueNames names(with_loss);
  Expr loss = nullptr;
  for (size_t i = 0; i < out.kinds_.of.size(); ++i) {
    const Type type = find_type(program, program.outputs[i]);
    if (!is_float(leaf_of(type)->scalar)) continue;
    const std::string signs = names.make(program.outputs[i] + ".signs");
    with_loss.inputs.emplace_back(signs, type);
    out.signed_.push_back({i, leaf_of(type)->scalar, shape_of(type)});
    const Expr part = sum_of_products(parameter(signs, type), parameter(program.outputs[i], type));
    loss = loss == nullptr ? part : call(Function::add, {loss, part});
  }
  if (loss == nullptr) return Diagnostic{program.name, "has no output of floats", ""};
  GradientRequest request;
  request.loss = gradients::append_definition(with_loss, names, "signed_outputs", loss)->name;
  const std::vector<ValueFamily> families = value_families(program, flow_of(program));
  for (size_t site = 0; site < sites.size(); ++site) {
    std::vector<const SiteRule*> at_site;
    for (const SiteRule& rule : rules) {
      if (rule.site == site) at_site.push_back(&rule);
    }
    out.points_.emplace_back();
    for (const std::string& point : points_of(families, sites[site], at_site)) {
      std::vector<std::string>& known = request.with_respect_to;
      const auto place = std::find(known.begin(), known.end(), point) - known.begin();
      if (place == std::ssize(known)) known.push_back(point);
      out.points_.back().push_back(static_cast<size_t>(place));
    }
  }
  HOIST_TRY(Program backward, gradient(with_loss, request));
  backward.steps.clear();
  names = ValueNames(backward);
  std::vector<std::string> sums;
  for (size_t i = 1; i < backward.outputs.size(); ++i) {
    const Expr g = parameter(backward.outputs[i], find_type(backward, backward.outputs[i]));
    sums.push_back(
        gradients::append_definition(backward, names, backward.outputs[i] + ".squares", sum_of_products(g, g))->name);
  }
  backward.outputs = std::move(sums);
  remove_unused(backward);
  out.model_.program = std::move(backward);
  return out;
}

Tensor GradientSensitivity::signs(const SignedOutput& of, double scale, const Samples& samples, size_t run,
                                  uint64_t seed) const {
  Tensor out(of.scalar, of.shape);
  uint64_t state = seed ^ (0x9E3779B97F4A7C15U * (run * kinds_.of.size() + of.output + 1));
  const int64_t values = of.values(samples);
  const int64_t count =
      std::min(samples.samples_a_run, samples.count - static_cast<int64_t>(run) * samples.samples_a_run);
  std::vector<double> of_sample(static_cast<size_t>(values));
  for (int64_t sample = 0; sample < count; ++sample) {
    for (double& sign : of_sample) sign = (next_random(state) >> 63) == 0 ? scale : -scale;
    const double sum = std::accumulate(of_sample.begin(), of_sample.end(), 0.0);
    const double mean = kinds_.of[of.output] == OutputKind::values ? 0 : sum / static_cast<double>(values);
    for (int64_t i = 0; i < values; ++i) out.set_float(sample * values + i, of_sample[static_cast<size_t>(i)] - mean);
  }
  return out;
}

Result<std::vector<double>> GradientSensitivity::estimate(RunnableModel& runnable, const Samples& samples,
                                                          const RunOutputs& reference, size_t runs,
                                                          uint64_t seed) const {
  const auto power_of = [&](size_t output) -> Result<double> {
    OutputKinds kinds = kinds_;
    kinds.main = output;
    HOIST_TRY(const OutputMetrics same, compare_runs(kinds, samples, reference, reference));
    return same.signal_power;
  };
  const auto main = std::find_if(signed_.begin(), signed_.end(),
                                 [&](const SignedOutput& each) { return each.output == kinds_.main; });
  if (main == signed_.end()) return Diagnostic{"the main output", "has no floats", ""};
  HOIST_TRY(const double main_power, power_of(kinds_.main));
  std::vector<double> scales;
  for (const SignedOutput& each : signed_) {
    HOIST_TRY(const double power, power_of(each.output));
    const double share = static_cast<double>(main->values(samples)) / static_cast<double>(each.values(samples));
    scales.push_back(std::sqrt(share * (power > 0 && main_power > 0 ? main_power / power : 1)));
  }
  std::vector<double> sums;
  for (size_t run = 0; run < runs; ++run) {
    std::vector<Tensor> inputs = samples.runs[run];
    for (size_t i = 0; i < signed_.size(); ++i) inputs.push_back(signs(signed_[i], scales[i], samples, run, seed));
    HOIST_TRY(const std::vector<Tensor> squares, runnable.run(inputs));
    sums.resize(squares.size());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += squares[i].float_at(0);
  }
  const int64_t all = std::min(samples.count, static_cast<int64_t>(runs) * samples.samples_a_run);
  std::vector<double> out;
  for (const std::vector<size_t>& points : points_) {
    double squares = 0;
    for (const size_t point : points) squares += sums[point];
    out.push_back(squares / static_cast<double>(all * main->values(samples)));
  }
  return out;
}

std::string EstimateQuality::text() const {
  return fmt::format(
      "gradients estimate the sensitivities{}; at {} sites noise was measured too, and the estimate is {:.2f} to "
      "{:.2f} "
      "times the measured one (median {:.2f})",
      is_good() ? "" : ", which are not used", count, least, most, median);
}

EstimateQuality quality_of(const std::vector<double>& estimates, const std::vector<double>& measured) {
  std::vector<double> ratios;
  for (size_t i = 0; i < estimates.size(); ++i) {
    if (std::isfinite(estimates[i]) && std::isfinite(measured[i]) && measured[i] > 0)
      ratios.push_back(estimates[i] / measured[i]);
  }
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  return {ratios.size(), ratios.front(), ratios[ratios.size() / 2], ratios.back()};
}

}  // namespace hoist
