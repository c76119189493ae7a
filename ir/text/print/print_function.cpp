// The textual form of functions and lets: short forms without names, and the names of variables.
#include <fmt/format.h>

#include <algorithm>

#include "ir/text/definitions.h"
#include "ir/text/print/print_term.h"

namespace hoist {
namespace {

std::string written(const Binder& b) {
  if (b.parts.empty()) return b.name;
  std::string out;
  for (const Binder& p : b.parts) out += (out.empty() ? "(" : ", ") + written(p);
  return out + ")";
}

bool is_bound(Expr e, int64_t position) { return e->pattern == Pattern::bound && e->integers[0] == position; }

}  // namespace

std::string Printer::new_name() {
  for (int candidate = 0, skip = named_++;; ++candidate) {
    std::string name;
    for (int rest = candidate; rest >= 0; rest = rest / 26 - 1)
      name.insert(name.begin(), static_cast<char>('a' + rest % 26));
    if (is_reserved(name) || function_named(name) || taken_.count(name) != 0 || !definition_arguments(name).empty())
      continue;
    if (skip-- == 0) return name;
  }
}

Document Printer::let(Expr e, int least) {
  Expr f = e->children[1];
  Document value = term(e->children[0], loose);
  int before = named_, outer = depth();
  auto path = sharing_.path();
  Binder b = binder(f->children[0], 0, f->parameters[0]);
  Binder shown = b;
  sharing_.enter(f, outer);
  int owner = sharing_.path().back().owner;
  names_.push_back(std::move(b));
  Document body = with_definitions(term(f->children[0], loose), owner, true);
  names_.pop_back();
  sharing_.set_path(std::move(path));
  named_ = before;
  std::vector<Document> head = {text("let " + written(shown) + " ="),
                                documents_.nest(2, join({documents_.line(), value}))};
  if (options_.show_types) head.push_back(documents_.comment(written(shown) + " : " + hoist::text(f->parameters[0])));
  head.insert(head.end(), {documents_.line(), text("in")});
  Document d = join(
      {documents_.group(join(std::move(head))), options_.show_types ? documents_.hard() : documents_.line(), body});
  return parenthesised_if(least > loose, documents_.group(d));
}

Document Printer::function_at(const Place& p) {
  names_.resize(names_.size() + static_cast<size_t>(p.skipped));
  Document d = sharing_.is_shared(p.e, depth()) ? reference(p.e) : function(p.e, true);
  names_.resize(names_.size() - static_cast<size_t>(p.skipped));
  return d;
}

// The stages of \a. a |> ... if a has no other use; empty for other functions.
std::vector<Printer::Stage> Printer::stages_of_function(Expr f) {
  std::vector<Stage> stages;
  if (f->parameters.size() != 1) return stages;
  auto path = sharing_.path();
  sharing_.enter(f, depth());
  names_.emplace_back();
  for (Place p{f->children[0], 0}; !is_bound(p.e, p.skipped);) {
    std::optional<Stage> s;
    if (!is_shared(p)) s = stage(p, stages.empty());
    bool free = s.has_value();
    for (size_t i = 0; free && i < s->arguments.size(); ++i)
      free = !sharing_.uses(s->arguments[i].e, s->arguments[i].skipped);
    if (!free) {
      stages.clear();
      break;
    }
    p = s->main;
    stages.push_back(std::move(*s));
  }
  names_.pop_back();
  sharing_.set_path(std::move(path));
  return stages;
}

// The scalar function or metavariable that f applies to its parameters, or to the components of its one parameter.
std::optional<std::string> Printer::applied_directly(Expr f) {
  Expr body = f->children[0];
  if ((body->pattern != Pattern::call && body->pattern != Pattern::meta) || body->children.empty()) return std::nullopt;
  auto count = static_cast<int64_t>(f->parameters.size()), arguments = static_cast<int64_t>(body->children.size());
  bool spread = count == 1 && arguments > 1 && f->parameters[0]->is_tuple() &&
                static_cast<int64_t>(f->parameters[0]->parts.size()) == arguments;
  if (arguments != count && !spread) return std::nullopt;
  for (int64_t i = 0; i < arguments; ++i) {
    Expr c = body->children[static_cast<size_t>(i)];
    bool right = spread ? c->pattern == Pattern::get && c->integers[0] == i && is_bound(c->children[0], 0)
                        : is_bound(c, count - 1 - i);
    if (!right) return std::nullopt;
  }
  if (body->pattern == Pattern::meta) return body->name;
  const FunctionRow& r = row(body->function);
  return infix_level(body->function) > 0 ? fmt::format("({})", r.symbol) : std::string(r.name);
}

// Functions without names for their parameters: (+), max, f, exp, (+ b), (split 16 >> map f >> join).
std::optional<Document> Printer::short_function(Expr f) {
  if (auto name = applied_directly(f)) return text(*name);
  auto stages = stages_of_function(f);
  if (stages.empty()) return std::nullopt;
  names_.emplace_back();
  auto path = sharing_.path();
  sharing_.enter(f, depth() - 1);
  std::vector<Document> parts;
  bool alone = stages.size() == 1 &&
               (stages[0].section || (stages[0].arguments.empty() && stages[0].head.find(' ') == std::string::npos));
  for (size_t i = stages.size(); i-- > 0;) {
    if (!parts.empty()) parts.insert(parts.end(), {documents_.line(), text(">> ")});
    parts.push_back(documents_.nest(3, stage_head(stages[i])));
  }
  sharing_.set_path(std::move(path));
  names_.pop_back();
  return parenthesised_if(!alone, documents_.group(join(std::move(parts))));
}

// Destructures a tuple if only its components are used.
Binder Printer::binder(Expr body, int64_t position, Type type) {
  std::set<std::vector<int64_t>> paths;
  std::set<std::pair<Expr, int64_t>> seen;
  std::function<void(Expr, int64_t)> walk = [&](Expr e, int64_t p) {
    if (!sharing_.uses(e, p) || !seen.insert({e, p}).second) return;
    std::vector<int64_t> path;
    Expr base = e;
    for (; base->pattern == Pattern::get; base = base->children[0]) path.insert(path.begin(), base->integers[0]);
    if (is_bound(base, p)) {
      paths.insert(path);
      return;
    }
    int64_t inner = p + (e->pattern == Pattern::function ? static_cast<int64_t>(e->parameters.size()) : 0);
    for (Expr c : e->children) walk(c, inner);
  };
  if (type->is_tuple()) walk(body, position);
  std::function<Binder(Type, std::vector<int64_t>)> make = [&](Type t, std::vector<int64_t> path) {
    Binder b;
    auto below = paths.lower_bound(path);
    bool used =
        below != paths.end() && below->size() > path.size() && std::equal(path.begin(), path.end(), below->begin());
    if (!t->is_tuple() || !used) {  // a use of the path itself sorts first
      b.name = new_name();
      return b;
    }
    for (size_t i = 0; i < t->parts.size(); ++i) {
      path.push_back(static_cast<int64_t>(i));
      b.parts.push_back(make(t->parts[i], path));
      path.pop_back();
    }
    return b;
  };
  return make(type, {});
}

Document Printer::function(Expr f, bool parentheses) {
  if (auto d = short_function(f); d && parentheses) return *d;
  int before = named_, outer = depth();
  auto count = static_cast<int64_t>(f->parameters.size());
  std::string head = "\\", types;
  std::vector<Binder> binders;
  for (int64_t i = 0; i < count; ++i) {
    Type type = f->parameters[static_cast<size_t>(i)];
    binders.push_back(binder(f->children[0], count - 1 - i, type));
    head += (i > 0 ? " " : "") + written(binders.back());
    types += (i > 0 ? ", " : "") + written(binders.back()) + " : " + hoist::text(type);
  }
  for (Binder& b : binders) names_.push_back(std::move(b));
  auto path = sharing_.path();
  sharing_.enter(f, outer);
  int owner = sharing_.path().back().owner;
  Document body = with_definitions(term(f->children[0], loose), owner, false);
  sharing_.set_path(std::move(path));
  names_.resize(static_cast<size_t>(outer));
  named_ = before;
  std::vector<Document> parts = {text(head + ".")};
  if (options_.show_types) parts.push_back(documents_.comment(types));
  parts.push_back(documents_.nest(1, join({options_.show_types ? documents_.hard() : documents_.line(), body})));
  Document d = join(std::move(parts));
  return documents_.group(parentheses ? join({text("("), d, text(")")}) : d);
}

}  // namespace hoist
