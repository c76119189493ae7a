#include "lowering/rules/rules.h"

#include <fmt/format.h>

#include <string>

#include "ir/properties/erf_quotient.h"
#include "lowering/rules/tables.h"

namespace hoist {
namespace {

// The polynomial of s, as a text.
std::string in_powers_of_s(std::span<const double> coefficients) {
  std::string out = fmt::format("{}f32", coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) out = fmt::format("fma(s, {}, {}f32)", out, coefficients[i]);
  return out;
}

}  // namespace

// The bounds of Winograd tiles are bits of an f32, which have the order of the numbers.
Result<RuleRows> read_lowering_rules() {
  constexpr int64_t mantissa = 1 << 23, bias = 127;
  return read_own_rules(lowering_rule_files,
                        {{"erf_limit", fmt::format("{}f32", erf_quotient::limit)},
                         {"erf_above", in_powers_of_s(erf_quotient::above)},
                         {"erf_below", in_powers_of_s(erf_quotient::below)},
                         {"winograd_most", fmt::format("{}i32", (winograd_magnitude + bias) * mantissa)},
                         {"winograd_range", fmt::format("{}i32", winograd_ratio * mantissa)}});
}

const RuleRows& own_rule_rows() {
  static const RuleRows rows = [] {
    auto read = read_lowering_rules();
    HOIST_CHECK(read.ok(), "hoist's rules are wrong: " + (read.ok() ? "" : read.errors()[0].text()));
    return std::move(*read);
  }();
  return rows;
}

std::span<const RuleRow> lowering_rule_rows() { return own_rule_rows().within_terms; }

std::vector<std::string_view> rules_within_terms(std::string_view pass) {
  std::vector<std::string_view> out;
  for (const RuleRow& row : lowering_rule_rows()) {
    if (row.pass == pass) out.push_back(row.name);
  }
  return out;
}

const RuleFunctions& lowering_rule_functions() {
  static const RuleFunctions functions = native_rules();
  return functions;
}

Result<Nothing> check_own_rules() {
  HOIST_TRY(const RuleRows rows, read_lowering_rules());
  Diagnostics faults;
  if (const auto table = RuleTable::load(rows.within_terms, lowering_rule_functions()); !table) faults = table.errors();
  if (const auto between = load_program_rules(rows.between_calls, program_conditions()); !between)
    faults.insert(faults.end(), between.errors().begin(), between.errors().end());
  if (!faults.empty()) return faults;
  return Nothing{};
}

const RuleTable& lowering_rules() {
  static const RuleTable table = RuleTable::of_known(lowering_rule_rows(), lowering_rule_functions());
  return table;
}

}  // namespace hoist
