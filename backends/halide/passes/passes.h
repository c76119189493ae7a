// The passes over Halide's lowered program, before Halide splits it into host code and kernel (OpenCL) or compiles it
// (native code). The table has one row per pass, and each pass has a file of its name, in vectors/ if it is
// about loads and stores of vectors. Every pass keeps the program's meaning; each assumes the passes before it. Only
// files of this folder include Halide's internal headers beyond Halide.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/halide/emitter.h"

namespace hoist::emission {

/// The kernel that the passes transform, and their further results.
struct PassInput {
  std::string result;                           ///< the name of the result's Func
  std::vector<std::string> loops;               ///< the loops over groups, outermost first
  std::vector<Nat> extents;                     ///< their extents
  InputArrays inputs;                           ///< the arrays that the kernel reads
  const NativeTarget* native = nullptr;         ///< null for OpenCL C
  std::set<std::string>* prefetched = nullptr;  ///< set to the arrays that the kernel prefetches
};

/// The passes for this kernel, in order. The caller keeps them alive until Halide has compiled the module.
std::vector<std::unique_ptr<H::Internal::IRMutator>> make_passes(const PassInput& input);

/// The arguments of a native kernel that select its groups: the first group and their number.
inline constexpr const char* first_group = "hoist_first_group";
inline constexpr const char* group_count = "hoist_group_count";

/// The difference of the index between consecutive steps of the loop; empty if it varies.
std::optional<int64_t> distance_along(const H::Expr& index, const std::string& loop);

// The rows of the table, one file each.
using MadePass = std::unique_ptr<H::Internal::IRMutator>;
MadePass keep_inside(const PassInput& input);
MadePass always_fold(const PassInput& input);
MadePass fill_skipped(const PassInput& input);
MadePass rare_branches(const PassInput& input);
MadePass store_at_index(const PassInput& input);
MadePass compact_registers(const PassInput& input);
MadePass load_words(const PassInput& input);
MadePass plain_differences(const PassInput& input);
MadePass load_known_lanes(const PassInput& input);
MadePass load_inside(const PassInput& input);
MadePass quantised_sums(const PassInput& input);
MadePass load_seconds(const PassInput& input);
MadePass blend_seconds(const PassInput& input);
MadePass transposed_blocks(const PassInput& input);
MadePass sums_of_products(const PassInput& input);
MadePass matrix_products(const PassInput& input);
MadePass load_lanes(const PassInput& input);
MadePass store_lanes(const PassInput& input);
MadePass guard_reads(const PassInput& input);
MadePass prefetches(const PassInput& input);
MadePass index_bases(const PassInput& input);
MadePass numbers_by_lanes(const PassInput& input);
MadePass group_range(const PassInput& input);
MadePass native_functions(const PassInput& input);
MadePass float_lanes(const PassInput& input);
MadePass stay_on_stack(const PassInput& input);

}  // namespace hoist::emission
