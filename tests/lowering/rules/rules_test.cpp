// Tests every row of the table with the interpreter, and checks that this test finds wrong rows.
#include "lowering/rules/rules.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <set>

#include "ir/rules/rule_check.h"
#include "ir/text/text.h"
#include "lowering/pipeline/passes.h"
#include "lowering/rules/program_rules.h"
#include "lowering/rules/tables.h"

namespace hoist::rules_test {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int instances = 40;

std::vector<Expr> terms(const std::vector<std::string>& texts) {
  std::vector<Expr> out;
  for (const std::string& text : texts) {
    auto term = parse(text);
    EXPECT_TRUE(term.ok()) << text << "\n" << (term.ok() ? "" : term.errors()[0].text());
    if (term.ok()) out.push_back(*term);
  }
  return out;
}

// Left sides of the rows that have no text.
std::map<std::string, std::vector<Expr>> native_examples() {
  return {
      {"map-fission", terms({"map (\\v. exp (v + 1f32)) (%x : [4]f32)", "map (\\v. exp v + v * 2f32) (%x : [4]f32)",
                             "map (\\r. map (\\v. v * %k : f32) (map (\\v. v + 1f32) r)) (%x : [3][4]f32)",
                             "map (\\r. reduce (+) 0f32 (slice 1 2 r)) (%x : [3][4]f32)",
                             "map (\\r. zip(slice 0 2 r, slice 2 2 r)) (%x : [3][4]i32)"})},
      {"let-out", terms({"join (let y = %x : [2][3]f32 in map (map (\\v. v + 1f32)) y)",
                         "zip(%a : [3]f32, let y = %b : [3]f32 in map (\\v. v * v) y)",
                         "%a : f32 + (let y = %b : f32 in y * y)", "let w = (let y = %b : f32 in y * y) in w + w"})},
      {"transpose-nest",
       terms(
           {"transpose (map (\\a. map (\\b. a - b) (%b : [3]f32)) (%a : [2]f32))",
            "transpose (2 0 1) (map (\\a. map (\\b. map (\\c. a * b - c) (%c : [4]f32)) (%b : [3]f32)) (%a : [2]f32))",
            "transpose (1 2 0) (map (\\a. map (\\b. map (\\c. a * b - c) (%c : [4]f32)) (%b : [3]f32)) (%a : [2]f32))",
            "transpose (0 2 1) (map (\\a. map (\\b. map (\\c. a * b - c) (%c : [4]f32)) (%b : [3]f32)) (%a : "
            "[2]f32))"})},
      {"map-of-transpose",
       terms({"map (\\r. transpose r) (%x : [2][3][4]f32)", "map (\\r. transpose (2 0 1) r) (%x : [2][3][4][2]i32)"})},
      {"transpose-to-map",
       terms({"transpose (0 2 1) (%x : [2][3][4]f32)", "transpose (0 3 1 2) (%x : [2][3][4][2]i32)"})},
  };
}

// A single test, so that rows do not start a process each; messages name the row.
TEST(Rules, AgreeWithTheInterpreter) {
  auto examples = native_examples();
  for (const Rule* rule : lowering_rules().rules()) {
    const std::string& name = row(*rule).name;
    RuleCheck check = check_rule(*rule, instances, 1, examples[name]);
    for (const std::string& fault : check.faults) ADD_FAILURE() << name << ": " << fault;
    EXPECT_EQ(check.compared, instances) << name;
    EXPECT_THAT(row(*rule).meaning, Not(IsEmpty())) << name;
  }
}

TEST(Rules, HaveDifferentSides) {
  std::map<std::string, std::string> sides;
  for (const RuleRow& r : lowering_rule_rows()) {
    EXPECT_NE(r.left, r.right) << r.name;
    if (r.right.rfind("native", 0) == 0) continue;
    std::string all = r.given + "|" + r.left + "|" + r.right + "|" + r.where + "|" + std::string(name_of(r.rule_class));
    auto [place, fresh] = sides.emplace(all, r.name);
    EXPECT_TRUE(fresh) << r.name << " says the same as " << place->second;
  }
}

// The reader of rule files requires a pass or a reason for every row; this test checks the names.
TEST(Rules, SayWhichPassAppliesThem) {
  const auto is_known = [](const std::string& pass) { return find_pass(pass.substr(0, pass.find('/'))) != nullptr; };
  size_t applied = 0;
  for (const RuleRow& r : lowering_rule_rows()) {
    EXPECT_NE(r.pass.empty(), r.library.empty()) << r.name;
    EXPECT_TRUE(r.pass.empty() || is_known(r.pass)) << r.name << " names no pass: " << r.pass;
    applied += r.pass.empty() ? 0 : 1;
  }
  EXPECT_GT(applied, 30U);
  for (const ProgramRuleRow& r : operator_rule_rows()) EXPECT_TRUE(is_known(r.pass)) << r.name << ": " << r.pass;
}

// Rules change without a build if a developer names the folder of the sources.
TEST(Rules, AreReadFromTheFolderOfTheSources) {
  setenv("HOIST_RULES_FOLDER", HOIST_SOURCE_DIR, 1);
  const auto checked = check_own_rules();
  const RuleRows read = *read_lowering_rules();
  unsetenv("HOIST_RULES_FOLDER");
  EXPECT_TRUE(checked.ok()) << checked.errors()[0].text();
  ASSERT_EQ(read.between_calls.size(), operator_rule_rows().size());
  for (size_t i = 0; i < read.within_terms.size(); ++i)
    EXPECT_EQ(read.within_terms[i].right, lowering_rule_rows()[i].right) << read.within_terms[i].name;
}

TEST(Rules, NameFewNativeFunctions) {
  std::set<std::string> named;
  for (const RuleRow& r : lowering_rule_rows()) {
    if (r.right.rfind("native ", 0) == 0) named.insert(r.right.substr(7));
  }
  EXPECT_EQ(named.size(), lowering_rule_functions().rewrites.size());
  EXPECT_LE(named.size(), 6u);
}

// Wrong rules from real compilers, or with a plausible look: each must be refuted.
struct WrongRow {
  RuleRow row;
  const char* found;  // expected part of the error
};

const std::string three = "x: T, y: T, w: T";

std::vector<WrongRow> wrong_rows() {
  return {
      WrongRow{{"partial-reduce-unchecked", "k", "x: [m*k]T, z: T, op: T, T -> T", "reduce op z x",
                "reduce op z (map (reduce op z) (split k x))", "", RuleClass::exact,
                "Lift: any operator, any initial value"},
               "on the left and"},
      WrongRow{{"partial-reduce-any-start", "k", "x: [m*k]T, z: T, op: T, T -> T", "reduce op z x",
                "reduce op z (map (reduce op z) (split k x))", "associative op", RuleClass::rounding,
                "the start counts once a row"},
               "on the left and"},
      WrongRow{{"float-sum-split-as-exact", "k", "x: [m*k]T, z: T, op: T, T -> T", "reduce op z x",
                "reduce op z (map (reduce op z) (split k x))", "associative op, neutral op z", RuleClass::exact,
                "rounds differently"},
               "on the left and"},
      WrongRow{{"gather-to-scatter", "", "x: [n]T, p: [n]I", "map (\\i. index i x) p", "scatter p x x", "",
                RuleClass::exact, "Lift: right for permutations that are their own inverse"},
               "on the left and"},
      WrongRow{{"wrong-component", "", "a: [n]T, b: [n]T", "map (\\p. p.1) (zip(a, b))", "a", "", RuleClass::exact,
                "shine: index 1 gives the first"},
               "on the left and"},
      WrongRow{{"fold-order", "", "x: [m][k]T, z: S, f: S, T -> S", "fold f z (join x)",
                "fold f z (join (transpose x))", "m = k", RuleClass::exact, "a fold has an order"},
               "on the left and"},
      WrongRow{{"add-zero-exact", "", "x: T, z: T", "x + z", "x", "z is 0, float T", RuleClass::exact, "-0 + 0 is 0"},
               "on the left and"},
      WrongRow{{"add-associate-exact", "", three, "x + y + w", "x + (y + w)", "float T", RuleClass::exact,
                "rounds differently"},
               "on the left and"},
      WrongRow{{"fma-exact", "", three, "x * y + w", "fma(x, y, w)", "float T", RuleClass::exact, "one rounding"},
               "on the left and"},
      WrongRow{{"multiply-zero-float", "", "x: T, z: T", "x * z", "z", "z is 0, float T", RuleClass::exact,
                "NaN, infinities, signs"},
               "on the left and"},
      WrongRow{
          {"select-to-max", "", "x: T, y: T", "select(x < y, y, x)", "max(x, y)", "float T", RuleClass::exact, "NaN"},
          "on the left and"},
      WrongRow{{"negate-of-subtract-exact", "", "x: T, y: T", "-(x - y)", "y - x", "float T", RuleClass::exact,
                "-(x - x) is -0"},
               "on the left and"},
      WrongRow{{"pad-mirror-twice", "", "x: [n]T", "pad a b mirror (pad l r mirror x)", "pad (a + l) (b + r) mirror x",
                "", RuleClass::exact, "a mirror in a mirror"},
               ""},
      WrongRow{
          {"interchange-without-transpose", "", "A: [n]T, B: [n]T, e: T, T -> V", "map (\\a. map (\\b. e a b) B) A",
           "map (\\b. map (\\a. e a b) A) B", "", RuleClass::exact, "rows and columns change places"},
          "on the left and"},
      WrongRow{{"scale-two", "", "x: T", "x + x", "x * x", "float T", RuleClass::rounding, "not the same number"},
               "on the left and"},
      WrongRow{{"add-cancel", "", "x: T, y: T", "x + y - y", "x", "float T", RuleClass::exact, "rounds, infinities"},
               "on the left and"}};
}

TEST(WrongRules, AreCaught) {
  for (const WrongRow& wrong : wrong_rows()) {
    auto table = RuleTable::load(std::span(&wrong.row, 1));
    ASSERT_TRUE(table.ok()) << table.errors()[0].text();
    RuleCheck check = check_rule(*table->rules()[0], 400, 3);
    ASSERT_FALSE(check.faults.empty()) << wrong.row.name << " passes " << check.compared << " instances";
    EXPECT_THAT(check.faults[0], HasSubstr(wrong.found)) << wrong.row.name;
  }
}

TEST(WrongRules, AreRefusedAtStartUp) {
  const std::vector<WrongRow> rows = {
      {{"slide-tiling", "u", "x: [n]T", "slide s t x", "join (map (slide s t) (slide (u + s - t) u x))", "t <= s",
        RuleClass::exact, "Lift: the tile's step has to be a multiple of the window's"},
       "slide-tiling: the left side has type"},
      {{"tile-is-split", "k", "x: [n]T", "tile k x", "split k (slice 0 (k*(n//k)) x)", "", RuleClass::exact, ""},
       "tile-is-split: the left side has type"},
      {{"loose", "", "x: [n]T, f: T -> U, y: T", "map f x", "repeat n (f y)", "", RuleClass::exact, ""},
       "loose: the name y of the right side is missing on the left"},
      {{"unbound-size", "", "x: [n]T", "slide m 1 x", "slide s 1 x", "", RuleClass::exact, "shine: an unbound size"},
       "unbound-size: the"},
      {{"divisor", "k", "x: [n]T, f: T -> U", "map f x", "join (map (map f) (split k x))", "k divides n",
        RuleClass::exact, ""},
       "k does not divide n"},
      {{"not-a-pattern", "", "x: [n]T, f: U -> V, g: T -> U", "map (\\v. f (g v)) x", "map f (map g x)", "",
        RuleClass::exact, ""},
       "f is applied to something other than different bound variables"},
      {{"condition", "", "x: T", "x + x", "x + x", "k devides n", RuleClass::exact, ""},
       "unknown condition k devides n"},
      {{"stranger", "", "x: T", "x + x", "x + x", "associative op", RuleClass::exact, ""},
       "names op, which is not declared"},
      {{"syntax", "", "x: T", "x +", "x", "", RuleClass::exact, ""}, "syntax, left side"},
      {{"native", "", "x: T", "x", "native nothing", "", RuleClass::exact, ""}, "there is no function nothing"},
  };
  for (const WrongRow& wrong : rows) {
    auto table = RuleTable::load(std::span(&wrong.row, 1));
    ASSERT_FALSE(table.ok()) << wrong.row.name;
    EXPECT_THAT(table.errors()[0].text(), HasSubstr(wrong.found)) << wrong.row.name;
  }
}

}  // namespace hoist::rules_test
