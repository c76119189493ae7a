#include "tools/training/batch_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/stopwatch.h"

namespace hoist {
namespace {

constexpr int64_t smallest = 8, largest = 512, first_steps = 64, measured_steps = 8;

// The rest is as in the training; a limit that no gradient reaches gives the norm.
TrainingOptions measuring(TrainingOptions options, int64_t batch) {
  options.batch = batch;
  options.accumulated = 1;
  options.clip = 1e30;
  options.automatic.clear();
  options.step.clear();
  return options;
}

Result<MeasuredBatch> measure(TrainingSession& session, const TrainingData& data, int64_t batch, uint64_t seed) {
  MeasuredBatch out{batch, std::numeric_limits<double>::infinity(), 0};
  const int64_t steps = std::min(measured_steps, data.count() / batch);
  const std::vector<int64_t> order = order_of_epoch(data.count(), seed, 1);
  for (int64_t i = 0; i < steps; ++i) {
    const auto first = order.begin() + i * batch;
    std::vector<Tensor> samples = batch_of(data, {first, first + batch}, session.shape());
    const Stopwatch stopwatch;
    HOIST_TRY_VOID(session.step(std::move(samples), 0));
    out.seconds = std::min(out.seconds, stopwatch.seconds());
    HOIST_TRY(const double norm, session.gradient_norm());
    out.squares += norm * norm / static_cast<double>(steps);
  }
  return out;
}

}  // namespace

double noise_scale(const std::vector<MeasuredBatch>& measured) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const MeasuredBatch& each : measured) {
    const double inverse = 1 / static_cast<double>(each.batch);
    n += 1, x += inverse, y += each.squares, xx += inverse * inverse, xy += inverse * each.squares;
  }
  const double spread = n * xx - x * x;
  const double covariance = spread > 0 ? std::max((n * xy - x * y) / spread, 0.0) : 0;
  const double square = n > 0 ? (y - covariance * x) / n : 0;
  return square > 0 ? covariance / square : std::numeric_limits<double>::infinity();
}

double cost_of(const MeasuredBatch& measured, double noise) {
  const auto batch = static_cast<double>(measured.batch);
  return measured.seconds * (std::isfinite(noise) ? 1 + noise / batch : 1 / batch);
}

ChosenBatch choose_batch(std::vector<MeasuredBatch> measured) {
  ChosenBatch out;
  out.noise = noise_scale(measured);
  const auto best = std::min_element(measured.begin(), measured.end(), [&](const auto& a, const auto& b) {
    return cost_of(a, out.noise) < cost_of(b, out.noise);
  });
  out.batch = best->batch;
  out.measured = std::move(measured);
  return out;
}

std::string ChosenBatch::text() const {
  double least = std::numeric_limits<double>::infinity();
  for (const MeasuredBatch& each : measured) least = std::min(least, cost_of(each, noise));
  std::string out = fmt::format("batch {}: the gradient's noise scale is {:.3g}; time to the same loss", batch, noise);
  for (const MeasuredBatch& each : measured)
    out += fmt::format("{} {:.2f} with {} ({:.3g} ms a step)", &each == &measured.front() ? ":" : ",",
                       cost_of(each, noise) / least, each.batch, 1e3 * each.seconds);
  return out;
}

Result<ChosenBatch> measure_batches(const TrainingOptions& options, const OpenTraining& open, const ReadSets& read) {
  std::vector<MeasuredBatch> measured;
  TrainingSets sets;
  WeightValues weights;
  for (int64_t batch = smallest; batch <= largest; batch *= 4) {
    if (batch > smallest && batch * 2 > sets.data.count()) break;  // the noise of one batch is unknown
    HOIST_TRY(TrainingSession session, open(measuring(options, batch)));
    if (batch == smallest) {
      HOIST_TRY(sets, read(session));
      if (sets.data.count() < 2 * smallest)
        return Diagnostic{"--batch auto", fmt::format("{} samples are too few", sets.data.count()),
                          fmt::format("{} or more, or a number", 2 * smallest)};
      const std::vector<int64_t> order = order_of_epoch(sets.data.count(), options.seed, 0);
      for (int64_t i = 0; i < std::min(first_steps, sets.data.count() / batch); ++i) {
        const auto first = order.begin() + i * batch;
        HOIST_TRY_VOID(session.step(batch_of(sets.data, {first, first + batch}, session.shape()), options.rate));
      }
      HOIST_TRY(weights, session.weight_values());
    }
    HOIST_TRY_VOID(session.set_weights(weights));
    HOIST_TRY(const MeasuredBatch one, measure(session, sets.data, batch, options.seed));
    measured.push_back(one);
  }
  return choose_batch(std::move(measured));
}

}  // namespace hoist
