// What is known of a device when a model is compiled for it: a small text file, key = value a line, made by
// `hoist devices --profile`. Strategies read it, nothing else in the compiler knows the device. Every key has a default
// for a CPU with AVX-512; unknown keys and values out of range are errors that name the line.
#pragma once

#include <cstdint>
#include <string>

#include "ir/result.h"

namespace hoist {

struct Profile {
  std::string name = "generic CPU";
  bool gpu = false;               ///< kind = cpu | gpu: which of the two mappings strategies use
  int64_t vector_width = 16;      ///< float lanes of a vector register: 1, 2, 4, 8 or 16
  int64_t vector_registers = 32;  ///< of a core (CPU), or 32-bit registers a work-item may use (GPU)
  int64_t local_memory = 32768;   ///< bytes a work-group can have
  int64_t compute_units = 2;
  int64_t maximum_group = 1024;   ///< work-items of a group
  bool half = false;              ///< cl_khr_fp16: arithmetic in f16 that rounds to nearest and keeps denormals
  bool doubles = true;            ///< cl_khr_fp64
  bool dot_instructions = false;  ///< 8-bit dot products (vpdpbusd, dp4a)
};

Result<Profile> parse_profile(const std::string& text, const std::string& where);
std::string print(const Profile& profile);

}  // namespace hoist
