#include "ir/properties/properties.h"
#include "lowering/cost/launch_cost.h"
#include "lowering/layout/storage.h"
#include "lowering/passes/rows.h"
#include "lowering/terms/terms.h"

namespace hoist {

// Sums over windows test each position for padding, unless the padded array is stored with a border: a view, or an
// array that is padded with a computed value, needs an array of its own for that. This costs a launch, and pays if
// summing the products takes about as long as the launch.
Result<Nothing> materialise_padded_views(Program& program, const PassOptions& options) {
  materialise_at(program, [&](const Definition& definition) {
    const Expr term = definition.expression;
    std::vector<RuleAtPlace> out;
    if (!folds(term) || !is_worth_an_array(term, options.profile)) return out;
    auto place = computed_padding(term);
    if (!place) place = padded_view(term);
    if (place) out.push_back({*place, "to-global"});
    return out;
  });
  return Nothing{};
}

}  // namespace hoist
