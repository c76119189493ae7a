// Tests the user's preferences on layers and rules: the remaining candidates, and errors.
#include "neural_rules/choice/preferences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hoist::preferences_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<NeuralRule>& rules() {
  static const std::vector<NeuralRule> table = [] {
    std::vector<NeuralRule> out;
    for (const auto& [name, kind] : {std::pair{"w8", SiteKind::product},
                                     {"w8a8", SiteKind::product},
                                     {"w4", SiteKind::product},
                                     {"f16", SiteKind::value},
                                     {"u8", SiteKind::value},
                                     {"tanh-rational", SiteKind::function}}) {
      NeuralRule& rule = out.emplace_back();
      rule.name = name;
      rule.kind = kind;
    }
    return out;
  }();
  return table;
}

// conv1 is a contraction and a value, "last layer" and * are contractions (w4 cannot be used at *), act a function.
class PreferencesTest : public testing::Test {
 protected:
  PreferencesTest() {
    add(SiteKind::product, "conv1", {"w8", "w8a8", "w4"});
    add(SiteKind::value, "conv1", {"f16", "u8"});
    add(SiteKind::product, "last layer", {"w8", "w8a8", "w4"});
    add(SiteKind::function, "act", {"tanh-rational"});
    add(SiteKind::product, "*", {"w8", "w8a8"});
    for (size_t i = 0; i < sites_.size(); ++i) candidates_[i].site = &sites_[i];
  }
  void add(SiteKind kind, const std::string& layer, std::vector<std::string> rules) {
    sites_.push_back({kind, layer, layer, "", ""});
    candidates_.push_back({nullptr, std::move(rules)});
  }
  std::vector<AllowedRules> applied(const std::string& text) {
    const Result<Preferences> parsed = parse_preferences(text, "wishes");
    EXPECT_TRUE(parsed.ok());
    const Result<std::vector<AllowedRules>> found = apply_preferences(*parsed, candidates_, rules());
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.errors()[0].text());
    return found.ok() ? *found : std::vector<AllowedRules>(candidates_.size());
  }
  std::vector<std::string> problems(const std::string& text) {
    std::vector<std::string> out;
    const Result<Preferences> parsed = parse_preferences(text, "wishes");
    const auto take = [&](const Diagnostics& errors) {
      for (const Diagnostic& error : errors) out.push_back(error.text());
    };
    if (!parsed) {
      take(parsed.errors());
      return out;
    }
    const Result<std::vector<AllowedRules>> found = apply_preferences(*parsed, candidates_, rules());
    if (!found) take(found.errors());
    return out;
  }

  std::vector<Site> sites_;
  std::vector<SiteCandidates> candidates_;
};

TEST_F(PreferencesTest, NothingIsWished) {
  const std::vector<AllowedRules> found = applied("\n  # nothing\n\t\r\n");
  ASSERT_EQ(found.size(), 5u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i].unchanged);
    EXPECT_EQ(found[i].rules, candidates_[i].rules);
  }
}

TEST_F(PreferencesTest, PinLeavesOneRuleAtItsKindOfSite) {
  const std::vector<AllowedRules> found = applied("pin conv1 w8a8 # fast\npin \"last layer\" w4");
  EXPECT_FALSE(found[0].unchanged);
  EXPECT_THAT(found[0].rules, ElementsAre("w8a8"));
  EXPECT_TRUE(found[1].unchanged);
  EXPECT_THAT(found[1].rules, ElementsAre("f16", "u8"));
  EXPECT_THAT(found[2].rules, ElementsAre("w4"));
}

TEST_F(PreferencesTest, OneLayerCanHaveARuleOfEachKind) {
  const std::vector<AllowedRules> found = applied("pin conv1 w8a8\npin conv1 u8");
  EXPECT_THAT(found[0].rules, ElementsAre("w8a8"));
  EXPECT_THAT(found[1].rules, ElementsAre("u8"));
}

TEST_F(PreferencesTest, ForbidTakesAway) {
  const std::vector<AllowedRules> found = applied("forbid conv1 w8a8\nforbid \"last layer\" *\nforbid * f16");
  EXPECT_TRUE(found[0].unchanged);
  EXPECT_THAT(found[0].rules, ElementsAre("w8", "w4"));
  EXPECT_THAT(found[1].rules, ElementsAre("u8"));
  EXPECT_TRUE(found[2].unchanged);
  EXPECT_THAT(found[2].rules, IsEmpty());
}

TEST_F(PreferencesTest, PreferLeavesTheModelAsItIsToo) {
  const std::vector<AllowedRules> found = applied("prefer * w8a8\nprefer * w8");
  EXPECT_TRUE(found[0].unchanged);
  EXPECT_THAT(found[0].rules, ElementsAre("w8", "w8a8"));
  EXPECT_THAT(found[1].rules, ElementsAre("f16", "u8"));
}

TEST_F(PreferencesTest, ALayersOwnStatementOverridesTheGeneralOne) {
  EXPECT_THAT(applied("forbid * *\npin conv1 w4")[0].rules, ElementsAre("w4"));
  EXPECT_THAT(applied("forbid * *\npin conv1 w4")[2].rules, IsEmpty());
  EXPECT_THAT(applied("pin * w8a8\nforbid conv1 w8a8")[0].rules, ElementsAre("w8", "w4"));
  EXPECT_THAT(applied("pin * w8a8\npin conv1 w4")[0].rules, ElementsAre("w4"));
  EXPECT_THAT(applied("pin * w8a8\nprefer conv1 w4")[0].rules, ElementsAre("w4"));
  EXPECT_TRUE(applied("pin * w8a8\nprefer conv1 w4")[0].unchanged);
}

TEST_F(PreferencesTest, APinForAllLayersConcernsThoseThatCanHaveIt) {
  const std::vector<AllowedRules> found = applied("pin * w4");
  EXPECT_THAT(found[0].rules, ElementsAre("w4"));
  EXPECT_THAT(found[4].rules, ElementsAre("w8", "w8a8"));
}

TEST_F(PreferencesTest, AQuotedStarIsALayer) {
  const std::vector<AllowedRules> found = applied("pin \"*\" w8");
  EXPECT_THAT(found[4].rules, ElementsAre("w8"));
  EXPECT_TRUE(found[0].unchanged);
}

TEST_F(PreferencesTest, QuotesHoldQuotesAndHashes) {
  const Result<Preferences> found = parse_preferences(R"(forbid "a \"b\" \\ # c" *)", "wishes");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->statements[0].layer, R"(a "b" \ # c)");
}

TEST_F(PreferencesTest, WhatCannotBeReadIsSaidAllAtOnce) {
  EXPECT_THAT(
      problems("pin conv1 w8\nfrobid conv1 w8\npin conv1\npin \"conv1 w8\npin conv1 *\npin a b c # d"),
      ElementsAre(HasSubstr("wishes:2: unknown statement frobid (did you mean forbid?)"),
                  HasSubstr("wishes:3: expected pin LAYER RULE, found 2 words"),
                  HasSubstr("wishes:4: a quote is not closed"), HasSubstr("wishes:5: pin needs the name of one rule"),
                  HasSubstr("wishes:6: expected pin LAYER RULE, found 4 words")));
}

TEST_F(PreferencesTest, WhatIsNotThereIsSaidAllAtOnce) {
  EXPECT_THAT(problems("pin conv2 w8\n\nforbid * w8a\npin nothing-like-it nor-this\npin act w8\npin * w8"),
              ElementsAre(HasSubstr("wishes:1: no layer conv2 takes a rule (did you mean conv1?)"),
                          HasSubstr("wishes:3: unknown rule w8a (did you mean w8?)"),
                          HasSubstr("wishes:4: unknown rule nor-this"),
                          HasSubstr("wishes:4: no layer nothing-like-it takes a rule"),
                          HasSubstr("wishes:5: rule w8 cannot be used at layer act (these can: tanh-rational)")));
}

TEST_F(PreferencesTest, ContradictionsAreSaidAllAtOnce) {
  EXPECT_THAT(problems("pin conv1 w8\npin conv1 w8a8\nforbid conv1 w8\nprefer conv1 w4\npin conv1 w8"),
              ElementsAre(HasSubstr("wishes:2: pin w8a8 contradicts pin w8 of line 1"),
                          HasSubstr("wishes:3: forbid w8 contradicts pin w8 of line 1"),
                          HasSubstr("wishes:4: prefer w4 contradicts pin w8 of line 1"),
                          HasSubstr("wishes:4: prefer w4 contradicts pin w8a8 of line 2"),
                          HasSubstr("wishes:5: pin w8 contradicts pin w8a8 of line 2"),
                          HasSubstr("wishes:5: pin w8 contradicts forbid w8 of line 3"),
                          HasSubstr("wishes:5: pin w8 contradicts prefer w4 of line 4")));
  EXPECT_THAT(problems("forbid conv1 *\nprefer conv1 f16"),
              ElementsAre(HasSubstr("prefer f16 contradicts forbid * of line 1")));
  EXPECT_THAT(problems("pin * w8\nforbid * w8"), ElementsAre(HasSubstr("contradicts pin w8 of line 1")));
  EXPECT_THAT(problems("pin conv1 w8\npin conv1 w8\nforbid conv1 w4"), IsEmpty());
  EXPECT_THAT(problems("forbid conv1 w4\nforbid conv1 *"), IsEmpty());
}

}  // namespace hoist::preferences_test
