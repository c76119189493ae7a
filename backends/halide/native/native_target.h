// Named targets of native code: the processor features that they require, and the shape of loops for them. A name
// determines everything, so the same name gives the same bytes on every machine. The C runtime has the same names
// (backends/runtime/native/native_device.c) and tests the processor for their features.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/target/profile.h"

namespace hoist {

struct NativeTarget {
  const char* name;          ///< "x86-64-v3", as on the command line after "native:"
  const char* architecture;  ///< "x86_64", as printed by uname
  const char* features;      ///< Halide's target string
  int64_t vector_width;      ///< float lanes
  int64_t vector_registers;
  bool dot_instructions;    ///< dot products of bytes take fewer instructions than of widened values
  bool dot_in_instruction;  ///< one instruction adds four products of an unsigned and a signed byte to a sum
  int64_t matrix_tile;      ///< rows and columns of the sums of a matrix instruction; 0: no such instruction
  int64_t pair_products;    ///< as Profile::pair_products
  /// Features for kernels with dot products, if Halide enables the dot instruction only for a processor that also has
  /// SSE4A and AVX512-BF16. They are used if the resulting code contains neither extension. Null for other targets.
  const char* features_for_dots = nullptr;
};

/// All targets; within an architecture in order of increasing requirements.
const std::vector<NativeTarget>& native_targets();

/// Errors list the known targets.
Result<const NativeTarget*> native_target(const std::string& name);

/// The target description for strategies. It does not depend on this machine.
Profile profile_of(const NativeTarget& target);

}  // namespace hoist
