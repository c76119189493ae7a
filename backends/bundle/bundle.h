// Writing a plan to disk as a bundle, and reading a bundle back for tools. A bundle is a folder
// (tools/pages/reference/bundle.md lists its files); plan.bin is its root of trust and holds the hash of every other
// file except example.c, Makefile and CMakeLists.txt, which users may edit. Writing is all or nothing and gives the
// same bytes for the same plan. Not for running a bundle: use the C runtime (backends/runtime), or BundleRunner in
// backends/opencl inside the hoist program.
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
  bool force = false;  ///< replace an existing folder if it is a bundle; an empty folder is none
  /// Receives the finished bundle, under a temporary name, before it replaces `folder`; an error stops the replacement.
  std::function<Result<Nothing>(const std::filesystem::path&)> check = {};
};

/// Writes into a sibling folder and renames it to `folder` when everything is on disk. On failure (a folder that
/// exists, a full disk, a file-size limit) no new file remains and an existing folder is unchanged. The plan's
/// invariants are checked with HOIST_CHECK.
Result<Nothing> write_bundle(const Plan& plan, const std::filesystem::path& folder, const BundleOptions& options = {});

/// The limit of specialisations of one bundle.
size_t most_specialisations();

/// One of the plans of a bundle that is compiled for several sizes.
struct SizedPlan {
  std::vector<std::pair<std::string, int64_t>> sizes;  ///< values of the sizes by name; the same names in all plans
  Plan* plan;                                          ///< the same inputs and outputs by name, type and rank
};

/// The same for one or several sizes, at most most_specialisations(): the first plan is the default. Equal weights are
/// stored once, for which the arrays get new offsets in the plans. The plans lose the constants of their weights as
/// these are written, so that large weights are not in memory together with their file.
Result<Nothing> write_bundle(const std::vector<SizedPlan>& plans, const std::filesystem::path& folder,
                             const BundleOptions& options = {});

struct BundleInfo {
  Plan plan;             ///< as the plan was written; constants of weights are read only on request
  std::string manifest;  ///< manifest.json as text
  /// The sizes of all specialisations, in order; empty if the bundle is compiled for one set of sizes.
  std::vector<std::vector<std::pair<std::string, int64_t>>> sizes = {};
};

/// Checks the hashes of all files first. With `with_weights` the arrays placed in the weights hold their constants.
/// Plan and manifest belong to one specialisation, by default the first.
Result<BundleInfo> read_bundle(const std::filesystem::path& folder, bool with_weights = false,
                               size_t specialisation = 0);

/// Converts the C runtime's preprocessing of images into the plan's, for the input of that number.
PlanPreprocessing plan_preprocessing(int input, const hoist_preprocessing& how);
/// The inverse. The image size is not included: it follows from the input's shape.
hoist_preprocessing runtime_preprocessing(const PlanPreprocessing& how);

/// True if the folder holds a plan.bin with the right magic: enough to replace it, not to trust it.
bool is_bundle(const std::filesystem::path& folder);

}  // namespace hoist
