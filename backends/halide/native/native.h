// Native code of one kernel (native.cpp). Internal to backends/halide, because it includes Halide.h.
#pragma once

#include <set>
#include <string>

#include "backends/halide/emitter.h"

namespace hoist::emission {

struct NativeCode {
  std::string object;                ///< an object file for the target
  uint64_t groups = 1;               ///< that the kernel can be called with
  std::set<std::string> prefetched;  ///< arrays that it asks for ahead of their use, by Halide's names
};

/// `result` is what `emitter` built, and is not used for anything else. Errors: the target has no such name, or a file
/// cannot be written. Throws what Halide throws.
Result<NativeCode> native_code(H::Func& result, const Emitter& emitter, const std::string& kernel_name,
                               const std::string& target);

}  // namespace hoist::emission
