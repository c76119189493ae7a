// The limit of each kernel of a bundle, after Williams, Waterman and Patterson (Roofline, CACM 2009): arithmetic, the
// memory level that holds its arrays, or the launch, each relative to the device's peak. Peaks are measured with
// kernels that hoist compiles for the same device: register-only contractions and matmuls, of f32 and of bytes, copies
// of several sizes, and a nearly empty kernel. A kernel that computes its layer with fewer multiplications than the
// layer has (Winograd) is rated by the multiplications that it executes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "ir/base/result.h"
#include "ir/plan/plan.h"
#include "ir/target/profile.h"
#include "tools/inspection/prediction.h"

namespace hoist {

/// The measured peaks of a device.
struct Peaks {
  double operations = 0;  ///< f32 operations per second; a fused multiply-add counts as two
  struct Copy {
    int64_t bytes = 0;  ///< read and written
    double rate = 0;    ///< bytes per second
  };
  std::vector<Copy> copies;    ///< in increasing order of size
  double launch = 0;           ///< seconds of a nearly empty kernel
  double byte_operations = 0;  ///< as `operations`, for 8-bit integers; 0 if not measured
};

/// Measures the peaks of a device. Takes `duration` seconds, and the driver's time to build seven kernels. `targets`
/// are the bundle's, empty for OpenCL.
Result<Peaks> measure_peaks(const RunOptions& options, const Profile& profile, const std::vector<std::string>& targets,
                            double duration = 1);

enum class Bound : uint8_t { arithmetic, memory, launch };

struct Roof {
  Bound bound = Bound::launch;
  double seconds = 0;  ///< lower bound of the kernel's time
};

/// The work of one launch of a kernel.
struct KernelWork {
  int64_t operations = 0;
  int64_t bytes = 0;      ///< all elements that its term reads and writes, once
  bool on_bytes = false;  ///< it multiplies 8-bit integers
};

Roof roof_of(const Peaks& peaks, const KernelWork& work);
std::string_view name_of(Bound bound);

/// A step of a run.
struct TimedKernel {
  std::string name;
  std::vector<std::string> layers;
  double seconds = 0;  ///< seconds of one launch
  KernelWork work;
  double predicted = 0;  ///< predicted seconds of the step
};

/// The peaks of a device that has run these kernels in these times: higher where a kernel exceeds a peak, so that no
/// kernel is above its roof. Kernels with smaller arrays that exceed the rate of the largest copy add one level of
/// memory.
Peaks peaks_along_with(Peaks peaks, const std::vector<TimedKernel>& kernels);

/// The work of so many executions of a kernel. It counts as work on bytes if it reads two 8-bit arrays, values and
/// weights.
KernelWork work_of(const PlanKernel& kernel, uint64_t runs);

/// Seconds of each step, for each of many runs, with the inputs that the bundle has.
Result<std::vector<std::vector<double>>> time_steps(BundleRunner& bundle, double seconds);
/// The steps with the lower quartiles of their times. `predicted`: of the same plan.
std::vector<TimedKernel> timed_kernels(const BundleRunner& bundle, const Plan& plan,
                                       const std::vector<std::vector<double>>& seconds, const Prediction& predicted);

}  // namespace hoist
