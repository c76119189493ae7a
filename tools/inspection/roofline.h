// What limits each kernel of a bundle, after Williams, Waterman and Patterson (Roofline, CACM 2009): arithmetic, the
// memory that its arrays fit in, or the launch, each against what the device does at its best. The best is measured,
// by kernels that hoist compiles for the same device: sums of products in registers and products of matrices, of f32
// and of bytes, copies of arrays of several sizes, and a kernel that does next to nothing. A kernel that computes its
// layer by fewer products than the layer has, as Winograd's do, is measured by those that it computes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "ir/plan/plan.h"
#include "ir/target/profile.h"
#include "tools/cli/attempt.h"

namespace hoist {

/// What the device does at its best.
struct Peaks {
  double operations = 0;  ///< of f32 a second; a fused multiply-add counts as two
  struct Copy {
    int64_t bytes = 0;  ///< read and written
    double rate = 0;    ///< bytes a second
  };
  std::vector<Copy> copies;    ///< by rising size
  double launch = 0;           ///< seconds of a kernel that does next to nothing
  double byte_operations = 0;  ///< as `operations`, for products of numbers of 8 bits; 0: not measured
};

/// About a second, and the driver's time for seven kernels. `targets` are those of the bundle, none for OpenCL.
Attempt<Peaks> measure_peaks(const RunOptions& options, const Profile& profile,
                             const std::vector<std::string>& targets);

enum class Bound : uint8_t { arithmetic, memory, launch };

struct Roof {
  Bound bound = Bound::launch;
  double seconds = 0;  ///< that the kernel takes at least
};

/// What a kernel does in one launch.
struct KernelWork {
  int64_t operations = 0;
  int64_t bytes = 0;      ///< all elements of its arrays, once
  bool on_bytes = false;  ///< what it multiplies are numbers of 8 bits
};

Roof roof_of(const Peaks& peaks, const KernelWork& work);
std::string_view name_of(Bound bound);

/// A step of a run.
struct TimedKernel {
  std::string name;
  std::vector<std::string> layers;
  double seconds = 0;  ///< of one launch
  KernelWork work;
};

/// What the kernels show of the device beside what was measured of it: that a launch takes no longer than they do.
Peaks peaks_beside(Peaks peaks, const std::vector<TimedKernel>& kernels);

/// Its operands are numbers of 8 bits where it reads two arrays of them, values and weights.
KernelWork work_of(const PlanKernel& kernel);

/// Seconds of each step of a run, of many runs; inputs are what the bundle has.
Attempt<std::vector<std::vector<double>>> time_steps(BundleRunner& bundle, double seconds);
/// The steps with the lower quartiles of their times.
std::vector<TimedKernel> timed_kernels(const BundleRunner& bundle, const Plan& plan,
                                       const std::vector<std::vector<double>>& seconds);

}  // namespace hoist
