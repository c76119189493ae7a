// The text files of a bundle: kernels.cl (kernels.txt for native code), expressions.lift, manifest.json, example.c,
// Makefile and CMakeLists.txt. Each is a function of the plan alone. Internal to backends/bundle.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/plan/plan.h"

namespace hoist {

/// A file with the section of each kernel: first byte and number of bytes.
struct SectionedText {
  std::string text;
  std::vector<std::pair<size_t, size_t>> sections;
};

/// The file's name in a bundle.
const char* kernels_file(const Plan& plan);
/// The preamble, then each kernel after a comment that names its layers.
SectionedText kernels_text(const Plan& plan);
SectionedText expressions_text(const Plan& plan);

struct ListedPlan {
  std::vector<std::pair<std::string, int64_t>> sizes;
  const Plan* plan;
};

/// `listed` holds all specialisations for the manifest of the first one, and is empty for the others.
std::string manifest_text(const Plan& plan, const SectionedText& kernels, const SectionedText& expressions,
                          const std::vector<ListedPlan>& listed);

/// The libraries that the plan's host ops require besides the C library: pkg-config names, and the macros that enable
/// them.
std::map<std::string, std::string> host_libraries(const Plan& plan);
std::string example_text(const Plan& plan);
/// With `several` specialisations, each has its libraries of native code in a folder of its own.
std::string makefile_text(const Plan& plan, bool several);
std::string cmake_text(const Plan& plan, bool several);

}  // namespace hoist
