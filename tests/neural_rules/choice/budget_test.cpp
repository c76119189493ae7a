// Tests the text of budgets, and the exact number of samples at which they are met.
#include "neural_rules/choice/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hoist::budget_test {

using testing::HasSubstr;

Budget budget(const std::string& text) {
  const Result<Budget> found = parse_budget(text);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.errors()[0].text());
  return found.ok() ? *found : Budget{};
}

std::string error(const std::string& text) {
  const Result<Budget> found = parse_budget(text);
  return found.ok() ? "accepted as " + found->text() : found.errors()[0].text();
}

TEST(Budget, IsReadAndPrintedBack) {
  EXPECT_EQ(budget("top1=0.5%"), (Budget{BudgetMeasure::top1, 0.5, false, ""}));
  EXPECT_EQ(budget(" sqnr = 30 dB "), (Budget{BudgetMeasure::sqnr, 30, false, ""}));
  EXPECT_EQ(budget("agreement=99%"), (Budget{BudgetMeasure::agreement, 99, false, ""}));
  EXPECT_EQ(budget("metric=./score.py --fast=1"), (Budget{BudgetMeasure::metric, 1, false, "./score.py --fast=1"}));
  EXPECT_EQ(budget("metric=-2.5%:./score a:b"), (Budget{BudgetMeasure::metric, 2.5, false, "./score a:b"}));
  EXPECT_EQ(budget("metric=+2%:perplexity"), (Budget{BudgetMeasure::metric, 2, true, "perplexity"}));
  EXPECT_EQ(budget("metric=C:/score"), (Budget{BudgetMeasure::metric, 1, false, "C:/score"}));
  for (const char* text : {"top1=0.5%", "top1=0%", "sqnr=30dB", "sqnr=22.75dB", "agreement=99.9%", "metric=-1%:./score",
                           "metric=+0.1%:a b:c", "top1=1e-05%"}) {
    EXPECT_EQ(budget(text).text(), text);
    EXPECT_EQ(budget(budget(text).text()), budget(text));
  }
}

TEST(Budget, NonsenseIsSaidToBe) {
  EXPECT_THAT(error("sqnr=30"), HasSubstr("did you mean sqnr=30dB?"));
  EXPECT_THAT(error("top1=0.5"), HasSubstr("did you mean top1=0.5%?"));
  EXPECT_THAT(error("top1=30dB"), HasSubstr("in %"));
  EXPECT_THAT(error("sqnr=30%"), HasSubstr("in dB"));
  EXPECT_THAT(error("sqnr=30db"), HasSubstr("in dB"));
  EXPECT_THAT(error("top1=-1%"), HasSubstr("from 0 to 100"));
  EXPECT_THAT(error("top1=101%"), HasSubstr("not 101"));
  EXPECT_THAT(error("agreement=100.1%"), HasSubstr("from 0 to 100"));
  EXPECT_THAT(error("sqnr=-3dB"), HasSubstr("from 0 to 200"));
  EXPECT_THAT(error("sqnr=0dB"), HasSubstr("as much error"));
  EXPECT_THAT(error("sqnr=500dB"), HasSubstr("from 0 to 200"));
  EXPECT_THAT(error("top1=nan%"), HasSubstr("not a number"));
  EXPECT_THAT(error("top1=inf%"), HasSubstr("not a number"));
  EXPECT_THAT(error("top1=half%"), HasSubstr("not a number"));
  EXPECT_THAT(error("top1=1e999%"), HasSubstr("not a number"));
  EXPECT_THAT(error("top1=1%%"), HasSubstr("unit %%"));
  EXPECT_THAT(error("top1"), HasSubstr("needs =LIMIT"));
  EXPECT_THAT(error("top1="), HasSubstr("needs a number"));
  EXPECT_THAT(error("top-1=1%"), HasSubstr("did you mean top1?"));
  EXPECT_THAT(error("agrement=99%"), HasSubstr("did you mean agreement?"));
  EXPECT_THAT(error("loss=1%"), HasSubstr("metric=CMD"));
  EXPECT_THAT(error(""), HasSubstr("no measure"));
  EXPECT_THAT(error("=1%"), HasSubstr("no measure"));
  EXPECT_THAT(error("metric="), HasSubstr("command"));
  EXPECT_THAT(error("metric=2%:"), HasSubstr("command"));
  EXPECT_THAT(error("metric=2:./score"), HasSubstr("lacks its unit"));
  EXPECT_THAT(error("metric=200%:./score"), HasSubstr("from 0 to 100"));
}

TEST(Budget, ObjectiveIsTimeOrSize) {
  EXPECT_EQ(*parse_objective("time"), Objective::time);
  EXPECT_EQ(*parse_objective(name_of(Objective::size)), Objective::size);
  EXPECT_THAT(parse_objective("tiem").errors()[0].text(), HasSubstr("did you mean time?"));
  EXPECT_FALSE(parse_objective("").ok());
}

BudgetEvidence lost(int64_t samples, int64_t lost, int64_t gained) {
  return {.samples = samples, .labelled = true, .lost = lost, .gained = gained};
}

TEST(Budget, TopOneIsCountedInSamples) {
  const Budget half = budget("top1=0.5%");
  EXPECT_EQ(samples_allowed(half, 1000), 5);
  EXPECT_TRUE(met(half, lost(1000, 5, 0)));
  EXPECT_FALSE(met(half, lost(1000, 6, 0)));
  EXPECT_TRUE(met(half, lost(1000, 30, 25)));
  EXPECT_FALSE(met(half, lost(1000, 30, 24)));
  EXPECT_TRUE(met(half, lost(1000, 0, 40)));
  EXPECT_FALSE(met(half, lost(100, 1, 0)));
  EXPECT_TRUE(met(half, lost(100, 0, 0)));
  EXPECT_FALSE(met(half, lost(0, 0, 0)));
  EXPECT_FALSE(met(half, {.samples = 10}));  // no labels
  EXPECT_TRUE(met(budget("top1=0%"), lost(1000, 3, 3)));
  EXPECT_FALSE(met(budget("top1=0%"), lost(1000, 4, 3)));
}

TEST(Budget, WholeSharesAreNotLostToRounding) {
  for (int64_t n : {10, 100, 1000, 10000, 1000000}) {
    for (int64_t k = 0; k <= 1000; ++k) {
      // k thousandths of n samples, if that is an integer.
      if (k * n % 1000 != 0) continue;
      const std::string percent = std::to_string(k / 10) + "." + std::to_string(k % 10);
      ASSERT_EQ(samples_allowed(budget("top1=" + percent + "%"), n), k * n / 1000) << percent << " of " << n;
      ASSERT_EQ(samples_allowed(budget("agreement=" + percent + "%"), n), n - k * n / 1000) << percent << " of " << n;
    }
  }
  EXPECT_EQ(samples_allowed(budget("top1=0.19%"), 1000), 1);
}

TEST(Budget, OtherMeasures) {
  EXPECT_TRUE(met(budget("agreement=99%"), {.samples = 300, .flips = 3}));
  EXPECT_FALSE(met(budget("agreement=99%"), {.samples = 300, .flips = 4}));
  EXPECT_TRUE(met(budget("agreement=100%"), {.samples = 300, .flips = 0}));
  EXPECT_FALSE(met(budget("agreement=100%"), {.samples = 300, .flips = 1}));
  EXPECT_TRUE(met(budget("sqnr=30dB"), {.samples = 1, .sqnr = 30}));
  EXPECT_FALSE(met(budget("sqnr=30dB"), {.samples = 1, .sqnr = 29.999}));
  EXPECT_FALSE(met(budget("sqnr=30dB"), {.samples = 1, .sqnr = NAN}));
  EXPECT_TRUE(met(budget("sqnr=30dB"), {.samples = 1, .sqnr = std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(met(budget("sqnr=30dB"), {.samples = 0, .sqnr = 40}));
  const auto metric = [](const std::string& text, double reference, double found) {
    return met(budget(text), {.samples = 9, .reference_metric = reference, .metric = found});
  };
  EXPECT_TRUE(metric("metric=cmd", 200, 198));
  EXPECT_FALSE(metric("metric=cmd", 200, 197.9));
  EXPECT_TRUE(metric("metric=cmd", 200, 300));
  EXPECT_TRUE(metric("metric=+2%:cmd", 10, 10.2));
  EXPECT_FALSE(metric("metric=+2%:cmd", 10, 10.21));
  EXPECT_TRUE(metric("metric=+2%:cmd", 10, 3));
  EXPECT_TRUE(metric("metric=-1%:cmd", -200, -202));
  EXPECT_FALSE(metric("metric=-1%:cmd", -200, -203));
  EXPECT_TRUE(metric("metric=cmd", 0, 0));
  EXPECT_FALSE(metric("metric=cmd", 0, -1e-9));
  EXPECT_FALSE(metric("metric=cmd", 1, NAN));
  EXPECT_FALSE(metric("metric=cmd", NAN, 1));
}

TEST(Budget, VerdictNamesTheCounts) {
  EXPECT_EQ(verdict(budget("top1=0.5%"), lost(1000, 7, 4)), "lost 3 of 1000 samples, allowed 5 (lost 7, gained 4)");
  EXPECT_EQ(verdict(budget("top1=0.5%"), lost(1000, 4, 7)), "gained 3 of 1000 samples (lost 4, gained 7)");
  EXPECT_EQ(verdict(budget("agreement=99%"), {.samples = 100, .flips = 2}),
            "other class at 2 of 100 samples, allowed 1");
  EXPECT_EQ(verdict(budget("sqnr=30dB"), {.samples = 1, .sqnr = 31.256}), "31.26 dB, at least 30 dB asked");
  EXPECT_EQ(verdict(budget("sqnr=30dB"), {.samples = 1, .sqnr = INFINITY}), "no error, at least 30 dB asked");
  EXPECT_THAT(verdict(budget("metric=c"), {.samples = 1, .reference_metric = 4, .metric = 3}), HasSubstr("25 % worse"));
  EXPECT_THAT(verdict(budget("top1=1%"), {.samples = 1}), HasSubstr("no labels"));
  EXPECT_THAT(verdict(budget("top1=1%"), {}), HasSubstr("no samples"));
}

TEST(Budget, SaysWhenSamplesAreTooFew) {
  EXPECT_EQ(resolution_note(budget("top1=0.5%"), 200), "");
  EXPECT_THAT(resolution_note(budget("top1=0.5%"), 199), HasSubstr("one of 199 samples is 0.503 points"));
  EXPECT_THAT(resolution_note(budget("agreement=99.9%"), 300), HasSubstr("allows no change"));
  EXPECT_THAT(resolution_note(budget("agreement=99%"), 0), HasSubstr("no samples"));
  EXPECT_EQ(resolution_note(budget("sqnr=30dB"), 1), "");
}

}  // namespace hoist::budget_test
