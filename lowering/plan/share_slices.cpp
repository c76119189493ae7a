// The pass "share-slices": definitions that differ only in the place of a slice read the place from an operand, so that
// they share one kernel.
#include <map>
#include <set>
#include <unordered_map>

#include "lowering/cost/launch_cost.h"
#include "lowering/loops/additions.h"
#include "lowering/plan/rows.h"

namespace hoist {
namespace {

// The slice that a small elementwise term takes; null if it takes none or several.
Expr only_slice(Expr term) {
  const Type type = term->type;
  if (!type->is_array() || !leaf_of(type)->is_scalar() || element_count(shape_of(type)) > most_similar_elements)
    return nullptr;
  std::set<Expr> slices;
  const bool other = any_node(term, [&](Expr e) {
    if (e->pattern == Pattern::slice) slices.insert(e);
    return is_fold(e) || e->pattern == Pattern::host || e->pattern == Pattern::materialise;
  });
  return other || slices.size() != 1 || (*slices.begin())->integers[0] != 1 ? nullptr : *slices.begin();
}

// Replaces the slice in a term by another array, which has the same type and mentions the same variables.
class WithSlice {
 public:
  WithSlice(Expr slice, Expr other) : known_{{slice, other}} {}

  Expr of(Expr e) {
    if (const auto found = known_.find(e); found != known_.end()) return found->second;
    std::vector<Expr> children;
    for (Expr child : e->children) children.push_back(of(child));
    if (children == e->children) return e;
    const auto made = with_children(e, std::move(children));
    HOIST_CHECK(made.ok(), made.errors()[0].text());
    return known_[e] = *made;
  }

 private:
  std::unordered_map<Expr, Expr> known_;
};

// The term with its slice at 0: the same for all definitions that differ only in the place of the slice.
Expr common_term(Expr term, Expr slice) {
  const Expr first = hoist::slice(0, slice->sizes[1], slice->children[0]);
  return with_numbered_parameters(WithSlice(slice, first).of(term));
}

bool share_slice(ProgramIndex& index, const std::string& value) {
  const Definition* definition = index.find(value);
  const Expr slice = definition == nullptr ? nullptr : only_slice(definition->expression);
  if (slice == nullptr) return false;
  Additions additions(index, *definition);
  const Nat count = slice->sizes[1], places = slice->children[0]->type->size - count + 1;
  const Expr place = inside(additions.number(slice->sizes[0].value()), places);
  const Expr elements = map(
      [&](Expr i) {
        return hoist::index(call(Function::add, {place, i}), slice->children[0]);
      },
      iota(count, Scalar::i64));
  additions.finish("share-slices", WithSlice(slice, elements).of(definition->expression));
  return true;
}

}  // namespace

Result<Nothing> share_slices(LoweredModel& model, const PassOptions&) {
  Program& program = model.program;
  std::map<Expr, std::set<int64_t>> places;
  std::vector<std::pair<std::string, Expr>> all;
  for (const Definition& definition : program.definitions) {
    const Expr slice = definition.parts.empty() ? only_slice(definition.expression) : nullptr;
    if (slice == nullptr) continue;
    all.emplace_back(definition.value, common_term(definition.expression, slice));
    places[all.back().second].insert(slice->sizes[0].value());
  }
  ProgramIndex index(program);
  for (const auto& [value, term] : all) {
    if (places.at(term).size() > most_similar_kernels) share_slice(index, value);
  }
  return Nothing{};
}

Result<Nothing> replay_share_slices(Program& program, Definition&, const ProgramStep& step) {
  ProgramIndex index(program);
  if (!share_slice(index, step.value)) return Diagnostic{"", "the definition does not contain exactly one slice", ""};
  return Nothing{};
}

}  // namespace hoist
