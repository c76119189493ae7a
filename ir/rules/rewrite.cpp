#include "ir/rules/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "ir/base/cancellation.h"
#include "ir/base/seen_terms.h"
#include "ir/rules/match.h"
#include "ir/rules/rule.h"
#include "ir/text/parse/near_miss.h"
#include "ir/text/parse/trim.h"
#include "ir/text/text.h"

namespace hoist {
namespace {

// No model has larger sizes, and products of two arguments stay within 64 bits.
constexpr int64_t argument_limit = int64_t{1} << 31;

std::optional<std::string> fault_of_arguments(const Rule& rule, const RuleArguments& arguments) {
  for (const auto& [name, value] : arguments) {
    if (std::find(rule.parameters.begin(), rule.parameters.end(), name) == rule.parameters.end()) {
      return fmt::format("{} has no parameter {}", rule.row.name, name);
    }
    if (value.is_constant() && (value.value() < 0 || value.value() > argument_limit)) {
      return fmt::format("{} = {} is not a size", name, value.text());
    }
  }
  return std::nullopt;
}

// The application of one variant; `fault` receives the reason if there is no result.
std::optional<Expr> apply_variant(const Rule& rule, const Rule::Variant& variant, Expr term,
                                  const RuleArguments& arguments, Mismatch& fault) {
  fault = {};
  Match match;
  for (const auto& [name, value] : arguments) {
    if (name == "d" && variant.dimension) {
      if (value == Nat(*variant.dimension)) continue;
      fault.what = "the dimension differs";
      return std::nullopt;
    }
    match.sizes.emplace(name, value);
  }
  if (auto mismatch = match_term(variant.left, term, match)) {
    fault = *mismatch;
    return std::nullopt;
  }
  for (const std::string& name : rule.parameters) {
    if (!match.sizes.contains(name) && !(name == "d" && variant.dimension)) {
      fault.what = fmt::format("the parameter {} is missing", name);
      return std::nullopt;
    }
  }
  for (const Condition& condition : rule.conditions) {
    if (condition.holds(match)) continue;
    std::string sizes;
    for (const auto& [name, value] : match.sizes) sizes += fmt::format(", {} = {}", name, value.text());
    fault.what = fmt::format("the condition {} is not known to hold{}", condition.text,
                             sizes.empty() ? "" : " with " + sizes.substr(2));
    return std::nullopt;
  }
  if (rule.rewrite) {
    auto result = rule.rewrite(term, arguments);
    if (!result)
      fault.what = "its function has no result here";
    else if ((*result)->type != term->type)
      fault.what = "its function has a result of type " + text((*result)->type);
    else
      return result;
    return std::nullopt;
  }
  auto result = instantiate(variant.right, match);
  if (!result.ok()) {
    fault.what = "the right side is ill-typed here: " + result.errors()[0].text();
    return std::nullopt;
  }
  if ((*result)->type != term->type) {
    fault.what = fmt::format("the right side has type {} here, the term {}", text((*result)->type), text(term->type));
    return std::nullopt;
  }
  return *result;
}

std::optional<Expr> apply_or_reason(const Rule& rule, Expr term, const RuleArguments& arguments, Mismatch& fault) {
  if (auto wrong = fault_of_arguments(rule, arguments)) {
    fault = {{}, *wrong};
    return std::nullopt;
  }
  if (term->pattern == Pattern::function) {
    fault = {{}, "a function is not a value; rules apply to its body"};
    return std::nullopt;
  }
  if (auto d = arguments.find("d");
      d != arguments.end() && rule.variants[0].dimension && (!d->second.is_constant() || d->second.value() > 2)) {
    fault = {{}, "the parameter d is 0, 1 or 2"};
    return std::nullopt;
  }
  bool only_right = rule.variants.size() > 1 && rule.variants[0].left == rule.variants[1].left;
  if (only_right && !arguments.contains("d")) {
    fault = {{}, "the parameter d is missing"};
    return std::nullopt;
  }
  // The reported reason is the one of the variant that matched furthest.
  std::optional<Mismatch> best;
  for (const Rule::Variant& variant : rule.variants) {
    if (auto result = apply_variant(rule, variant, term, arguments, fault)) return result;
    if (!best || fault.place.size() > best->place.size()) best = fault;
  }
  fault = *best;
  return std::nullopt;
}

bool has_form(const Rule& rule, Expr term) {
  return std::any_of(rule.variants.begin(), rule.variants.end(),
                     [&](const Rule::Variant& variant) { return may_match(variant.left, term); });
}

// Calls `visit` for places below `under`, outermost first and left to right, until it returns true. Terms in
// `exhausted` are known to have no such place inside; terms visited without success are added.
std::optional<Path> first_place(Expr root, const Path& under, SeenTerms& exhausted,
                                const std::function<bool(Expr, const Path&)>& visit) {
  Path path = under;
  std::function<bool(Expr)> walk = [&](Expr e) {
    if (exhausted.contains(e)) return false;
    if (visit(e, path)) return true;
    for (size_t i = 0; i < e->children.size(); ++i) {
      path.push_back(static_cast<int>(i));
      if (walk(e->children[i])) return true;
      path.pop_back();
    }
    exhausted.insert(e);
    return false;
  };
  Expr start = at(root, under);
  if (start == nullptr || !walk(start)) return std::nullopt;
  return path;
}

// Rules live as long as the program, including the rules of tables that are dropped.
const Rule* keep(Rule rule) {
  static std::mutex mutex;
  static auto* rules = new std::deque<Rule>;
  std::lock_guard lock(mutex);
  return &rules->emplace_back(std::move(rule));
}

Result<RuleArguments> parse_arguments(const std::string& step, const std::string& list) {
  RuleArguments arguments;
  int nesting = 0;
  std::string part;
  for (size_t i = 0; i <= list.size(); ++i) {
    char c = i < list.size() ? list[i] : ',';
    if (c == '(') ++nesting;
    if (c == ')') --nesting;
    if (c != ',' || (nesting > 0 && i < list.size())) {
      part += c;
      continue;
    }
    size_t equals = part.find('=');
    std::string name = trimmed(part.substr(0, std::min(equals, part.size())));
    if (equals == std::string::npos || name.empty()) {
      return Diagnostic{step, "an argument has no value", "write rule(k = 8) at 0.1"};
    }
    HOIST_TRY(Nat value, parse_size(trimmed(part.substr(equals + 1))));
    if (!arguments.emplace(name, value).second) return Diagnostic{step, name + " is given twice", ""};
    part.clear();
  }
  return arguments;
}

Result<Application> parse_step(const std::string& step) {
  Application application;
  size_t place = step.rfind(" at ");
  if (place == std::string::npos) return Diagnostic{step, "no place is given", "write rule(k = 8) at 0.1"};
  std::string head = trimmed(step.substr(0, place)), tail = trimmed(step.substr(place + 4));
  if (size_t space = tail.find(' '); space != std::string::npos) {
    std::string word = trimmed(tail.substr(space));
    if (word == name_of(RuleClass::rounding))
      application.rule_class = RuleClass::rounding;
    else if (word == name_of(RuleClass::neural))
      application.rule_class = RuleClass::neural;
    else
      return Diagnostic{step, "unknown class " + word, "write rounding or neural, or nothing for exact"};
    tail = tail.substr(0, space);
  }
  HOIST_TRY(application.place, path_named(tail));
  if (size_t open = head.find('('); open != std::string::npos) {
    if (head.back() != ')')
      return Diagnostic{step, "the list of arguments has no closing bracket", "write rule(k = 8) at 0.1"};
    HOIST_TRY(application.arguments, parse_arguments(step, head.substr(open + 1, head.size() - open - 2)));
    head = trimmed(head.substr(0, open));
  }
  if (head.empty()) return Diagnostic{step, "no rule is named", "write rule(k = 8) at 0.1"};
  application.rule = head;
  return application;
}

}  // namespace

std::string_view name_of(RuleClass rule_class) {
  constexpr std::string_view names[] = {"exact", "rounding", "neural"};
  return names[static_cast<size_t>(rule_class)];
}

const RuleRow& row(const Rule& rule) { return rule.row; }

struct RuleTable::Slot {
  const RuleRow* row = nullptr;
  const RuleFunctions* functions = nullptr;
  std::once_flag once;
  const Rule* rule = nullptr;

  const Rule* read() {
    std::call_once(once, [&] {
      if (rule != nullptr) return;
      auto made = read_rule(*row, *functions);
      HOIST_CHECK(made.ok(), "a rule is wrong: " + (made.ok() ? "" : made.errors()[0].text()));
      rule = keep(std::move(*made));
    });
    return rule;
  }

  // Makes a slot, which is never destroyed.
  static Slot& make() {
    static std::mutex mutex;
    static auto* slots = new std::deque<Slot>;
    const std::lock_guard lock(mutex);
    return slots->emplace_back();
  }
};

void RuleTable::add(Slot& slot) {
  slots_.push_back(&slot);
  by_name_.emplace(slot.row->name, &slot);
}

const Rule* RuleTable::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second->read();
}

std::vector<const Rule*> RuleTable::rules() const {
  std::vector<const Rule*> out;
  for (Slot* slot : slots_) out.push_back(slot->read());
  return out;
}

std::vector<std::string> RuleTable::names() const {
  std::vector<std::string> out;
  for (const Slot* slot : slots_) out.push_back(slot->row->name);
  return out;
}

Result<RuleTable> RuleTable::load(std::span<const RuleRow> rows, const RuleFunctions& functions) {
  RuleTable table;
  Diagnostics faults;
  for (const RuleRow& row : rows) {
    if (table.has(row.name)) faults.push_back({row.name, "a rule of this name exists already", ""});
    auto rule = read_rule(row, functions);
    if (!rule.ok()) {
      faults.insert(faults.end(), rule.errors().begin(), rule.errors().end());
      continue;
    }
    Slot& slot = Slot::make();
    slot.rule = keep(std::move(*rule));
    slot.row = &slot.rule->row;
    table.add(slot);
  }
  if (!faults.empty()) return faults;
  return table;
}

RuleTable RuleTable::of_known(std::span<const RuleRow> rows, const RuleFunctions& functions) {
  RuleTable table;
  for (const RuleRow& row : rows) {
    Slot& slot = Slot::make();
    slot.row = &row;
    slot.functions = &functions;
    table.add(slot);
  }
  return table;
}

RuleTable RuleTable::with(const RuleTable& others) const {
  RuleTable out = *this;
  for (Slot* slot : others.slots_) out.add(*slot);
  return out;
}

std::optional<Expr> apply_rule(const Rule& rule, Expr term, const RuleArguments& arguments) {
  if (!has_form(rule, term)) return std::nullopt;
  Mismatch fault;
  return apply_or_reason(rule, term, arguments, fault);
}

std::string why_not(const Rule& rule, Expr term, const RuleArguments& arguments) {
  Mismatch fault;
  if (apply_or_reason(rule, term, arguments, fault)) return {};
  return fault.place.empty() ? fault.what : fault.what + " at " + text(fault.place);
}

std::string text(const Application& application) {
  std::string arguments;
  for (const auto& [name, value] : application.arguments) {
    arguments += fmt::format("{}{} = {}", arguments.empty() ? "" : ", ", name, value.text());
  }
  std::string out = application.rule + (arguments.empty() ? "" : "(" + arguments + ")");
  out += " at " + text(application.place);
  return application.rule_class == RuleClass::exact ? out : fmt::format("{} {}", out, name_of(application.rule_class));
}

Result<std::vector<Application>> parse_steps(const std::string& text) {
  std::vector<Application> steps;
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find('\n', start), text.size());
    std::string line = trimmed(text.substr(start, end - start));
    start = end + 1;
    if (line.empty()) continue;
    HOIST_TRY(Application step, parse_step(line));
    steps.push_back(std::move(step));
  }
  return steps;
}

Result<std::vector<Expr>> replay(const RuleTable& table, const Derivation& derivation) {
  std::vector<Expr> terms = {derivation.start};
  for (const Application& step : derivation.steps) {
    std::string where = fmt::format("step {}, {}", terms.size(), text(step));
    const Rule* rule = table.find(step.rule);
    if (rule == nullptr) {
      return Diagnostic{where, "unknown rule " + step.rule, did_you_mean(step.rule, table.names())};
    }
    if (rule->row.rule_class != step.rule_class) {
      return Diagnostic{
          where,
          fmt::format("the rule is {}, the step says {}", name_of(rule->row.rule_class), name_of(step.rule_class)), ""};
    }
    Expr term = at(terms.back(), step.place);
    if (term == nullptr) return Diagnostic{where, "there is no such place in the term", ""};
    auto result = apply_rule(*rule, term, step.arguments);
    if (!result) return Diagnostic{where, "does not apply: " + why_not(*rule, term, step.arguments), ""};
    HOIST_TRY(Expr next, replace_at(terms.back(), step.place, *result));
    terms.push_back(next);
  }
  return terms;
}

Rewriter::Rewriter(const RuleTable& table, Expr start) : table_(table), term_(start) { derivation_.start = start; }

const Rule& Rewriter::named(const std::string& name) const {
  const Rule* rule = table_.find(name);
  HOIST_CHECK(rule != nullptr, "a strategy names the rule " + name + ", which is not in the table");
  return *rule;
}

bool Rewriter::apply_to(Expr term, const Rule& rule, const Path& place, const RuleArguments& arguments) {
  cancellation_point();
  auto result = apply_rule(rule, term, arguments);
  if (!result || *result == term) return false;
  auto next = replace_at(term_, place, *result);
  if (!next.ok()) return false;
  term_ = *next;
  derivation_.steps.push_back({rule.row.name, arguments, place, rule.row.rule_class});
  return true;
}

bool Rewriter::apply(const std::string& name, const Path& place, const RuleArguments& arguments) {
  const Rule& rule = named(name);
  Expr term = at(term_, place);
  return term != nullptr && apply_to(term, rule, place, arguments);
}

std::optional<Path> Rewriter::apply_first(const std::string& name, const RuleArguments& arguments, const Path& under) {
  const Rule& rule = named(name);
  SeenTerms exhausted;
  return first_place(term_, under, exhausted,
                     [&](Expr term, const Path& place) { return apply_to(term, rule, place, arguments); });
}

std::vector<Path> Rewriter::places_of_form(const std::string& name) const {
  const Rule& rule = named(name);
  std::vector<Path> out;
  SeenTerms seen;
  first_place(term_, {}, seen, [&](Expr e, const Path& place) {
    if (has_form(rule, e)) out.push_back(place);
    return false;
  });
  return out;
}

int Rewriter::apply_everywhere(const std::vector<std::string>& names, const Path& under, int limit) {
  std::vector<const Rule*> rules;
  for (const std::string& name : names) rules.push_back(&named(name));
  SeenTerms exhausted;
  int count = 0;
  while (count < limit) {
    auto place = first_place(term_, under, exhausted, [&](Expr term, const Path& path) {
      return std::any_of(rules.begin(), rules.end(), [&](const Rule* rule) { return apply_to(term, *rule, path, {}); });
    });
    if (!place) break;
    ++count;
  }
  return count;
}

}  // namespace hoist
