#include "ir/rules/program_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <set>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpret_cost.h"
#include "ir/operators/operators.h"
#include "ir/properties.h"
#include "ir/text/elaborate.h"
#include "ir/text/syntax.h"
#include "ir/text/text.h"

namespace hoist {

/// An operand of the left side, as `given` declares it.
struct GivenOperand {
  Type type = nullptr;      ///< null: of any type
  Syn otherwise = nullptr;  ///< the term that stands for an operand that is left out
};

class ProgramRule {
 public:
  ProgramRuleRow row;
  std::map<std::string, GivenOperand> operands;
  std::map<std::string, Attribute> attributes;  ///< what stands for an attribute that is not there
  std::vector<std::string> known, zero;
  std::vector<std::function<bool(ProgramMatch&)>> conditions;
  bool alone = false;
  Syn left = nullptr, right = nullptr;
  SyntaxStore store;
};

namespace {

// ---- Reading rows
// ----------------------------------------------------------------------------------------------------

class RowReader {
 public:
  RowReader(ProgramRule& rule, const ProgramConditions& conditions) : rule_(rule), conditions_(conditions) {}

  Diagnostics run() {
    given();
    rule_.left = side(rule_.row.left, "left side");
    rule_.right = side(rule_.row.right, "right side");
    if (rule_.left != nullptr && rule_.left->kind != Syntax::operation) fault("the left side is no operator call");
    for (std::string_view rest = rule_.row.where; !rest.empty();) {
      std::string condition(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(condition.size() + 2, rest.size()));
      read_condition(condition);
    }
    return faults_;
  }

 private:
  void fault(const std::string& what) { faults_.push_back({rule_.row.name, what, ""}); }

  void located(const Diagnostics& errors, const std::string& part) {
    for (Diagnostic d : errors) {
      d.where = fmt::format("{}, {}, {}", rule_.row.name, part, d.where);
      faults_.push_back(d);
    }
  }

  std::optional<SyntaxParser> parser(const std::string& text, const std::string& part) {
    auto tokens = tokenise(text);
    if (!tokens) {
      located(tokens.errors(), part);
      return std::nullopt;
    }
    SyntaxParser made(std::move(*tokens), rule_.store, {});
    made.allow_attribute_names();
    return made;
  }

  void given() {
    auto p = parser(rule_.row.given, "given");
    if (!p) return;
    auto read = [&]() -> Result<Nothing> {
      while (!p->at_end()) {
        HOIST_TRY(std::string name, p->new_name("the name of an operand or attribute"));
        if (p->take(":")) {
          GivenOperand& operand = rule_.operands[name];
          HOIST_TRY(operand.type, p->type());
          if (leaf_scalar(operand.type) == nullptr)
            return Diagnostic{name, "an operand is an array of scalars, found " + text(operand.type), ""};
          if (p->take("=")) {
            HOIST_TRY(operand.otherwise, p->term());
          }
        } else {
          HOIST_TRY_VOID(p->expect("="));
          HOIST_TRY(rule_.attributes[name], p->attribute());
        }
        if (!p->take(",")) break;
      }
      return p->end();
    };
    if (auto done = read(); !done) located(done.errors(), "given");
  }

  Syn side(const std::string& text, const std::string& part) {
    auto p = parser(text, part);
    if (!p) return nullptr;
    auto term = p->term();
    if (term.ok()) {
      if (auto end = p->end(); !end) located(end.errors(), part);
      return *term;
    }
    located(term.errors(), part);
    return nullptr;
  }

  void read_condition(const std::string& condition) {
    if (condition == "alone") {
      rule_.alone = true;
    } else if (condition.starts_with("known ")) {
      rule_.known.push_back(condition.substr(6));
    } else if (condition.starts_with("zero ")) {
      rule_.zero.push_back(condition.substr(5));
    } else if (auto place = conditions_.find(condition); place != conditions_.end()) {
      rule_.conditions.push_back(place->second);
    } else {
      fault("unknown condition " + condition);
    }
  }

  ProgramRule& rule_;
  const ProgramConditions& conditions_;
  Diagnostics faults_;
};

// ---- Matching
// --------------------------------------------------------------------------------------------------------

class ProgramMatcher {
 public:
  ProgramMatcher(const ProgramRule& rule, const Program& program) : rule_(rule) { match_.program = &program; }

  std::optional<ProgramMatch> run(Expr term) {
    if (!matches(rule_.left, term)) return std::nullopt;
    for (const auto& [name, value] : rule_.attributes) match_.attributes.emplace(name, value);
    for (const auto& [name, operand] : rule_.operands) {
      if (match_.values.count(name) == 0 && operand.otherwise == nullptr) return std::nullopt;
    }
    return std::move(match_);
  }

 private:
  bool matches(Syn pattern, Expr term) {
    if (pattern->kind == Syntax::application && pattern->children.empty()) return bind(pattern->text, term);
    if (pattern->kind != Syntax::operation) return false;
    if (term->pattern == Pattern::parameter) {
      const Definition* inner = find_definition(*match_.program, term->name);
      if (inner == nullptr) return false;
      const std::vector<std::string>& seen = match_.consumed;
      if (std::find(seen.begin(), seen.end(), term->name) == seen.end()) match_.consumed.push_back(term->name);
      term = inner->expression;
    }
    if (term->pattern != Pattern::operator_call) return false;
    const OperatorCall &wanted = pattern->call, &found = *term->operation;
    if (wanted.name != found.name || wanted.domain != found.domain || wanted.results != found.results) return false;
    return operands(pattern, term) && attributes(pattern, found);
  }

  // A name that stands for an operand that is left out stands for its default; a pattern names every operand.
  bool operands(Syn pattern, Expr term) {
    const std::vector<int64_t>&wanted = pattern->call.operands, &found = term->operation->operands;
    for (size_t i = 0, k = 0; i < wanted.size() || k < found.size();) {
      const bool here = i < wanted.size() && k < found.size() && wanted[i] == found[k];
      if (here) {
        if (!matches(pattern->children[i++], term->children[k++])) return false;
        continue;
      }
      if (i >= wanted.size() || (k < found.size() && found[k] < wanted[i])) return false;
      const Syn name = pattern->children[i++];
      auto given = rule_.operands.find(name->text);
      if (name->kind != Syntax::application || given == rule_.operands.end() || given->second.otherwise == nullptr)
        return false;
    }
    return true;
  }

  bool attributes(Syn pattern, const OperatorCall& found) {
    Attributes rest = found.attributes;
    for (const auto& [key, value] : pattern->call.attributes) {
      auto place = rest.find(key);
      if (place == rest.end() || place->second != value) return false;
      rest.erase(place);
    }
    for (const auto& [key, name] : pattern->attribute_names) {
      auto place = rest.find(key);
      if (place == rest.end()) continue;  // its default
      match_.attributes[name] = place->second;
      rest.erase(place);
    }
    if (pattern->rest.empty()) return rest.empty();
    match_.rests[pattern->rest] = std::move(rest);
    return true;
  }

  bool bind(const std::string& name, Expr term) {
    auto [place, fresh] = match_.values.emplace(name, term);
    if (!fresh) return place->second == term;
    auto given = rule_.operands.find(name);
    return given == rule_.operands.end() || given->second.type == nullptr || types(given->second.type, term->type);
  }

  bool types(Type wanted, Type found) {
    if (wanted->kind == TypeNode::variable_kind) {
      auto [place, fresh] = match_.types.types.emplace(wanted->name, found);
      return fresh || place->second == found;
    }
    if (wanted->kind != found->kind) return false;
    if (wanted->is_scalar()) return wanted == found;
    if (!wanted->is_array()) return false;
    if (auto name = wanted->size.as_name()) {
      auto [place, fresh] = match_.types.sizes.emplace(*name, found->size);
      if (!fresh && place->second != found->size) return false;
    } else if (wanted->size != found->size) {
      return false;
    }
    return types(wanted->element, found->element);
  }

  const ProgramRule& rule_;
  ProgramMatch match_;
};

bool read_elsewhere(const Program& program, const std::string& value, const std::set<std::string>& by) {
  if (std::find(program.outputs.begin(), program.outputs.end(), value) != program.outputs.end()) return true;
  for (const Definition& definition : program.definitions) {
    if (by.count(definition.value) != 0) continue;
    for (Expr p : parameters_of(definition.expression)) {
      if (p->name == value) return true;
    }
  }
  return false;
}

bool conditions_hold(const ProgramRule& rule, ProgramMatch& match) {
  for (const std::string& name : rule.known) {
    if (match.values.count(name) != 0 && match.known(name) == nullptr) return false;
  }
  for (const std::string& name : rule.zero) {
    if (match.values.count(name) == 0) continue;  // left out: its default counts, or the operator's own zero
    const Tensor* tensor = match.known(name);
    if (tensor == nullptr) return false;
    for (int64_t i = 0; i < tensor->size(); ++i) {
      if (is_float(tensor->scalar()) ? tensor->float_at(i) != 0 : tensor->integer_at(i) != 0) return false;
    }
  }
  if (rule.alone) {
    std::set<std::string> inside(match.consumed.begin(), match.consumed.end());
    inside.insert(match.value);
    for (const std::string& consumed : match.consumed) {
      if (read_elsewhere(*match.program, consumed, inside)) return false;
    }
  }
  return std::all_of(rule.conditions.begin(), rule.conditions.end(), [&](const auto& holds) { return holds(match); });
}

// ---- Building
// --------------------------------------------------------------------------------------------------------

// Elements and steps of the interpreter: the constants of the largest layers take less, a stranger's rule may ask for
// more.
constexpr double most_constant_work = 4e9;

// What a right side adds to a program: constants, and definitions in front of the one that is replaced.
class RightSide {
 public:
  RightSide(const ProgramRule& rule, const ProgramMatch& match, const Program& program, std::string value)
      : rule_(rule), match_(match), program_(program), value_(std::move(value)), names_(program) {}

  Result<Expr> run() {
    for (const auto& [name, size] : match_.types.sizes) elaborator_.declare_size(name, size);
    for (const auto& [name, attribute] : match_.attributes) {
      if (const auto* number = std::get_if<double>(&attribute))
        elaborator_.declare_value(name, literal(Scalar::f64, *number));
      if (const auto* number = std::get_if<int64_t>(&attribute))
        elaborator_.declare_value(name, literal_integer(Scalar::i64, *number));
    }
    elaborator_.version = program_.version;
    elaborator_.attributes = match_.attributes;
    elaborator_.rests = match_.rests;
    for (const auto& [name, e] : match_.values) elaborator_.declare_value(name, e);
    for (const auto& [name, operand] : rule_.operands) {
      if (match_.values.count(name) != 0 || operand.otherwise == nullptr) continue;
      const auto numbers = instantiate(leaf_scalar(operand.type), match_.types);
      HOIST_TRY(Expr e, elaborator_.typed(operand.otherwise, numbers.ok() ? *numbers : nullptr));
      elaborator_.declare_value(name, e);
    }
    if (rule_.right->kind != Syntax::where) return elaborator_.run(rule_.right);
    for (size_t i = 0; i < rule_.right->names.size(); ++i) {
      HOIST_TRY(Expr e, elaborator_.run(rule_.right->children[i + 1]));
      HOIST_TRY(e, named(rule_.right->names[i], e));
      elaborator_.declare_value(rule_.right->names[i], e);
    }
    return elaborator_.run(rule_.right->children[0]);
  }

  std::map<std::string, Tensor> constants;
  std::set<std::string> withheld;  ///< of those, what is computed from values that are not at hand
  std::vector<Definition> definitions;

 private:
  // A name on the right is a constant where all that it reads is known, else a definition.
  Result<Expr> named(const std::string& name, Expr e) {
    const std::string unique = names_.make(value_ + "." + name);
    Bindings bindings;
    bool known = true;
    for (Expr p : parameters_of(e)) {
      auto mine = constants.find(p->name);
      auto theirs = program_.constants.find(p->name);
      if (mine != constants.end())
        bindings[p->name] = mine->second;
      else if (theirs != program_.constants.end())
        bindings[p->name] = theirs->second;
      else
        known = false;
    }
    if (known && leaf_of(e->type)->is_scalar()) {
      const bool hidden = std::any_of(bindings.begin(), bindings.end(), [&](const auto& entry) {
        return withheld.count(entry.first) != 0 || program_.withheld.count(entry.first) != 0;
      });
      if (hidden) {
        withheld.insert(unique);
        constants[unique] = Tensor(leaf_of(e->type)->scalar, shape_of(e->type));
        return parameter(unique, e->type);
      }
      double work = static_cast<double>(interpretation_steps(without_operator_calls(e)));
      for (const Nat& n : sizes_of(e->type)) work *= static_cast<double>(n.value());
      if (work > most_constant_work) return Diagnostic{name, "takes too long to compute as a constant", ""};
      HOIST_TRY(constants[unique], evaluate(e, bindings));
      return parameter(unique, e->type);
    }
    // Another reader of the same operands may have led to this definition already.
    for (const Definition& definition : program_.definitions) {
      if (definition.value == value_) break;
      if (definition.expression == e) return parameter(definition.value, e->type);
    }
    definitions.push_back({unique, {}, e});
    return parameter(unique, e->type);
  }

  const ProgramRule& rule_;
  const ProgramMatch& match_;
  const Program& program_;
  const std::string value_;
  ValueNames names_;
  Elaborator elaborator_;
};

// Layers of everything that is replaced, those that compute with folds first: they name the kernel.
std::vector<std::string> layers_of(const std::vector<const Definition*>& replaced) {
  std::vector<std::string> layers;
  for (const bool folding : {true, false}) {
    for (const Definition* definition : replaced) {
      if (folds(without_operator_calls(definition->expression)) != folding) continue;
      for (const std::string& layer : definition->layers) {
        if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
      }
    }
  }
  return layers;
}

}  // namespace

const Tensor* ProgramMatch::known(const std::string& name) const {
  auto value = values.find(name);
  if (value == values.end()) return nullptr;
  if (value->second->pattern == Pattern::constant) return &value->second->constant;
  if (value->second->pattern != Pattern::parameter) return nullptr;
  auto constant = program->constants.find(value->second->name);
  return constant == program->constants.end() ? nullptr : &constant->second;
}

const ProgramRuleRow& row(const ProgramRule& rule) { return rule.row; }

Result<std::vector<const ProgramRule*>> load_program_rules(std::span<const ProgramRuleRow> rows,
                                                           const ProgramConditions& conditions) {
  static std::mutex mutex;
  static auto* kept = new std::deque<ProgramRule>;  // never destroyed: rules live as long as the program
  std::vector<const ProgramRule*> rules;
  Diagnostics faults;
  const std::lock_guard lock(mutex);
  for (const ProgramRuleRow& row : rows) {
    ProgramRule& rule = kept->emplace_back();
    rule.row = row;
    const Diagnostics problems = RowReader(rule, conditions).run();
    faults.insert(faults.end(), problems.begin(), problems.end());
    rules.push_back(&rule);
  }
  if (!faults.empty()) return faults;
  return rules;
}

Result<bool> apply_program_rule(const ProgramRule& rule, Program& program, const std::string& value) {
  auto place = std::find_if(program.definitions.begin(), program.definitions.end(),
                            [&](const Definition& d) { return d.value == value; });
  if (place == program.definitions.end()) return false;
  auto match = ProgramMatcher(rule, program).run(place->expression);
  if (!match) return false;
  match->value = value;
  if (!conditions_hold(rule, *match)) return false;
  RightSide right(rule, *match, program, value);
  HOIST_TRY(Expr e, right.run());
  if (e->type != place->expression->type) {
    return Diagnostic{
        rule.row.name,
        fmt::format("the right side has type {} here, the left side {}", text(e->type), text(place->expression->type)),
        ""};
  }
  std::vector<const Definition*> replaced;
  for (const std::string& name : match->consumed) replaced.push_back(find_definition(program, name));
  replaced.push_back(&*place);
  std::sort(replaced.begin(), replaced.end());  // they stand in one vector, in program order
  const std::vector<std::string> layers = layers_of(replaced);

  ProgramStep step = replayed_step(rule.row.name, *place);
  step.layer = layers.empty() ? value : layers.front();
  step.rule_class = rule.row.rule_class;
  step.note = rule.row.meaning;
  if (!layers.empty()) step.absorbed.assign(layers.begin() + 1, layers.end());
  place->expression = e;
  place->layers = layers;
  std::vector<std::string> computed;
  for (const auto& [name, tensor] : right.constants) computed.push_back(name);
  for (const std::string& name : right.withheld) program.withheld[name];
  program.constants.merge(right.constants);
  for (const std::string& name : computed) step.constants.push_back(step_constant(program, name));
  program.steps.push_back(std::move(step));
  for (Definition& definition : right.definitions) definition.layers = layers;
  program.definitions.insert(place, right.definitions.begin(), right.definitions.end());
  for (const Definition& definition : right.definitions) name_calls(program, definition.value);
  name_calls(program, value);
  // What an inner call stood for goes where nobody reads it any more.
  for (size_t i = match->consumed.size(); i-- > 0;) {
    if (read_elsewhere(program, match->consumed[i], {})) continue;
    std::erase_if(program.definitions, [&](const Definition& d) { return d.value == match->consumed[i]; });
  }
  return true;
}

Result<int> apply_program_rules(std::span<const ProgramRule* const> rules, Program& program) {
  constexpr int most_at_one_place = 1000;  // no rule that ends needs more
  int count = 0;
  std::set<std::string> outermost;  // the operators that a left side begins with
  for (const ProgramRule* rule : rules) outermost.insert(rule->left->call.name);
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) {
    const Expr e = definition.expression;
    if (e->pattern == Pattern::operator_call && outermost.count(e->operation->name) != 0)
      values.push_back(definition.value);
  }
  for (const std::string& value : values) {
    int here = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const ProgramRule* rule : rules) {
        const auto applied = apply_program_rule(*rule, program, value);
        if (!applied.ok() || !*applied) continue;
        if (++here > most_at_one_place) {
          return Diagnostic{rule->row.name, fmt::format("applies to what it makes at {}, again and again", value),
                            "give it a left side that its right side does not have, or a condition"};
        }
        changed = true;
        ++count;
      }
    }
  }
  return count;
}

void name_calls(Program& program, const std::string& value) {
  auto place = std::find_if(program.definitions.begin(), program.definitions.end(),
                            [&](const Definition& d) { return d.value == value; });
  if (place == program.definitions.end() || !place->expression->has_operator_call) return;
  ValueNames names(program);
  std::vector<Definition> added;
  std::map<Expr, Expr> named;
  int count = 0;
  std::function<Expr(Expr, bool)> walk = [&](Expr e, bool outermost) -> Expr {
    if (!e->has_operator_call || e->free > 0) return e;
    if (auto known = named.find(e); known != named.end()) return known->second;
    std::vector<Expr> children;
    for (Expr c : e->children) children.push_back(c->pattern == Pattern::function ? c : walk(c, false));
    auto made = with_children(e, std::move(children));
    HOIST_CHECK(made.ok(), made.errors()[0].text());
    if (outermost || e->pattern != Pattern::operator_call) return *made;
    const std::string name = names.make(fmt::format("{}.{}", value, ++count));
    added.push_back({name, place->layers, *made});
    return named[e] = parameter(name, (*made)->type);
  };
  place->expression = walk(place->expression, true);
  program.definitions.insert(place, added.begin(), added.end());
}

}  // namespace hoist
