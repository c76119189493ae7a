// Elaboration of names: the scope, the definitions of a `where`, and the term that a name stands for.
#include <fmt/format.h>

#include <algorithm>

#include "ir/text/parse/elaborate.h"
#include "ir/text/parse/near_miss.h"

namespace hoist {

void Elaborator::declare(const std::string& name, const MetaDeclaration& meta) {
  Entry e;
  e.kind = Entry::meta;
  e.name = name;
  e.declaration = meta;
  scope_.entries.push_back(std::move(e));
}

void Elaborator::declare_value(const std::string& name, Expr x) {
  Entry e;
  e.kind = Entry::closed_value;
  e.name = name;
  e.value = x;
  scope_.entries.push_back(std::move(e));
}

const Elaborator::Entry* Elaborator::find(const std::string& name) const {
  for (size_t i = scope_.entries.size(); i-- > 0;) {
    if (scope_.entries[i].name == name) return &scope_.entries[i];
  }
  return nullptr;
}

Expr Elaborator::variable(const Entry& e) const {
  Expr x = bound(scope_.depth - 1 - e.level, e.type);
  for (int64_t i : e.path) x = get(i, x);
  return x;
}

Diagnostic Elaborator::unknown(Syn s) const {
  std::vector<std::string> names;
  for (const Entry& e : scope_.entries) names.push_back(e.name);
  for (const PatternRow& r : pattern_table()) {
    if (is_reserved(r.name)) names.emplace_back(r.name);
  }
  for (const FunctionRow& r : function_table()) names.emplace_back(r.name);
  for (const std::string& n : definition_names()) names.push_back(n);
  names.emplace_back("fill");
  return fault_at(s->token, "unknown name " + s->text, did_you_mean(s->text, names));
}

Result<Nothing> Elaborator::bind(const Binder& b, Type type, int level, const std::vector<int64_t>& path, Syn s) {
  if (b.parts.empty()) {
    Entry e;
    e.name = b.name;
    e.level = level;
    e.type = type;
    e.path = path;
    scope_.entries.push_back(std::move(e));
    Type part = type;
    for (int64_t i : path) part = part->parts[static_cast<size_t>(i)];
    for (const std::string& extent : b.extents) {
      if (!part->is_array())
        return fault_at(s->token, fmt::format("{} has no extent {}: it is {}", b.name, extent, text(type)));
      scope_.sizes.insert_or_assign(extent, part->size);
      part = part->element;
    }
    return Nothing{};
  }
  Type here = type;
  for (int64_t i : path) here = here->parts[static_cast<size_t>(i)];
  if (!here->is_tuple() || here->parts.size() != b.parts.size()) {
    return fault_at(s->token, fmt::format("{} names for the components of {}", b.parts.size(), text(here)));
  }
  for (size_t i = 0; i < b.parts.size(); ++i) {
    std::vector<int64_t> below = path;
    below.push_back(static_cast<int64_t>(i));
    HOIST_TRY_VOID(bind(b.parts[i], type, level, below, s));
  }
  return Nothing{};
}

// Declares the definitions of a `where`. Returns the number of names that were in scope before.
size_t Elaborator::declare_definitions(Syn where) {
  const size_t entries = scope_.entries.size();
  for (size_t i = 0; i < where->names.size(); ++i) {
    Entry e;
    e.kind = Entry::defined;
    e.name = where->names[i];
    e.definition = wheres_.size();
    Where& one = wheres_.emplace_back();
    one.syntax = where->children[i + 1];
    one.entries = entries + where->names.size();
    one.depth = scope_.depth;
    scope_.entries.push_back(std::move(e));
  }
  return entries;
}

Result<Expr> Elaborator::function(Syn f, const std::vector<Type>& types, Type hint,
                                  const std::vector<Known>& known_values) {
  size_t entries = scope_.entries.size();
  const std::map<std::string, Nat> sizes = scope_.sizes;
  auto count = static_cast<int>(types.size());
  auto make_body = [&]() -> Result<Expr> {
    if (f->kind != Syntax::lambda) {
      if (!known_values.empty())
        return fault_at(f->token, fmt::format("expected a function of {} parameters, written with \\",
                                              types.size() + known_values.size()));
      std::vector<Expr> variables;
      scope_.depth += count;
      for (int i = 0; i < count; ++i) variables.push_back(bound(count - 1 - i, types[static_cast<size_t>(i)]));
      auto body = applied(f, variables, hint);
      scope_.depth -= count;
      return body;
    }
    if (f->binders.size() != types.size() + known_values.size()) {
      return fault_at(f->token,
                      fmt::format("a function of {} parameters, expected {}", f->binders.size(),
                                  types.size() + known_values.size()),
                      types.size() == 1 && types[0]->is_tuple() ? "write \\(a, b). to take a tuple apart" : "");
    }
    for (int i = 0; i < count; ++i) {
      HOIST_TRY_VOID(bind(f->binders[static_cast<size_t>(i)], types[static_cast<size_t>(i)], scope_.depth + i, {}, f));
    }
    for (size_t i = 0; i < known_values.size(); ++i) {
      Entry e;
      e.kind = Entry::known_value;
      e.name = f->binders[types.size() + i].name;
      e.known = known_values[i];
      scope_.entries.push_back(std::move(e));
    }
    scope_.depth += count;
    auto body = value(f->children[0], hint);
    scope_.depth -= count;
    return body;
  };
  auto body = make_body();
  scope_.entries.resize(entries);
  scope_.sizes = sizes;
  if (!body.ok()) return body;
  Spec spec;
  spec.pattern = Pattern::function;
  spec.children = {*body};
  spec.parameters = types;
  return finish(std::move(spec), f);
}

Result<Expr> Elaborator::function_argument(const Argument& a, const std::vector<Type>& types, Type hint,
                                           const std::vector<Known>& known_values) {
  if (a.made != nullptr) return Diagnostic{"", "expected a function, found a value", ""};
  return function(a.syntax, types, hint, known_values);
}

Result<Expr> Elaborator::named(Syn s, const std::vector<Expr>& more, Type hint) {
  std::vector<Argument> arguments;
  for (Syn c : s->children) arguments.push_back({c, nullptr});
  for (Expr e : more) arguments.push_back({nullptr, e});
  if (const Entry* e = find(s->text)) return entry(Entry(*e), s, arguments, hint);
  if (auto p = pattern_named(s->text)) return pattern(*p, s, arguments, hint);
  if (auto f = function_named(s->text)) {
    if (arguments.empty()) return fault_at(s->token, "expected a value, found the function " + s->text);
    return scalar_call(*f, s, arguments, hint);
  }
  if (vocabulary != nullptr) {
    if (auto made = vocabulary->form(*this, s, arguments, hint)) return *made;
  }
  return composition(s, arguments, hint);
}

Result<Expr> Elaborator::entry(const Entry& e, Syn s, const std::vector<Argument>& arguments, Type hint) {
  if (e.kind == Entry::known_value && arguments.empty()) return known_literal(e.known, s, hint);
  bool is_value = e.kind == Entry::variable || e.kind == Entry::closed_value || e.kind == Entry::known_value ||
                  (e.kind == Entry::meta && e.declaration.arguments.empty());
  if (is_value && !arguments.empty()) return fault_at(s->token, s->text + " is a value and takes no arguments");
  if (e.kind == Entry::variable || e.kind == Entry::closed_value) {
    return e.kind == Entry::variable ? variable(e) : shift(e.value, scope_.depth - e.level);
  }
  if (e.kind == Entry::defined) return where_value(e.definition, s, arguments, hint);
  if (e.kind == Entry::closed_function) {
    HOIST_TRY(auto made, group(arguments, hint));
    std::vector<Type> types;
    for (Expr a : made) types.push_back(a->type);
    Expr f = nullptr;
    {
      Inside inside(*this, *e.scope);
      HOIST_TRY(f, function(e.syntax, types, hint));
    }
    return hoist::apply(shift(f, scope_.depth - e.scope->depth), made);
  }
  const MetaDeclaration& d = e.declaration;
  std::vector<Expr> made;
  for (size_t i = 0; i < arguments.size(); ++i) {
    HOIST_TRY(Expr a, argument(arguments[i], i < d.arguments.size() ? leaf_scalar(d.arguments[i]) : nullptr));
    made.push_back(a);
  }
  if (made.size() == 1 && d.arguments.size() > 1 && made[0]->type->is_tuple() &&
      made[0]->type->parts.size() == d.arguments.size()) {
    Expr parts = made[0];
    made.clear();
    for (size_t i = 0; i < d.arguments.size(); ++i) made.push_back(get(static_cast<int64_t>(i), parts));
  }
  if (made.size() != d.arguments.size()) {
    return fault_at(s->token, fmt::format("{} takes {} arguments, found {}", s->text, d.arguments.size(), made.size()));
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i]->type != d.arguments[i]) {
      return fault_at(s->token, fmt::format("argument {} of {} has type {}, expected {}", i + 1, s->text,
                                            text(made[i]->type), text(d.arguments[i])));
    }
  }
  Spec spec;
  spec.pattern = Pattern::meta;
  spec.name = s->text;
  spec.children = std::move(made);
  spec.type = d.result;
  return finish(std::move(spec), s);
}

Result<Expr> Elaborator::where_value(size_t index, Syn s, const std::vector<Argument>& arguments, Type hint) {
  HOIST_TRY(auto made, group(arguments, hint));
  std::vector<Type> types;
  for (Expr a : made) types.push_back(a->type);
  Where& w = wheres_[index];
  Expr result = w.value;
  if (!types.empty()) {
    auto found = w.functions.find(types);
    result = found == w.functions.end() ? nullptr : found->second;
  }
  if (result == nullptr) {
    if (w.busy) return fault_at(s->token, "the definition of " + s->text + " uses itself");
    w.busy = true;
    Scope scope = scope_;
    scope.entries.resize(w.entries);
    scope.depth = w.depth;
    Inside inside(*this, std::move(scope));
    auto here = types.empty() ? value(w.syntax, hint) : function(w.syntax, types, hint);
    w.busy = false;
    if (!here.ok()) return here;
    result = *here;
    if (types.empty())
      w.value = result;
    else
      w.functions.emplace(types, result);
  }
  result = shift(result, scope_.depth - w.depth);
  return types.empty() ? result : hoist::apply(result, made);
}

}  // namespace hoist
