#include "ir/target/starter_profiles.h"

#include <algorithm>
#include <string>
#include <vector>

namespace hoist {
namespace {

constexpr int64_t kibibyte = 1024;

// CPUs under PoCL, which uses the second-level cache as local memory. x86 CPUs multiply bytes by vpdpbusd or in pairs
// of 16 bits.
Profile cpu(int64_t vector_width, int64_t vector_registers, int64_t local_memory, bool dot_instructions = true) {
  Profile out;
  out.vector_width = vector_width;
  out.vector_registers = vector_registers;
  out.local_memory = local_memory;
  out.compute_units = 8;
  out.maximum_group = 4096;
  out.dot_instructions = dot_instructions;
  return out;
}

Profile gpu(int64_t compute_units, int64_t multiply_adds, int64_t local_memory, int64_t maximum_group) {
  Profile out;
  out.gpu = true;
  out.vector_width = 4;
  out.vector_registers = 255;
  out.compute_units = compute_units;
  out.local_memory = local_memory;
  out.maximum_group = maximum_group;
  out.costs.multiply_adds = multiply_adds;
  return out;
}

// Units and f32 lanes: NVIDIA's architecture whitepapers. NVIDIA's OpenCL limits a work-group to 48 KiB of local memory
// and has no cl_khr_fp16.
Profile nvidia(int64_t multiprocessors, int64_t lanes) {
  Profile out = gpu(multiprocessors, lanes, 48 * kibibyte, 1024);
  out.dot_instructions = true;
  return out;
}

// Units and lanes: AMD's CDNA and RDNA whitepapers. ROCm's OpenCL counts a pair of RDNA's compute units as one.
Profile amd(int64_t units, int64_t multiply_adds, int64_t wave) {
  Profile out = gpu(units, multiply_adds, 64 * kibibyte, 256);
  out.half = true;
  out.costs.subgroup = wave;
  out.costs.unit_registers = 4 * 512 * 64;
  return out;
}

// Execution units: Intel's oneAPI GPU optimization guide; each issues 8 f32 multiply-adds per cycle and has 4 KiB of
// registers for each of its 8 threads. A work-item of a subgroup of 16 has 64 registers of 32 bits.
Profile intel(int64_t execution_units) {
  Profile out = gpu(execution_units, 8, 64 * kibibyte, 1024);
  out.vector_registers = 64;
  out.half = true;
  out.doubles = false;
  out.costs.subgroup = 16;
  out.costs.unit_registers = 8 * 1024;
  return out;
}

// Cores and multiply-adds per core: Arm's datasheet of the Mali GPUs.
Profile mali(int64_t cores) {
  Profile out = gpu(cores, 64, 32 * kibibyte, 1024);
  out.vector_registers = 64;
  out.half = true;
  out.doubles = false;
  out.costs.subgroup = 16;
  return out;
}

std::vector<StarterProfile> make() {
  std::vector<StarterProfile> rows = {
      {"cpu-avx2", "x86-64 processors with AVX2: Intel since Haswell, AMD Zen to Zen 3", cpu(8, 16, 256 * kibibyte)},
      {"cpu-avx512", "x86-64 processors with AVX-512: Intel Skylake-SP", cpu(16, 32, 1024 * kibibyte)},
      {"cpu-avx512-vnni", "x86-64 processors with AVX-512 and VNNI: Intel since Cascade Lake, AMD since Zen 4",
       cpu(16, 32, 1024 * kibibyte)},
      {"cpu-neon", "64-bit Arm processors", cpu(4, 32, 512 * kibibyte, false)},
      {"nvidia-h100", "NVIDIA H100 SXM, H200", nvidia(132, 128)},
      {"nvidia-a100", "NVIDIA A100", nvidia(108, 64)},
      {"nvidia-t4", "NVIDIA T4", nvidia(40, 64)},
      {"nvidia-rtx-4090", "NVIDIA GeForce RTX 4090", nvidia(128, 128)},
      {"nvidia-rtx-3090", "NVIDIA GeForce RTX 3090", nvidia(82, 128)},
      {"nvidia-rtx-3060", "NVIDIA GeForce RTX 3060", nvidia(28, 128)},
      {"amd-mi300x", "AMD Instinct MI300X", amd(304, 128, 64)},
      {"amd-mi250x", "AMD Instinct MI250X, one of its two dies", amd(110, 64, 64)},
      {"amd-rx-7900-xtx", "AMD Radeon RX 7900 XTX", amd(48, 256, 32)},
      {"intel-arc-a770", "Intel Arc A770", intel(512)},
      {"intel-iris-xe", "Intel Iris Xe with 96 execution units", intel(96)},
      {"arm-mali-g710", "Arm Mali-G710 with ten cores", mali(10)},
  };
  for (StarterProfile& row : rows) row.profile.name = row.name;
  return rows;
}

}  // namespace

std::span<const StarterProfile> starter_profiles() {
  static const std::vector<StarterProfile> rows = make();
  return rows;
}

const StarterProfile* find_starter_profile(std::string_view name) {
  const auto rows = starter_profiles();
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const StarterProfile& row) { return row.name == name; });
  return at == rows.end() ? nullptr : &*at;
}

}  // namespace hoist
