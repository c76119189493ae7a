// The worked example of an exact rule (tools/pages/contributing.md): one row of a file, and the test that every row
// of hoist's files has.
#include <gtest/gtest.h>

#include "ir/rules/rule_check.h"
#include "ir/rules/rule_text.h"
#include "ir/text/text.h"
#include "lowering/rules/rules.h"

namespace hoist {
namespace {

constexpr char rules[] = R"(
rule zip-slices exact: slices of both operands are a slice of the pairs
  given x: [n]T, y: [n]U
  zip(slice a c x, slice a c y) => slice a c (zip(x, y))
  library for steps of a user
)";

RuleRow zip_slices() {
  const RowFile file{"mine.rules", rules};
  const auto read = parse_rules(std::span(&file, 1), false);
  HOIST_CHECK(read.ok(), read.errors()[0].text());
  return read->within_terms[0];
}

Result<RuleTable> with_row(const RuleRow& row) {
  std::vector<RuleRow> rows(lowering_rule_rows().begin(), lowering_rule_rows().end());
  rows.push_back(row);
  return RuleTable::load(rows, lowering_rule_functions());
}

TEST(RuleExample, OneRowAddsARule) {
  auto table = with_row(zip_slices());
  ASSERT_TRUE(table.ok()) << table.errors()[0].text();
  const RuleCheck check = check_rule(*table->find("zip-slices"), 100, 1);
  EXPECT_EQ(check.compared, 100);
  EXPECT_TRUE(check.faults.empty()) << check.faults[0];

  auto term = parse("zip(slice 1 3 (%a : [8]f32), slice 1 3 (%b : [8]i32))");
  ASSERT_TRUE(term.ok()) << term.errors()[0].text();
  Rewriter rewriter(*table, *term);
  ASSERT_TRUE(rewriter.apply("zip-slices", {}));
  EXPECT_EQ(print(rewriter.term()), "slice 1 3 (zip(%a : [8]f32, %b : [8]i32))");
}

TEST(RuleExample, AWrongRowIsFound) {
  RuleRow wrong = zip_slices();
  wrong.left = "zip(slice a c x, slice b c y)";
  auto table = with_row(wrong);
  ASSERT_TRUE(table.ok()) << table.errors()[0].text();
  EXPECT_FALSE(check_rule(*table->find("zip-slices"), 100, 1).faults.empty());
}

}  // namespace
}  // namespace hoist
