// What limits each kernel of a bundle, after Williams, Waterman and Patterson (Roofline, CACM 2009): arithmetic, the
// memory that its arrays fit in, or the launch, each against what the device does at its best. The best is measured,
// by kernels that hoist compiles for the same device: sums of products in registers, copies of arrays of several
// sizes, and a kernel that does next to nothing. A kernel that computes its layer by fewer products than the layer has,
// as Winograd's do, is measured by those that it computes. Not for other types than f32: a kernel of 8-bit products may
// pass its bound.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "ir/plan.h"
#include "ir/profile.h"
#include "tools/attempt.h"

namespace hoist {

/// What the device does at its best.
struct Peaks {
  double operations = 0;  ///< of f32 a second; a fused multiply-add counts as two
  struct Copy {
    int64_t bytes = 0;  ///< read and written
    double rate = 0;    ///< bytes a second
  };
  std::vector<Copy> copies;  ///< by rising size
  double launch = 0;         ///< seconds of a kernel that does next to nothing
};

/// About a second, and the driver's time for six kernels. `targets` are those of the bundle, none for OpenCL.
Attempt<Peaks> measure_peaks(const RunOptions& options, const Profile& profile,
                             const std::vector<std::string>& targets);

enum class Bound : uint8_t { arithmetic, memory, launch };

struct Roof {
  Bound bound = Bound::launch;
  double seconds = 0;  ///< that the kernel takes at least
};

/// `operations` and `bytes` of one launch: all elements of a kernel's arrays, once.
Roof roof_of(const Peaks& peaks, int64_t operations, int64_t bytes);
std::string_view name_of(Bound bound);

/// A step of a run.
struct TimedKernel {
  std::string name;
  std::vector<std::string> layers;
  double seconds = 0;                 ///< of one launch
  int64_t operations = 0, bytes = 0;  ///< of one launch, as roof_of takes them
};

/// What the kernels show of the device beside what was measured of it: that a launch takes no longer than they do.
Peaks peaks_beside(Peaks peaks, const std::vector<TimedKernel>& kernels);

/// Of all arrays that the kernel reads or writes.
int64_t bytes_of(const PlanKernel& kernel);

/// Seconds of each step of a run, of many runs; inputs are what the bundle has.
Attempt<std::vector<std::vector<double>>> time_steps(BundleRunner& bundle, double seconds);
/// The steps with the lower quartiles of their times.
std::vector<TimedKernel> timed_kernels(const BundleRunner& bundle, const Plan& plan,
                                       const std::vector<std::vector<double>>& seconds);

}  // namespace hoist
