#include "lowering/strategies/strategy.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "ir/language/tensor.h"
#include "ir/properties/properties.h"
#include "lowering/cost/sum_order.h"
#include "lowering/rules/rules.h"
#include "lowering/strategies/loops.h"
#include "lowering/strategies/strategies.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// Applies the first of these rules that applies to the first suitable term, at every occurrence of that term: an
// activation may name one sum twice, and it is computed once as long as both are the same term.
bool apply_first_of(Rewriter& r, std::initializer_list<const char*> rules, const RuleArguments& arguments = {}) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const char* rule) { return loops::apply_to_all_of_first(r, rule, arguments); });
}

// Divides the sums of the first contraction, whatever number of collapsed dimensions it has.
bool sum_in_parts(Rewriter& r, int64_t parts) {
  return apply_first_of(r,
                        {"sum-in-parts-4d", "sum-in-parts-4d-float", "sum-in-parts-3d", "sum-in-parts-3d-float",
                         "sum-in-parts-2d", "sum-in-parts-2d-float", "sum-in-parts", "sum-in-parts-float"},
                        {{"p", parts}});
}

// If one work-item per element would leave most of a GPU idle, and each element is a long sum, a subgroup shares the
// sum.
void share_sums_of_elements(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  constexpr int64_t most_for_unit = 64, least_operations = 512;
  const int64_t elements = element_count(shape_of(at(r.term(), input.inside)->type));
  const bool few = elements > 0 && elements <= most_for_unit * profile.compute_units;
  if (!few || count_operations(r.term()) / elements < least_operations) return;
  for (int64_t parts = profile.costs.subgroup; parts >= 8; parts /= 2) {
    if (sum_in_parts(r, parts)) return;
  }
}

// Reductions become folds; the order of a sum follows the layout of images.
void lower_folds(Rewriter& r, const StrategyInput& input, const Profile& profile) {
  // A scatter that is the kernel's result writes at its positions; inside other terms it becomes a fold for each
  // element.
  if (input.materialised.empty() && maps_scatter(r.term(), input.inside)) return;
  const GpuTile* items = input.tile.on_gpu();
  if (items != nullptr && items->parts > 0)
    sum_in_parts(r, items->parts);
  else if (items != nullptr && !input.strict && input.folds && input.materialised.empty() && items->items_across == 1)
    share_sums_of_elements(r, input, profile);
  if (!input.strict && (profile.gpu || !sums_in_memory_order(r.term())))
    r.apply_everywhere({"channels-inside-3d", "channels-inside-2d", "channels-inside-1d"});
  r.apply_everywhere({"reduce-map-fusion-to-fold"});
  r.apply_everywhere({"fold-collapsed-pairs"});
  r.apply_everywhere({"scatter-of-rows", "scatter-to-fold", "scatter-to-fold-i32", "reduce-to-fold"});
  if (input.interleaved) apply_first_of(r, {"fold-dot", "fold-pairs", "fold-pairs-of-bytes"});
}

// Products and sums fuse; functions without vector versions on a CPU become formulas, which run in vectors.
void lower_scalars(Rewriter& r, bool strict, const Profile& profile) {
  if (strict) return;
  if (!profile.gpu && !profile.vector_functions) r.apply_everywhere({"erf-by-quotient", "tanh-by-exponential"});
  r.apply_everywhere({"multiply-add-to-fma"});
}

}  // namespace

std::optional<Path> opened_body(Expr root, Path place) {
  for (;;) {
    Expr e = at(root, place);
    if (e == nullptr) return std::nullopt;
    if (e->pattern == Pattern::map && e->mode != Mode::view) {
      place.insert(place.end(), {0, 0});
      return place;
    }
    if (e->children.empty()) return std::nullopt;
    // Views take their array first, maps take it last.
    place.push_back(e->pattern == Pattern::map ? 1 : 0);
  }
}

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> all = {
      statements(), scatters(), materialised_tiles(), materialised_planes(), row_blocks(),   cpu_steps(),
      cpu_scans(),  cpu_rows(), cpu_folded_rows(),    cpu_register_tiles(),  cpu_elements(), gpu_rows(),
      gpu_tiles(),  gpu_sums(), gpu_folds(),          gpu_turned_tiles(),    gpu_elements(),
  };
  return all;
}

Result<Nothing> apply_strategy(Rewriter& r, const StrategyInput& input, const Profile& profile,
                               const std::vector<Strategy>& candidates) {
  lower_folds(r, input, profile);
  if (input.materialised.empty() && sizes_of(at(r.term(), input.inside)->type).empty()) {
    lower_scalars(r, input.strict, profile);
    return Nothing{};
  }
  for (const Strategy& strategy : candidates) {
    if (!strategy.applies(r.term(), input, profile)) continue;
    if (strategy.prepare != nullptr) strategy.prepare(r, input, profile);
    lower_scalars(r, input.strict, profile);
    strategy.apply(r, input, profile);
    return Nothing{};
  }
  std::string names;
  for (const Strategy& strategy : candidates) names += (names.empty() ? "" : ", ") + std::string(strategy.name);
  return Diagnostic{"", names + " cannot map this kernel to the device " + profile.name, ""};
}

}  // namespace hoist
