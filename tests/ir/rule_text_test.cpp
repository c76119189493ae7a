// Rules as text: sections, lets, families, twins, and the places in error messages.
#include "ir/rules/rule_text.h"

#include <gmock/gmock.h>

namespace hoist::rule_text_test {

using testing::ElementsAre;
using testing::HasSubstr;

Result<RuleRows> read(const std::string& text, bool of_user = false) {
  const RowFile file{"folder/mine.rules", text};
  return parse_rules(std::span(&file, 1), of_user);
}

std::vector<RuleRow> rows(const std::string& text) {
  auto read_rows = read(text);
  if (!read_rows.ok()) {
    for (const Diagnostic& d : read_rows.errors()) ADD_FAILURE() << d.text();
    return {};
  }
  return read_rows->within_terms;
}

std::string faults(const std::string& text, bool of_user = false) {
  const auto read_rows = read(text, of_user);
  std::string out;
  if (!read_rows.ok()) {
    for (const Diagnostic& d : read_rows.errors()) out += d.text() + "\n";
  }
  return out;
}

TEST(RuleText, KeysAndSections) {
  const auto read_rows = rows(
      "-- a comment\n"
      "section pairs\n"
      "  library for steps\n"
      "  given x: T\n"
      "rule one(k, l) exact: nothing changes\n"
      "  x => x\n"
      "  pass strategies\n"
      "rule two rounding\n"
      "  meaning in\n"
      "    two lines\n"
      "  given y: [n]T\n"
      "  left  y\n"
      "  right y |>\n"
      "    id\n"
      "  where k < n\n");
  ASSERT_EQ(read_rows.size(), 2U);
  EXPECT_EQ(read_rows[0].parameters, "k, l");
  EXPECT_EQ(read_rows[0].given, "x: T");
  EXPECT_EQ(read_rows[0].pass, "strategies");
  EXPECT_EQ(read_rows[0].library, "");
  EXPECT_EQ(read_rows[0].meaning, "nothing changes");
  EXPECT_EQ(read_rows[0].family, "mine");
  EXPECT_EQ(read_rows[1].rule_class, RuleClass::rounding);
  EXPECT_EQ(read_rows[1].meaning, "in two lines");
  EXPECT_EQ(read_rows[1].given, "y: [n]T");
  EXPECT_EQ(read_rows[1].right, "y |> id");
  EXPECT_EQ(read_rows[1].where, "k < n");
  EXPECT_EQ(read_rows[1].library, "for steps");
}

TEST(RuleText, LetsAndFamilies) {
  const auto read_rows = rows(
      "let joined(1) = x\n"
      "let joined(n) = $joined($n-1) |> join\n"
      "let item(\"group\") = work-group\n"
      "let item(other) = $other item\n"
      "rule join-$(n+1)d-$kind exact: $item($kind)\n"
      "  for n in 1..3\n"
      "  for kind in group, local\n"
      "  given x: T\n"
      "  x => $joined($n)\n"
      "  pass strategies\n");
  std::vector<std::string> names;
  for (const RuleRow& row : read_rows) names.push_back(row.name);
  EXPECT_THAT(names, ElementsAre("join-2d-group", "join-2d-local", "join-3d-group", "join-3d-local", "join-4d-group",
                                 "join-4d-local"));
  ASSERT_EQ(read_rows.size(), 6U);
  EXPECT_EQ(read_rows[0].meaning, "work-group");
  EXPECT_EQ(read_rows[1].meaning, "local item");
  EXPECT_EQ(read_rows[4].right, "x |> join |> join");
}

TEST(RuleText, LetsOfFilesWithoutRulesAreShared) {
  const RowFile files[] = {{"shared.rules", "let a = 1\n"},
                           {"first.rules", "let b = 2\nrule one exact: $a$b\n  x => y\n  pass strategies\n"},
                           {"second.rules", "let b = 3\nrule two exact: $a$b\n  x => y\n  pass strategies\n"}};
  const auto read_rows = parse_rules(files, false);
  ASSERT_TRUE(read_rows.ok()) << read_rows.errors()[0].text();
  EXPECT_EQ(read_rows->within_terms[0].meaning, "12");
  EXPECT_EQ(read_rows->within_terms[1].meaning, "13");
}

TEST(RuleText, TwinsByAssociativity) {
  const auto read_rows = rows(
      "rule halves exact or rounding by op: two sums\n"
      "  given x: [2*k]T, z: T, op: T, T -> T\n"
      "  reduce op z x => reduce op z (map (reduce op z) (transpose (split k x)))\n"
      "  where associative op, commutative op, neutral op z\n"
      "  pass strategies\n"
      "  library exact: nobody asks\n");
  ASSERT_EQ(read_rows.size(), 2U);
  EXPECT_EQ(read_rows[0].name, "halves");
  EXPECT_EQ(read_rows[0].where, "exactly-associative op, commutative op, neutral op z, integer T");
  EXPECT_EQ(read_rows[0].rule_class, RuleClass::exact);
  EXPECT_EQ(read_rows[0].library, "nobody asks");
  EXPECT_EQ(read_rows[0].pass, "");
  EXPECT_EQ(read_rows[1].name, "halves-float");
  EXPECT_EQ(read_rows[1].where, "associative op, commutative op, neutral op z");
  EXPECT_EQ(read_rows[1].rule_class, RuleClass::rounding);
  EXPECT_EQ(read_rows[1].library, "");
  EXPECT_EQ(read_rows[1].pass, "strategies");
}

TEST(RuleText, TwinsByType) {
  const auto read_rows = rows(
      "rule add-zero exact or rounding by T: nothing added\n"
      "  given x: T, z: T\n"
      "  x + z => x\n"
      "  where z is 0\n"
      "  library scalars\n");
  ASSERT_EQ(read_rows.size(), 2U);
  EXPECT_EQ(read_rows[0].where, "z is 0, integer T");
  EXPECT_EQ(read_rows[0].rule_class, RuleClass::exact);
  EXPECT_EQ(read_rows[1].name, "add-zero-float");
  EXPECT_EQ(read_rows[1].where, "z is 0, float T");
  EXPECT_EQ(read_rows[1].rule_class, RuleClass::rounding);
  EXPECT_EQ(read_rows[1].library, "scalars");
}

TEST(RuleText, FaultsHavePlaces) {
  const std::string end = "  given x: T\n  x => x\n  pass strategies\n";
  EXPECT_THAT(faults("rule a exact: b\n  gven x: T\n" + end),
              HasSubstr("folder/mine.rules:2:3: unknown key gven (did you mean given?)"));
  EXPECT_THAT(faults("rul a exact\n"), HasSubstr("folder/mine.rules:1:1: expected rule NAME CLASS, found rul"));
  EXPECT_THAT(faults("rule A exact: b\n" + end), HasSubstr("folder/mine.rules:1:6: \"A\" is not a name of a rule"));
  EXPECT_THAT(faults("rule a exactly: b\n" + end), HasSubstr("folder/mine.rules:1:8: \"exactly\" is not a class"));
  EXPECT_THAT(faults("rule a exact: $b\n" + end), HasSubstr("folder/mine.rules:1:15: there is no let $b"));
  EXPECT_THAT(faults("rule a exact: b\n  given x: T\n  $b => x\n"), HasSubstr("3:3: there is no let $b"));
  EXPECT_THAT(faults("let b(1) = c\nrule a exact: x $b(2)\n" + end), HasSubstr("2:17: no let $b is for (2)"));
  EXPECT_THAT(faults("let b(n) = $b($n)\nrule a exact: $b(2)\n" + end), HasSubstr("2:15: lets are nested deeper"));
  EXPECT_THAT(faults("let b(1, n) = c\nlet b(1, m) = d\nrule a exact: b\n" + end),
              HasSubstr("2:5: the let b appears here twice"));
  EXPECT_THAT(faults("let B = c\n"), HasSubstr("1:5: expected let NAME = TEXT"));
  EXPECT_THAT(faults("rule a exact: b\n  for n of 1\n" + end), HasSubstr("2:7: expected for NAME in A, B, C"));
  EXPECT_THAT(faults("rule a exact: b\n  given x: T\n  x => x\n"), HasSubstr("1:6: a: needs either the pass"));
  EXPECT_THAT(faults("rule a exact: b\n  library c\n" + end), HasSubstr("1:6: a: needs either the pass"));
  EXPECT_THAT(faults("rule a exact or rounding by op: b\n" + end), HasSubstr("does not state that op is associative"));
  EXPECT_THAT(faults("rule a exact: b\n" + end, true), HasSubstr("4:3: pass is for hoist's own rules"));
  EXPECT_THAT(faults("rule a neural: b\n  x => y\n", true), HasSubstr("1:6: a rule from a file cannot be neural"));
  EXPECT_THAT(faults("-- nothing\n"), HasSubstr("folder/mine.rules: holds no rule"));
}

// The terms of rows are read later; their places still refer to the file, also after lets.
TEST(RuleText, FaultsOfTermsHavePlaces) {
  const auto fault = [](const std::string& text) {
    const auto table = RuleTable::load(rows(text));
    return table.ok() ? "" : table.errors()[0].text();
  };
  const std::string end = "  pass strategies\n";
  EXPECT_THAT(fault("rule a exact: b\n  given x: T\n  x =>\n    id (map\n" + end), HasSubstr("folder/mine.rules:4:"));
  EXPECT_THAT(fault("let same = id\nrule a exact: b\n  given x: T\n  x => $same $same )\n" + end),
              HasSubstr("folder/mine.rules:4:20: a, right side"));
  EXPECT_THAT(fault("rule a exact: b\n  given x: [n]T\n  x => x\n  where 1 <= n, odd n\n" + end),
              HasSubstr("folder/mine.rules:4:17: a: unknown condition odd n"));
  EXPECT_THAT(fault("rule a exact: b\n  given x: [n]T\n  x => repeat 2 x\n" + end),
              HasSubstr("folder/mine.rules:3:8: a: the left side has type"));
}

TEST(RuleText, TextsOfStrangersAreBounded) {
  std::string text = "let a = 0123456789\n";
  for (char name = 'b'; name <= 'k'; ++name)
    text += std::string("let ") + name + " = $" + static_cast<char>(name - 1) + "$" + static_cast<char>(name - 1) +
            "$" + static_cast<char>(name - 1) + "$" + static_cast<char>(name - 1) + "\n";
  EXPECT_THAT(faults(text + "rule a exact: $k\n  x => y\n", true), HasSubstr("the text has more than"));
  std::string many = "rule a-$a$b$c$d exact: m\n  x => y\n";
  for (char name = 'a'; name <= 'd'; ++name) many += std::string("  for ") + name + " in 1..20\n";
  EXPECT_THAT(faults(many, true), HasSubstr("more than 4096 rules"));
}

}  // namespace hoist::rule_text_test
