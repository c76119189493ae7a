// The text that Halide prints, made reproducible and readable: one kernel without the prologue, address spaces written
// out, identifiers renamed in order of appearance (Halide numbers them across the whole process).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/base/result.h"

namespace hoist::emission {

struct KernelText {
  std::string source;
  std::vector<std::string> arguments;  ///< names in order, without the one for local memory
};

/// `printed` is a whole program with one kernel named `printed_name`; `names` gives the final name of each printed
/// buffer name.
Result<KernelText> clean(const std::string& printed, const std::string& printed_name, const std::string& kernel_name,
                         const std::map<std::string, std::string>& names, std::array<uint64_t, 3> local,
                         bool uses_local_memory);

/// The kernel's text as a function that computes one group (EmitOptions::is_fused).
void make_group_function(KernelText& kernel, const std::string& kernel_name);

/// A C identifier close to the name.
std::string identifier(const std::string& name);

}  // namespace hoist::emission
