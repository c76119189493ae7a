// Named targets of native code: what a processor has to have, and the shape that loops get for it. A name says all of
// it, so that the same name gives the same bytes on every machine. The C runtime knows the same names
// (backends/runtime/native/native_device.c) and asks the processor for what they need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/target/profile.h"

namespace hoist {

struct NativeTarget {
  const char* name;          ///< "x86-64-v3", as on the command line behind "native:"
  const char* architecture;  ///< "x86_64", as uname has it
  const char* features;      ///< Halide's words for it
  int64_t vector_width;      ///< float lanes
  int64_t vector_registers;
  bool dot_instructions;    ///< sums of products of bytes take fewer instructions than of their widened values
  bool dot_in_instruction;  ///< one instruction adds four products of an unsigned and a signed byte to a sum
  int64_t matrix_tile;      ///< rows and columns of sums that an instruction for products of matrices has; 0: none
  int64_t pair_products;    ///< as Profile::pair_products
  /// Where only the name of a processor with SSE4A and AVX512-BF16 gets the dot instruction out of Halide: that, for
  /// kernels that have dots, and whose code then turns out to use neither. Else null.
  const char* features_for_dots = nullptr;
};

/// All of them; of one architecture, what needs more comes later.
const std::vector<NativeTarget>& native_targets();

/// Errors name the targets that there are.
Result<const NativeTarget*> native_target(const std::string& name);

/// What strategies need to know of it. Nothing in it is this machine's.
Profile profile_of(const NativeTarget& target);

}  // namespace hoist
