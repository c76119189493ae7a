// The predicted time of a model: the sum over its steps, each measured if a tuning file has the time of its kernel on
// this device, else predicted from the rates of the target description. compile, inspect, bench and the report share
// it. Control flow that depends on data counts each step once.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/target/profile.h"
#include "lowering/cost/predicted_time.h"
#include "lowering/plan/lowered_model.h"
#include "tools/records/tuning_database.h"

namespace hoist {

struct PredictedStep {
  double seconds = 0;  ///< 0: neither measured nor predicted
  bool is_measured = false;
  PredictedTime time;  ///< by part, without measurements; zero without rates
};

struct Prediction {
  std::vector<PredictedStep> steps;  ///< one for each step of a run; none without rates and measurements
  double seconds = 0;
  size_t measured = 0;    ///< the number of steps with a measured time
  bool is_known = false;  ///< true if every step has a time

  /// The share of networks for which predictions like this one are near the measured time.
  Spread spread() const;
};

/// The spread of predictions whose steps are all measured: of 16 networks and 87 blocks on one thread of a Zen 5, in
/// two measurements while other programs ran, the second run is nearer for 14 and 73.
inline constexpr Spread measured_spread = {8, 15};

/// `profile` has the rates; without rates only measured steps have times. Host ops take no time.
Prediction prediction_of(const Plan& plan, const Profile& profile, const tuning::KernelTimes& times = {});
Prediction prediction_of(const LoweredModel& model, const Profile& profile, const tuning::KernelTimes& times = {});

/// "predicted: 12.1 ms a run (7 of 10 networks within 20 %)"; "" if the time is unknown.
std::string text_of(const Prediction& prediction);
/// null if the time is unknown.
nlohmann::ordered_json to_json(const Prediction& prediction);

/// The times of kernels from the seconds of each step. OpenCL drivers time kernels without their launches: there, the
/// times are scaled to add up to the whole run. Native steps contain everything, and their sum is less disturbed by
/// other work on the machine than whole runs are.
tuning::KernelTimes kernel_times(const Plan& plan, const std::vector<double>& steps, double run);

}  // namespace hoist
