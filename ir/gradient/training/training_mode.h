// Layers that compute something else while a model is trained: BatchNormalization, with the statistics of the batch,
// which its running averages follow, Dropout, and Identity of a constant, which becomes a weight. Other layers are the
// same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

/// A running average and the value that moves it.
struct RunningAverage {
  std::string value;      ///< a constant of the model: the mean or the variance of a BatchNormalization
  std::string statistic;  ///< a defined value of the same type, of the batch
  double momentum = 0.9;  ///< the share of the old average
};

struct TrainingModeRequest {
  std::string step;                   ///< an i64 scalar of the program, which counts the runs
  uint64_t seed = 1;                  ///< of the elements that Dropout drops
  std::vector<std::string> averages;  ///< the running averages that may change
};

/// Replaces each Identity of a constant by a constant of its own: exporters write parameters of equal values once, such
/// as the scales of untrained normalisations, and name the others by Identity (frontend/replace_weights.h).
void separate_copies(Program& program);

/// The constants that are running averages of the layers.
std::vector<std::string> running_averages(const Program& program);

/// Replaces these layers by their form in training, and returns the averages that follow the statistics. A
/// BatchNormalization whose averages may not change keeps its form.
std::vector<RunningAverage> use_training_mode(Program& program, const TrainingModeRequest& request);

}  // namespace hoist
