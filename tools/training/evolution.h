// Hyper-parameters that a training finds (EvoGrad: Bohdal, Yang and Hospedales, 2021): copies of the model
// train for a segment with perturbed hyper-parameters, and the softmax of their negative validation losses weighs them.
// The weighted mean of the copies is the model after the segment, and the weighted mean of their hyper-parameters is
// the next centre: a step along the hypergradient of the validation loss, without second-order derivatives. EvoGrad
// perturbs weights, but a learning rate occurs in no loss, so here the hyper-parameters are perturbed, by their
// logarithms. Knows neither models nor data; trainer.h runs the copies.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/result.h"
#include "tools/training/training_options.h"

namespace hoist {

struct HyperParameterRow {
  std::string_view name;   ///< as in --auto
  std::string_view input;  ///< as in TrainingRequest::open; "" for the learning rate
  double TrainingOptions::*member;
  double start, least, most;  ///< `start` if the option is 0
};
std::span<const HyperParameterRow> hyper_parameter_rows();

/// Values by the names of --auto.
using HyperParameters = std::map<std::string, double>;

/// Checks the names of --auto, and returns the values with which the training begins.
Result<HyperParameters> first_hyper_parameters(const TrainingOptions& options);

/// The number of copies in a segment.
inline constexpr int64_t evolution_copies = 2;

/// The hyper-parameters of the copies of a segment: pairs with opposite seeded signs.
std::vector<HyperParameters> perturbed(const HyperParameters& centre, uint64_t seed, int64_t segment);
/// The shares of copies with these losses, which add up to 1; a loss that is not finite has none. The scale is the
/// running spread of losses, as an optimiser divides by the size of recent gradients. Errors: no loss is finite.
Result<std::vector<double>> shares_of(const std::vector<double>& losses, double& spread);
/// The weighted mean of the copies' logarithms, in the range of each row.
HyperParameters mean_of(const std::vector<HyperParameters>& copies, const std::vector<double>& shares);

}  // namespace hoist
