#include "lowering/passes/rows.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/terms.h"

namespace hoist {

// Lanes of GPUs are work-items, which may read any element.
Result<Nothing> materialise_shuffled_folds(Program& program, const PassOptions& options) {
  materialise_at(program, [&](const Definition& definition) {
    std::vector<RuleAtPlace> out;
    if (const auto place = shuffled_fold(definition.expression, options.profile.vector_width))
      out.push_back({*place, "to-global"});
    return out;
  });
  return Nothing{};
}

}  // namespace hoist
