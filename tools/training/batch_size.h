// The batch size of --batch auto, from the measured time of a step and the noise scale of the gradient (McCandlish,
// Kaplan, Amodei et al., 2018): a batch of B needs 1 + N / B times the steps of a very large one to the same loss,
// and N, the noise scale, is the trace of the gradient's covariance over samples, divided by the squared norm of the
// mean gradient. The noise scale grows while a model learns; it is measured after a few steps.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/training/trainer.h"

namespace hoist {

struct MeasuredBatch {
  int64_t batch = 0;
  double seconds = 0;  ///< of a step
  double squares = 0;  ///< the mean square of the norm of a batch's gradient
};

/// The line of least squares through `squares` as a function of 1 / batch gives both parts of the noise scale. Infinite
/// if the mean gradient is lost in the noise.
double noise_scale(const std::vector<MeasuredBatch>& measured);
/// The time to the same loss, up to a factor that all batch sizes share.
double cost_of(const MeasuredBatch& measured, double noise);

struct ChosenBatch {
  int64_t batch = 0;
  double noise = 0;
  std::vector<MeasuredBatch> measured;
  /// "batch 32: noise scale 410; time to the same loss: ..."
  std::string text() const;
};
/// The batch with the least cost. `measured` is not empty.
ChosenBatch choose_batch(std::vector<MeasuredBatch> measured);

/// Opens a training whose options have another batch size, and tells its data.
using OpenTraining = std::function<Result<TrainingSession>(const TrainingOptions&)>;
using ReadSets = std::function<Result<TrainingSets>(TrainingSession&)>;
/// Trains a few steps with the smallest batch, and measures powers of 4 at these weights.
Result<ChosenBatch> measure_batches(const TrainingOptions& options, const OpenTraining& open, const ReadSets& read);

}  // namespace hoist
