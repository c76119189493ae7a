#include "lowering/strategy.h"

#include <string>

#include "ir/properties.h"
#include "lowering/rules.h"
#include "lowering/strategies/strategies.h"

namespace hoist {
namespace {

// Reductions become folds; the order of a sum follows how pictures are stored.
void lower_folds(Rewriter& r, const StrategyInput& input) {
  // A scatter that is the result is written where positions say; among other terms it is a fold for each element.
  if (input.kept.empty() && maps_scatter(r.term(), input.inside)) return;
  if (!input.strict) r.apply_everywhere({"channels-inside-3d", "channels-inside-2d", "channels-inside-1d"});
  r.apply_everywhere({"reduce-map-fusion-to-fold"});
  r.apply_everywhere({"fold-joined-pairs"});
  r.apply_everywhere({"scatter-of-rows", "scatter-to-fold", "scatter-to-fold-i32", "reduce-to-fold"});
  if (input.interleaved) r.apply_everywhere({"fold-dot", "fold-pairs", "fold-pairs-of-bytes"}, {}, 1);
}

// Products and sums fuse, and CPUs that have no functions of vectors get formulas, which run in vectors.
void lower_scalars(Rewriter& r, bool strict, const Profile& profile) {
  if (strict) return;
  if (!profile.gpu && !profile.vector_functions) r.apply_everywhere({"erf-by-exponential", "tanh-by-exponential"});
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
    // Views have their array first, maps have it last.
    place.push_back(e->pattern == Pattern::map ? 1 : 0);
  }
}

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> all = {
      statements(),      scatters(),           kept_tiles(),   cpu_steps(), cpu_scans(), cpu_rows(),
      cpu_folded_rows(), cpu_register_tiles(), cpu_elements(), gpu_rows(),  gpu_tiles(), gpu_elements(),
  };
  return all;
}

Result<Nothing> apply_strategy(Rewriter& r, const StrategyInput& input, const Profile& profile,
                               const std::vector<Strategy>& candidates) {
  lower_folds(r, input);
  if (input.kept.empty() && sizes_of(at(r.term(), input.inside)->type).empty()) {
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
