// Elaboration of patterns and named compositions: the arguments of a pattern, their order, and the types of untyped
// literals among them.
#include <fmt/format.h>

#include <algorithm>

#include "ir/text/counted.h"
#include "ir/text/parse/elaborate.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {

namespace {

Result<Nothing> check_count(Syn s, size_t found, size_t count) {
  if (found == count) return Nothing{};
  return fault_at(
      s->token, fmt::format("{} takes {}, found {}", s->text, counted(count, "argument"), found),
      found < count ? "with its last argument left out it is a function, written after |> or as an argument" : "");
}

}  // namespace

Result<Spec> Elaborator::pattern_attributes(Pattern p, Syn s) {
  Spec spec;
  spec.pattern = p;
  for (const Nat& n : s->sizes) {
    for (const std::string& name : names_of(n)) {
      if (vocabulary != nullptr && !size_named(name) && !known_size(name))
        return fault_at(s->token, fmt::format("the size {} of {} is not known", name, s->text));
    }
    spec.sizes.push_back(size(n));
  }
  spec.integers = s->integers;
  if (p == Pattern::slice && spec.sizes.size() == 3) {  // the step is a known size
    if (!spec.sizes.back().is_constant()) return fault_at(s->token, "the step of a slice has to be known");
    spec.integers = {spec.sizes.back().value()};
    spec.sizes.pop_back();
  }
  spec.mode = s->mode;
  spec.dimension = s->dimension;
  spec.memory = s->memory;
  spec.border = s->border;
  return spec;
}

Result<Expr> Elaborator::pattern_of_function(Spec spec, Syn s, const std::vector<Argument>& arguments, Type hint) {
  auto placed = [&](Result<Expr> f) -> Result<Expr> {
    if (f.ok() || vocabulary != nullptr || !f.errors()[0].where.empty()) return f;
    return fault_at(s->token, s->text + ": " + f.errors()[0].what);
  };
  auto element = [&](Expr x) -> Result<Type> {
    if (x->type->is_array()) return x->type->element;
    return fault_at(s->token, fmt::format("{}: expected an array, found {}", s->text, text(x->type)));
  };
  switch (spec.pattern) {
    case Pattern::map: {
      HOIST_TRY_VOID(check_count(s, arguments.size(), 2));
      HOIST_TRY(Expr x, argument(arguments[1], hint));
      HOIST_TRY(Type t, element(x));
      HOIST_TRY(Expr f, placed(function_argument(arguments[0], {t}, hint)));
      spec.children = {f, x};
      return finish(std::move(spec), s);
    }
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::scan: {
      HOIST_TRY_VOID(check_count(s, arguments.size(), 3));
      HOIST_TRY(Expr x, argument(arguments[2], hint));
      HOIST_TRY(Type t, element(x));
      Type numbers = spec.pattern == Pattern::reduce || hint == nullptr ? leaf_scalar(t) : hint;
      HOIST_TRY(Expr z, argument(arguments[1], numbers));
      HOIST_TRY(Expr f, placed(function_argument(arguments[0], {z->type, t}, leaf_scalar(z->type))));
      spec.children = {f, z, x};
      return finish(std::move(spec), s);
    }
    case Pattern::iterate: {
      HOIST_TRY_VOID(check_count(s, arguments.size(), 2));
      HOIST_TRY(Expr x, argument(arguments[1], hint));
      HOIST_TRY(Expr f, placed(function_argument(arguments[0], {x->type}, hint)));
      spec.children = {f, x};
      return finish(std::move(spec), s);
    }
    default:
      HOIST_CHECK(false, "a pattern without a function");
      std::abort();
  }
}

Result<Expr> Elaborator::pattern(Pattern p, Syn s, const std::vector<Argument>& arguments, Type hint) {
  // A name alone, as an argument or before a component's number, is parsed without its attributes.
  const bool needs_type = p == Pattern::iota || p == Pattern::cast || p == Pattern::reinterpret || p == Pattern::host;
  if (needs_type && s->type == nullptr)
    return fault_at(s->token, s->text + " needs a type after its name",
                    "in parentheses if it is an argument: map (cast i32) x");
  auto want = [&](size_t count) { return check_count(s, arguments.size(), count); };
  HOIST_TRY(Spec spec, pattern_attributes(p, s));
  switch (p) {
    case Pattern::iota:
      HOIST_TRY_VOID(want(0));
      if (!s->type->is_scalar()) return fault_at(s->token, "iota needs a scalar type, found " + text(s->type));
      spec.type = array_type(spec.sizes[0], s->type);
      return finish(std::move(spec), s);
    case Pattern::map:
    case Pattern::reduce:
    case Pattern::fold:
    case Pattern::scan:
    case Pattern::iterate:
      return pattern_of_function(std::move(spec), s, arguments, hint);
    case Pattern::pad: {
      if (s->border != Border::value) break;
      HOIST_TRY_VOID(want(2));
      HOIST_TRY(Expr x, argument(arguments[1], hint));
      HOIST_TRY(Expr v, argument(arguments[0], leaf_scalar(x->type)));
      spec.children = {x, v};
      return finish(std::move(spec), s);
    }
    case Pattern::select: {
      HOIST_TRY_VOID(want(3));
      if (auto holds = arguments[0].syntax == nullptr ? std::nullopt : known(arguments[0].syntax)) {
        auto truth = truth_of(*holds);
        if (!truth) return fault_at(s->token, "a condition that is known has to be a number");
        return argument(arguments[*truth ? 1 : 2], hint);
      }
      HOIST_TRY(Expr c, argument(arguments[0], nullptr));
      HOIST_TRY(auto branches, group({arguments[1], arguments[2]}, hint));
      spec.children = {c, branches[0], branches[1]};
      return finish(std::move(spec), s);
    }
    case Pattern::index: {
      HOIST_TRY_VOID(want(2));
      HOIST_TRY(Expr i, argument(arguments[0], scalar_type(Scalar::i64)));
      HOIST_TRY(Expr x, argument(arguments[1], hint));
      spec.children = {i, x};
      return finish(std::move(spec), s);
    }
    case Pattern::host:
      for (const Argument& a : arguments) {
        HOIST_TRY(Expr x, argument(a, nullptr));
        spec.children.push_back(x);
      }
      spec.name = s->suffix;
      spec.type = s->type;
      return finish(std::move(spec), s);
    case Pattern::zip:
    case Pattern::concat:
    case Pattern::scatter:
      for (const Argument& a : arguments) {
        HOIST_TRY(Expr x, argument(a, p == Pattern::concat ? hint : nullptr));
        spec.children.push_back(x);
      }
      return finish(std::move(spec), s);
    default:
      break;
  }
  HOIST_TRY_VOID(want(1));
  HOIST_TRY(Expr x, argument(arguments[0], is_conversion(p) ? nullptr : hint));
  spec.children = {x};
  spec.type = s->type;
  return finish(std::move(spec), s);
}

Result<Expr> Elaborator::composition(Syn s, const std::vector<Argument>& arguments, Type hint) {
  if (s->text == "fill") {  // variadic in its dimensions, so it is not a row of the table
    if (arguments.size() != 1 || s->sizes.empty())
      return fault_at(s->token, "fill takes a value and dimensions, such as fill 0f32 [4][8]");
    HOIST_TRY(Expr x, argument(arguments[0], hint));
    for (size_t i = s->sizes.size(); i-- > 0;) {
      Spec spec;
      spec.pattern = Pattern::repeat;
      spec.children = {x};
      spec.sizes = {size(s->sizes[i])};
      HOIST_TRY(x, finish(std::move(spec), s));
    }
    return x;
  }
  auto rows = definitions_named(s->text);
  if (rows.empty()) return unknown(s);
  size_t wanted = 0;
  for (const auto& a : rows[0]->arguments) wanted += a.is_size ? 0 : 1;
  if (arguments.size() != wanted) {
    return fault_at(s->token, fmt::format("{} takes {} arguments, found {}", s->text, wanted, arguments.size()));
  }
  // Typed values first: they determine the type of untyped literals.
  std::vector<std::optional<Expr>> made(arguments.size());
  Type known = nullptr;
  for (bool bare : {false, true}) {
    size_t i = 0;
    for (const auto& a : rows[0]->arguments) {
      if (a.is_size) continue;
      const Argument& given = arguments[i];
      if (!a.is_function() && !made[i] && (given.made == nullptr && this->bare(given.syntax)) == bare) {
        HOIST_TRY(Expr x, argument(given, known != nullptr ? known : hint));
        made[i] = x;
        if (known == nullptr) known = leaf_scalar(x->type);
      }
      ++i;
    }
  }
  std::vector<Type> types;
  for (const auto& m : made) {
    if (m) types.push_back((*m)->type);
  }
  if (const NamedDefinition* d = fitting_definition(rows, types)) return expand(*d, s, arguments, made);
  return fault_at(s->token, s->text + ": the arguments have the wrong dimensions",
                  "it takes " + std::string(rows[0]->row->given));
}

Result<Expr> Elaborator::expand(const NamedDefinition& d, Syn s, const std::vector<Argument>& arguments,
                                const std::vector<std::optional<Expr>>& made) {
  Scope inner;
  inner.depth = scope_.depth;
  auto outer = std::make_shared<Scope>(scope_);
  size_t i = 0, sizes = 0;
  for (const auto& a : d.arguments) {
    if (a.is_size) {
      if (sizes >= s->sizes.size()) return fault_at(s->token, fmt::format("{} takes more sizes", s->text));
      inner.sizes[a.name] = size(s->sizes[sizes++]);
      continue;
    }
    Entry e;
    e.name = a.name;
    if (a.is_function()) {
      if (arguments[i].made != nullptr) return fault_at(s->token, s->text + ": expected a function, found a value");
      e.kind = Entry::closed_function;
      e.syntax = arguments[i].syntax;
      e.scope = outer;
    } else {
      e.kind = Entry::closed_value;
      e.value = *made[i];
      e.level = scope_.depth;
      Type actual = e.value->type;
      for (Type formal = a.meta.result; formal->is_array(); formal = formal->element, actual = actual->element) {
        if (auto name = formal->size.as_name()) inner.sizes.emplace(*name, actual->size);
      }
    }
    inner.entries.push_back(std::move(e));
    ++i;
  }
  Inside inside(*this, std::move(inner));
  auto result = value(d.body, nullptr);
  if (result.ok()) return result;
  Diagnostics errors = result.errors();  // a position inside the definition is of no use to the user
  for (Diagnostic& e : errors) {
    e.where = fmt::format("{}:{}", s->token.line, s->token.column);
    e.what = s->text + ": " + e.what;
  }
  return errors;
}

}  // namespace hoist
