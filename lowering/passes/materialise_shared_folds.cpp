#include <algorithm>

#include "ir/properties/properties.h"
#include "lowering/passes/rows.h"
#include "lowering/terms/arrangement.h"
#include "lowering/terms/terms.h"

namespace hoist {
namespace {

// The place of the value to materialise. The clamp of an integer stays with the consumers, so that positions are in
// range whatever the materialised array contains.
Path without_clamp(Expr value, Path place) {
  const auto is_literal = [](Expr e) { return e->pattern == Pattern::literal; };
  while (value->pattern == Pattern::call && is_integer(value->type->scalar) &&
         (value->function == Function::minimum || value->function == Function::maximum)) {
    const size_t clamped = is_literal(value->children[0]) ? 1 : 0;
    if (!is_literal(value->children[1 - clamped])) break;
    place.push_back(static_cast<int>(clamped));
    value = value->children[clamped];
  }
  return place;
}

// Finds the let-bound scalars that are results of folds and that more than `most` elements share.
void find_shared_folds(Expr e, int64_t most, Path& path, std::vector<Path>& out) {
  if (e->pattern == Pattern::let && e->children[0]->type->is_scalar() && folds(e->children[0])) {
    const Type shared_by = e->children[1]->children[0]->type;
    if (leaf_of(shared_by)->is_scalar() && element_count(shape_of(shared_by)) > most) {
      Path place = path;
      place.push_back(0);
      out.push_back(without_clamp(e->children[0], std::move(place)));
    }
  }
  for (size_t i = 0; i < e->children.size(); ++i) {
    if (i == 0 && changes_in_place(e)) continue;  // the body of a loop shares values within each step
    path.push_back(static_cast<int>(i));
    find_shared_folds(e->children[i], most, path, out);
    path.pop_back();
  }
}

// A kernel computes a value that a row of the result shares once per row. If the rows are strided, the kernel computes
// the value again for every element; that is faster than another launch only up to about `least_steps` steps.
int64_t most_elements_that_share(Expr term) {
  constexpr int64_t least_steps = 1 << 14;
  const std::vector<int64_t> shape = shape_of(term->type);
  const int64_t row = shape.empty() ? 1 : shape.back();
  return rows_are_strided(term) ? least_steps / std::max<int64_t>(1, element_count(shape)) : row;
}

}  // namespace

Result<Nothing> materialise_shared_folds(Program& program, const PassOptions&) {
  materialise_at(program, [](const Definition& definition) {
    const Expr term = definition.expression;
    std::vector<RuleAtPlace> out;
    if (term->type->is_tuple() || !shares_folds(term)) return out;
    std::vector<Path> folds;
    Path path;
    find_shared_folds(term, most_elements_that_share(term), path, folds);
    for (const Path& place : folds) out.push_back({place, "to-global"});
    return out;
  });
  return Nothing{};
}

}  // namespace hoist
