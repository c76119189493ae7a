#include "lowering/cost/launch_cost.h"
#include "lowering/passes/rows.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/terms.h"

namespace hoist {

// Separable filters, such as a resize along two dimensions: sums over elements that are sums themselves, at positions
// from a table, so that several outer sums read each inner one. Materialised, an inner sum is computed once.
Result<Nothing> materialise_resampled(Program& program, const PassOptions& options) {
  materialise_at(program, [&](const Definition& definition) {
    const Expr term = definition.expression;
    std::vector<RuleAtPlace> out;
    if (!is_worth_an_array(term, options.profile)) return out;
    if (const auto place = resampled_sums(term)) out.push_back({*place, "to-global"});
    return out;
  });
  return Nothing{};
}

}  // namespace hoist
