// Compiles a small program for a device and times its steps: the kernels by which a device is measured. For bundles use
// BundleRunner.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "ir/base/result.h"
#include "ir/program/program.h"
#include "ir/target/profile.h"

namespace hoist {

struct TimedStep {
  double seconds = 0;  ///< the least of many runs
  int64_t bytes = 0;   ///< all elements that its term reads and writes, once
};

struct TimedProgram {
  std::map<std::string, TimedStep> steps;  ///< by the first layer that each step computes
  int threads = 0;                         ///< compute units in use
};

/// Times the steps of a program with inputs of ones. Takes `duration` seconds and
/// the time to compile. `targets` are native ones, empty for OpenCL. All errors are of the device.
Result<TimedProgram> time_program(Program program, const RunOptions& options, const Profile& profile,
                                  const std::vector<std::string>& targets, double duration = 1);

}  // namespace hoist
