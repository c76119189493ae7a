#include "backends/halide/native_target.h"

#include "ir/text/near_miss.h"

namespace hoist {

const std::vector<NativeTarget>& native_targets() {
  static const std::vector<NativeTarget> targets = {
      {"x86-64-v3", "x86_64", "x86-64-linux-sse41-avx-avx2-f16c-fma", 8, 16, true},
      {"x86-64-v4", "x86_64", "x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake", 16, 32, true},
      {"aarch64", "aarch64", "arm-64-linux", 4, 32, false},
  };
  return targets;
}

Result<const NativeTarget*> native_target(const std::string& name) {
  std::vector<std::string> names;
  std::string all;
  for (const NativeTarget& target : native_targets()) {
    if (name == target.name) return &target;
    names.emplace_back(target.name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  return Diagnostic{"native:" + name, "there is no such target", did_you_mean(name, names, "there are " + all)};
}

Profile profile_of(const NativeTarget& target) {
  Profile out;
  out.name = std::string("native ") + target.name;
  out.vector_width = target.vector_width;
  out.vector_registers = target.vector_registers;
  out.dot_instructions = target.dot_instructions;
  return out;
}

}  // namespace hoist
