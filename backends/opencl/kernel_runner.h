// Compiles one kernel and runs it once, so that tests can compare a kernel with the interpreter without a bundle. Every
// buffer is separate, and written buffers start as a NaN pattern, so that an unwritten element is visible.
#pragma once

#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/language/tensor.h"
#include "ir/plan/plan.h"

namespace hoist {

struct KernelRun {
  std::string device;         ///< as in find_device
  bool clear_result = false;  ///< start from zeros: for kernels that write the interior of a cleared array
};

/// `inputs` are the parameters that are not written, in order. Returns the written ones, in order. Contexts are kept
/// for the whole process, one per device.
Result<std::vector<Tensor>> run_kernel(const PlanKernel& kernel, const std::string& preamble,
                                       const std::string& build_options, const std::vector<Tensor>& inputs,
                                       const KernelRun& options = {});

}  // namespace hoist
