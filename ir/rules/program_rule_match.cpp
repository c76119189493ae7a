// The match of a program rule: its left side at a term of the program, and its side conditions.
#include <algorithm>

#include "ir/rules/program_index.h"
#include "ir/rules/program_rule_parts.h"

namespace hoist {
namespace {

class ProgramMatcher {
 public:
  ProgramMatcher(const ProgramRule& rule, const ProgramIndex& index) : rule_(rule) {
    match_.index = &index;
    match_.program = &index.program();
  }

  /// `arguments` by the row's names.
  std::optional<ProgramMatch> run(Expr term, const std::map<std::string, Expr>& arguments) {
    if (!matches(rule_.left, term)) return std::nullopt;
    for (const auto& [name, e] : arguments) {
      if (!bind(name, e)) return std::nullopt;
    }
    for (const auto& [name, value] : rule_.attributes) match_.attributes.emplace(name, value);
    for (const auto& [name, operand] : rule_.operands) {
      if (match_.values.count(name) == 0 && operand.otherwise == nullptr && match_.absent.count(name) == 0)
        return std::nullopt;
    }
    return std::move(match_);
  }

 private:
  bool matches(Syn pattern, Expr term) {
    if (pattern->kind == Syntax::application && pattern->children.empty()) return bind(pattern->text, term);
    if (pattern->kind != Syntax::operation) return false;
    if (term->pattern == Pattern::parameter) {
      const Definition* inner = match_.index->find(term->name);
      if (inner == nullptr) return false;
      const std::vector<std::string>& seen = match_.consumed;
      if (std::find(seen.begin(), seen.end(), term->name) == seen.end()) match_.consumed.push_back(term->name);
      term = inner->expression;
    }
    if (term->pattern != Pattern::operator_call) return false;
    const OperatorCall &wanted = pattern->call, &found = *term->operation;
    if (wanted.results != found.results) return false;
    if (rule_.operators.count(wanted.name) != 0)
      match_.operators[wanted.name] = found;
    else if (wanted.name != found.name || wanted.domain != found.domain)
      return false;
    return operands(pattern, term) && attributes(pattern, found);
  }

  // The name of an omitted operand denotes its default; a pattern names every operand.
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
      if (name->kind != Syntax::application || given == rule_.operands.end()) return false;
      if (given->second.optional)
        match_.absent.insert(name->text);
      else if (given->second.otherwise == nullptr)
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
      if (place == rest.end()) continue;  // the operand has its default
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

}  // namespace

const Tensor* ProgramMatch::known(const std::string& name) const {
  auto value = values.find(name);
  if (value == values.end()) return nullptr;
  if (value->second->pattern == Pattern::constant) return &value->second->constant;
  if (value->second->pattern != Pattern::parameter) return nullptr;
  return find_constant(*program, value->second->name);
}

std::optional<ProgramMatch> match_left_side(const ProgramRule& rule, const ProgramIndex& index, Expr term,
                                            const std::map<std::string, Expr>& arguments) {
  return ProgramMatcher(rule, index).run(term, arguments);
}

bool conditions_hold(const ProgramRule& rule, ProgramMatch& match) {
  for (const std::string& name : rule.known) {
    if (match.values.count(name) != 0 && match.known(name) == nullptr) return false;
  }
  for (const std::string& name : rule.zero) {
    if (match.values.count(name) == 0) continue;  // omitted: its default counts, or the operator's own zero
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
      if (match.index->is_used_elsewhere(consumed, inside)) return false;
    }
  }
  return std::all_of(rule.conditions.begin(), rule.conditions.end(), [&](const auto& holds) { return holds(match); });
}

}  // namespace hoist
