// The test of a program rule: an instance of one of its examples becomes a program with one definition per call, with
// random constants for known operands; the outputs before and after the rule are compared.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/interpret_cost.h"
#include "ir/operators/operators.h"
#include "ir/program/program_values.h"
#include "ir/rules/program_rule.h"
#include "ir/rules/rule_check.h"
#include "ir/rules/rule_instance.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"

namespace hoist {
namespace {

constexpr int program_attempts = 300;
constexpr size_t program_fault_limit = 3;
constexpr double most_work = 1e8;  // elements and steps of the interpreter, of one side of an instance

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class ProgramRuleChecker {
 public:
  ProgramRuleChecker(const ProgramRule& rule, uint64_t seed) : rule_(rule), random_(seed) {}

  ProgramRuleCheck run(int instances) {
    if (row(rule_).examples.empty()) fault("the row has no examples");
    for (int i = 0; i < instances && check_.faults.size() < program_fault_limit; ++i) {
      bool done = false;
      for (int a = 0; a < program_attempts && !done; ++a) done = attempt(static_cast<size_t>(i));
      if (!done) {
        fault("no instance was found; " + refusal_);
        break;
      }
    }
    return std::move(check_);
  }

 private:
  void fault(const std::string& what) { check_.faults.push_back(what); }

  // Replaces lower-case names in brackets by numbers, equal names by equal numbers.
  std::string with_sizes(const std::string& example) {
    std::map<std::string, std::string> sizes;
    std::string out;
    int nesting = 0;
    for (size_t i = 0; i < example.size();) {
      nesting += example[i] == '[' ? 1 : example[i] == ']' ? -1 : 0;
      size_t end = i;
      while (end < example.size() && is_name_character(example[end])) ++end;
      const bool letter = end > i && std::islower(static_cast<unsigned char>(example[i])) != 0;
      if (nesting == 0 || !letter) {
        out += end > i ? example.substr(i, end - i) : std::string(1, example[i]);
      } else {
        std::string& size = sizes[example.substr(i, end - i)];
        if (size.empty()) size = std::to_string(1 + random_.below(5));
        out += size;
      }
      i = std::max(end, i + 1);
    }
    return out;
  }

  // The number n in the name known_n.
  static std::optional<int64_t> number_in(const std::string& name) {
    constexpr std::string_view known = "known_";
    const std::string digits = name.starts_with(known) ? name.substr(known.size()) : "";
    const bool is_number = !digits.empty() && digits.size() < 10 &&
                           std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    return is_number ? std::optional<int64_t>(std::stoll(digits)) : std::nullopt;
  }

  Tensor data_for(Expr parameter, bool special) {
    if (const auto number = number_in(parameter->name)) {
      Tensor all(leaf_of(parameter->type)->scalar, shape_of(parameter->type));
      for (int64_t i = 0; i < all.size(); ++i) {
        if (is_float(all.scalar()))
          all.set_float(i, static_cast<double>(*number));
        else
          all.set_integer(i, *number);
      }
      return all;
    }
    const bool positive = parameter->name.find("positive") != std::string::npos;
    Tensor tensor = random_.tensor(parameter->type, special && !positive);
    for (int64_t i = 0; positive && i < tensor.size(); ++i) {
      if (is_float(tensor.scalar()))
        tensor.set_float(i, std::abs(tensor.float_at(i)) + 1.0 / 512);
      else
        tensor.set_integer(i, std::abs(tensor.integer_at(i)) + 1);
    }
    return tensor;
  }

  // The reason why an untrusted example cannot be tried: it is not an array of numbers, or takes too long.
  static std::string unfit(const Program& program) {
    double work = 0;
    for (const auto& [name, type] : value_types(program)) {
      if (!leaf_of(type)->is_scalar()) return fmt::format("{} is {}, not a tensor", name, text(type));
      double elements = 1;
      for (const Nat& n : sizes_of(type)) {
        if (!n.is_constant())
          return fmt::format("{} is {}: sizes that the test draws are lower-case", name, text(type));
        elements *= static_cast<double>(n.value());
      }
      const Definition* definition = find_definition(program, name);
      const Expr e = definition == nullptr ? nullptr : without_operator_calls(definition->expression);
      work += elements * (e == nullptr ? 1.0 : static_cast<double>(interpretation_steps(e)));
    }
    return work > most_work ? "it takes too long to compute: choose smaller sizes" : "";
  }

  bool attempt(size_t which) {
    const std::vector<std::string>& examples = row(rule_).examples;
    const std::string text = with_sizes(examples[which % examples.size()]);
    auto term = parse(text);
    if (!term.ok()) {
      refusal_ = text + ": " + term.errors()[0].text();
      return false;
    }
    Program before;
    before.definitions = {{"result", {"layer"}, *term}};
    before.outputs = {"result"};
    for (Expr p : parameters_of(*term)) before.inputs.emplace_back(p->name, p->type);
    if (const std::string why = unfit(before); !why.empty()) {
      fault(text + "\n    " + why);
      return true;
    }
    before.inputs.clear();
    Bindings inputs;
    const bool special = row(rule_).rule_class == RuleClass::exact && random_.chance(0.5);
    for (Expr p : parameters_of(*term)) {
      const bool known = p->name.starts_with("known"), zero = p->name.starts_with("zero");
      if (zero)
        before.constants[p->name] = Tensor(leaf_of(p->type)->scalar, shape_of(p->type));
      else if (known)
        before.constants[p->name] = data_for(p, special);
      else
        inputs[p->name] = data_for(p, special);
      if (!known && !zero) before.inputs.emplace_back(p->name, p->type);
    }
    name_calls(before, "result");
    Program after = before;
    auto applied = apply_program_rule(rule_, after, "result");
    if (!applied.ok()) {
      fault(text + "\n    " + applied.errors()[0].text());
      return true;
    }
    refusal_ = "the rule does not apply to " + text;
    if (!*applied) return false;
    if (const std::string why = unfit(after); !why.empty()) {
      fault(text + "\n    the right side: " + why);
      return true;
    }
    auto left = program_values(before, inputs), right = program_values(after, inputs);
    if (!left.ok()) return false;
    if (!right.ok()) {
      fault(text + "\n    the right side is undefined: " + right.errors()[0].text());
      return true;
    }
    ++check_.compared;
    if (auto wrong = rule_difference(left->at(before.outputs[0]), right->at(after.outputs[0]), row(rule_).rule_class,
                                     row(rule_).rule_class == RuleClass::exact ? 0 : 1))
      fault(fmt::format("{}\n    {}\n{}", *wrong, text, print_program(after)));
    return true;
  }

  const ProgramRule& rule_;
  RandomTerms random_;
  ProgramRuleCheck check_;
  std::string refusal_;
};

}  // namespace

ProgramRuleCheck check_program_rule(const ProgramRule& rule, int instances, uint64_t seed) {
  return ProgramRuleChecker(rule, seed).run(instances);
}

}  // namespace hoist
