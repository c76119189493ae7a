// The textual form of each node. Documents are created in reading order, since a parameter is declared at its first
// occurrence and definitions are numbered in order of occurrence.
#include "ir/text/print/print_term.h"

#include <fmt/format.h>

#include <algorithm>

namespace hoist {
namespace {

// True for a literal or repeats of one: its type may be omitted if the context determines it.
bool is_plain(Expr e) {
  while (e->pattern == Pattern::repeat) e = e->children[0];
  return e->pattern == Pattern::literal && e->type->scalar != Scalar::boolean;
}

}  // namespace

int infix_level(Function f) {
  switch (f) {
    case Function::logical_or:
      return infixed + 1;
    case Function::logical_xor:
      return infixed + 2;
    case Function::logical_and:
      return infixed + 3;
    case Function::equal:
    case Function::not_equal:
    case Function::less:
    case Function::less_equal:
    case Function::greater:
    case Function::greater_equal:
      return infixed + 4;
    case Function::add:
    case Function::subtract:
      return infixed + 5;
    case Function::multiply:
    case Function::divide:
    case Function::modulo:
      return infixed + 6;
    default:
      return 0;
  }
}

Printer::Printer(Expr root, const PrintOptions& options) : root_(root), options_(options), sharing_(root) {
  if (!root->has_meta) return;
  std::set<Expr> seen;
  std::function<void(Expr)> walk = [&](Expr e) {
    if (!e->has_meta || !seen.insert(e).second) return;
    if (e->pattern == Pattern::meta) taken_.insert(e->name);
    for (Expr c : e->children) walk(c);
  };
  walk(root);
}

std::string Printer::run() {
  Document d =
      root_->pattern == Pattern::function ? function(root_, false) : with_definitions(term(root_, loose), 0, false);
  return lay_out(d, options_.width);
}

Document Printer::parenthesised_if(bool wanted, Document d) {
  return wanted ? join({text("("), documents_.nest(1, d), text(")")}) : d;
}

Document Printer::list(const std::string& head, const std::vector<Document>& parts, int least) {
  std::vector<Document> inside = {documents_.soft()};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) inside.insert(inside.end(), {text(","), documents_.line()});
    inside.push_back(parts[i]);
  }
  Document d = documents_.group(join({text(head + "("), documents_.nest(2, join(std::move(inside))), text(")")}));
  return parenthesised_if(least > applied_level && !head.empty(), d);
}

// ---- Definitions ---------------------------------------------------------------------------------------------------

Document Printer::reference(Expr e) {
  auto [node, owner, relative] = sharing_.key(e, depth());
  std::string& name = definition_names_[{owner, node->serial, relative}];
  if (!name.empty()) return text(name);
  do {
    name = fmt::format("{}{}", e->pattern == Pattern::function ? "f" : "v", ++definitions_);
  } while (taken_.count(name) != 0);
  Named d{name, e, names_, sharing_.path()};
  while (d.path.back().owner != owner) d.path.pop_back();
  for (size_t i = static_cast<size_t>(d.path.back().depth); i < d.names.size(); ++i) d.names[i] = {};
  pending_[owner].push_back(std::move(d));
  return text(name);
}

// `body where v1 = ...; ...` with the definitions used by the body and by other definitions.
Document Printer::with_definitions(Document body, int owner, bool parenthesised) {
  std::vector<Document> lines;
  for (size_t i = 0; i < pending_[owner].size(); ++i) {
    Named d = pending_[owner][i];
    auto names = std::exchange(names_, d.names);
    auto path = sharing_.path();
    sharing_.set_path(d.path);
    Document value = d.e->pattern == Pattern::function ? function(d.e, true) : unshared(d.e, loose, false);
    sharing_.set_path(std::move(path));
    names_ = std::move(names);
    if (i > 0) lines.push_back(text(";"));
    lines.push_back(documents_.hard());
    lines.push_back(
        documents_.group(join({text(d.name + " ="), documents_.nest(2, join({documents_.line(), value}))})));
  }
  pending_.erase(owner);
  std::erase_if(definition_names_, [&](const auto& entry) { return std::get<0>(entry.first) == owner; });
  if (lines.empty()) return body;
  return parenthesised_if(parenthesised,
                          join({body, documents_.hard(), text("where"), documents_.nest(2, join(std::move(lines)))}));
}

// ---- Leaves --------------------------------------------------------------------------------------------------------

// A variable or a component of one, by the names that its function gives.
Document Printer::variable(Expr e) {
  std::vector<int64_t> path;
  for (; e->pattern == Pattern::get; e = e->children[0]) path.insert(path.begin(), e->integers[0]);
  int64_t level = depth() - 1 - e->integers[0];
  std::string out = fmt::format("free{}", -1 - level);  // only in a term with free variables
  size_t used = 0;
  if (level >= 0) {
    const Binder* b = &names_[static_cast<size_t>(level)];
    while (!b->parts.empty() && used < path.size()) b = &b->parts[static_cast<size_t>(path[used++])];
    out = b->name;
  }
  for (; used < path.size(); ++used) out += fmt::format(".{}", path[used]);
  return text(out);
}

Document Printer::meta_application(Expr e, int least) {
  std::string name = e->name[0] == '#' ? e->name.substr(1) : e->name;
  if (e->children.empty()) return text(name);
  std::vector<Document> parts;
  for (Expr c : e->children) parts.push_back(term(c, loose));
  return list(name, parts, least);
}

// ---- Terms ---------------------------------------------------------------------------------------------------------

Document Printer::term(Expr e, int least, bool bare) {
  return sharing_.is_shared(e, depth()) ? reference(e) : unshared(e, least, bare);
}

Document Printer::term_at(const Place& p, int least, bool bare) {
  names_.resize(names_.size() + static_cast<size_t>(p.skipped));
  Document d = term(p.e, least, bare);
  names_.resize(names_.size() - static_cast<size_t>(p.skipped));
  return d;
}

Document Printer::unshared(Expr e, int least, bool bare) {
  switch (e->pattern) {
    case Pattern::parameter:
      return parameter_name(e, least);
    case Pattern::bound:
      return variable(e);
    case Pattern::literal:
      return literal(e, least, bare);
    case Pattern::constant:
      return constant(e);
    case Pattern::meta:
      return meta_application(e, least);
    case Pattern::function:
      return function(e, true);
    case Pattern::let:
      return let(e, least);
    case Pattern::iota:
      return parenthesised_if(least > applied_level, text(fmt::format("iota {} {}", size_argument(e->sizes[0]),
                                                                      hoist::text(e->type->element))));
    case Pattern::operator_call:
      return operator_call(e);
    case Pattern::get: {
      Expr base = e;
      while (base->pattern == Pattern::get) base = base->children[0];
      if (base->pattern == Pattern::bound) return variable(e);
      return join({term(e->children[0], atomic), text(fmt::format(".{}", e->integers[0]))});
    }
    case Pattern::tuple:
    case Pattern::zip:
    case Pattern::concat:
    case Pattern::scatter:
    case Pattern::host: {
      std::vector<Document> parts;
      for (Expr c : e->children) parts.push_back(term(c, loose));
      std::string head = e->pattern == Pattern::tuple ? "" : std::string(row(e->pattern).name);
      if (e->pattern == Pattern::host) head += fmt::format(" {} {}", e->name, hoist::text(e->type));
      return list(head, parts, least);
    }
    case Pattern::select: {
      Document condition = term(e->children[0], loose);
      auto branches = same_type({e->children[1], e->children[2]}, {loose, loose});
      return list(is_rare(e) ? "rarely" : "select", {condition, branches[0], branches[1]}, least);
    }
    case Pattern::repeat:
      if (is_plain(e)) {
        std::string dimensions;
        for (; e->pattern == Pattern::repeat; e = e->children[0]) dimensions += "[" + e->sizes[0].text() + "]";
        return parenthesised_if(least > applied_level,
                                join({text("fill "), literal(e, atomic, bare), text(" " + dimensions)}));
      }
      break;
    default:
      break;
  }
  std::vector<Stage> stages;
  for (Place p{e, 0}; stages.empty() || !is_shared(p);) {
    auto s = stage(p);
    if (!s) break;
    p = s->main;
    stages.push_back(std::move(*s));
  }
  return stages.empty() ? call(e, least) : chain(e, std::move(stages), least);
}

// Terms of one type: one of them shows the type, untyped literals are used for the others.
std::vector<Document> Printer::same_type(const std::vector<Expr>& terms, const std::vector<int>& least) {
  auto anchor = static_cast<size_t>(std::find_if_not(terms.begin(), terms.end(), is_plain) - terms.begin());
  if (anchor == terms.size()) anchor = 0;
  std::vector<Document> out;
  for (size_t i = 0; i < terms.size(); ++i) out.push_back(term(terms[i], least[i], i != anchor));
  return out;
}

Document Printer::call(Expr e, int least) {
  const FunctionRow& f = row(e->function);
  if (int level = infix_level(e->function)) {
    auto sides = same_type(e->children, {level, level + 1});
    Document d =
        join({sides[0], text(fmt::format(" {}", f.symbol)), documents_.nest(2, join({documents_.line(), sides[1]}))});
    return parenthesised_if(level < least, documents_.group(d));
  }
  if (e->function == Function::negate || e->function == Function::logical_not) {
    Expr x = e->children[0];
    if (x->pattern != Pattern::literal) {  // -1f32 is a literal
      // Without parentheses, which would nest deeper than the parsed text. Two adjacent minus signs would begin a
      // comment.
      const bool sign_of_sign =
          e->function == Function::negate && x->pattern == Pattern::call && x->function == Function::negate;
      const std::string symbol = std::string(f.symbol) + (sign_of_sign ? " " : "");
      return parenthesised_if(prefixed < least, join({text(symbol), term(x, prefixed)}));
    }
  }
  return list(std::string(f.name), same_type(e->children, std::vector<int>(e->children.size(), loose)), least);
}

// ---- Stages --------------------------------------------------------------------------------------------------------

std::optional<Printer::Stage> Printer::stage(const Place& p, bool in_function) {
  if (options_.fold_definitions) {
    if (auto s = named_stage(p)) return s;
  }
  if (p.e->pattern != Pattern::call) return pattern_stage(p);
  // A scalar function of a reduced array continues the pipe: ... |> reduce (+) 0 |> (+ b) |> exp
  Expr x = p.e->children[0], end = x;
  while (end->pattern == Pattern::call) end = end->children[0];
  bool reduced = end->pattern == Pattern::reduce || end->pattern == Pattern::fold;
  if (!(in_function ? x->pattern == Pattern::bound && x->integers[0] == 0
                    : reduced && !sharing_.is_shared(x, depth() + p.skipped)))
    return std::nullopt;
  Stage s;
  s.node = p.e;
  s.main = {x, p.skipped};
  if (p.e->children.size() == 1) {
    s.head = row(p.e->function).name;
    return s;
  }
  if (infix_level(p.e->function) == 0 || p.e->function == Function::subtract || p.e->children.size() != 2)
    return std::nullopt;
  s.head = row(p.e->function).symbol;
  s.section = true;
  s.bare = true;
  s.arguments = {{p.e->children[1], p.skipped}};
  return s;
}

std::optional<Printer::Stage> Printer::pattern_stage(const Place& p) {
  Expr e = p.e;
  Stage s;
  s.node = e;
  s.head = row(e->pattern).name;
  auto add = [&](const std::string& attribute) { s.head += " " + attribute; };
  auto add_mode = [&] {
    if (e->mode == Mode::view && e->dimension == 0) return;
    const bool numbered = e->mode == Mode::global || e->mode == Mode::group || e->mode == Mode::local;
    const bool plain = e->dimension == 0 && !numbered;
    add(plain ? std::string(name_of(e->mode)) : fmt::format("{}({})", name_of(e->mode), e->dimension));
  };
  size_t main = 0;
  switch (e->pattern) {
    case Pattern::map:
      add_mode();
      main = 1;
      break;
    case Pattern::iterate:
      main = 1;
      [[fallthrough]];
    case Pattern::split:
    case Pattern::tile:
    case Pattern::untile:
    case Pattern::repeat:
      add(size_argument(e->sizes[0]));
      break;
    case Pattern::reduce:
    case Pattern::scan:
    case Pattern::fold:
      if (e->pattern == Pattern::fold) add_mode();
      main = 2;
      s.bare = e->pattern == Pattern::reduce;
      break;
    case Pattern::join:
    case Pattern::identity:
      break;
    case Pattern::transpose: {
      if (e->integers == std::vector<int64_t>{1, 0}) break;
      std::string permutation;
      for (int64_t i : e->integers) permutation += (permutation.empty() ? "(" : " ") + std::to_string(i);
      add(permutation + ")");
      break;
    }
    case Pattern::slide:
      add(size_argument(e->sizes[0]) + " " + size_argument(e->sizes[1]));
      if (e->sizes[2] != Nat(1)) add("dilation " + size_argument(e->sizes[2]));
      break;
    case Pattern::slice:
      add(size_argument(e->sizes[0]) + " " + size_argument(e->sizes[1]));
      if (e->integers[0] != 1) add(fmt::format("step {}", e->integers[0]));
      break;
    case Pattern::pad:
      add(size_argument(e->sizes[0]) + " " + size_argument(e->sizes[1]));
      if (e->border != Border::value)
        add(std::string(name_of(e->border)));
      else
        s.arguments = {{e->children[1], p.skipped}};
      s.bare = true;
      break;
    case Pattern::cast:
    case Pattern::reinterpret:
      add(hoist::text(e->type));
      break;
    case Pattern::materialise:
      add(std::string(name_of(e->memory)));
      break;
    case Pattern::index:
      main = 1;
      break;
    default:
      return std::nullopt;
  }
  for (size_t i = 0; i < main; ++i) s.arguments.push_back({e->children[i], p.skipped});
  s.main = {e->children[main], p.skipped};
  return s;
}

Document Printer::stage_head(const Stage& s) {
  if (s.section) return join({text("(" + s.head + " "), term_at(s.arguments[0], loose, s.bare), text(")")});
  std::vector<Document> parts = {text(s.head)};
  for (const Place& a : s.arguments) {
    parts.push_back(text(" "));
    parts.push_back(a.e->pattern == Pattern::function ? function_at(a) : term_at(a, atomic, s.bare));
  }
  return documents_.group(join(std::move(parts)));
}

Document Printer::chain(Expr e, std::vector<Stage> stages, int least) {
  const Place base = stages.back().main;
  // A single pattern precedes its argument, unless one of its arguments is a function with an explicit body.
  bool declares =
      options_.declare_parameters && base.e->pattern == Pattern::parameter && declared_[base.e->name] != base.e->type;
  bool in_front = stages.size() == 1 && !stages[0].section && !options_.show_types && !declares;
  for (const Place& a : stages[0].arguments) {
    in_front &= a.e->pattern != Pattern::function || is_shared(a) || applied_directly(a.e).has_value();
  }
  if (in_front && e->pattern == Pattern::call && stages[0].arguments.empty()) {
    return list(stages[0].head, {term_at(base, loose)}, least);
  }
  if (in_front) {
    Document head = stage_head(stages[0]);
    return parenthesised_if(least > applied_level, join({head, text(" "), term_at(base, atomic)}));
  }
  std::vector<Document> parts = {term_at(base, composed)};
  if (options_.show_types && !declares) parts.push_back(documents_.comment(hoist::text(base.e->type)));
  for (size_t i = stages.size(); i-- > 0;) {
    parts.push_back(options_.show_types ? documents_.hard() : documents_.line());
    parts.push_back(text("|> "));
    parts.push_back(documents_.nest(3, stage_head(stages[i])));
    if (options_.show_types) parts.push_back(documents_.comment(hoist::text(stages[i].node->type)));
  }
  return parenthesised_if(least > piped, documents_.group(join(std::move(parts))));
}

std::string print(Expr e, const PrintOptions& options) { return Printer(e, options).run(); }

}  // namespace hoist
