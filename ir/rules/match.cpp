#include "ir/rules/match.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/base/hash.h"

namespace hoist {
namespace {

int64_t parameters_bound_by(Expr e) {
  return e->pattern == Pattern::function ? static_cast<int64_t>(e->parameters.size()) : 0;
}

// The parameter that replaces a variable which the function under construction must not mention. No term of a user can
// contain this name.
const std::string& forbidden_name() {
  static const std::string name = "\2forbidden";
  return name;
}

bool mentions_forbidden(Expr e) {
  for (Expr p : parameters_of(e)) {
    if (p->name == forbidden_name()) return true;
  }
  return false;
}

// Replaces the first `values.size()` bound positions by terms, which are given for the depth of `e`, and adds `by` to
// the positions beyond them.
class Renaming {
 public:
  Renaming(const std::vector<Expr>& values, int64_t by) : values_(values), by_(by) {}

  Result<Expr> run(Expr e, int64_t depth) {
    if (e->free <= depth) return e;
    auto count = static_cast<int64_t>(values_.size());
    if (e->pattern == Pattern::bound) {
      int64_t p = e->integers[0];
      if (p < depth) return e;
      if (p < depth + count) return shift(values_[static_cast<size_t>(p - depth)], depth);
      return bound(p + by_, e->type);
    }
    auto key = std::pair(e, depth);
    if (auto found = memo_.find(key); found != memo_.end()) return found->second;
    std::vector<Expr> children;
    for (Expr c : e->children) {
      HOIST_TRY(Expr child, run(c, depth + parameters_bound_by(e)));
      children.push_back(child);
    }
    HOIST_TRY(Expr result, with_children(e, std::move(children)));
    memo_.emplace(key, result);
    return result;
  }

 private:
  const std::vector<Expr>& values_;
  int64_t by_;
  std::unordered_map<std::pair<Expr, int64_t>, Expr, PlaceHash> memo_;
};

// A bound variable, or a component of one: `x`, `x.0`, `x.1.0`.
struct Projection {
  int64_t position = 0;
  std::vector<int64_t> components;
  bool operator==(const Projection&) const = default;
};

std::optional<Projection> projection_of(Expr e) {
  Projection p;
  for (; e->pattern == Pattern::get; e = e->children[0]) p.components.insert(p.components.begin(), e->integers[0]);
  if (e->pattern != Pattern::bound) return std::nullopt;
  p.position = e->integers[0];
  return p;
}

std::string describe(Expr e) {
  if (e->pattern == Pattern::call) return std::string(row(e->function).name);
  std::string name(row(e->pattern).name);
  if ((e->pattern == Pattern::map || e->pattern == Pattern::fold) && e->mode != Mode::view) {
    name += " " + std::string(name_of(e->mode));
    if (e->mode == Mode::global || e->mode == Mode::group || e->mode == Mode::local) {
      name += "(" + std::to_string(e->dimension) + ")";
    }
  }
  if (e->pattern == Pattern::materialise) name += " " + std::string(name_of(e->memory));
  if (e->pattern == Pattern::pad) name += " " + std::string(name_of(e->border));
  if (e->pattern == Pattern::transpose || e->pattern == Pattern::get || e->pattern == Pattern::bound) {
    for (int64_t i : e->integers) name += " " + std::to_string(i);
  }
  if (e->pattern == Pattern::slice && e->integers[0] != 1) name += " with step " + std::to_string(e->integers[0]);
  return name;
}

// True if the nodes are equal except for their types, their sizes and their children.
bool have_same_form(Expr pattern, Expr term) {
  return pattern->pattern == term->pattern && pattern->function == term->function && pattern->mode == term->mode &&
         pattern->dimension == term->dimension && pattern->memory == term->memory && pattern->border == term->border &&
         pattern->integers == term->integers && pattern->name == term->name &&
         pattern->children.size() == term->children.size() && pattern->sizes.size() == term->sizes.size() &&
         pattern->parameters.size() == term->parameters.size();
}

class Matcher {
 public:
  explicit Matcher(Match& match) : match_(match) {}

  std::optional<Mismatch> run(Expr pattern, Expr term) {
    if (terms(pattern, term)) settle();
    return std::move(mismatch_);
  }

 private:
  bool fail(const std::string& what) {
    if (!mismatch_) mismatch_ = Mismatch{place_, what};
    return false;
  }

  void sizes(const Nat& pattern, const Nat& found) { equations_.push_back({pattern, found, place_}); }

  bool types(Type pattern, Type found) {
    if (pattern->kind == TypeNode::variable_kind) {
      auto [place, fresh] = match_.types.emplace(pattern->name, found);
      if (fresh || place->second == found) return true;
      return fail(fmt::format("the type {} is {} and also {}", pattern->name, text(place->second), text(found)));
    }
    auto differ = [&] { return fail(fmt::format("expected type {}, found {}", text(pattern), text(found))); };
    if (pattern->kind != found->kind) return differ();
    switch (pattern->kind) {
      case TypeNode::array_kind:
        sizes(pattern->size, found->size);
        return types(pattern->element, found->element);
      case TypeNode::tuple_kind:
        if (pattern->parts.size() != found->parts.size()) return differ();
        for (size_t i = 0; i < pattern->parts.size(); ++i) {
          if (!types(pattern->parts[i], found->parts[i])) return false;
        }
        return true;
      default:
        return pattern == found || differ();
    }
  }

  bool terms(Expr pattern, Expr term) {
    if (pattern->pattern == Pattern::meta) return metavariable(pattern, term);
    if (!have_same_form(pattern, term)) {
      return fail(fmt::format("expected {}, found {}", describe(pattern), describe(term)));
    }
    for (size_t i = 0; i < pattern->sizes.size(); ++i) sizes(pattern->sizes[i], term->sizes[i]);
    for (size_t i = 0; i < pattern->parameters.size(); ++i) {
      if (!types(pattern->parameters[i], term->parameters[i])) return false;
    }
    if (pattern->children.empty() || is_conversion(pattern->pattern)) {
      if (!types(pattern->type, term->type)) return false;
      if (pattern->pattern == Pattern::literal && pattern->bits != term->bits) return fail("the literal differs");
      if (pattern->pattern == Pattern::constant && !(pattern->constant == term->constant)) {
        return fail("the constant differs");
      }
    }
    for (Type t : term->parameters) bound_types_.push_back(t);
    bool same = true;
    for (size_t i = 0; same && i < pattern->children.size(); ++i) {
      place_.push_back(static_cast<int>(i));
      same = terms(pattern->children[i], term->children[i]);
      place_.pop_back();
    }
    bound_types_.resize(bound_types_.size() - term->parameters.size());
    return same;
  }

  // The term that replaces a pattern-bound variable inside the function that a metavariable is bound to: parameter i
  // where argument i is the variable (or its component), a tuple of such, or the forbidden parameter.
  Expr value_of(const Projection& variable, Type type, const std::vector<Projection>& arguments,
                const std::vector<Type>& argument_types) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i] == variable) {
        return bound(static_cast<int64_t>(arguments.size() - 1 - i), argument_types[i]);
      }
    }
    if (!type->is_tuple()) return parameter(forbidden_name(), type);
    std::vector<Expr> parts;
    for (size_t i = 0; i < type->parts.size(); ++i) {
      Projection part = variable;
      part.components.push_back(static_cast<int64_t>(i));
      parts.push_back(value_of(part, type->parts[i], arguments, argument_types));
    }
    return tuple(parts);
  }

  bool metavariable(Expr pattern, Expr term) {
    if (term->pattern == Pattern::function) return fail("expected a value, found a function");
    auto depth = static_cast<int64_t>(bound_types_.size());
    if (!types(pattern->type, term->type)) return false;
    Expr value = nullptr;
    if (pattern->children.empty()) {
      if (mentions_bound(term, 0, depth)) {
        return fail(fmt::format("{} must not depend on the variables bound around it", pattern->name));
      }
      value = depth == 0 ? term : shift(term, -depth, 0);
    } else {
      value = function_for(pattern, term, depth);
      if (value == nullptr) return false;
    }
    auto [place, fresh] = match_.metas.emplace(pattern->name, value);
    return fresh || place->second == value || fail(fmt::format("{} matches two different terms", pattern->name));
  }

  Expr function_for(Expr pattern, Expr term, int64_t depth) {
    std::vector<Projection> arguments;
    std::vector<Type> argument_types;
    for (Expr a : pattern->children) {
      auto projection = projection_of(a);
      HOIST_CHECK(projection, "a metavariable on the left side is applied to something that is not a bound variable");
      Type type = bound_types_[bound_types_.size() - 1 - static_cast<size_t>(projection->position)];
      for (int64_t c : projection->components) {
        if (!type->is_tuple() || c >= static_cast<int64_t>(type->parts.size())) {
          fail("expected a tuple, found " + text(type));
          return nullptr;
        }
        type = type->parts[static_cast<size_t>(c)];
      }
      arguments.push_back(*projection);
      argument_types.push_back(type);
    }
    std::vector<Expr> values;
    for (int64_t p = 0; p < depth; ++p) {
      Type type = bound_types_[static_cast<size_t>(depth - 1 - p)];
      values.push_back(value_of(Projection{p, {}}, type, arguments, argument_types));
    }
    auto by = static_cast<int64_t>(arguments.size()) - depth;
    auto body = Renaming(values, by).run(term, 0);
    if (!body.ok() || mentions_forbidden(*body)) {
      fail(fmt::format("{} may only depend on its arguments", pattern->name));
      return nullptr;
    }
    Spec spec;
    spec.pattern = Pattern::function;
    spec.children = {*body};
    spec.parameters = argument_types;
    return build(std::move(spec));
  }

  // Solves the size equations, those with one unknown first, until none is left or none can be solved.
  void settle() {
    std::vector<Equation> rest = std::move(equations_);
    for (bool progress = true; progress && !rest.empty();) {
      progress = false;
      std::vector<Equation> later;
      for (const Equation& e : rest) {
        place_ = e.place;
        std::vector<std::string> unknown;
        for (const std::string& name : names_of(e.pattern)) {
          if (!match_.sizes.contains(name)) unknown.push_back(name);
        }
        if (unknown.empty()) {
          if (!holds(e)) return;
          progress = true;
        } else if (unknown.size() == 1 && solve(e, unknown[0])) {
          progress = true;
        } else {
          later.push_back(e);  // another equation may determine the size
        }
      }
      rest = std::move(later);
    }
    if (!rest.empty()) {
      place_ = rest[0].place;
      std::string known;
      for (const std::string& name : names_of(rest[0].pattern)) {
        auto found = match_.sizes.find(name);
        if (found != match_.sizes.end()) known += fmt::format(", {} = {}", name, found->second.text());
      }
      fail(fmt::format("{} = {} has no solution, or not just one{}", rest[0].pattern.text(), rest[0].found.text(),
                       known));
    }
  }

  struct Equation {
    Nat pattern, found;
    Path place;
  };

  bool holds(const Equation& e) {
    auto left = try_substitute(e.pattern, match_.sizes);
    if (left && *left == e.found) return true;
    return fail(fmt::format("sizes differ: {} = {} fails{}", e.pattern.text(), e.found.text(),
                            left && !names_of(e.pattern).empty() ? ", the left side is " + left->text() : ""));
  }

  bool solve(const Equation& e, const std::string& name) {
    auto with = [&](const Nat& value) {
      auto sizes = match_.sizes;
      sizes[name] = value;
      return try_substitute(e.pattern, sizes);
    };
    auto one = with(1), two = with(2), three = with(3), five = with(5);
    if (!one || !two || !three || !five) return false;
    Nat slope = *two - *one, offset = *one - slope;
    bool linear = *three == offset + slope * 3 && *five == offset + slope * 5 && slope != Nat(0);
    if (!linear || divides(slope, e.found - offset) != Answer::yes) return false;
    bool negative = slope.is_constant() && slope.value() < 0;
    Nat value = negative ? floor_division(offset - e.found, Nat(0) - slope) : floor_division(e.found - offset, slope);
    if (at_most(Nat(0), value) == Answer::no) return false;
    auto check = with(value);
    if (!check || *check != e.found) return false;
    match_.sizes[name] = value;
    return true;
  }

  Match& match_;
  Path place_;
  std::vector<Type> bound_types_;  // innermost last
  std::vector<Equation> equations_;
  std::optional<Mismatch> mismatch_;
};

class Instantiation {
 public:
  explicit Instantiation(const Match& match) : match_(match) {}

  Result<Expr> run(Expr e, int64_t depth) {
    if (e->pattern == Pattern::meta) return metavariable(e, depth);
    Spec spec = *e;
    for (Nat& s : spec.sizes) {
      HOIST_TRY(s, instantiate(s, match_));
    }
    for (Type& t : spec.parameters) {
      HOIST_TRY(t, instantiate(t, match_));
    }
    if (e->children.empty() || is_conversion(e->pattern)) {
      HOIST_TRY(spec.type, instantiate(e->type, match_));
    }
    for (Expr& c : spec.children) {
      HOIST_TRY(c, run(c, depth + parameters_bound_by(e)));
    }
    return make(std::move(spec));
  }

 private:
  Result<Expr> metavariable(Expr e, int64_t depth) {
    auto found = match_.metas.find(e->name);
    if (found == match_.metas.end()) return Diagnostic{"", fmt::format("nothing stands for {}", e->name), ""};
    Expr value = shift(found->second, depth);
    if (e->children.empty()) return value;
    if (value->pattern != Pattern::function || value->parameters.size() != e->children.size()) {
      return Diagnostic{"", fmt::format("{} does not take {} arguments", e->name, e->children.size()), ""};
    }
    std::vector<Expr> arguments;
    for (size_t i = 0; i < e->children.size(); ++i) {
      HOIST_TRY(Expr argument, run(e->children[i], depth));
      if (argument->type != value->parameters[i]) {
        return Diagnostic{"",
                          fmt::format("argument {} of {} has type {}, expected {}", i + 1, e->name,
                                      text(argument->type), text(value->parameters[i])),
                          ""};
      }
      arguments.push_back(argument);
    }
    return hoist::apply(value, arguments);
  }

  const Match& match_;
};

}  // namespace

bool mentions_bound(Expr e, int64_t low, int64_t high) {
  std::unordered_set<std::pair<Expr, int64_t>, PlaceHash> seen;
  std::function<bool(Expr, int64_t)> walk = [&](Expr n, int64_t depth) {
    if (n->free <= depth + low || !seen.insert({n, depth}).second) return false;
    if (n->pattern == Pattern::bound) return n->integers[0] >= depth + low && n->integers[0] < depth + high;
    for (Expr c : n->children) {
      if (walk(c, depth + parameters_bound_by(n))) return true;
    }
    return false;
  };
  return walk(e, 0);
}

bool may_match(Expr pattern, Expr term) {
  if (pattern->pattern == Pattern::meta) return term->pattern != Pattern::function;
  if (!have_same_form(pattern, term)) return false;
  for (size_t i = 0; i < pattern->children.size(); ++i) {
    if (!may_match(pattern->children[i], term->children[i])) return false;
  }
  return true;
}

std::optional<Mismatch> match_term(Expr pattern, Expr term, Match& match) { return Matcher(match).run(pattern, term); }

Result<Nat> instantiate(const Nat& size, const Match& match) {
  for (const std::string& name : names_of(size)) {
    if (!match.sizes.contains(name)) return Diagnostic{"", fmt::format("the size {} is undetermined", name), ""};
  }
  auto value = try_substitute(size, match.sizes);
  if (!value) return Diagnostic{"", fmt::format("{} divides by something below 1", size.text()), ""};
  return *value;
}

Result<Type> instantiate(Type type, const Match& match) {
  switch (type->kind) {
    case TypeNode::scalar_kind:
      return type;
    case TypeNode::variable_kind: {
      auto found = match.types.find(type->name);
      if (found == match.types.end()) return Diagnostic{"", fmt::format("the type {} is undetermined", type->name), ""};
      return found->second;
    }
    case TypeNode::array_kind: {
      HOIST_TRY(Nat size, instantiate(type->size, match));
      HOIST_TRY(Type element, instantiate(type->element, match));
      return array_type(size, element);
    }
    case TypeNode::tuple_kind:
      break;
  }
  std::vector<Type> parts;
  for (Type part : type->parts) {
    HOIST_TRY(Type p, instantiate(part, match));
    parts.push_back(p);
  }
  return tuple_type(parts);
}

Result<Expr> instantiate(Expr pattern, const Match& match) { return Instantiation(match).run(pattern, 0); }

}  // namespace hoist
