#include "lowering/strategies/loops.h"

#include <algorithm>
#include <iterator>

#include "lowering/rules.h"

namespace hoist::loops {

int64_t extent(Expr root, const Path& path, int dimension) {
  Type t = at(root, path)->type;
  for (int i = 0; i < dimension; ++i) t = t->element;
  return t->size.value();
}

int rank_at(Expr root, const Path& path) { return static_cast<int>(sizes_of(at(root, path)->type).size()); }

Path opened(Expr root, const Path& place) {
  auto body = opened_body(root, place);
  HOIST_CHECK(body.has_value(), "a rule that opens a loop has opened none");
  return *body;
}

Path open(Rewriter& r, const std::string& rule, const Path& place, const RuleArguments& arguments) {
  const bool applied = r.apply(rule, place, arguments);
  HOIST_CHECK(applied, "the rule " + rule + " has to apply at " + text(place) + ": " +
                           why_not(*lowering_rules().find(rule), at(r.term(), place), arguments));
  return opened(r.term(), place);
}

void open_tile_columns(Rewriter& r, const Path& place, int64_t width) {
  if (width > 1)
    open(r, "open-vectors", place, {{"k", width}});
  else
    open(r, "open-unroll", place);
}

void open_columns(Rewriter& r, const Path& place, int64_t width) {
  int64_t n = extent(r.term(), place, 0);
  int64_t k = width;
  while (k > 1 && n % k != 0) k /= 2;
  if (k > 1 && (k == width || n < width))
    open(r, "open-vector-loop", place, {{"k", k}});
  else if (width > 1 && n >= width)
    open(r, "open-vector-tiles", place, {{"k", width}});
  else
    open(r, "open-seq", place);
}

Path open_outermost(Rewriter& r, Path place, int rank) {
  while (rank_at(r.term(), place) > rank) place = open(r, "open-seq", place);
  return place;
}

Path open_leading(Rewriter& r, Path place, int keep, int dimension) {
  static const char* const rules[] = {"open-group", "open-joined-group", "open-joined-3-group", "open-joined-4-group"};
  place = open_outermost(r, place, keep + static_cast<int>(std::size(rules)));
  int leading = rank_at(r.term(), place) - keep;
  if (leading <= 0) return place;
  return open(r, rules[leading - 1], place, {{"d", dimension}});
}

}  // namespace hoist::loops
