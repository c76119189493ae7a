// A target description of a GPU for tests, with an H100's sizes.
#pragma once

#include "ir/target/profile.h"

namespace hoist {

inline Profile gpu_profile(int64_t compute_units) {
  Profile out;
  out.gpu = true;
  out.vector_width = 4;
  out.vector_registers = 255;
  out.local_memory = 49152;
  out.compute_units = compute_units;
  return out;
}

}  // namespace hoist
