// Native code of one kernel (native.cpp). Internal to backends/halide, because it includes Halide.h.
#pragma once

#include <set>
#include <string>

#include "backends/halide/emitter.h"

namespace hoist::emission {

struct NativeCode {
  std::string object;                ///< an object file for the target
  std::set<std::string> prefetched;  ///< arrays that it prefetches, by Halide's names
};

/// Compiles `result`, which `emitter` built; the Func cannot be used afterwards. Errors: an unknown target, or a file
/// that cannot be written. Throws Halide's exceptions.
Result<NativeCode> native_code(H::Func& result, const Emitter& emitter, const std::string& kernel_name,
                               const std::string& target);

}  // namespace hoist::emission
