#include "lowering/cost/sum_order.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "ir/language/tensor.h"
#include "ir/properties/properties.h"
#include "lowering/terms/element_reads.h"

namespace hoist {
namespace {

// The steps of contractions over collapsed dimensions, with the steps for each element of the first dimension.
std::map<int64_t, int64_t> collapsed_sums(Expr term) {
  std::map<int64_t, int64_t> out;
  any_node(term, [&](Expr e) {
    if (e->pattern != Pattern::reduce || e->children[2]->pattern != Pattern::map) return false;
    const Expr pairs = e->children[2]->children[1];
    if (pairs->pattern != Pattern::zip || pairs->children[0]->pattern != Pattern::join) return false;
    Expr first = pairs->children[0];
    while (first->pattern == Pattern::join) first = first->children[0];
    const int64_t steps = pairs->type->size.value(), count = first->type->size.value();
    if (count > 1 && steps > count) out.emplace(steps, steps / count);
    return false;
  });
  return out;
}

}  // namespace

bool sums_in_memory_order(Expr term) {
  const std::map<int64_t, int64_t> sums = collapsed_sums(term);
  if (sums.empty()) return false;
  const auto reads = ElementReads::of(term);
  if (reads == nullptr) return false;
  std::map<std::string, std::vector<int64_t>> shapes;
  for (Expr p : parameters_of(term)) shapes.emplace(p->name, shape_of(p->type));
  const std::vector<int64_t> element(shape_of(term->type).size(), 0);
  size_t operands = 0;
  for (const ElementRead& read : reads->reads()) {
    for (const size_t loop : read.loops) {
      const auto sum = sums.find(reads->loop_counts()[loop]);
      if (sum == sums.end()) continue;
      const std::vector<int64_t>& shape = shapes.at(read.parameter);
      if (read.depends_on_data || read.at.size() != shape.size()) return false;
      const auto address = [&](int64_t step) {
        std::vector<int64_t> steps(reads->loop_counts().size(), 0);
        steps[loop] = step;
        int64_t at = 0;
        const std::vector<int64_t> position = reads->position(read, element, steps);
        for (size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + position[i];
        return at;
      };
      const int64_t start = address(0), next = std::abs(address(1) - start),
                    first = std::abs(address(sum->second) - start);
      if (next == 0 || first <= next) return false;
      ++operands;
    }
  }
  return operands > 1;
}

}  // namespace hoist
