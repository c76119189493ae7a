// Writing a plan to disk as a bundle, and reading a bundle back for tools. A bundle is a folder (backends/README.md
// lists its files); plan.bin is its root of trust and holds the hash of every other file but example.c, Makefile and
// CMakeLists.txt, which are the user's. Writing is all or nothing and gives the same bytes for the same plan. Not for
// running a bundle: that is the C runtime (backends/runtime), or BundleRunner in backends/opencl for the hoist program.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/result.h"
#include "ir/plan/plan.h"

struct hoist_preprocessing;

namespace hoist {

struct BundleOptions {
  bool force = false;  ///< replace an existing folder, if it is a bundle; an empty one is none
  /// Gets the finished bundle, under a name of its own, before it takes the place of `folder`; an error stops that.
  std::function<Result<Nothing>(const std::filesystem::path&)> check = {};
};

/// Writes into a sibling folder and renames it to `folder` when everything is on disk. On failure (a folder that
/// exists, a full disk, a file-size limit) nothing is left behind and what was there stays. The plan's invariants are
/// checked with HOIST_CHECK.
Result<Nothing> write_bundle(const Plan& plan, const std::filesystem::path& folder, const BundleOptions& options = {});

/// How many sets of sizes one bundle is compiled for at most.
size_t most_specialisations();

/// One of the plans of a bundle that is compiled for several sizes.
struct SizedPlan {
  std::vector<std::pair<std::string, int64_t>> sizes;  ///< by name; the same names in all of them
  Plan* plan;                                          ///< the same inputs and outputs by name, type and rank
};

/// The same for several sizes, at most most_specialisations(): the first is what opens. Weights of the same bytes are
/// there once, for which they get other offsets in the plans.
Result<Nothing> write_bundle(const std::vector<SizedPlan>& plans, const std::filesystem::path& folder,
                             const BundleOptions& options = {});

struct BundleInfo {
  Plan plan;             ///< as it was written; constants of weights are read only on request
  std::string manifest;  ///< manifest.json as text
  /// Of all specialisations, in their order; empty where the bundle is compiled for one set of sizes.
  std::vector<std::vector<std::pair<std::string, int64_t>>> sizes = {};
};

/// Checks the hashes of all files first. With `with_weights` the arrays placed in the weights hold their constants.
/// Plan and manifest are those of one specialisation, the first unless another is asked for.
Result<BundleInfo> read_bundle(const std::filesystem::path& folder, bool with_weights = false,
                               size_t specialisation = 0);

/// What a plan keeps of the C runtime's words for how pictures become its input of that number.
PlanPreprocessing plan_preprocessing(int input, const hoist_preprocessing& how);
/// The other way; the picture's size is the input's, which whoever reads pictures knows.
hoist_preprocessing runtime_preprocessing(const PlanPreprocessing& how);

/// Whether the folder holds a plan.bin that begins as one: enough to replace it, not to trust it.
bool is_bundle(const std::filesystem::path& folder);

}  // namespace hoist
