#include "backends/halide/native/native_target.h"

#include <fmt/format.h>

#include "ir/text/parse/near_miss.h"

namespace hoist {

const std::vector<NativeTarget>& native_targets() {
  // Halide enables vpdpbusd for AVX-512 only together with all other features of Zen 4 or Sapphire Rapids. Ice Lake,
  // which many virtual machines on later Intel processors offer as well, has nearly all features of Zen 4. The gain of
  // vpmaddwd over vfmadd was measured with AVX2 only.
  static const std::vector<NativeTarget> targets = {
      {"x86-64-v3", "x86_64", "x86-64-linux-sse41-avx-avx2-f16c-fma", 8, 16, true, false, 0, 2},
      {"x86-64-v4", "x86_64", "x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake", 16, 32, true, false, 0, 0},
      {"icelake-server", "x86_64", "x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake", 16, 32, true, true, 0,
       0, "x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake-avx512_cannonlake-avx512_zen4"},
      {"znver4", "x86_64", "x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake-avx512_cannonlake-avx512_zen4",
       16, 32, true, true, 0, 0},
      {"sapphirerapids", "x86_64",
       "x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake-avx512_cannonlake-avx512_sapphirerapids", 16, 32,
       true, true, 16, 0},
      {"aarch64", "aarch64", "arm-64-linux", 4, 32, false, false, 0, 0},
  };
  return targets;
}

Result<const NativeTarget*> native_target(const std::string& name) {
  std::vector<std::string> names;
  for (const NativeTarget& target : native_targets()) {
    if (name == target.name) return &target;
    names.emplace_back(target.name);
  }
  return Diagnostic{"native:" + name, "there is no such target",
                    did_you_mean(name, names, fmt::format("there are {}", fmt::join(names, ", ")))};
}

Profile profile_of(const NativeTarget& target) {
  Profile out;
  out.name = std::string("native ") + target.name;
  out.vector_width = target.vector_width;
  out.vector_registers = target.vector_registers;
  out.dot_instructions = target.dot_instructions;
  out.matrix_tile = target.matrix_tile;
  out.pair_products = target.pair_products;
  out.launch = 100;
  out.vector_functions = true;
  return out;
}

}  // namespace hoist
