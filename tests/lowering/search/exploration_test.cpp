// Tests random rewrites of terms: their number, equal values, and reproducibility by their index.
#include "lowering/search/exploration.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/base/seeded.h"
#include "ir/evaluate/evaluate.h"
#include "ir/rules/rule_check.h"
#include "ir/text/text.h"
#include "lowering/rules/rules.h"
#include "tests/support/print_steps.h"

namespace hoist::exploration_test {

// A matmul, a softmax's sum, windows of a row, and an elementwise map.
constexpr const char* terms[] = {
    "%x : [4][8]f32 |> map (\\a. %m : [8][6]f32 |> transpose |> map (\\b. zip(a, b) |> map (*) |> reduce (+) 0))",
    "%x : [6][8]f32 |> map (\\row. row |> map exp |> reduce (+) 0)",
    "%x : [4][10]f32 |> map (\\row. row |> slide 3 1 |> map (\\w. zip(w, %k : [3]f32) |> map (*) |> reduce (+) 0))",
    "%x : [8][12]f32 |> map (map (\\v. max(v, 0))) |> transpose",
};

Expr term_of(const char* text) {
  auto parsed = parse(text);
  HOIST_CHECK(parsed.ok(), parsed.errors()[0].text());
  return *parsed;
}

Bindings inputs_of(Expr term) {
  Bindings out;
  uint32_t stream = 0;
  for (Expr parameter : parameters_of(term))
    out.emplace(parameter->name,
                seeded_tensor(leaf_of(parameter->type)->scalar, shape_of(parameter->type), 3, stream++, -2, 2));
  return out;
}

TEST(Exploration, RewritesMeanWhatTheTermMeans) {
  for (const char* text : terms) {
    SCOPED_TRACE(text);
    const Expr term = term_of(text);
    const Bindings inputs = inputs_of(term);
    const auto expected = interpret(term, inputs);
    ASSERT_TRUE(expected.ok());
    for (const bool strict : {false, true}) {
      const std::vector<int64_t> values = explorations(term, 24, strict);
      EXPECT_GE(values.size(), 8u);
      std::set<Expr> met = {term};
      for (const int64_t value : values) {
        Rewriter rewriter(lowering_rules(), term);
        ASSERT_TRUE(explore(rewriter, value, strict));
        EXPECT_EQ(rewriter.term()->type, term->type);
        EXPECT_TRUE(met.insert(rewriter.term()).second) << print(rewriter.term());
        const auto found = interpret(rewriter.term(), inputs);
        ASSERT_TRUE(found.ok()) << print(rewriter.term());
        const auto wrong = rule_difference(*expected, *found, strict ? RuleClass::exact : RuleClass::rounding);
        EXPECT_FALSE(wrong.has_value()) << *wrong << "\n" << print_steps(rewriter.derivation().steps);
        // The derivation is read from the text of its steps, without the index.
        auto steps = parse_steps(print_steps(rewriter.derivation().steps));
        ASSERT_TRUE(steps.ok());
        auto replayed = replay(lowering_rules(), {term, *steps});
        ASSERT_TRUE(replayed.ok()) << replayed.errors()[0].text();
        EXPECT_EQ(replayed->back(), rewriter.term());
      }
    }
  }
}

TEST(Exploration, ARecordOfAnotherTermIsNone) {
  const Expr term = term_of(terms[0]), other = term_of(terms[1]);
  const std::vector<int64_t> values = explorations(term, 12, false);
  ASSERT_FALSE(values.empty());
  size_t taken = 0;
  for (const int64_t value : values) {
    Rewriter rewriter(lowering_rules(), other);
    taken += explore(rewriter, value, false) ? 1 : 0;
    Rewriter same(lowering_rules(), term);
    EXPECT_FALSE(explore(same, value + 1, false));
    EXPECT_EQ(same.term(), term);
  }
  EXPECT_EQ(taken, 0u);
  Rewriter rewriter(lowering_rules(), term);
  for (const int64_t value : {INT64_C(0), INT64_C(-5), INT64_C(7), INT64_MIN})
    EXPECT_FALSE(explore(rewriter, value, false));
}

TEST(Exploration, OpensNoLoopsForADevice) {
  for (const Rule* rule : exploration_rules(true)) EXPECT_EQ(row(*rule).rule_class, RuleClass::exact);
  EXPECT_GT(exploration_rules(false).size(), exploration_rules(true).size());
  for (const Rule* rule : exploration_rules(false))
    EXPECT_EQ(row(*rule).right.find("undefined"), std::string::npos) << row(*rule).name;
  const Expr mapped = term_of("%x : [8]f32 |> map group(0) (\\v. v + 1)");
  EXPECT_TRUE(explorations(mapped, 4, false).empty());
  for (const int64_t value : explorations(term_of(terms[0]), 24, false)) {
    Rewriter rewriter(lowering_rules(), term_of(terms[0]));
    ASSERT_TRUE(explore(rewriter, value, false));
    for (const char* word : {"group(", "local(", "unroll", "vec", "seq"})
      EXPECT_EQ(print(rewriter.term()).find(word), std::string::npos) << word;
  }
}

}  // namespace hoist::exploration_test
