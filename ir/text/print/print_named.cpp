// Finds named compositions in terms: a definition's term, with metavariables for its arguments, is matched against the
// term to print. A metavariable for a value matches a subterm that uses none of the variables bound by the definition;
// a metavariable for a function matches a whole function.
#include <algorithm>

#include "ir/text/definitions.h"
#include "ir/text/print/print_term.h"

namespace hoist {
namespace {

class DefinitionMatch {
 public:
  explicit DefinitionMatch(const Sharing& sharing) : sharing_(sharing) {}
  struct Found {
    Expr e = nullptr;
    int skipped = 0;  // number of enclosing variables that belong to the definition
  };
  std::map<std::string, Found> found;
  std::map<std::string, Nat> sizes;

  bool run(Expr pattern, Expr term, int inside) {
    if (pattern->pattern == Pattern::meta) return meta(pattern, term, inside);
    if (pattern->pattern != term->pattern || pattern->children.size() != term->children.size() ||
        pattern->integers != term->integers || pattern->sizes.size() != term->sizes.size() ||
        pattern->parameters.size() != term->parameters.size() || pattern->function != term->function ||
        pattern->mode != term->mode || pattern->dimension != term->dimension || pattern->memory != term->memory ||
        pattern->border != term->border) {
      return false;
    }
    for (size_t i = 0; i < pattern->sizes.size(); ++i) {
      if (auto name = pattern->sizes[i].as_name()) {
        auto [place, fresh] = sizes.emplace(*name, term->sizes[i]);
        if (!fresh && place->second != term->sizes[i]) return false;
      } else {
        later_.emplace_back(pattern->sizes[i], term->sizes[i]);
      }
    }
    if (pattern->pattern == Pattern::function) {
      if (auto name = whole_function(pattern)) return take(*name, term, inside);
      inside += static_cast<int>(pattern->parameters.size());
    }
    for (size_t i = 0; i < pattern->children.size(); ++i) {
      if (!run(pattern->children[i], term->children[i], inside)) return false;
    }
    return true;
  }

  // Checks sizes that are not plain names, after all names are bound.
  bool sizes_agree() const {
    for (const auto& [pattern, actual] : later_) {
      if (pattern.substitute(sizes) != actual) return false;
    }
    return true;
  }

 private:
  // \a b. f a b is printed as f.
  static std::optional<std::string> whole_function(Expr pattern) {
    Expr body = pattern->children[0];
    size_t count = pattern->parameters.size();
    if (body->pattern != Pattern::meta || body->children.size() != count) return std::nullopt;
    for (size_t i = 0; i < count; ++i) {
      Expr c = body->children[i];
      if (c->pattern != Pattern::bound || c->integers[0] != static_cast<int64_t>(count - 1 - i)) return std::nullopt;
    }
    return body->name;
  }

  bool meta(Expr pattern, Expr term, int inside) {
    if (!pattern->children.empty()) return false;
    if (pattern->name[0] != '#') return take(pattern->name, term, inside);
    return term->pattern == Pattern::literal && number_bits(term->type->scalar, pattern->name.substr(1)) == term->bits;
  }

  bool take(const std::string& name, Expr term, int inside) {
    for (int i = 0; i < inside; ++i) {
      if (sharing_.uses(term, i)) return false;
    }
    auto [place, fresh] = found.emplace(name, Found{term, inside});
    return fresh || shift(term, place->second.skipped - inside) == place->second.e;
  }

  const Sharing& sharing_;
  std::vector<std::pair<Nat, Nat>> later_;
};

// The type (a variable in a definition) at the leaves of nested arrays.
Type leaf(const NamedDefinition::Argument& a) { return leaf_of(a.meta.result); }

// True for a definition that is one pattern without attributes, hence a synonym.
bool is_synonym(Expr term) {
  return term->pattern != Pattern::call && term->sizes.empty() &&
         std::all_of(term->children.begin(), term->children.end(), [](Expr c) { return c->pattern == Pattern::meta; });
}

}  // namespace

std::optional<Printer::Stage> Printer::named_stage(const Place& p) {
  for (const DefinitionTerm& candidate : definition_terms()) {
    if (candidate.term->pattern != p.e->pattern || is_synonym(candidate.term)) continue;
    const NamedDefinition& d = *candidate.definition;
    if (taken_.count(std::string(d.row->name)) != 0) continue;
    DefinitionMatch match(sharing_);
    if (!match.run(candidate.term, p.e, 0)) continue;
    Stage s;
    s.node = p.e;
    s.head = d.row->name;
    s.bare = true;
    std::vector<Type> types;
    bool complete = true;
    for (const auto& a : d.arguments) {
      if (a.is_size) continue;
      auto place = match.found.find(a.name);
      if (!(complete = complete && place != match.found.end())) break;
      if (!a.is_function()) {
        types.push_back(place->second.e->type);
        Type actual = types.back();
        for (Type formal = a.meta.result; complete && formal->is_array();
             formal = formal->element, actual = actual->element) {
          complete = actual->is_array();
          if (!complete) break;
          if (auto name = formal->size.as_name())
            complete = match.sizes.emplace(*name, actual->size).first->second == actual->size;
        }
        s.bare &= leaf(a) == leaf(d.arguments.back());
      }
      s.arguments.push_back({place->second.e, p.skipped + place->second.skipped});
    }
    if (!complete || !match.sizes_agree() || fitting_definition(definitions_named(d.row->name), types) != &d) continue;
    for (const auto& a : d.arguments) {
      if (!a.is_size) continue;
      auto place = match.sizes.find(a.name);
      if (!(complete = place != match.sizes.end())) break;
      s.head += " " + size_argument(place->second);
    }
    if (!complete) continue;
    s.main = s.arguments.back();
    s.arguments.pop_back();
    return s;
  }
  return std::nullopt;
}

}  // namespace hoist
