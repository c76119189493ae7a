#include "lowering/rules/rules.h"

#include <iterator>

#include "lowering/rules/tables.h"

namespace hoist {

std::span<const RuleRow> lowering_rule_rows() {
  static const std::vector<RuleRow> rows = [] {
    std::vector<RuleRow> all;
    for (auto family : {fusion_rules, split_rules, layout_rules, interchange_rules, stencil_rules, reduction_rules,
                        mapping_rules, arithmetic_rules, formula_rules, nest_rules, convolution_rules}) {
      std::vector<RuleRow> part = family();
      std::move(part.begin(), part.end(), std::back_inserter(all));
    }
    return all;
  }();
  return rows;
}

const RuleFunctions& lowering_rule_functions() {
  static const RuleFunctions functions = native_rules();
  return functions;
}

const RuleTable& lowering_rules() {
  static const RuleTable table = [] {
    auto loaded = RuleTable::load(lowering_rule_rows(), lowering_rule_functions());
    std::string messages;
    if (!loaded.ok()) {
      for (const Diagnostic& d : loaded.errors()) messages += "\n  " + d.text();
    }
    HOIST_CHECK(loaded.ok(), "the table of rules is wrong:" + messages);
    return *loaded;
  }();
  return table;
}

}  // namespace hoist
