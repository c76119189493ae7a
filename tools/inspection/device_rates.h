// Measures the rates of a device that predictions need (Rates of the target description), with kernels that hoist
// compiles for it: a product of matrices, chains of operations of one class, copies that fit each level of memory, and
// kernels that compute next to nothing. For the limits of a bundle's kernels use roofline.h.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "ir/base/result.h"
#include "ir/target/profile.h"
#include "tools/inspection/roofline.h"

namespace hoist {

/// The rates that go with measured peaks. Takes `duration` seconds, and the driver's or the compiler's time to build
/// seven kernels. `targets`: native targets, or none for OpenCL. Errors: the device cannot run them.
Result<Rates> measure_rates(const Peaks& peaks, const RunOptions& options, const Profile& profile,
                            const std::vector<std::string>& targets, double duration = 1);

}  // namespace hoist
