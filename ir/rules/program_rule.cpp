#include "ir/rules/program_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <set>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/interpret_cost.h"
#include "ir/operators/operators.h"
#include "ir/properties/properties.h"
#include "ir/rules/program_index.h"
#include "ir/rules/program_rule_parts.h"
#include "ir/text/parse/elaborate.h"
#include "ir/text/text.h"

namespace hoist {

namespace {

// Limits for elements and steps of the interpreter: constants of the largest layers stay below them; an untrusted rule
// may exceed them.
constexpr double most_constant_work = 4e9;

// The constants passed to a rule at a place, with names of the program.
struct GivenConstants {
  std::map<std::string, Expr> terms;         ///< terms by the row's names
  std::map<std::string, std::string> names;  ///< names of the program by the row's names
  std::map<std::string, Tensor> added;       ///< constants that the program lacks
  std::map<std::string, std::string> withheld;
};

Result<GivenConstants> given_constants(const ProgramRule& rule, const ProgramArguments& arguments,
                                       const Program& program, const std::string& prefix, NewNames& names) {
  GivenConstants out;
  const auto problem = [&](const std::string& name, const std::string& what) {
    return Diagnostic{rule.row.name, fmt::format("the argument {} {}", name, what), ""};
  };
  for (const std::string& name : rule.arguments) {
    if (arguments.count(name) == 0) return problem(name, "is missing");
  }
  const std::map<std::string, Type> types = arguments.empty() ? std::map<std::string, Type>{} : value_types(program);
  for (const auto& [name, argument] : arguments) {
    if (rule.arguments.count(name) == 0) return problem(name, "is not an argument of the rule");
    auto known = program.constants.find(argument.name);
    if (!argument.value) {
      if (known == program.constants.end()) return problem(name, "is not a constant of the program: " + argument.name);
      out.names[name] = argument.name;
      out.terms[name] = parameter(argument.name, type_of(known->second));
      continue;
    }
    if (types.count(argument.name) != 0) return problem(name, "has the name of another value: " + argument.name);
    const std::string unique = argument.name.empty() ? names.make(prefix + name) : argument.name;
    names.take(unique);
    if (!out.added.emplace(unique, *argument.value).second) return problem(name, "has the name of another argument");
    if (!argument.withheld.empty()) out.withheld[unique] = argument.withheld;
    out.names[name] = unique;
    out.terms[name] = parameter(unique, type_of(*argument.value));
  }
  return out;
}

// The additions of a right side to a program: constants, and definitions before the replaced one.
class RightSide {
 public:
  /// New names begin with `prefix`.
  RightSide(const ProgramRule& rule, const ProgramMatch& match, std::string prefix, NewNames names)
      : rule_(rule), match_(match), program_(*match.program), prefix_(std::move(prefix)), names_(std::move(names)) {}

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
    if (rule_.right->kind != Syntax::where) return elaborator_.run(here(rule_.right));
    for (size_t i = 0; i < rule_.right->names.size(); ++i) {
      HOIST_TRY(Expr e, elaborator_.run(here(rule_.right->children[i + 1])));
      HOIST_TRY(e, named(rule_.right->names[i], e));
      elaborator_.declare_value(rule_.right->names[i], e);
    }
    return elaborator_.run(here(rule_.right->children[0]));
  }

  std::map<std::string, Tensor> constants;
  std::map<std::string, std::string> withheld;  ///< the hash of an unknown constant, "" if that is unknown too
  std::vector<Definition> definitions;

 private:
  // The operators denoted by names at this place, without omitted operands.
  Syn here(Syn s) {
    std::vector<Syn> children;
    for (Syn c : s->children) children.push_back(here(c));
    const auto bound = s->kind == Syntax::operation ? match_.operators.find(s->call.name) : match_.operators.end();
    const auto is_absent = [&](Syn c) { return c->kind == Syntax::application && match_.absent.count(c->text) != 0; };
    const bool shorter = s->kind == Syntax::operation && std::any_of(s->children.begin(), s->children.end(), is_absent);
    if (children == s->children && bound == match_.operators.end() && !shorter) return s;
    Syntax& copy = store_.add(s->kind, s->token);
    copy = *s;
    copy.children = std::move(children);
    if (bound != match_.operators.end()) {
      copy.call.name = bound->second.name;
      copy.call.domain = bound->second.domain;
    }
    for (size_t i = copy.children.size(); shorter && i-- > 0;) {
      if (!is_absent(copy.children[i])) continue;
      copy.children.erase(copy.children.begin() + static_cast<std::ptrdiff_t>(i));
      copy.call.operands.erase(copy.call.operands.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return &copy;
  }

  // A name on the right side is a constant if all its operands are known, and otherwise a definition.
  Result<Expr> named(const std::string& name, Expr e) {
    const std::string unique = names_.make(prefix_ + name);
    Bindings bindings;
    bool known = !rule_.row.adds_layers || !e->has_operator_call;
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
        withheld[unique];
        constants[unique] = Tensor(leaf_of(e->type)->scalar, shape_of(e->type));
        return parameter(unique, e->type);
      }
      double work = static_cast<double>(interpretation_steps(without_operator_calls(e)));
      for (const Nat& n : sizes_of(e->type)) work *= static_cast<double>(n.value());
      if (work > most_constant_work) return Diagnostic{name, "takes too long to compute as a constant", ""};
      HOIST_TRY(constants[unique], evaluate(e, bindings));
      return parameter(unique, e->type);
    }
    if (rule_.row.adds_layers) {
      definitions.push_back({unique, {unique}, e});
      return parameter(unique, e->type);
    }
    // Another consumer of the same operands may have led to this definition already.
    const bool defined = match_.index->find(match_.value) != nullptr;
    const size_t end = defined ? match_.index->place_of(match_.value) : program_.definitions.size();
    if (const Definition* equal = match_.index->find_equal(e, end)) return parameter(equal->value, e->type);
    definitions.push_back({unique, {}, e});
    return parameter(unique, e->type);
  }

  const ProgramRule& rule_;
  const ProgramMatch& match_;
  const Program& program_;
  const std::string prefix_;
  NewNames names_;
  SyntaxStore store_;
  Elaborator elaborator_;
};

// Layers of all replaced definitions; layers that compute with folds come first, because they name the kernel.
std::vector<std::string> layers_of(const std::vector<const Definition*>& replaced) {
  std::vector<std::string> layers;
  for (const bool folding : {true, false}) {
    for (const Definition* definition : replaced) {
      if (folds(without_operator_calls(definition->expression)) != folding) continue;
      add_layers(layers, definition->layers);
    }
  }
  return layers;
}

}  // namespace

const ProgramRuleRow& row(const ProgramRule& rule) { return rule.row; }
bool has_arguments(const ProgramRule& rule) { return !rule.arguments.empty(); }

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
    const Diagnostics problems = read_row(rule, conditions);
    faults.insert(faults.end(), problems.begin(), problems.end());
    rules.push_back(&rule);
  }
  if (!faults.empty()) return faults;
  return rules;
}

namespace {

// True if a call widens its first operand to more bits.
bool widens(const Definition& definition) {
  const Expr e = definition.expression;
  if (e->pattern != Pattern::operator_call || e->children.empty()) return false;
  const Type from = leaf_of(e->children[0]->type), to = leaf_of(e->type);
  return from->is_scalar() && to->is_scalar() && row(from->scalar).bits < row(to->scalar).bits;
}

// The right side replaces the definition's term. Its additions come before.
void replace_definition(const ProgramRule& rule, const ProgramMatch& match, ProgramIndex& index, Expr e,
                        std::vector<Definition> added, ProgramStep& step) {
  Definition* found = index.find(match.value);
  if (!rule.row.adds_layers) {
    std::vector<const Definition*> replaced;
    for (const std::string& name : match.consumed) replaced.push_back(index.find(name));
    replaced.push_back(found);
    std::sort(replaced.begin(), replaced.end());  // they are in one vector, in program order
    index.set_layers(*found, layers_of(replaced));
    if (!found->layers.empty()) step.layer = found->layers.front();
    if (!found->layers.empty()) step.absorbed.assign(found->layers.begin() + 1, found->layers.end());
    for (Definition& definition : added) definition.layers = found->layers;
  }
  index.set_term(*found, e);
  std::vector<std::string> values;
  for (const Definition& definition : added) values.push_back(definition.value);
  values.push_back(match.value);
  index.insert(index.place_of(match.value), std::move(added));
  for (const std::string& value : values) name_calls(index, value);
  // The definition of an inner call is removed if it has no uses left.
  for (size_t i = match.consumed.size(); i-- > 0;) {
    if (!index.is_used_elsewhere(match.consumed[i], {})) index.erase(match.consumed[i]);
  }
}

// The position just before the consumer, or before the widening definitions there that later operands of the consumer
// name.
size_t place_before(const std::vector<Definition>& all, size_t self, size_t consumer) {
  const std::vector<Expr> operands = parameters_of(all[consumer].expression);
  const auto own = std::find_if(operands.begin(), operands.end(), [&](Expr p) { return p->name == all[self].value; });
  const auto is_later = [&](const Definition& d) {
    return widens(d) && std::any_of(own + 1, operands.end(), [&](Expr p) { return p->name == d.value; });
  };
  size_t place = consumer;
  while (place - 1 > self && is_later(all[place - 1])) --place;
  return place;
}

// All consumers of the value read `e`, which was added last. Returns whether there are any.
bool replace_reads(const std::string& value, ProgramIndex& index, Expr e, std::vector<Definition> added) {
  const std::vector<Definition>& all = index.program().definitions;
  const std::vector<size_t> uses = index.uses_of(value);
  if (uses.empty()) return false;
  for (const size_t i : uses) {
    Definition& user = index.program().definitions[i];
    index.set_term(user, substitute_parameters(user.expression, {{value, e}}));
  }
  size_t behind = 0;  // of an input or a constant
  if (index.find(value) != nullptr) {
    behind = index.place_of(value);
    // Results of one call stay together.
    const Expr made = all[behind++].expression;
    const auto is_other_result = [&](Expr other) {
      return made->pattern == Pattern::get && other->pattern == Pattern::get && other->children == made->children;
    };
    while (behind < uses.front() && is_other_result(all[behind].expression)) ++behind;
  }
  index.insert(behind, std::move(added));
  const std::vector<size_t> readers = index.uses_of(e->name);
  if (readers.empty()) return false;
  const size_t self = index.place_of(e->name);
  index.move(self, place_before(all, self, readers.front()));
  return true;
}

}  // namespace

bool place_before_first_consumer(Program& program, const std::string& value) {
  std::vector<Definition>& all = program.definitions;
  const auto self = std::find_if(all.begin(), all.end(), [&](const Definition& d) { return d.value == value; });
  const auto consumer = std::find_if(self, all.end(), [&](const Definition& d) {
    const std::vector<Expr> reads = parameters_of(d.expression);
    return std::any_of(reads.begin(), reads.end(), [&](Expr p) { return p->name == value; });
  });
  if (consumer == all.end()) return false;
  const size_t place =
      place_before(all, static_cast<size_t>(self - all.begin()), static_cast<size_t>(consumer - all.begin()));
  std::rotate(self, self + 1, all.begin() + static_cast<std::ptrdiff_t>(place));
  return true;
}

Result<ProgramArguments> arguments_of(const ProgramRule& rule, const ProgramStep& step, const Program& program) {
  ProgramArguments out;
  for (const auto& [name, constant] : step.parameters) {
    if (rule.arguments.count(name) == 0) return Diagnostic{rule.row.name, "the rule has no argument " + name, ""};
    auto said = std::find_if(step.constants.begin(), step.constants.end(),
                             [&, named = constant](const StepConstant& c) { return c.name == named; });
    if (program.constants.count(constant) != 0 || said == step.constants.end()) {
      out[name] = {constant, std::nullopt, {}};
    } else if (said->value) {
      out[name] = {constant, said->value, {}};
    } else {
      out[name] = {constant, Tensor(leaf_of(said->type)->scalar, shape_of(said->type)), said->hash};
    }
  }
  return out;
}

Result<bool> apply_program_rule(const ProgramRule& rule, ProgramIndex& index, const std::string& value,
                                const ProgramArguments& arguments) {
  Program& program = index.program();
  const Definition* definition = index.find(value);
  Expr term = definition == nullptr ? nullptr : definition->expression;
  if (rule.is_about_reads()) {
    const Type type = find_type(program, value);
    term = type == nullptr ? nullptr : parameter(value, type);
  }
  if (term == nullptr) return false;
  const std::string before = !rule.row.adds_layers                            ? value + "."
                             : definition == nullptr || rule.is_about_reads() ? value + "/"
                                                                              : layer_name(*definition) + "/";
  GivenConstants given;
  NewNames names(index);
  if (!arguments.empty() || !rule.arguments.empty()) {
    HOIST_TRY(given, given_constants(rule, arguments, program, before, names));
  }
  auto match = match_left_side(rule, index, term, given.terms);
  if (!match) return false;
  match->value = value;
  if (!conditions_hold(rule, *match)) return false;
  RightSide right(rule, *match, before, std::move(names));
  right.constants = std::move(given.added);
  right.withheld = std::move(given.withheld);
  HOIST_TRY(Expr e, right.run());
  if (e->type != term->type) {
    return Diagnostic{rule.row.name,
                      fmt::format("the right side has type {} here, the left side {}", text(e->type), text(term->type)),
                      ""};
  }
  ProgramStep step = replayed_step(rule.row.name);
  step.value = value;
  step.layer = definition == nullptr ? value : layer_name(*definition);
  step.rule_class = rule.row.rule_class;
  step.note = rule.row.meaning;
  for (const auto& [name, constant] : given.names) step.parameters[name] = constant;
  if (rule.is_about_reads()) {
    const bool defined = !right.definitions.empty() && right.definitions.back().value == e->name;
    if (!defined || !replace_reads(value, index, e, std::move(right.definitions))) return false;
  } else {
    replace_definition(rule, *match, index, e, std::move(right.definitions), step);
  }
  for (const auto& [name, hash] : right.withheld) program.withheld[name] = hash;
  for (auto& [name, tensor] : right.constants) {
    program.constants.emplace(name, std::move(tensor));
    step.constants.push_back(step_constant(program, name));
  }
  program.steps.push_back(std::move(step));
  return true;
}

Result<bool> apply_program_rule(const ProgramRule& rule, Program& program, const std::string& value,
                                const ProgramArguments& arguments) {
  if (!rule.is_about_reads()) {
    // Most rules are tried where they do not apply: an index would cost more than the attempt.
    const Definition* definition = find_definition(program, value);
    if (definition == nullptr || definition->expression->pattern != Pattern::operator_call) return false;
    const std::string& wanted = rule.left->call.name;
    if (wanted != definition->expression->operation->name && rule.operators.count(wanted) == 0) return false;
  }
  ProgramIndex index(program);
  return apply_program_rule(rule, index, value, arguments);
}

Result<int> apply_program_rules(std::span<const ProgramRule* const> rules, Program& program) {
  constexpr int most_at_one_place = 1000;  // no terminating rule needs more
  int count = 0;
  std::set<std::string> outermost;  // outermost operators of left sides
  bool any = false;
  for (const ProgramRule* rule : rules) {
    outermost.insert(rule->left->call.name);
    any |= rule->operators.count(rule->left->call.name) != 0;
  }
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) {
    const Expr e = definition.expression;
    if (e->pattern == Pattern::operator_call && (any || outermost.count(e->operation->name) != 0))
      values.push_back(definition.value);
  }
  if (values.empty()) return 0;  // most passes find nothing, and an index would cost more than the search
  ProgramIndex index(program);
  for (const std::string& value : values) {
    int here = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const ProgramRule* rule : rules) {
        const auto applied = apply_program_rule(*rule, index, value);
        if (!applied.ok() || !*applied) continue;
        if (++here > most_at_one_place) {
          return Diagnostic{rule->row.name, fmt::format("applies to its own result at {} without end", value),
                            "choose a left side that does not match the right side, or add a condition"};
        }
        changed = true;
        ++count;
      }
    }
  }
  return count;
}

void name_calls(ProgramIndex& index, const std::string& value) {
  Definition* found = index.find(value);
  if (found == nullptr || !found->expression->has_operator_call) return;
  NewNames names(index);
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
    added.push_back({name, found->layers, *made});
    return named[e] = parameter(name, (*made)->type);
  };
  index.set_term(*found, walk(found->expression, true));
  index.insert(index.place_of(value), std::move(added));
}

void name_calls(Program& program, const std::string& value) {
  ProgramIndex index(program);
  name_calls(index, value);
}

}  // namespace hoist
