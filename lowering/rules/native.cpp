// The five rules that text cannot express, because they hold for any pattern or any permutation.
#include <algorithm>

#include "ir/rules/match.h"
#include "lowering/rules/tables.h"

namespace hoist {
namespace {

std::optional<Expr> some(Result<Expr> made) { return made.ok() ? std::optional(*made) : std::nullopt; }

bool is_view_map(Expr e) { return e->pattern == Pattern::map && e->mode == Mode::view; }

// map (\v. P(a, b, ..)) x where arguments read v: the pattern P becomes a map of its own, map (\w. P(w, ..)) (map (\v.
// a) x), or a map over a zip if several arguments read v.
std::optional<Expr> map_fission(Expr term, const RuleArguments&) {
  if (!is_view_map(term)) return std::nullopt;
  Expr body = term->children[0]->children[0], x = term->children[1];
  std::vector<size_t> reading;
  for (size_t i = 0; i < body->children.size(); ++i) {
    if (!mentions_bound(body->children[i], 0, 1)) continue;
    // A function argument that reads v cannot be computed first; a bare v needs no map of its own.
    if (body->children[i]->pattern == Pattern::function) return std::nullopt;
    reading.push_back(i);
  }
  auto is_variable = [&](size_t i) { return body->children[i]->pattern == Pattern::bound; };
  if (reading.empty() || std::all_of(reading.begin(), reading.end(), is_variable)) return std::nullopt;
  auto element = term->children[0]->parameters[0];
  std::vector<Expr> passes;
  for (size_t i : reading) {
    Spec spec;
    spec.pattern = Pattern::function;
    spec.parameters = {element};
    spec.children = {body->children[i]};
    passes.push_back(map(build(std::move(spec)), x));
  }
  Expr source = passes.size() == 1 ? passes[0] : zip(passes);
  std::vector<Expr> children = body->children;
  for (size_t p = 0; p < reading.size(); ++p) {
    Expr w = bound(0, source->type->element);
    children[reading[p]] = passes.size() == 1 ? w : get(static_cast<int64_t>(p), w);
  }
  auto outer = with_children(body, children);
  if (!outer.ok()) return std::nullopt;
  Spec spec;
  spec.pattern = Pattern::function;
  spec.parameters = {source->type->element};
  spec.children = {*outer};
  return map(build(std::move(spec)), source);
}

// P(.., let y = a in b, ..) = let y = a in P(.., b, ..) for the first argument that is a let.
std::optional<Expr> let_out(Expr term, const RuleArguments&) {
  for (size_t i = 0; i < term->children.size(); ++i) {
    Expr inner = term->children[i];
    if (inner->pattern != Pattern::let) continue;
    std::vector<Expr> children;
    for (Expr c : term->children) children.push_back(shift(c, 1));
    children[i] = inner->children[1]->children[0];
    auto body = with_children(term, children);
    if (!body.ok()) return std::nullopt;
    Spec function;
    function.pattern = Pattern::function;
    function.parameters = inner->children[1]->parameters;
    function.children = {*body};
    Spec spec;
    spec.pattern = Pattern::let;
    spec.children = {inner->children[0], build(std::move(function))};
    return some(make(std::move(spec)));
  }
  return std::nullopt;
}

// transpose (p0 p1 ..) of a nest of as many maps whose arrays do not depend on the nest's variables: the same nest with
// loop p0 outermost, then p1, and so on.
std::optional<Expr> transpose_nest(Expr term, const RuleArguments&) {
  if (term->pattern != Pattern::transpose) return std::nullopt;
  const auto& permutation = term->integers;
  auto count = static_cast<int64_t>(permutation.size());
  std::vector<Expr> arrays;
  Expr body = term->children[0];
  for (int64_t level = 0; level < count; ++level) {
    if (!is_view_map(body) || mentions_bound(body->children[1], 0, level)) return std::nullopt;
    arrays.push_back(shift(body->children[1], -level));
    body = body->children[0]->children[0];
  }
  // A function of all variables, outermost first; level j of the new nest is level permutation[j] of the old one.
  Spec all;
  all.pattern = Pattern::function;
  for (Expr a : arrays) all.parameters.push_back(a->type->element);
  all.children = {body};
  Expr function_of_all = build(std::move(all));
  std::vector<Expr> arguments(arrays.size());
  for (int64_t j = 0; j < count; ++j) {
    auto level = static_cast<size_t>(permutation[static_cast<size_t>(j)]);
    arguments[level] = bound(count - 1 - j, arrays[level]->type->element);
  }
  Expr result = hoist::apply(shift(function_of_all, count), arguments);
  for (int64_t j = count; j-- > 0;) {
    Expr array = arrays[static_cast<size_t>(permutation[static_cast<size_t>(j)])];
    Spec f;
    f.pattern = Pattern::function;
    f.parameters = {array->type->element};
    f.children = {result};
    result = map(build(std::move(f)), shift(array, j));
  }
  return result;
}

// map (transpose (p0 p1 ..)) x = transpose (0 p0+1 p1+1 ..) x
std::optional<Expr> map_of_transpose(Expr term, const RuleArguments&) {
  if (!is_view_map(term)) return std::nullopt;
  Expr body = term->children[0]->children[0];
  if (body->pattern != Pattern::transpose || body->children[0]->pattern != Pattern::bound ||
      body->children[0]->integers[0] != 0) {
    return std::nullopt;
  }
  std::vector<int64_t> permutation = {0};
  for (int64_t p : body->integers) permutation.push_back(p + 1);
  return transpose(permutation, term->children[1]);
}

// transpose (0 p0 p1 ..) x = map (transpose (p0-1 p1-1 ..)) x
std::optional<Expr> transpose_to_map(Expr term, const RuleArguments&) {
  if (term->pattern != Pattern::transpose || term->integers[0] != 0) return std::nullopt;
  std::vector<int64_t> permutation;
  for (size_t i = 1; i < term->integers.size(); ++i) permutation.push_back(term->integers[i] - 1);
  return map([&](Expr v) { return transpose(permutation, v); }, term->children[0]);
}

}  // namespace

RuleFunctions native_rules() {
  RuleFunctions functions;
  functions.rewrites = {{"map-fission", map_fission},
                        {"let-out", let_out},
                        {"transpose-nest", transpose_nest},
                        {"map-of-transpose", map_of_transpose},
                        {"transpose-to-map", transpose_to_map}};
  return functions;
}

}  // namespace hoist
