#include "lowering/rules/user_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ir/rules/former_names.h"
#include "ir/rules/rule_check.h"
#include "lowering/pipeline/passes.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/rules.h"

namespace hoist {
namespace {

constexpr int tested_instances = 60;
constexpr uint64_t test_seed = 1;

// A message is one line; the two sides of an instance are several.
std::string one_line(const std::string& text) {
  std::string out;
  for (char c : text) {
    const bool space = c == '\n' || c == ' ';
    if (!space || (!out.empty() && out.back() != ' ')) out += space ? ' ' : c;
  }
  return out;
}

Diagnostic wrong_row(const auto& row, const std::string& instance) {
  return {place_of_row(row.origin, row.name),
          fmt::format("is wrong as a rule of class {}: {}", name_of(row.rule_class), one_line(instance)),
          "both sides must have the same value on every instance"};
}

// Rules between operator calls: collects the valid rules, and the rows that a random instance disproves.
Diagnostics test_between_calls(UserRules& rules) {
  Diagnostics faults;
  auto loaded = load_program_rules(rules.rows.between_calls, {});
  if (!loaded) return loaded.errors();
  for (const ProgramRule* rule : *loaded) {
    if (has_arguments(*rule)) {
      faults.push_back({place_of_row(row(*rule).origin, row(*rule).name, "given"),
                        "an operand of given appears on the right side alone",
                        "nobody gives a rule of a file its constants: compute them, as in fill 0f32 [1]"});
      continue;
    }
    // An untrusted example may be larger than any row of hoist.
    const FaultsAreErrors guard;
    std::string wrong;
    try {
      const ProgramRuleCheck check = check_program_rule(*rule, tested_instances, test_seed);
      if (!check.faults.empty()) wrong = check.faults.front();
    } catch (const InternalFault& fault) {
      wrong = fault.text;
    }
    if (!wrong.empty()) faults.push_back(wrong_row(row(*rule), wrong));
  }
  if (faults.empty()) rules.between_calls = std::move(*loaded);
  return faults;
}

// The same for rules within terms; the table has hoist's own rows too.
Diagnostics test_within_terms(UserRules& rules) {
  auto own = RuleTable::load(rules.rows.within_terms);
  if (!own) return own.errors();
  Diagnostics faults;
  for (const Rule* rule : own->rules()) {
    const RuleCheck check = check_rule(*rule, tested_instances, test_seed);
    if (!check.faults.empty()) faults.push_back(wrong_row(row(*rule), check.faults.front()));
  }
  if (!faults.empty()) return faults;
  rules.table = lowering_rules().with(*own);
  return {};
}

// A former name is taken too, because it denotes the present one.
bool is_taken(const std::string& name) {
  const auto between = operator_rule_rows();
  return find_pass(name) != nullptr || lowering_rules().has(name) || present_name(name) != name ||
         std::any_of(between.begin(), between.end(), [&](const ProgramRuleRow& r) { return r.name == name; });
}

}  // namespace

const ProgramRule* UserRules::find_between_calls(const std::string& name) const {
  auto found = std::find_if(between_calls.begin(), between_calls.end(),
                            [&](const ProgramRule* rule) { return row(*rule).name == name; });
  return found == between_calls.end() ? nullptr : *found;
}

Result<UserRules> read_user_rules(const std::string& text, const std::string& where) {
  UserRules out;
  out.text = text;
  const RowFile file{where, text};
  HOIST_TRY(out.rows, parse_rules(std::span(&file, 1), true));
  Diagnostics faults;
  const auto check_name = [&](const auto& row) {
    if (is_taken(row.name))
      faults.push_back(
          {place_of_row(row.origin, row.name), "hoist has a rule or pass of this name", "name yours otherwise"});
  };
  for (const RuleRow& row : out.rows.within_terms) check_name(row);
  for (const ProgramRuleRow& row : out.rows.between_calls) check_name(row);
  if (faults.empty()) {
    faults = test_within_terms(out);
    const Diagnostics between = test_between_calls(out);
    faults.insert(faults.end(), between.begin(), between.end());
  }
  if (!faults.empty()) return faults;
  return out;
}

Result<Nothing> check_strict(const ProgramRule& rule, bool strict) {
  if (!strict || row(rule).rule_class == RuleClass::exact) return Nothing{};
  return Diagnostic{row(rule).name,
                    fmt::format("is a {} rule, and --strict allows only exact rules", name_of(row(rule).rule_class)),
                    "leave one of them out"};
}

}  // namespace hoist
