// From data to a bundle under a budget, as users call it: the choice, its record, its certificate, and the page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"
#include "tools/files.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path models = fs::path(HOIST_SOURCE_DIR) / "models";
const std::string model = (models / "digits_fully_connected.onnx").string();
const std::string calibration = (models / "digits_fully_connected_calibration.npz").string();
const std::string test_data = (models / "digits_fully_connected_test.npz").string();

std::string content(const fs::path& path) {
  auto text = read_file(path);
  HOIST_CHECK(text.ok(), "cannot read " + path.string());
  return *text;
}

class BudgetCommand : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make();
    ASSERT_TRUE(made.ok());
    folder_.emplace(std::move(*made));
  }
  std::string in(const std::string& name) const { return (folder_->path() / name).string(); }

 private:
  std::optional<TemporaryFolder> folder_;
};

void expect_same_files(const std::string& one, const std::string& other) {
  const std::vector<std::string> files = files_below(one);
  ASSERT_EQ(files, files_below(other));
  for (const std::string& file : files) {
    if (fs::is_regular_file(fs::path(one) / file)) {
      EXPECT_EQ(content(fs::path(one) / file), content(fs::path(other) / file)) << file;
    }
  }
}

TEST_F(BudgetCommand, ARecordHasTheWeightsThatWereRoundedWithData) {
  std::ofstream(in("wishes")) << "prefer * w4-g32-adaptive\n";
  const std::vector<std::string> words = {"compile",         model,         "--budget", "agreement=90%", "--record",
                                          in("record.json"), "--objective", "size",     "--preferences", in("wishes")};
  std::vector<std::string> first = words, second = words;
  first.insert(first.end(), {"-o", in("first.hoist"), "--calibrate", calibration, "--verify-data", test_data});
  second.insert(second.end(), {"-o", in("second.hoist")});
  const Ran search = run_hoist(first);
  ASSERT_EQ(search.code, 0) << search.err;
  const auto manifest = nlohmann::json::parse(content(in("first.hoist/manifest.json")));
  EXPECT_THAT(manifest["certificate"]["rules"].dump(), HasSubstr("w4-g32-adaptive"));
  const Ran again = run_hoist(second);
  ASSERT_EQ(again.code, 0) << again.err;
  expect_same_files(in("first.hoist"), in("second.hoist"));
}

TEST_F(BudgetCommand, ARecordGivesTheSameBundleAndVerifyChecksTheCertificate) {
  const std::vector<std::string> words = {"compile",         model,         "--budget", "top1=0.5%", "--record",
                                          in("record.json"), "--objective", "size"};
  std::vector<std::string> first = words, second = words;
  first.insert(first.end(), {"-o", in("first.hoist"), "--calibrate", calibration, "--verify-data", test_data});
  second.insert(second.end(), {"-o", in("second.hoist")});
  const Ran search = run_hoist(first);
  ASSERT_EQ(search.code, 0) << search.err;
  EXPECT_THAT(search.out, HasSubstr("met"));
  const Ran again = run_hoist(second);
  ASSERT_EQ(again.code, 0) << again.err;
  expect_same_files(in("first.hoist"), in("second.hoist"));
  const auto manifest = nlohmann::json::parse(content(in("first.hoist/manifest.json")));
  EXPECT_EQ(manifest["certificate"]["budget"], "top1=0.5%");
  EXPECT_EQ(manifest["certificate"]["met"], true);
  EXPECT_FALSE(manifest["certificate"]["rules"].empty());

  const Ran verified = run_hoist({"verify", in("first.hoist"), "--data", test_data});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("passed certificate"));
  const Ran other = run_hoist({"verify", in("first.hoist"), "--data", calibration});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("made with other data"));

  const Ran mismatch = run_hoist({"compile", model, "-o", in("third.hoist"), "--budget", "top1=1%", "--record",
                                  in("record.json"), "--objective", "size"});
  EXPECT_EQ(mismatch.code, 3);
  EXPECT_THAT(mismatch.err, HasSubstr("record.json"));
  EXPECT_FALSE(fs::exists(in("third.hoist")));
}

TEST_F(BudgetCommand, WhatCannotBeMetIsSaidAndWrittenOnlyOnRequest) {
  std::ofstream(in("pins")) << "pin * w8\n";
  std::vector<std::string> words = {"compile",       model,       "-o",          in("bundle.hoist"),
                                    "--budget",      "sqnr=90dB", "--calibrate", calibration,
                                    "--preferences", in("pins"),  "--objective", "size"};
  const Ran refused = run_hoist(words);
  EXPECT_EQ(refused.code, 1) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("budget not met; best point is"));
  EXPECT_FALSE(fs::exists(in("bundle.hoist")));
  words.push_back("--best-effort");
  const Ran written = run_hoist(words);
  EXPECT_EQ(written.code, 1) << written.err;
  EXPECT_TRUE(fs::exists(in("bundle.hoist/plan.bin")));
}

TEST_F(BudgetCommand, TheReportIsOnePageAndItsNumbers) {
  const Ran ran = run_hoist({"report", model, "--calibrate", calibration, "--verify-data", test_data, "-o",
                             in("report.html"), "--json", in("report.json"), "--time", "20"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(content(in("report.html")), HasSubstr("</html>"));
  const auto study = nlohmann::json::parse(content(in("report.json")));
  EXPECT_GE(study["points"].size(), 2u);
  EXPECT_GE(study["sites"].size(), 3u);
}

}  // namespace
}  // namespace hoist
