// What is known of a device when a model is compiled for it: a small text file, key = value a line, made by
// `hoist devices --profile`. Strategies read it, nothing else in the compiler knows the device. Every key has a default
// for a CPU with AVX-512, those of GPUs alone for an H100; unknown keys and values out of range are errors that name
// the line.
#pragma once

#include <cstdint>
#include <string>

#include "ir/base/result.h"

namespace hoist {

/// What the time of a GPU's work-groups is estimated from (lowering/tiling/tile.h). The defaults are those of an H100
/// and an H200. No driver reports them.
struct WorkGroupCosts {
  int64_t multiply_adds = 128;     ///< in f32 that a compute unit issues in a cycle
  int64_t local_words = 64;        ///< of 32 bits that its work-items get from local memory, or its cache, in a cycle
  int64_t global_words = 10;       ///< of 32 bits that it gets from behind its own cache in a cycle
  int64_t unit_registers = 65536;  ///< of 32 bits, for all groups that share a compute unit
  int64_t unit_groups = 8;         ///< that share one at most
  int64_t subgroup = 32;           ///< work-items that advance together
  int64_t memory_cycles = 250;     ///< that one waits for memory
};

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
  /// tanh, erf and their like take whole vectors, as in native code; drivers of CPUs call them lane by lane.
  bool vector_functions = false;
  int64_t first_cache = 32768;      ///< bytes of the data cache next to a core (CPU)
  int64_t second_caches = 4 << 20;  ///< bytes of the caches behind those, of all cores together (CPU)
  /// Of instructions for products of matrices, of 8 bits and of bf16, how many rows and columns of 32-bit sums they
  /// have at most, and how many words of four bytes they add the products of to each (AMX: 16); 0: there are none.
  int64_t matrix_tile = 0;
  /// 16-bit products, summed in pairs, that take as long as one multiply-add in f32, where bytes have no faster
  /// instruction (CPU); 0: not known, and nothing is derived for them.
  int64_t pair_products = 0;
  int64_t launch = 0;    ///< nanoseconds that a kernel takes beside its work; 0: some microseconds, as drivers do
  WorkGroupCosts costs;  ///< keys of GPUs: printed for those alone
};

Result<Profile> parse_profile(const std::string& text, const std::string& where);
std::string print(const Profile& profile);
/// The same device: all but what its work-groups are thought to cost.
bool same_device(const Profile& a, Profile b);

}  // namespace hoist
