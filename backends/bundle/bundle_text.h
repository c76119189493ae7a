// The files of a bundle that are for people: kernels.cl (of native code kernels.txt), expressions.lift, manifest.json,
// example.c, Makefile and CMakeLists.txt. All of them are functions of the plan alone. Internal to backends/bundle.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/plan/plan.h"

namespace hoist {

/// A file made of parts, with where each kernel's part lies: first byte and number of bytes.
struct SectionedText {
  std::string text;
  std::vector<std::pair<size_t, size_t>> sections;
};

/// Its name in a bundle.
const char* kernels_file(const Plan& plan);
/// The preamble, then each kernel under a comment that names its layers.
SectionedText kernels_text(const Plan& plan);
SectionedText expressions_text(const Plan& plan);

struct ListedPlan {
  std::vector<std::pair<std::string, int64_t>> sizes;
  const Plan* plan;
};

/// `listed` are all specialisations in the manifest of the first, none in those of others.
std::string manifest_text(const Plan& plan, const SectionedText& kernels, const SectionedText& expressions,
                          const std::vector<ListedPlan>& listed);

/// What the plan's steps on the host need beside the C library: pkg-config's names, and the macros that say it is
/// there.
std::map<std::string, std::string> host_libraries(const Plan& plan);
std::string example_text(const Plan& plan);
/// With `several` specialisations, whose libraries of native code lie in folders of their own.
std::string makefile_text(const Plan& plan, bool several);
std::string cmake_text(const Plan& plan, bool several);

}  // namespace hoist
