#include "ir/rules/rewrite.h"

#include <gmock/gmock.h>

#include "ir/rules/rule.h"
#include "ir/text/text.h"
#include "tests/support/print_steps.h"

namespace hoist::rewrite_test {

using testing::HasSubstr;

Expr term(const std::string& text) {
  auto parsed = parse(text);
  HOIST_CHECK(parsed.ok(), text + ": " + parsed.errors()[0].text());
  return *parsed;
}

RuleTable table_of(const std::vector<RuleRow>& rows) {
  auto table = RuleTable::load(rows);
  HOIST_CHECK(table.ok(), table.errors()[0].text());
  return *table;
}

// Loads one row and applies it to a term.
std::string applied(const RuleRow& row, const std::string& text, const RuleArguments& arguments = {}) {
  RuleTable table = table_of({row});
  auto result = apply_rule(*table.rules()[0], term(text), arguments);
  return result ? print(*result) : "no: " + why_not(*table.rules()[0], term(text), arguments);
}

std::string printed(const std::string& text) { return print(term(text)); }

RuleRow split_join() {
  return {"split-join",     "k", "x: [m*k]T, f: T -> U", "map f x", "join (map (map f) (split k x))", "",
          RuleClass::exact, ""};
}
RuleRow map_fusion() {
  return {"map-fusion",     "", "x: [n]T, g: T -> U, f: U -> V", "map f (map g x)", "map (\\v. f (g v)) x", "",
          RuleClass::exact, ""};
}
RuleRow reduce_split() {
  return {"reduce-split",
          "k",
          "x: [m*k]T, z: T, op: T, T -> T",
          "reduce op z x",
          "reduce op z (map (reduce op z) (split k x))",
          "exactly-associative op, neutral op z",
          RuleClass::exact,
          ""};
}
RuleRow to_fma() {
  return {"to-fma", "", "x: T, y: T, w: T", "w + x * y", "fma(x, y, w)", "float T", RuleClass::rounding, ""};
}

TEST(ApplyRule, SolvesSizesWithTheArguments) {
  EXPECT_EQ(applied(split_join(), "map exp (%x : [12]f32)", {{"k", 4}}),
            printed("join (map (map exp) (split 4 (%x : [12]f32)))"));
  EXPECT_THAT(applied(split_join(), "map exp (%x : [12]f32)", {{"k", 5}}),
              HasSubstr("k*m = 12 has no solution, or not just one, k = 5"));
  EXPECT_THAT(applied(split_join(), "map exp (%x : [12]f32)"), HasSubstr("k*m = 12 has no solution, or not just one"));
  EXPECT_THAT(applied(split_join(), "map exp (%x : [12]f32)", {{"k", 0}}), HasSubstr("no: "));
  EXPECT_EQ(applied(split_join(), "map exp (%x : [12]f32)", {{"k", 4}, {"j", 1}}), "no: split-join has no parameter j");
}

TEST(ApplyRule, SolvesSymbolicSizes) {
  EXPECT_EQ(applied(split_join(), "map exp (%x : [N*8]f32)", {{"k", 4}}),
            printed("join (map (map exp) (split 4 (%x : [N*8]f32)))"));
  EXPECT_EQ(applied(split_join(), "map exp (%x : [N*M]f32)", {{"k", Nat::name("M")}}),
            printed("join (map (map exp) (split M (%x : [N*M]f32)))"));
  EXPECT_THAT(applied(split_join(), "map exp (%x : [N]f32)", {{"k", 4}}), HasSubstr("no: "));
  // A size of the term may have the same name as a size of the rule.
  EXPECT_EQ(applied(split_join(), "map exp (%x : [m*3]f32)", {{"k", Nat::name("m")}}),
            printed("join (map (map exp) (split m (%x : [m*3]f32)))"));
}

TEST(ApplyRule, AgreesOnSizesThatOccurTwice) {
  RuleRow square{"square",         "", "x: [n][n]T", "transpose x", "transpose (transpose (transpose x))", "",
                 RuleClass::exact, ""};
  EXPECT_EQ(applied(square, "transpose (%x : [3][3]f32)"), printed("transpose (%x : [3][3]f32)"));
  EXPECT_THAT(applied(square, "transpose (%x : [3][4]f32)"), HasSubstr("sizes differ: n = 4 fails"));
}

TEST(ApplyRule, KeepsVariablesApart) {
  // g may use a variable of an enclosing function, with its depth adjusted on the right side.
  RuleTable table = table_of({map_fusion()});
  Expr root = term("map (\\c. map (\\v. v * c) (map (\\v. v + c) (%x : [4]f32))) (%y : [3]f32)");
  auto inner = apply_rule(*table.rules()[0], at(root, {0, 0}));
  ASSERT_TRUE(inner.has_value());
  auto result = replace_at(root, {0, 0}, *inner);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, term("map (\\c. map (\\v. (v + c) * c) (%x : [4]f32)) (%y : [3]f32)"));
}

TEST(ApplyRule, RefusesWhatWouldCapture) {
  RuleRow interchange{"interchange",
                      "",
                      "A: [n]T, B: [m]U, e: T, U -> V",
                      "map (\\a. map (\\b. e a b) B) A",
                      "transpose (map (\\b. map (\\a. e a b) A) B)",
                      "",
                      RuleClass::exact,
                      ""};
  EXPECT_EQ(applied(interchange, "map (\\a. map (\\b. a * b) (%y : [2]f32)) (%x : [3]f32)"),
            printed("transpose (map (\\b. map (\\a. a * b) (%x : [3]f32)) (%y : [2]f32))"));
  EXPECT_EQ(applied(interchange, "map (\\a. map (\\b. b * b) (map (\\c. c + a) (%y : [2]f32))) (%x : [3]f32)"),
            "no: B must not depend on the variables bound around it at 0.0.1");
}

TEST(ApplyRule, TakesFunctionsOfComponents) {
  RuleRow drop{"drop",           "", "a: [n]T, b: [n]U, f: T -> V", "map (\\p. f p.0) (zip(a, b))", "map f a", "",
               RuleClass::exact, ""};
  EXPECT_EQ(applied(drop, "map (\\p. exp p.0) (zip(%x : [3]f32, %y : [3]f32))"), printed("map exp (%x : [3]f32)"));
  EXPECT_EQ(applied(drop, "map (\\p. p.0 * p.1) (zip(%x : [3]f32, %y : [3]f32))"),
            "no: f may only depend on its arguments at 0.0");
  RuleRow swap{"swap",
               "",
               "a: [n]T, b: [n]U, f: T, U -> V",
               "map (\\p. f p.0 p.1) (zip(a, b))",
               "map (\\p. f p.1 p.0) (zip(b, a))",
               "",
               RuleClass::exact,
               ""};
  EXPECT_EQ(applied(swap, "map (\\p. (p, p.0)) (zip(%x : [3]f32, %y : [3]i32))"),
            printed("map (\\p. ((p.1, p.0), p.1)) (zip(%y : [3]i32, %x : [3]f32))"));
}

TEST(ApplyRule, WantsEqualTermsForOneName) {
  RuleRow same{"same", "", "x: T", "x + x", "x * x", "", RuleClass::rounding, ""};
  EXPECT_EQ(applied(same, "%a : f32 + %a"), printed("(%a : f32) * %a"));
  EXPECT_EQ(applied(same, "%a : f32 + (%b : f32)"), "no: x matches two different terms at 1");
}

TEST(ApplyRule, MatchesModesExactly) {
  EXPECT_THAT(applied(split_join(), "map seq exp (%x : [12]f32)", {{"k", 4}}),
              HasSubstr("expected map, found map seq"));
  RuleRow open{"from-group", "d", "x: [n]T, f: T -> U", "map group(d) f x", "map f x", "", RuleClass::exact, ""};
  EXPECT_EQ(applied(open, "map group(2) exp (%x : [12]f32)"), printed("map exp (%x : [12]f32)"));
  EXPECT_EQ(applied(open, "map group(2) exp (%x : [12]f32)", {{"d", 1}}).substr(0, 3), "no:");
  RuleRow to{"to-group", "d", "x: [n]T, f: T -> U", "map f x", "map group(d) f x", "", RuleClass::exact, ""};
  EXPECT_EQ(applied(to, "map exp (%x : [12]f32)", {{"d", 1}}), printed("map group(1) exp (%x : [12]f32)"));
  EXPECT_EQ(applied(to, "map exp (%x : [12]f32)"), "no: the parameter d is missing");
  EXPECT_EQ(applied(to, "map exp (%x : [12]f32)", {{"d", 3}}), "no: the parameter d is 0, 1 or 2");
}

TEST(ApplyRule, ChecksProperties) {
  EXPECT_EQ(applied(reduce_split(), "reduce (+) 0i32 (%x : [6]i32)", {{"k", 2}}),
            printed("reduce (+) 0i32 (map (reduce (+) 0i32) (split 2 (%x : [6]i32)))"));
  EXPECT_EQ(applied(reduce_split(), "reduce (+) 0f32 (%x : [6]f32)", {{"k", 2}}),
            "no: the condition exactly-associative op is not known to hold with k = 2, m = 3");
  EXPECT_EQ(applied(reduce_split(), "reduce (+) 1i32 (%x : [6]i32)", {{"k", 2}}),
            "no: the condition neutral op z is not known to hold with k = 2, m = 3");
  EXPECT_THAT(applied(reduce_split(), "reduce (\\a b. max(a, b)) (-128i8) (%x : [6]i8)", {{"k", 2}}),
              HasSubstr("split 2"));
  EXPECT_THAT(applied(reduce_split(), "reduce (\\a b. max(a, b)) 0u8 (%x : [6]u8)", {{"k", 2}}), HasSubstr("split 2"));
  EXPECT_THAT(applied(reduce_split(), "reduce (\\a b. min(a, b)) 255u8 (%x : [6]u8)", {{"k", 2}}),
              HasSubstr("split 2"));
  EXPECT_THAT(applied(reduce_split(), "reduce (\\a b. a + b + 1i32) 0i32 (%x : [6]i32)", {{"k", 2}}),
              HasSubstr("exactly-associative"));
  EXPECT_EQ(applied(to_fma(), "%a : i32 + %b : i32 * %a").substr(0, 3), "no:");
}

TEST(ApplyRule, ChecksSizeConditions) {
  RuleRow tile{"tile",           "k", "x: [n]T, f: T -> U", "map f x", "untile n (map (map f) (tile k x))", "k <= n",
               RuleClass::exact, ""};
  EXPECT_EQ(applied(tile, "map exp (%x : [7]f32)", {{"k", 3}}),
            printed("untile 7 (map (map exp) (tile 3 (%x : [7]f32)))"));
  EXPECT_EQ(applied(tile, "map exp (%x : [7]f32)", {{"k", 9}}),
            "no: the condition k <= n is not known to hold with k = 9, n = 7");
  EXPECT_EQ(applied(tile, "map exp (%x : [N]f32)", {{"k", 9}}),
            "no: the condition k <= n is not known to hold with k = 9, n = N");
}

TEST(ApplyRule, NeverTakesAFunctionForAValue) {
  RuleRow copy{"copy", "", "x: T", "x", "id x", "", RuleClass::exact, ""};
  RuleTable table = table_of({copy});
  Expr root = term("map exp (%x : [3]f32)");
  EXPECT_FALSE(apply_rule(*table.rules()[0], at(root, {0})).has_value());
  EXPECT_TRUE(apply_rule(*table.rules()[0], at(root, {0, 0})).has_value());
}

TEST(WhyNot, NamesTheFirstDifference) {
  EXPECT_EQ(applied(map_fusion(), "map exp (%x : [3]f32)"), "no: expected map, found parameter at 1");
  EXPECT_EQ(applied(map_fusion(), "join (%x : [3][2]f32)"), "no: expected map, found join");
  EXPECT_EQ(applied(to_fma(), "%a : f32 + (%b : f32 + %a)"), "no: expected multiply, found add at 1");
}

TEST(RuleTable, SaysAllThatIsWrong) {
  auto table = RuleTable::load(std::vector<RuleRow>{
      {"one", "", "x: [n]T", "split k x", "x", "", RuleClass::exact, ""},
      {"two", "", "x: [n]T", "x", "y", "", RuleClass::exact, ""},
      {"three", "", "x: T", "x", "id x", "", RuleClass::exact, ""},
      {"three", "", "x: T", "x", "id x", "", RuleClass::exact, ""},
  });
  ASSERT_FALSE(table.ok());
  std::vector<std::string> names;
  for (const Diagnostic& d : table.errors()) names.push_back(d.where.substr(0, d.where.find(',')));
  EXPECT_THAT(names, testing::ElementsAre("one", "two", "three"));
}

class Rewriting : public testing::Test {
 protected:
  RuleTable table =
      table_of({map_fusion(),
                split_join(),
                reduce_split(),
                to_fma(),
                {"unfma", "", "x: T, y: T, w: T", "fma(x, y, w)", "w + x * y", "float T", RuleClass::rounding, ""}});
};

TEST_F(Rewriting, GoesOutermostFirstAndLeftToRight) {
  Rewriter r(table, term("zip(join (map (map exp) (%y : [2][6]f32)), map exp (map exp (map exp (%x : [12]f32))))"));
  EXPECT_EQ(r.apply_first("split-join", {{"k", 3}}), (Path{0, 0, 0, 0}));  // 3 does not divide the outer 2
  EXPECT_EQ(r.apply_first("map-fusion"), Path{1});
  EXPECT_EQ(r.apply_first("split-join", {{"k", 4}}, {1}), Path{1});
  EXPECT_EQ(r.apply_first("map-fusion", {}, {0}), std::nullopt);
  EXPECT_EQ(r.derivation().steps.size(), 3u);
}

TEST_F(Rewriting, AppliesEverywhereUntilNothingIsLeft) {
  Rewriter r(table, term("map (\\v. v + v * v) (map exp (map sqrt (map (\\v. v * 2f32) (%x : [4]f32))))"));
  EXPECT_EQ(r.apply_everywhere({"map-fusion", "to-fma"}), 4);
  EXPECT_EQ(r.term(),
            term("map (\\v. fma(exp (sqrt (v * 2f32)), exp (sqrt (v * 2f32)), exp (sqrt (v * 2f32)))) (%x : [4]f32)"));
  EXPECT_EQ(r.apply_everywhere({"map-fusion", "to-fma"}), 0);
}

TEST_F(Rewriting, StopsAtTheLimit) {
  Rewriter r(table, term("%a : f32 + %a * %a"));
  EXPECT_EQ(r.apply_everywhere({"to-fma", "unfma"}, {}, 7), 7);
}

TEST_F(Rewriting, WalksSharedTermsOnce) {
  Expr e = parameter("x", array_type(4, scalar_type(Scalar::f32)));
  for (int i = 0; i < 60; ++i) e = map([](Expr p) { return operator_add(get(0, p), get(1, p)); }, zip({e, e}));
  Rewriter r(table, e);
  EXPECT_EQ(r.apply_first("map-fusion"), std::nullopt);  // 2^60 places
}

TEST_F(Rewriting, RefusalChangesNothing) {
  Expr start = term("map exp (%x : [12]f32)");
  Rewriter r(table, start);
  EXPECT_FALSE(r.apply("split-join", {}, {{"k", 5}}));
  EXPECT_FALSE(r.apply("split-join", {7, 7}, {{"k", 4}}));
  EXPECT_EQ(r.term(), start);
  EXPECT_TRUE(r.derivation().steps.empty());
}

TEST_F(Rewriting, DerivationsSurviveTheirText) {
  Rewriter r(table, term("map (\\v. v + v * v) (map exp (%x : [12*N]f32))"));
  ASSERT_TRUE(r.apply("map-fusion", {}));
  ASSERT_TRUE(r.apply("to-fma", {0, 0}));
  ASSERT_TRUE(r.apply("split-join", {}, {{"k", Nat::name("N") * 4}}));
  std::string text = print_steps(r.derivation().steps);
  EXPECT_EQ(text, "map-fusion at root\nto-fma at 0.0 rounding\nsplit-join(k = 4*N) at root\n");
  auto steps = parse_steps(text);
  ASSERT_TRUE(steps.ok()) << steps.errors()[0].text();
  EXPECT_EQ(print_steps(*steps), text);
  auto terms = replay(table, {r.derivation().start, *steps});
  ASSERT_TRUE(terms.ok()) << terms.errors()[0].text();
  EXPECT_EQ(terms->size(), 4u);
  EXPECT_EQ(terms->front(), r.derivation().start);
  EXPECT_EQ(terms->back(), r.term());
  auto prefix = parse_steps(text.substr(0, text.find('\n')));
  ASSERT_TRUE(prefix.ok());
  EXPECT_EQ(replay(table, {r.derivation().start, *prefix})->back(), (*terms)[1]);
}

TEST_F(Rewriting, ReplaySaysWhichStepFails) {
  Expr start = term("map exp (map exp (%x : [12]f32))");
  auto failure = [&](const std::string& text) {
    auto steps = parse_steps(text);
    if (!steps.ok()) return steps.errors()[0].text();
    auto terms = replay(table, {start, *steps});
    return terms.ok() ? "" : terms.errors()[0].text();
  };
  EXPECT_EQ(failure("map-fusion at root"), "");
  EXPECT_THAT(failure("map-fusion at root\nmap-fusion at root"),
              HasSubstr("step 2, map-fusion at root: does not apply: expected map"));
  EXPECT_THAT(failure("map-fusio at root"), HasSubstr("unknown rule map-fusio (did you mean map-fusion?)"));
  EXPECT_THAT(failure("map-fusion at 0.9"), HasSubstr("no such place"));
  EXPECT_THAT(failure("map-fusion at root rounding"), HasSubstr("the rule is exact, the step says rounding"));
  EXPECT_THAT(failure("split-join(k = 99999999999) at root"), HasSubstr("is not a size"));
  EXPECT_THAT(failure("split-join(k = 5) at root"), HasSubstr("does not apply"));
}

TEST(ParseSteps, RefusesWhatIsNoStep) {
  for (const char* text :
       {"map-fusion", "map-fusion at", "map-fusion at 0.x", "map-fusion(k = ) at root", "map-fusion(k) at root",
        "(k = 1) at root", "map-fusion(k = 1 at root", "map-fusion(k = 1, k = 2) at root", "map-fusion at root magic",
        " at root", "map-fusion at -1", "map-fusion(k = 1)) at root"}) {
    EXPECT_FALSE(parse_steps(text).ok()) << text;
  }
  EXPECT_TRUE(parse_steps("\n\n")->empty());
}

}  // namespace hoist::rewrite_test
