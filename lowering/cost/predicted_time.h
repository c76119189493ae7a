// The predicted time of a kernel: a sum of times, one for each kind of work: the amount of work over the rate of the
// device (Rates of the target description), times a factor that is fitted to measured kernels. Predictions are
// printed with the spread of measured networks. The compiler's choices do not use them: choices compare kernels and
// have costs of their own. A measured time is better, if there is one (tools/inspection/prediction.h).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ir/target/profile.h"
#include "lowering/cost/work.h"

namespace hoist {

enum class TimePart : uint8_t { contractions, operations, functions, weights, arrays, memory, step };
inline constexpr size_t time_parts = 7;
std::string_view name_of(TimePart part);

/// The work of a kernel and the memory of its operands.
struct KernelLoad {
  Work work;
  int64_t weights = 0;      ///< bytes of weights that it reads
  int64_t all_weights = 0;  ///< bytes of all weights of a run, which displace each other from the caches
  bool on_bytes = false;    ///< it multiplies 8-bit integers
  bool shared = false;      ///< threads share its work-groups
};

/// Seconds by part.
struct PredictedTime {
  std::array<double, time_parts> parts{};
  double seconds() const;
};
/// Zero without rates. Never decreases if any amount of work increases.
PredictedTime predicted_time(const KernelLoad& load, const Profile& profile);

/// Among ten networks, the predicted time of `of_ten` is within `percent` % of the measured one.
struct Spread {
  int of_ten;
  int percent;
};
/// The spread of predictions without measurements.
inline constexpr Spread predicted_spread = {7, 20};

}  // namespace hoist
