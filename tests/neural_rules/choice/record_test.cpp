// Tests if a text is a record, and if it belongs to the current compilation.
#include "neural_rules/choice/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hoist::record_test {

using testing::ElementsAre;
using testing::HasSubstr;

Candidate candidate(const std::string& rule) {
  Candidate out;
  out.rule = rule;
  return out;
}

Record sound() {
  Record out;
  out.origin = {.model_hash = "m1", .calibration_hash = "c1", .profile_hash = "p1", .objective = "time"};
  ValueStatistics& statistics = out.statistics["relu1"];
  statistics.count = 4;
  statistics.low = -1;
  statistics.high = 2;
  statistics.histogram = {1, 3};
  statistics.channels = {{-1, 0, 0}, {0, 2, 1}};
  out.sites = {{"product conv1", 1, 2, 3, {candidate("w8"), candidate("w8a8")}}, {"value relu1", 1, 2, 3, {}}};
  out.times = {{"", "", {}, {1, 2, 0}}, {"w8a8", "product", {{"product conv1", "w8a8"}}, {1, 2, 0}}};
  RecordedPoint reference;
  reference.point.samples = 10;
  reference.digest = {0, {3, 1}, {0.5}};
  out.points = {reference};
  out.choices = {{"top1=0.5%", "time", "", {{"product conv1", "w8a8"}}, "{}"}};
  return out;
}

std::vector<std::string> problems(const Record& record) {
  std::vector<std::string> out;
  const Result<Nothing> found = check_record(record, "file");
  if (!found) {
    for (const Diagnostic& error : found.errors()) out.push_back(error.text());
  }
  return out;
}

TEST(Record, ASoundOneIsAccepted) { EXPECT_TRUE(check_record(sound(), "file").ok()); }

TEST(Record, NamesThatAreNotThere) {
  Record record = sound();
  record.choices[0].chosen["product conv1"] = "w4";
  record.choices[0].chosen["product conv2"] = "w8";
  record.times[1].assignment["value relu9"] = "u8";
  record.points.push_back(record.points[0]);
  record.points[1].point.assignment["value relu1"] = "u8";
  EXPECT_THAT(problems(record), ElementsAre(HasSubstr("file: a model that was timed names site value relu9"),
                                            HasSubstr("a point names rule u8"), HasSubstr("a choice names rule w4"),
                                            HasSubstr("a choice names site product conv2")));
}

TEST(Record, NumbersThatDoNotFit) {
  const auto with = [](const auto& change) {
    Record record = sound();
    change(record);
    return problems(record);
  };
  EXPECT_THAT(with([](Record& of) { of.times[0].site_seconds.pop_back(); }),
              ElementsAre(HasSubstr("the unchanged model has times of 2 sites, expected 3")));
  EXPECT_THAT(with([](Record& of) { of.times[1].site_seconds[0] = NAN; }), ElementsAre(HasSubstr("w8a8 has times")));
  EXPECT_THAT(with([](Record& of) { of.points[0].point.lost = 11; }),
              ElementsAre(HasSubstr("counts 11 of 10 samples")));
  EXPECT_THAT(with([](Record& of) { of.times.erase(of.times.begin()); }),
              ElementsAre(HasSubstr("the first times are of w8a8, expected the unchanged model")));
  EXPECT_THAT(with([](Record& of) { of.points[0].point.samples = std::numeric_limits<int64_t>::max(); }),
              ElementsAre(HasSubstr("point  has 9223372036854775807 samples")));
  EXPECT_THAT(with([](Record& of) { of.points[0].point.flips = -1; }), ElementsAre(HasSubstr("counts -1 of 10")));
  EXPECT_THAT(with([](Record& of) { of.points[0].digest.main = 1; }), ElementsAre(HasSubstr("from output 1 of 1")));
  EXPECT_THAT(with([](Record& of) { of.points[0].point.assignment["product conv1"] = "w8"; }),
              ElementsAre(HasSubstr("expected the unchanged model")));
}

TEST(Record, NamesThatAreThereTwice) {
  Record record = sound();
  record.sites[0].candidates[1].rule = "w8";
  record.sites[1].key = record.sites[0].key;
  record.times.clear();
  record.choices.clear();
  EXPECT_THAT(problems(record), ElementsAre(HasSubstr("candidate w8 twice"), HasSubstr("conv1 is there twice")));
}

TEST(Record, StatisticsThatDoNotFit) {
  const auto with = [](const auto& change) {
    Record record = sound();
    change(record.statistics["relu1"]);
    return problems(record);
  };
  EXPECT_THAT(with([](auto& of) { of.high = -3; }), ElementsAre(HasSubstr("4 elements from -1 to -3")));
  EXPECT_THAT(with([](auto& of) { of.low = NAN; }), ElementsAre(HasSubstr("from nan to 2")));
  EXPECT_THAT(with([](auto& of) { of.channels[0].low = -2; }), ElementsAre(HasSubstr("channel outside")));
  EXPECT_THAT(with([](auto& of) { of.histogram = {1, 4}; }), ElementsAre(HasSubstr("counts more than its")));
  EXPECT_THAT(with([](auto& of) {
                of.histogram = {~uint64_t{0}, 4};
              }),
              ElementsAre(HasSubstr("more than its 4 elements")));
  EXPECT_THAT(with([](auto& of) { of.count = -1; }), testing::Contains(HasSubstr("-1 elements")));
  EXPECT_THAT(with([](auto& of) { of.zeros = 5; }), ElementsAre(HasSubstr("5 zeros among 4 elements")));
  EXPECT_THAT(with([](auto& of) { of.zeros = -1; }), ElementsAre(HasSubstr("-1 zeros")));
  EXPECT_THAT(with([](auto& of) { of.channel_axis = 2; }), ElementsAre(HasSubstr("channels in dimension 2")));
}

TEST(Record, WeightsThatWereRoundedWithDataAreThere) {
  Record record = sound();
  record.sites[0].candidates[1].rule = "w8a8-adaptive";
  record.times.clear();
  record.choices[0].chosen["product conv1"] = "w8a8-adaptive";
  const std::string missing = "names rule w8a8-adaptive at site product conv1, and the rounded weights are missing";
  EXPECT_THAT(problems(record), ElementsAre(HasSubstr(missing)));
  auto& rounded = record.statistics["relu1"].rounded;
  rounded["conv2"]["w8a8-adaptive"] = std::make_shared<const Tensor>(Scalar::i8, std::vector<int64_t>{4, 4});
  EXPECT_THAT(problems(record), ElementsAre(HasSubstr(missing)));
  rounded["conv1"]["w4-g32-adaptive"] = rounded["conv2"]["w8a8-adaptive"];
  EXPECT_THAT(problems(record), ElementsAre(HasSubstr(missing)));
  rounded["conv1"]["w8a8-adaptive"] = rounded["conv2"]["w8a8-adaptive"];
  EXPECT_THAT(problems(record), ElementsAre());
  record.statistics["relu2"].rounded["conv1"] = rounded["conv1"];
  EXPECT_THAT(problems(record), ElementsAre(HasSubstr("of conv1 under w4-g32-adaptive appear twice"),
                                            HasSubstr("of conv1 under w8a8-adaptive appear twice")));
}

TEST(Record, RetrainedPointsOfChoicesAreThere) {
  Record record = sound();
  record.choices[0].retrained = true;
  record.points.push_back(record.points[0]);
  record.points[1].point.assignment = record.choices[0].chosen;
  EXPECT_THAT(problems(record), ElementsAre(HasSubstr("a choice takes a retrained point that the record lacks")));
  record.points[1].point.retraining = std::make_shared<const Retraining>();
  EXPECT_TRUE(check_record(record, "file").ok());
  EXPECT_EQ(chosen_point(record, record.choices[0]), &record.points[1]);
}

TEST(Record, ServesWhatItIsOf) {
  const Record record = sound();
  EXPECT_TRUE(check_origin(record, record.origin, "file").ok());
  EXPECT_TRUE(check_origin(record, {.model_hash = "m1"}, "file").ok());
  const Result<Nothing> other =
      check_origin(record, {.model_hash = "m2", .verification_hash = "v", .objective = "size"}, "file");
  ASSERT_FALSE(other.ok());
  ASSERT_EQ(other.errors().size(), 2u);  // times for another objective are ignored, and the rest is used
  EXPECT_THAT(other.errors()[0].text(), HasSubstr("file: is of another model, m1; this is m2"));
  EXPECT_THAT(other.errors()[1].text(), HasSubstr("is of no verification data; this is v"));
}

TEST(RecordedChoices, AreFoundByBudgetAndObjective) {
  Record record;
  const auto error = [&](const std::string& budget, const std::string& objective) {
    const auto found = find_choice(record, budget, objective, "file");
    return found.ok() ? "" : found.errors()[0].text();
  };
  EXPECT_THAT(error("", ""), testing::HasSubstr("holds measurements without a choice"));
  record.choices = {{"sqnr=30dB", "time", "", {}, "first"}};
  EXPECT_EQ(find_choice(record, "", "", "file")->certificate, "first");
  record.choices.push_back({"sqnr=30dB", "size", "", {}, "second"});
  EXPECT_THAT(error("", ""), testing::HasSubstr("2 matching choices: sqnr=30dB for time, sqnr=30dB for size"));
  EXPECT_THAT(error("sqnr=30dB", ""), testing::HasSubstr("--objective"));
  EXPECT_EQ(find_choice(record, "", "time", "file")->certificate, "first");
  EXPECT_EQ(find_choice(record, "sqnr=30dB", "size", "file")->certificate, "second");
  EXPECT_THAT(error("sqnr=20dB", "time"), testing::HasSubstr("no choice for sqnr=20dB for time"));
  record.choices.push_back({"sqnr=30dB", "size", "other preferences", {}, "third"});
  EXPECT_EQ(find_choice(record, "", "size", "file")->certificate, "third");
}

}  // namespace hoist::record_test
