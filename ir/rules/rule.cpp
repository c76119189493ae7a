// Loading rules: a row's text becomes terms, declarations and conditions, and all faults of the rule itself are found
// here. Also the meaning of the side conditions.
#include "ir/rules/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/text/text.h"

namespace hoist {
namespace {

std::vector<std::string> words_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  auto add = [&] {
    size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    if (first != std::string::npos) parts.push_back(part.substr(first, last - first + 1));
    part.clear();
  };
  int nesting = 0;
  for (char c : text) {
    nesting += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == separator && nesting == 0)
      add();
    else
      part += c;
  }
  add();
  return parts;
}

// Replaces `(d)` by a number, if a row leaves the dimension of a mode open.
std::string with_dimension(std::string text, int64_t dimension) {
  for (size_t at; (at = text.find("(d)")) != std::string::npos;) text.replace(at, 3, fmt::format("({})", dimension));
  return text;
}

// The names that a term or type mentions, by kind.
struct Names {
  std::set<std::string> metas, sizes, types;

  void add(const Nat& size) { sizes.merge(names_of(size)); }

  void add(Type type) {
    if (type->kind == TypeNode::variable_kind) types.insert(type->name);
    if (type->is_array()) {
      add(type->size);
      add(type->element);
    }
    for (Type part : type->parts) add(part);
  }

  void add(Expr e) {
    if (e->pattern == Pattern::meta) metas.insert(e->name);
    if (e->pattern != Pattern::function) add(e->type);
    for (const Nat& s : e->sizes) add(s);
    for (Type p : e->parameters) add(p);
    for (Expr c : e->children) add(c);
  }
};

bool is_projection(Expr e) {
  while (e->pattern == Pattern::get) e = e->children[0];
  return e->pattern == Pattern::bound;
}

// If a metavariable on the left side is a function, its arguments have to be different bound variables.
void check_left(Expr e, const std::string& where, Diagnostics& faults) {
  if (e->pattern == Pattern::meta) {
    for (Expr a : e->children) {
      bool twice = std::count(e->children.begin(), e->children.end(), a) > 1;
      if (!is_projection(a) || twice) {
        faults.push_back({where,
                          fmt::format("{} is applied to something other than different bound variables", e->name),
                          "on the left a function matches a term over variables bound there"});
      }
    }
    return;
  }
  for (Expr c : e->children) check_left(c, where, faults);
}

class Reader {
 public:
  Reader(const RuleRow& row, const RuleFunctions& functions) : functions_(functions) { rule_.row = row; }

  Result<Rule> run() {
    auto declarations = parse_declarations(rule_.row.given);
    if (!declarations.ok()) return located(declarations.errors(), "given", "given");
    rule_.declarations = *declarations;
    rule_.parameters = words_of(rule_.row.parameters, ',');
    bool any_dimension = std::find(rule_.parameters.begin(), rule_.parameters.end(), "d") != rule_.parameters.end();
    for (int64_t d = 0; d < (any_dimension ? 3 : 1); ++d) {
      Rule::Variant variant;
      if (any_dimension) variant.dimension = d;
      read_sides(variant, d);
      rule_.variants.push_back(variant);
    }
    for (const std::string& text : words_of(rule_.row.where, ',')) read_condition(text);
    if (!faults_.empty()) return faults_;
    return std::move(rule_);
  }

 private:
  Diagnostics located(const Diagnostics& errors, const std::string& key, const std::string& part) const {
    Diagnostics out;
    for (Diagnostic d : errors) {
      const size_t offset = offset_in_line(d.where);
      d.where = place_of(key, offset) + ", " + part + (d.where.empty() || rule_.row.origin ? "" : ", " + d.where);
      out.push_back(d);
    }
    return out;
  }

  std::string place_of(const std::string& key, size_t offset = 0) const {
    return place_of_row(rule_.row.origin, rule_.row.name, key, offset);
  }

  void fault(const std::string& what, const std::string& hint = {}) {
    faults_.push_back({place_of(key_, offset_), what, hint});
  }

  Expr side(const std::string& text, const std::string& key) {
    auto term = parse_term(text, rule_.declarations);
    if (term.ok()) return *term;
    Diagnostics errors = located(term.errors(), key, key + " side");
    faults_.insert(faults_.end(), errors.begin(), errors.end());
    return nullptr;
  }

  void read_sides(Rule::Variant& variant, int64_t dimension) {
    key_ = "right";
    variant.left = side(with_dimension(rule_.row.left, dimension), "left");
    const std::string native = "native ";
    if (rule_.row.right.rfind(native, 0) == 0) {
      auto found = functions_.rewrites.find(rule_.row.right.substr(native.size()));
      if (found == functions_.rewrites.end())
        return fault("there is no function " + rule_.row.right.substr(native.size()));
      rule_.rewrite = found->second;
      return;
    }
    variant.right = side(with_dimension(rule_.row.right, dimension), "right");
    if (variant.left == nullptr || variant.right == nullptr) return;
    if (variant.left->type != variant.right->type) {
      fault(fmt::format("the left side has type {}, the right side {}", text(variant.left->type),
                        text(variant.right->type)));
    }
    check_left(variant.left, place_of("left") + ", left side", faults_);
    Names left, right;
    left.add(variant.left);
    right.add(variant.right);
    for (const std::string& p : rule_.parameters) left.sizes.insert(p);
    auto missing = [&](const std::set<std::string>& there, const std::set<std::string>& wanted, const char* what) {
      for (const std::string& name : wanted) {
        if (!there.contains(name)) fault(fmt::format("the {} {} of the right side is missing on the left", what, name));
      }
    };
    missing(left.metas, right.metas, "name");
    missing(left.sizes, right.sizes, "size");
    missing(left.types, right.types, "type");
  }

  void read_condition(const std::string& text) {
    key_ = "where";
    offset_ = std::min(rule_.row.where.find(text), rule_.row.where.size());
    Condition c;
    c.text = text;
    std::vector<std::string> words = words_of(text, ' ');
    auto size = [&](const std::string& part) {
      auto parsed = parse_size(part);
      if (parsed.ok()) return *parsed;
      fault(fmt::format("{} in the condition {} is not a size: {}", part, text, parsed.errors()[0].what));
      return Nat(0);
    };
    auto comparison = [&](Condition::Kind kind, const std::string& symbol) {
      size_t at = text.find(symbol);
      if (at == std::string::npos) return false;
      c.kind = kind;
      c.a = size(text.substr(0, at));
      c.b = size(text.substr(at + symbol.size()));
      return true;
    };
    auto property = [&](Condition::Kind kind, const std::string& name, size_t count) {
      if (words.empty() || words[0] != name || words.size() != count + 1) return false;
      c.kind = kind;
      c.first = words[1];
      if (count > 1) c.second = words[2];
      return true;
    };
    if (auto found = functions_.conditions.find(text); found != functions_.conditions.end()) {
      c.function = found->second;
    } else if (property(Condition::associative, "associative", 1) ||
               property(Condition::exactly_associative, "exactly-associative", 1) ||
               property(Condition::commutative, "commutative", 1) || property(Condition::neutral, "neutral", 2)) {
      check_meta(c.first, text);
      if (c.kind == Condition::neutral) check_meta(c.second, text);
    } else if (property(Condition::integer_type, "integer", 1) || property(Condition::float_type, "float", 1)) {
      check_type(c.first, text);
    } else if (property(Condition::constant, "constant", 1)) {
      c.a = size(c.first);
    } else if (words.size() == 3 && words[1] == "is") {
      c.kind = Condition::literal;
      c.first = words[0];
      c.second = words[2];
      check_meta(c.first, text);
      char* end = nullptr;
      std::strtod(c.second.c_str(), &end);
      if (*end != '\0') fault(fmt::format("{} in the condition {} is not a number", c.second, text));
    } else if (!comparison(Condition::divides, " divides ") && !comparison(Condition::at_most, " <= ") &&
               !comparison(Condition::below, " < ") && !comparison(Condition::equal, " = ")) {
      fault("unknown condition " + text, "ir/rules/rewrite.h lists them");
    }
    rule_.conditions.push_back(std::move(c));
  }

  void check_meta(const std::string& name, const std::string& condition) {
    if (!rule_.declarations.metas.contains(name))
      fault(fmt::format("the condition {} names {}, which is not declared", condition, name));
  }

  void check_type(const std::string& name, const std::string& condition) {
    Names names;
    for (const auto& [meta, m] : rule_.declarations.metas) {
      names.add(m.result);
      for (Type a : m.arguments) names.add(a);
    }
    if (!names.types.contains(name))
      fault(fmt::format("the condition {} names the type {}, which does not occur", condition, name));
  }

  const RuleFunctions& functions_;
  Rule rule_;
  Diagnostics faults_;
  std::string key_;    // key of the text being read
  size_t offset_ = 0;  // offset of the condition being read
};

bool is_literal_of(Expr e, double value) {
  if (e->pattern != Pattern::literal) return false;
  Scalar scalar = e->type->scalar;
  if (is_float(scalar)) return e->bits == bits_from_float(scalar, value);
  return e == literal_integer(scalar, static_cast<int64_t>(value));
}

bool is_scalar_kind(const Match& match, const std::string& name, bool (*kind)(Scalar)) {
  auto found = match.types.find(name);
  return found != match.types.end() && found->second->is_scalar() && kind(found->second->scalar);
}

}  // namespace

Result<Rule> read_rule(const RuleRow& row, const RuleFunctions& functions) { return Reader(row, functions).run(); }

std::optional<Function> called_function(Expr f) {
  if (f->pattern != Pattern::function || f->parameters.size() != 2) return std::nullopt;
  Expr body = f->children[0];
  if (body->pattern != Pattern::call || body->children.size() != 2) return std::nullopt;
  for (int64_t i = 0; i < 2; ++i) {
    Expr argument = body->children[static_cast<size_t>(i)];
    if (argument->pattern != Pattern::bound || argument->integers[0] != 1 - i) return std::nullopt;
  }
  return body->function;
}

bool exactly_associative(Function function, Type type) {
  if (!type->is_scalar() || !row(function).associative) return false;
  return !is_float(type->scalar) || row(function).exactly_associative_on_float;
}

bool is_neutral(Function function, Expr e) {
  auto neutral = row(function).neutral;
  if (!neutral || e->pattern != Pattern::literal) return false;
  Scalar scalar = e->type->scalar;
  if (is_float(scalar) || std::isfinite(*neutral)) return is_literal_of(e, *neutral);
  if (!is_integer(scalar)) return false;
  // The end of the type's range replaces an infinity.
  const ScalarRow& s = row(scalar);
  int64_t lowest = s.is_signed ? -(int64_t{1} << (s.bits - 2)) * 2 : 0;
  uint64_t magnitude = s.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << s.bits) - 1;
  auto highest = static_cast<int64_t>(s.is_signed ? magnitude >> 1 : magnitude);
  return e == literal_integer(scalar, *neutral < 0 ? lowest : highest);
}

bool Condition::holds(const Match& match) const {
  auto sizes = [&](Answer (*ask)(const Nat&, const Nat&)) {
    auto left = instantiate(a, match), right = instantiate(b, match);
    return left.ok() && right.ok() && ask(*left, *right) == Answer::yes;
  };
  auto meta = [&](const std::string& name) {
    auto found = match.metas.find(name);
    return found == match.metas.end() ? nullptr : found->second;
  };
  Expr x = meta(first);
  switch (kind) {
    case divides:
      return sizes(hoist::divides);
    case at_most:
      return sizes(hoist::at_most);
    case below:
      return sizes([](const Nat& p, const Nat& q) { return hoist::at_most(p + 1, q); });
    case equal:
      return sizes([](const Nat& p, const Nat& q) { return p == q ? Answer::yes : Answer::unknown; });
    case constant: {
      auto value = instantiate(a, match);
      return value.ok() && value->is_constant();
    }
    case literal:
      return x != nullptr && is_literal_of(x, std::strtod(second.c_str(), nullptr));
    case integer_type:
      return is_scalar_kind(match, first, is_integer);
    case float_type:
      return is_scalar_kind(match, first, is_float);
    case native:
      return function && function(match);
    case associative:
    case exactly_associative:
    case commutative:
    case neutral:
      break;
  }
  auto f = x == nullptr ? std::nullopt : called_function(x);
  if (!f) return false;
  if (kind == associative) return row(*f).associative;
  if (kind == commutative) return row(*f).commutative;
  if (kind == exactly_associative) return hoist::exactly_associative(*f, x->type);
  Expr z = meta(second);
  return z != nullptr && is_neutral(*f, z);
}

}  // namespace hoist
