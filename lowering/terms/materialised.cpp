#include "lowering/terms/materialised.h"

#include <algorithm>

#include "ir/properties/properties.h"

namespace hoist {

bool is_materialised_in_global(Expr e) { return e->pattern == Pattern::materialise && e->memory == Memory::global; }

bool is_host_step(Expr e) {
  return e->pattern == Pattern::host &&
         std::all_of(e->children.begin(), e->children.end(), [](Expr c) { return c->pattern == Pattern::parameter; });
}

bool calls_host(Expr e) {
  return any_node(e, [](Expr part) { return part->pattern == Pattern::host; });
}

bool MaterialisesAny::operator()(Expr e) {
  if (auto entry = known_.find(e); entry != known_.end()) return entry->second;
  bool found = is_materialised_in_global(e) || e->pattern == Pattern::host;
  for (Expr c : e->children) found = (*this)(c) || found;
  return known_[e] = found;
}

}  // namespace hoist
