#include "backends/halide/passes/passes.h"

#include <string_view>

namespace hoist::emission {
namespace {

struct LoweringPass {
  std::string_view name;
  std::string_view meaning;  // one line
  bool (*wanted)(const PassInput& input);
  MadePass (*make)(const PassInput& input);
};

bool always(const PassInput&) { return true; }
bool in_opencl(const PassInput& input) { return input.native == nullptr; }
bool in_native_code(const PassInput& input) { return input.native != nullptr; }
bool on_x86(const PassInput& input) {
  return in_native_code(input) && input.native->architecture == std::string_view("x86_64");
}
bool with_matrix_tiles(const PassInput& input) { return in_native_code(input) && input.native->matrix_tile > 0; }
bool with_cold_arrays(const PassInput& input) { return !input.inputs.cold.empty(); }

// clang-format off
constexpr LoweringPass table[] = {
    {"keep-inside", "moves computations that Halide hoists to the host back into the kernel", in_opencl, keep_inside},
    {"always-fold", "computes a fold even if a data-dependent selection may skip it", always, always_fold},
    {"fill-skipped", "writes zeros to the array of a fold that a selection by indices skips", always, fill_skipped},
    {"rare-branches", "makes a selection that is marked as rare a branch around its loops", always, rare_branches},
    {"store-at-index", "turns marked stores into stores at their own index under their own condition", always, store_at_index},
    {"compact-registers", "shrinks a private array to the part of one work-item", in_opencl, compact_registers},
    {"load-words", "loads adjacent bytes or 16-bit elements as one word", always, load_words},
    {"plain-differences", "makes saturating subtractions of lane numbers plain ones", always, plain_differences},
    {"load-known-lanes", "loads vectors across a known border from whole vectors", always, load_known_lanes},
    {"load-inside", "loads a contiguous vector if none of its lanes is clamped at a border", always, load_inside},
    {"quantised-sums", "replaces a rounded, saturated sum by one call", in_native_code, quantised_sums},
    {"load-seconds", "loads every second element with two whole vectors", on_x86, load_seconds},
    {"blend-seconds", "reorders every second element once per result instead of once per load", on_x86, blend_seconds},
    {"transposed-blocks", "transposes blocks in registers if vectors are read across rows", on_x86, transposed_blocks},
    {"sums-of-products", "writes loop indices as sums of terms with factors", in_native_code, sums_of_products},
    {"matrix-products", "uses matrix instructions for loops in mode matrix", with_matrix_tiles, matrix_products},
    {"load-lanes", "splits loads of vectors into widths that OpenCL has", in_opencl, load_lanes},
    {"store-lanes", "stores strided vectors lane by lane", in_opencl, store_lanes},
    {"guard-reads", "guards a tuple in local memory by one condition", in_opencl, guard_reads},
    {"prefetches", "prefetches cold arrays that loops read in order", with_cold_arrays, prefetches},
    {"index-bases", "hides index bases from PoCL's SLP vectoriser", in_opencl, index_bases},
    {"quantised-sums", "replaces a rounded, saturated sum by one call", in_opencl, quantised_sums},
    {"numbers-by-lanes", "prints vector constants of different widths differently", in_opencl, numbers_by_lanes},
    {"group-range", "merges the loops over groups into one loop over a range", in_native_code, group_range},
    {"native-functions", "replaces calls of preamble functions by Halide terms", in_native_code, native_functions},
    {"float-lanes", "restores vectors of two floats that Halide has made ramps", always, float_lanes},
    {"stay-on-stack", "keeps large private arrays on the stack", in_native_code, stay_on_stack},
};
// clang-format on

}  // namespace

std::vector<MadePass> make_passes(const PassInput& input) {
  std::vector<MadePass> out;
  for (const LoweringPass& pass : table) {
    if (pass.wanted(input)) out.push_back(pass.make(input));
  }
  return out;
}

}  // namespace hoist::emission
