// The target description: the compiler's knowledge of a device, as a small text file with one "key = value" per line,
// made by `hoist devices --profile`. Strategies and the cost model read it; no other part of the compiler depends on
// the device. The defaults describe a CPU with AVX-512; keys for GPUs describe an H100. Unknown keys and values out of
// range are errors that name the line.
#pragma once

#include <cstdint>
#include <string>

#include "ir/base/result.h"

namespace hoist {

/// Parameters of the cost model for work-groups on a GPU (lowering/tiling/tile.h). The defaults fit an H100 and an
/// H200. No driver reports these values.
struct WorkGroupCosts {
  int64_t multiply_adds = 128;     ///< f32 multiply-adds that a compute unit issues per cycle
  int64_t local_words = 64;        ///< 32-bit loads per cycle of a compute unit from local memory or its cache
  int64_t global_words = 10;       ///< 32-bit loads per cycle of a compute unit from beyond its cache
  int64_t unit_registers = 65536;  ///< 32-bit registers of a compute unit, shared by its work-groups
  int64_t unit_groups = 8;         ///< maximum number of resident work-groups per compute unit
  int64_t subgroup = 32;           ///< work-items that execute in lockstep
  int64_t memory_cycles = 250;     ///< latency of a load from memory, in cycles
};

/// Times of loads on a CPU, in the time of one vector instruction (lowering/cost/access_cost.h). The defaults are
/// fitted to the second product of an MLP (128x3072 by 3072x768) with AVX-512: with vectors across its rows it takes 28
/// times as long as with vectors along its columns, and 19 times by these costs.
struct LoadCosts {
  int64_t lane = 2;           ///< one lane of a vector, loaded alone from a line in the first cache
  int64_t distant_lane = 8;   ///< the same from a line that does not stay in the first cache
  int64_t distant_value = 2;  ///< a value for all lanes, from another line in each step of a sum
};

/// Measured rates of a device, from which lowering/cost/predicted_time.h predicts times. No choice depends on them, so
/// a description with rates and the same without give the same kernels. All rates are stated, or none.
struct Rates {
  /// The native target whose code was measured (backends/halide/native/native_target.h); "" for OpenCL.
  std::string target;
  int64_t threads = 0;          ///< compute units that the measured kernels share; 0: nothing was measured
  int64_t multiply_adds = 0;    ///< f32 multiply-adds of contractions, in millions per second, as the next six
  int64_t byte_products = 0;    ///< products of 8-bit integers in contractions
  int64_t comparisons = 0;      ///< minima, maxima and selections of f32
  int64_t divisions = 0;        ///< of f32
  int64_t transcendentals = 0;  ///< exponentials of f32
  int64_t integers = 0;         ///< additions and multiplications of i32
  int64_t conversions = 0;      ///< between f32 and i32
  int64_t first_cache = 0;      ///< megabytes per second, read and written, of arrays in the first cache of each core
  int64_t second_caches = 0;    ///< the same in the second caches of all cores
  int64_t memory = 0;           ///< the same in memory
  int64_t step = 0;             ///< nanoseconds of a step of a run that computes next to nothing
  int64_t barrier = 0;          ///< additional nanoseconds of a step that all threads share

  bool known() const { return threads > 0; }
};

struct Profile {
  std::string name = "generic CPU";
  bool gpu = false;               ///< from the row `kind = cpu | gpu`: strategies map loops differently to the two
  int64_t vector_width = 16;      ///< f32 lanes of a vector register: 1, 2, 4, 8 or 16
  int64_t vector_registers = 32;  ///< per core (CPU), or 32-bit registers per work-item (GPU)
  int64_t local_memory = 32768;   ///< bytes available to a work-group
  int64_t compute_units = 2;
  int64_t maximum_group = 1024;   ///< maximum number of work-items per work-group
  bool half = false;              ///< cl_khr_fp16: arithmetic in f16 that rounds to nearest and keeps denormals
  bool doubles = true;            ///< cl_khr_fp64
  bool dot_instructions = false;  ///< 8-bit dot products (vpdpbusd, dp4a)
  /// tanh, erf and similar functions compute whole vectors, as in native code; OpenCL drivers for CPUs call them per
  /// lane.
  bool vector_functions = false;
  int64_t first_cache = 32768;      ///< bytes of the data cache of one core (CPU)
  int64_t second_caches = 4 << 20;  ///< bytes of the next cache levels, of all cores together (CPU)
  /// The tile of matrix instructions for 8 bits and bf16: the maximum number of rows and of columns of 32-bit sums, and
  /// of 32-bit words along the contracted dimension (AMX: 16); 0: no such instructions (CPU).
  int64_t matrix_tile = 0;
  /// The number of 16-bit products, summed in pairs, that take as long as one f32 multiply-add if there is no faster
  /// instruction for bytes (CPU); 0: unknown, and no 16-bit contraction is derived.
  int64_t pair_products = 0;
  int64_t launch =
      0;  ///< overhead of a kernel launch in nanoseconds; 0: unknown, some microseconds with OpenCL drivers
  WorkGroupCosts costs;  ///< keys of GPUs: printed for GPUs only
  LoadCosts loads;       ///< keys of CPUs: printed if they are not the default
  Rates rates;           ///< printed if they are known
};

Result<Profile> parse_profile(const std::string& text, const std::string& where);
std::string print(const Profile& profile);
/// The same without rates: the keys on which kernels depend, by which measurements of kernels are stored.
std::string print_without_rates(const Profile& profile);
/// True if all keys but rates and the costs of work-groups and loads are equal.
bool same_device(const Profile& a, Profile b);

}  // namespace hoist
