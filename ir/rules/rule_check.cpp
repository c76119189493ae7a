#include "ir/rules/rule_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/rules/rule_instance.h"
#include "ir/text/text.h"

namespace hoist {
namespace {

constexpr int attempts_per_instance = 5000;
constexpr size_t fault_limit = 3;

// The arrays of scalars that make up a value: the value itself, or one for each component of its tuples.
std::vector<Expr> components(Expr e) {
  std::vector<std::function<Expr(Expr)>> parts;
  std::function<std::vector<std::function<Expr(Expr)>>(Type)> of = [&](Type t) {
    std::vector<std::function<Expr(Expr)>> found;
    if (t->is_tuple()) {
      for (size_t i = 0; i < t->parts.size(); ++i) {
        for (auto& part : of(t->parts[i])) {
          found.push_back([i, part](Expr x) { return part(get(static_cast<int64_t>(i), x)); });
        }
      }
    } else if (t->is_array()) {
      for (auto& part : of(t->element)) found.push_back([part](Expr x) { return map(part, x); });
    } else {
      found.push_back([](Expr x) { return x; });
    }
    return found;
  };
  std::vector<Expr> all;
  for (auto& part : of(e->type)) all.push_back(part(e));
  return all;
}

std::string shown(const Tensor& t, int64_t i) {
  return is_float(t.scalar()) ? fmt::format("{:.9g}", t.float_at(i)) : fmt::format("{}", t.integer_at(i));
}

double unit_of(Scalar s) {
  switch (s) {
    case Scalar::f64:
      return 0x1p-53;
    case Scalar::f32:
      return 0x1p-24;
    case Scalar::f16:
      return 0x1p-11;
    default:
      return 0x1p-8;
  }
}

}  // namespace

std::optional<std::string> rule_difference(const Tensor& left, const Tensor& right, RuleClass rule_class,
                                           int64_t integer_steps) {
  Scalar s = left.scalar();
  double scale = 1;
  for (int64_t i = 0; is_float(s) && i < left.size(); ++i) {
    for (double v : {left.float_at(i), right.float_at(i)}) {
      if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
    }
  }
  for (int64_t i = 0; i < left.size(); ++i) {
    bool same = true;
    if (!is_float(s)) {
      same = std::abs(left.integer_at(i) - right.integer_at(i)) <= integer_steps;
    } else {
      double a = left.float_at(i), b = right.float_at(i);
      same = (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
      if (!same && rule_class != RuleClass::exact) same = std::abs(a - b) <= rounding_bound * unit_of(s) * scale;
    }
    if (!same)
      return fmt::format("element {} is {} on the left and {} on the right", i, shown(left, i), shown(right, i));
  }
  return std::nullopt;
}

namespace {

class Checker {
 public:
  Checker(const Rule& rule, uint64_t seed) : rule_(rule), random_(seed) {
    auto add = [&](Type t) { collect(t); };
    for (const auto& [name, meta] : rule.declarations.metas) {
      add(meta.result);
      for (Type a : meta.arguments) add(a);
    }
    extents_ = sizes_;
    collect(rule.variants[0].left);
    for (const std::string& p : rule.parameters) {
      if (p != "d" || !rule.variants[0].dimension) sizes_.insert(p);
    }
  }

  // One instance: true when two sides were compared, or a fault was found.
  bool attempt(const std::vector<Expr>& examples) {
    Match match;
    RuleArguments arguments;
    const Rule::Variant& variant = random_.one_of(rule_.variants);
    if (variant.dimension) arguments.emplace("d", *variant.dimension);
    for (const std::string& name : sizes_) match.sizes[name] = size(name);
    for (const std::string& p : rule_.parameters) {
      if (match.sizes.contains(p)) arguments.emplace(p, match.sizes[p]);
    }
    RandomTerms before = random_;
    fresh_ = RandomTerms(random_.bits());
    if (!examples.empty()) {
      Expr example = random_.one_of(examples);
      return compare(example, {}, arguments);
    }
    if (!choose_types(match)) return false;
    bool inside = random_.chance(0.5);
    Expr root = nullptr;
    bool made = true;
    auto left = [&](const std::vector<Expr>& outer) -> Expr {
      made = choose_values(match, outer);
      for (const Condition& c : rule_.conditions) made = made && c.holds(match);
      if (!made) return nullptr;
      auto side = instantiate(variant.left, match);
      made = side.ok();
      return made ? *side : nullptr;
    };
    if (!inside) {
      root = left({});
      return made && compare(root, {}, arguments);
    }
    Expr context = fresh_.value(array_type(2, scalar_type(Scalar::f32)));
    root = map(
        [&](Expr c) {
          Expr e = left({c});
          return made ? e : literal(Scalar::f32, 0);
        },
        context);
    if (!made || root->pattern != Pattern::map || at(root, {0, 0}) == nullptr) return false;
    return compare(root, {0, 0}, arguments);
  }

  std::vector<std::string> faults;
  int compared = 0, refused = 0;
  std::string refusal;

 private:
  void collect(const Nat& n) { sizes_.merge(names_of(n)); }
  void collect(Type t) {
    if (t->is_array()) {
      collect(t->size);
      collect(t->element);
    }
    if (t->kind == TypeNode::variable_kind) types_.insert(t->name);
    for (Type p : t->parts) collect(p);
  }
  void collect(Expr e) {
    for (const Nat& n : e->sizes) collect(n);
    for (Expr c : e->children) collect(c);
  }

  // Extents of arrays are at least 1; other sizes (amounts, starts) may be 0.
  Nat size(const std::string& name) {
    if (!extents_.contains(name) && random_.chance(0.25)) return 0;
    return 1 + random_.below(random_.chance(0.2) ? 6 : 3);
  }

  bool choose_types(Match& match) {
    for (const std::string& name : types_) match.types[name] = fresh_.type();
    for (const Condition& c : rule_.conditions) {
      if (c.kind == Condition::integer_type || c.kind == Condition::float_type) {
        bool floats = c.kind == Condition::float_type;
        match.types[c.first] = scalar_type(floats ? random_.one_of<Scalar>({Scalar::f32, Scalar::f64})
                                                  : random_.one_of<Scalar>({Scalar::i32, Scalar::u8, Scalar::i64}));
      }
    }
    // Positions are small integers.
    if (types_.contains("I")) match.types["I"] = scalar_type(random_.one_of<Scalar>({Scalar::i32, Scalar::i64}));
    return true;
  }

  // An operator of the table with the properties that the conditions require; nothing if the type has none.
  std::optional<Function> operator_for(const std::string& name, Type type) {
    if (!type->is_scalar()) return std::nullopt;
    Scalar s = type->scalar;
    std::vector<Function> fitting;
    for (const FunctionRow& f : function_table()) {
      bool fits = f.arity == 2 && f.result == ResultKind::same &&
                  (is_float(s)            ? f.on_float
                   : s == Scalar::boolean ? f.on_boolean
                                          : f.on_integer);
      for (const Condition& c : rule_.conditions) {
        if (c.first != name) continue;
        if (c.kind == Condition::associative) fits = fits && f.associative;
        if (c.kind == Condition::exactly_associative) fits = fits && exactly_associative(f.function, type);
        if (c.kind == Condition::commutative) fits = fits && f.commutative;
        if (c.kind == Condition::neutral) fits = fits && f.neutral.has_value();
      }
      if (fits) fitting.push_back(f.function);
    }
    return fitting.empty() ? std::nullopt : std::optional(random_.one_of(fitting));
  }

  bool choose_values(Match& match, const std::vector<Expr>& outer) {
    match.metas.clear();
    for (const auto& [name, meta] : rule_.declarations.metas) {
      auto result = instantiate(meta.result, match);
      if (!result.ok() || !has_extents(*result)) return false;
      if (meta.arguments.empty()) {
        match.metas[name] = value(*result, outer);
        continue;
      }
      std::vector<Type> arguments;
      for (Type a : meta.arguments) {
        auto type = instantiate(a, match);
        if (!type.ok() || !has_extents(*type)) return false;
        arguments.push_back(*type);
      }
      bool is_operator =
          std::any_of(rule_.conditions.begin(), rule_.conditions.end(), [&, &name = name](const Condition& c) {
            return c.first == name && (c.kind == Condition::associative || c.kind == Condition::exactly_associative ||
                                       c.kind == Condition::commutative || c.kind == Condition::neutral);
          });
      if (is_operator) {
        auto f = operator_for(name, *result);
        if (!f) return false;
        match.metas[name] = function(arguments, [&](const std::vector<Expr>& v) { return call(*f, v); });
      } else {
        match.metas[name] = fresh_.function_of(arguments, *result, outer);
      }
    }
    return choose_literals(match);
  }

  static bool has_extents(Type t) {
    if (t->is_array()) return t->size.value() >= 0 && has_extents(t->element);
    return std::all_of(t->parts.begin(), t->parts.end(), has_extents);
  }

  Expr value(Type type, const std::vector<Expr>& outer) {
    Expr v = fresh_.value(type);
    if (outer.empty() || random_.chance(0.4)) return v;
    std::vector<Expr> scope = outer;
    scope.push_back(v);
    return fresh_.over(type, scope);
  }

  bool choose_literals(Match& match) {
    for (const Condition& c : rule_.conditions) {
      if (c.kind == Condition::literal) {
        Type type = match.metas.at(c.first)->type;
        if (!type->is_scalar()) return false;
        match.metas[c.first] = literal(type->scalar, std::strtod(c.second.c_str(), nullptr));
      }
      if (c.kind != Condition::neutral) continue;
      auto f = called_function(match.metas.at(c.first));
      Type type = match.metas.at(c.second)->type;
      if (!f || !type->is_scalar() || !row(*f).neutral) return false;
      match.metas[c.second] = neutral_literal(type->scalar, *row(*f).neutral);
    }
    return true;
  }

  static Expr neutral_literal(Scalar s, double neutral) {
    if (is_float(s) || std::isfinite(neutral)) return literal(s, neutral);
    const ScalarRow& r = row(s);
    if (neutral < 0) return literal_integer(s, r.is_signed ? -(int64_t{1} << (r.bits - 2)) * 2 : 0);
    uint64_t highest = r.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << r.bits) - 1;
    return literal_integer(s, static_cast<int64_t>(r.is_signed ? highest >> 1 : highest));
  }

  bool compare(Expr root, const Path& place, const RuleArguments& arguments) {
    Expr term = at(root, place);
    auto result = apply_rule(rule_, term, arguments);
    if (!result) {
      // If the left side's own pattern vanished in the normal form, the rule has no place to apply.
      Pattern outermost = rule_.variants[0].left->pattern;
      if (outermost != Pattern::meta && term->pattern != outermost) return false;
      ++refused;
      if (refusal.empty()) refusal = why_not(rule_, term, arguments) + "\n    in " + print(root);
      return false;
    }
    auto replaced = replace_at(root, place, *result);
    if (!replaced.ok()) {
      faults.push_back(replaced.errors()[0].text() + "\n    in " + print(root));
      return true;
    }
    Bindings data = fresh_.data(rule_.row.rule_class == RuleClass::exact);
    for (Expr p : parameters_of(root)) {
      if (!data.contains(p->name)) data.emplace(p->name, example_data(p));
    }
    std::vector<Expr> before = components(root), after = components(*replaced);
    for (size_t i = 0; i < before.size(); ++i) {
      auto left = interpret(before[i], data);
      if (!left.ok()) return false;  // undefined: an index is outside its array
      auto right = interpret(after[i], data);
      std::optional<std::string> wrong;
      if (!right.ok())
        wrong = "the right side is undefined: " + right.errors()[0].text();
      else
        wrong = rule_difference(*left, *right, rule_.row.rule_class);
      if (wrong) {
        faults.push_back(fmt::format("{}\n    {}\n    {}", *wrong, print(root), print(*replaced)));
        return true;
      }
    }
    ++compared;
    return true;
  }

  Tensor example_data(Expr p) {
    Tensor t(leaf_of(p->type)->scalar, shape_of(p->type));
    for (int64_t i = 0; i < t.size(); ++i) {
      if (is_float(t.scalar()))
        t.set_float(i, static_cast<double>(random_.below(2000) - 1000) / 512.0);
      else
        t.set_integer(i, random_.below(7));
    }
    return t;
  }

  const Rule& rule_;
  RandomTerms random_;
  RandomTerms fresh_{0};
  std::set<std::string> sizes_, extents_, types_;
};

}  // namespace

RuleCheck check_rule(const Rule& rule, int instances, uint64_t seed, const std::vector<Expr>& examples) {
  RuleCheck check;
  if (rule.rewrite && examples.empty()) {
    check.faults.push_back("a row with a C++ function needs examples");
    return check;
  }
  Checker checker(rule, seed);
  for (int i = 0; i < instances && checker.faults.size() < fault_limit; ++i) {
    bool done = false;
    for (int a = 0; a < attempts_per_instance && !done; ++a) done = checker.attempt(examples);
    if (!done) {
      check.faults.push_back("no instance was found" +
                             (checker.refusal.empty() ? "" : "; the rule does not apply: " + checker.refusal));
      break;
    }
  }
  // Terms that normalise away under the left side are refused; a rule that refuses most of its own instances is wrong.
  if (checker.refused > checker.compared && check.faults.empty()) {
    check.faults.push_back(fmt::format("it refuses {} of its own {} instances: {}", checker.refused,
                                       checker.refused + checker.compared, checker.refusal));
  }
  check.compared = checker.compared;
  check.faults.insert(check.faults.end(), checker.faults.begin(), checker.faults.end());
  return check;
}

}  // namespace hoist
