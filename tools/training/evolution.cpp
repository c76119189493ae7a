#include "tools/training/evolution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/base/seeded.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {
namespace {

// A copy's learning rate is half as large again or two thirds, so a factor of 100 takes about 15 segments that agree.
constexpr double width = 0.4;
// The weight of earlier segments in the running spread.
constexpr double memory = 0.9;

constexpr std::array<HyperParameterRow, 4> hyper_parameters = {{
    {"lr", "", &TrainingOptions::rate, 0.001, 1e-8, 1e3},
    {"weight-decay", "decay", &TrainingOptions::decay, 1e-4, 1e-8, 1},
    {"clip", "clip", &TrainingOptions::clip, 1, 1e-4, 1e4},
    {"label-smoothing", "smoothing", &TrainingOptions::smoothing, 0.02, 1e-4, 0.5},
}};

const HyperParameterRow& hyper_parameter(const std::string& name) {
  return *std::find_if(hyper_parameters.begin(), hyper_parameters.end(),
                       [&](const HyperParameterRow& row) { return row.name == name; });
}

}  // namespace

std::span<const HyperParameterRow> hyper_parameter_rows() { return hyper_parameters; }

Result<HyperParameters> first_hyper_parameters(const TrainingOptions& options) {
  HyperParameters out;
  std::vector<std::string> names;
  for (const HyperParameterRow& row : hyper_parameters) names.emplace_back(row.name);
  for (const std::string& name : options.automatic) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return usage_error("--auto " + name, "is no hyper-parameter that a training finds",
                         did_you_mean(name, names, "lr, weight-decay, clip, label-smoothing"));
    const HyperParameterRow& row = hyper_parameter(name);
    const double given = options.*row.member;
    out[name] = std::clamp(given > 0 ? given : row.start, row.least, row.most);
  }
  return out;
}

std::vector<HyperParameters> perturbed(const HyperParameters& centre, uint64_t seed, int64_t segment) {
  std::vector<HyperParameters> out(evolution_copies, centre);
  uint64_t state = seed ^ (static_cast<uint64_t>(segment) * 0x9E3779B97F4A7C15U);
  for (size_t pair = 0; pair < out.size(); pair += 2) {
    for (const auto& [name, value] : centre) {
      const double sign = (next_random(state) >> 63) == 0 ? 1 : -1;
      out[pair][name] = value * std::exp(sign * width);
      out[pair + 1][name] = value * std::exp(-sign * width);
    }
  }
  return out;
}

Result<std::vector<double>> shares_of(const std::vector<double>& losses, double& spread) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const double loss : losses) {
    if (std::isfinite(loss)) least = std::min(least, loss), most = std::max(most, loss);
  }
  if (least > most) return Diagnostic{"--auto", "no copy has a finite loss", "a smaller --learning-rate"};
  const double now = (most - least) / 2;
  spread = spread > 0 ? std::sqrt(memory * spread * spread + (1 - memory) * now * now) : now;
  const double scale = std::max(spread, 1e-30);
  std::vector<double> out;
  double all = 0;
  for (const double loss : losses) {
    out.push_back(std::isfinite(loss) ? std::exp((least - loss) / scale) : 0);
    all += out.back();
  }
  for (double& share : out) share /= all;
  return out;
}

HyperParameters mean_of(const std::vector<HyperParameters>& copies, const std::vector<double>& shares) {
  HyperParameters out;
  for (const auto& [name, first] : copies[0]) {
    double logarithm = 0;
    for (size_t k = 0; k < copies.size(); ++k) logarithm += shares[k] * std::log(copies[k].at(name));
    out[name] = std::clamp(std::exp(logarithm), hyper_parameter(name).least, hyper_parameter(name).most);
  }
  return out;
}

}  // namespace hoist
