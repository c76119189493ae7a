// From data to a bundle under a budget, as users call it: the choice, its record, its certificate, and the page.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/program.h"
#include "tools/base/file_lock.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist::budget_test {

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

class BudgetCommand : public InTemporaryFolder {
 protected:
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
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

nlohmann::json parsed(const std::string& path) { return nlohmann::json::parse(content(path)); }

// One command, one study, and a bundle for each budget.
TEST_F(BudgetCommand, SeveralBudgetsHaveABundleEach) {
  const Ran ran = run_hoist({"compile", model, "-o", in("digits.hoist"), "--objective", "size", "--calibrate",
                             calibration, "--verify-data", test_data, "--budget", "sqnr=30dB", "--budget", "sqnr=5dB",
                             "--no-check", "--json", in("answer.json")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto answers = parsed(in("answer.json"))["budgets"];
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0]["budget"]["text"], "sqnr=30dB");
  EXPECT_EQ(answers[1]["budget"]["met"], true);
  EXPECT_EQ(answers[1]["bundle"], in("digits-sqnr-5dB.hoist"));
  for (const char* name : {"digits-sqnr-30dB.hoist", "digits-sqnr-5dB.hoist"}) {
    const auto certificate = parsed(in(name) + "/manifest.json")["certificate"];
    EXPECT_EQ(certificate["met"], true) << name;
  }
  EXPECT_LE(answers[1]["weight_bytes"], answers[0]["weight_bytes"]);
  const Ran twice = run_hoist({"compile", model, "--budget", "sqnr=5dB", "--budget", "sqnr=5dB", "--calibrate",
                               calibration, "-o", in("twice.hoist")});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("has the same name as another bundle"));
}

// One study, several choices: each command below reuses the first one's measurements.
TEST_F(BudgetCommand, AnotherBudgetIsChosenFromTheSameRecord) {
  const std::string record = in("record.json");
  const std::vector<std::string> data = {"--calibrate", calibration, "--verify-data", test_data};
  const std::vector<std::string> compile = {"compile", model, "--objective", "size", "--record", record};
  const Ran first = run_hoist(with(with(compile, data), {"-o", in("first.hoist"), "--budget", "sqnr=30dB"}));
  ASSERT_EQ(first.code, 0) << first.err;
  const auto measured = parsed(record);
  EXPECT_EQ(measured["choices"].size(), 1u);
  EXPECT_TRUE(measured["complete"].get<bool>());

  // Without data, the choice is among the verified points.
  const Ran among = run_hoist(with(compile, {"-o", in("among.hoist"), "--budget", "sqnr=5dB"}));
  ASSERT_EQ(among.code, 0) << among.err;
  EXPECT_EQ(parsed(record)["points"].size(), measured["points"].size());
  // With data, further points are verified, and sites are not measured again.
  const Ran further = run_hoist(with(with(compile, data), {"-o", in("further.hoist"), "--budget", "sqnr=45dB"}));
  ASSERT_EQ(further.code, 0) << further.err;
  const auto later = parsed(record);
  EXPECT_GT(later["points"].size(), measured["points"].size());
  EXPECT_EQ(later["sites"], measured["sites"]);
  EXPECT_EQ(later["statistics"], measured["statistics"]);
  EXPECT_EQ(later["choices"].size(), 3u);
  const auto certificate = parsed(in("further.hoist/manifest.json"))["certificate"];
  EXPECT_EQ(certificate["budget"], "sqnr=45dB");
  EXPECT_EQ(certificate["met"], true);
  const Ran verified = run_hoist({"verify", in("further.hoist"), "--data", test_data});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("passed certificate"));

  // A forbidden rule is not used.
  std::ofstream(in("bans")) << "forbid * w8\nforbid * w4-g32\n";
  const Ran banned = run_hoist(
      with(with(compile, data), {"-o", in("banned.hoist"), "--budget", "sqnr=45dB", "--preferences", in("bans")}));
  ASSERT_EQ(banned.code, 0) << banned.err;
  const std::string rules = parsed(in("banned.hoist/manifest.json"))["certificate"]["rules"].dump();
  EXPECT_THAT(rules, testing::Not(HasSubstr("\"w8\"")));
  EXPECT_THAT(rules, testing::Not(HasSubstr("\"w4-g32\"")));

  // Report and export show the bundle's choice.
  const Ran page = run_hoist({"report", model, "--record", record, "--objective", "size", "--budget", "sqnr=45dB", "-o",
                              in("page.html"), "--json", in("page.json")});
  ASSERT_EQ(page.code, 0) << page.err;
  const auto study = parsed(in("page.json"));
  for (const auto& point : study["points"]) {
    if (!point["chosen"].get<bool>()) continue;
    EXPECT_EQ(point["assignment"], certificate["rules"]);
  }
  EXPECT_EQ(study["confidence"], "met on 500 samples");
  const Ran exported =
      run_hoist({"export", model, "--record", record, "--budget", "sqnr=45dB", "-o", in("chosen.onnx")});
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr(" at "));
  EXPECT_EQ(run_hoist({"check", in("chosen.onnx")}).code, 0);
  const Ran unknown = run_hoist({"export", model, "--record", record, "--budget", "sqnr=13dB"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("it has sqnr=30dB for size"));
  const Ran several = run_hoist({"export", model, "--record", record, "-o", in("several.onnx")});
  EXPECT_EQ(several.code, 3);
  EXPECT_THAT(several.err, HasSubstr("name one with --budget and --objective"));
  EXPECT_EQ(run_hoist({"export", model, "--record", record, "--budget", "sqnr=45dB", "--objective", "time"}).code, 3);
  EXPECT_EQ(run_hoist({"report", "--compare", record, record, "-o", in("two.html")}).code, 3);
  const Ran two = run_hoist(
      {"report", "--compare", record, record, "--budget", "sqnr=30dB", "-o", in("two.html"), "--json", in("two.json")});
  EXPECT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(parsed(in("two.json"))["records"][0]["budget"], "sqnr=30dB");
}

TEST_F(BudgetCommand, TheEndOfTheTimeGivesWhatIsVerified) {
  const Ran ran =
      run_hoist({"compile", model, "-o", in("bundle.hoist"), "--budget", "sqnr=10dB", "--objective", "size", "--time",
                 "1", "--calibrate", calibration, "--report", in("page.html"), "--record", in("record.json")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(content(in("page.html")), HasSubstr("</html>"));
  // On a busy machine the time ends before the first point.
  if (fs::exists(in("record.json"))) {
    EXPECT_FALSE(parsed(in("record.json"))["complete"].get<bool>());
    EXPECT_FALSE(parsed(in("bundle.hoist/manifest.json"))["certificate"]["rules"].empty());
  }
}

TEST_F(BudgetCommand, ASignalGivesWhatIsVerifiedAndTheNextRunGoesOn) {
  const std::string record = in("record.json");
  const std::vector<std::string> words = {"compile",  model,         "--force",     "-o",   in("bundle.hoist"),
                                          "--budget", "sqnr=10dB",   "--objective", "size", "--record",
                                          record,     "--calibrate", calibration};
  std::string command = "TMPDIR=" + in("temporary") + " '" HOIST_PROGRAM "'";
  for (const std::string& word : words) command += " '" + word + "'";
  fs::create_directory(in("temporary"));
  const Ran stopped = run_shell(command + " & for i in $(seq 3000); do grep -qs 'uniform' '" + record +
                                "' && break; sleep 0.02; done; kill -TERM $!; wait $!");
  ASSERT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("stopping: the choice is made from the points verified so far"));
  EXPECT_FALSE(parsed(in("bundle.hoist/manifest.json"))["certificate"]["rules"].empty());
  EXPECT_TRUE(files_below(in("temporary")).empty());
  const auto partial = parsed(record);
  ASSERT_FALSE(partial["complete"].get<bool>());
  std::vector<std::string> other = words;
  other[6] = "sqnr=20dB";
  const Ran resumed = run_hoist(other);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const auto whole = parsed(record);
  EXPECT_TRUE(whole["complete"].get<bool>());
  EXPECT_EQ(whole["statistics"], partial["statistics"]);
}

TEST_F(BudgetCommand, ASignalDuringCalibrationSaysThatNothingIsKept) {
  std::string command = "TMPDIR=" + in("temporary") + " '" HOIST_PROGRAM "'";
  for (const std::string& word :
       {std::string("compile"), model, std::string("-o"), in("bundle.hoist"), std::string("--budget"),
        std::string("sqnr=10dB"), std::string("--calibrate"), calibration})
    command += " '" + word + "'";
  fs::create_directory(in("temporary"));
  // Its first folder has the outputs of the unchanged model, before calibration.
  const Ran stopped = run_shell(command + " & for i in $(seq 3000); do ls '" + in("temporary") +
                                "' | grep -qs . && break; sleep 0.01; done; kill -TERM $!; wait $!");
  EXPECT_NE(stopped.code, 0);
  EXPECT_THAT(stopped.err, HasSubstr("ended: calibration was not finished, and none of it is stored"));
}

TEST_F(BudgetCommand, PinsThatContradictEachOtherAreNamed) {
  std::ofstream(in("pins")) << "pin image u8\npin dense1 w8a8-signed\n";
  const Ran ran = run_hoist({"compile", model, "-o", in("bundle.hoist"), "--budget", "sqnr=10dB", "--calibrate",
                             calibration, "--preferences", in("pins")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("product dense1 is pinned to w8a8-signed, which needs image in i8"));
  EXPECT_THAT(ran.err, HasSubstr("value image is left u8"));
}

TEST_F(BudgetCommand, WhatCannotBeMetIsSaidAndWrittenOnlyOnRequest) {
  std::ofstream(in("pins")) << "pin * w8\n";
  std::vector<std::string> words = {"compile",       model,       "-o",          in("bundle.hoist"),
                                    "--budget",      "sqnr=90dB", "--calibrate", calibration,
                                    "--preferences", in("pins"),  "--objective", "size"};
  const Ran refused = run_hoist(words);
  EXPECT_EQ(refused.code, 1) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("the budget is not met; the best point is"));
  EXPECT_FALSE(fs::exists(in("bundle.hoist")));
  words.push_back("--best-effort");
  const Ran written = run_hoist(words);
  EXPECT_EQ(written.code, 1) << written.err;
  EXPECT_TRUE(fs::exists(in("bundle.hoist/plan.bin")));
}

TEST_F(BudgetCommand, RetrainingMakesASmallerPointReachable) {
  std::ofstream(in("wishes")) << "prefer * u4-g128\n";
  const std::vector<std::string> words = {
      "compile",  model,    "--budget",    "sqnr=24dB",      "--record", in("record.json"), "--objective", "size",
      "--target", "native", "--retrain=4", "--retrain-seed", "3",        "--preferences",   in("wishes")};
  std::vector<std::string> first = words, second = words;
  first.insert(first.end(), {"-o", in("first.hoist"), "--calibrate", calibration, "--verify-data", test_data,
                             "--report", in("report.html")});
  second.insert(second.end(), {"-o", in("second.hoist")});
  const Ran search = run_hoist(first);
  ASSERT_EQ(search.code, 0) << search.err << search.out;
  EXPECT_THAT(search.out, HasSubstr("epoch 4 of 4"));
  EXPECT_THAT(content(in("report.html")), HasSubstr("weights_hash"));
  const auto certificate = nlohmann::json::parse(content(in("first.hoist/manifest.json")))["certificate"];
  EXPECT_EQ(certificate["weights"]["epochs"], 4);
  EXPECT_EQ(certificate["weights"]["seed"], 3);
  EXPECT_EQ(certificate["weights"]["data_hash"], certificate["calibration"]["hash"]);
  EXPECT_EQ(certificate["weights"]["curve"].size(), 4u);
  double without = 0, with = 0;
  for (const auto& point : certificate["points"]) {
    if (point["chosen"] == true) with = point["sqnr_db"];
  }
  for (const auto& point : certificate["points"]) {
    if (point["name"].get<std::string>() + ", retrained" == certificate["points"].back()["name"])
      without = point["sqnr_db"];
  }
  EXPECT_LT(without, 24);
  EXPECT_GE(with, 24);
  // The record holds the weights: the same bundle without data.
  const Ran again = run_hoist(second);
  ASSERT_EQ(again.code, 0) << again.err;
  expect_same_files(in("first.hoist"), in("second.hoist"));
  const Ran replayed = run_hoist({"verify", in("first.hoist"), "--model", model, "--derivation"});
  EXPECT_EQ(replayed.code, 0) << replayed.err << replayed.out;
  const Ran verified = run_hoist({"verify", in("first.hoist"), "--data", test_data});
  EXPECT_EQ(verified.code, 0) << verified.err << verified.out;
  EXPECT_THAT(verified.out, HasSubstr("passed certificate"));
  const Ran exported = run_hoist({"export", model, "--record", in("record.json"), "-o", in("small.onnx")});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const Ran compared = run_hoist({"export", in("first.hoist"), "--model", model, "-o", in("bundle.onnx")});
  EXPECT_EQ(compared.code, 0) << compared.err;
}

TEST_F(BudgetCommand, RetrainingLearnsLabelsIfAsked) {
  std::ofstream(in("wishes")) << "prefer * u4-g128\n";
  const auto with = [&](const std::string& data) {
    return run_hoist({"compile",       model,        "--budget", "sqnr=24dB",   "--record",    in("record.json"),
                      "--objective",   "size",       "--target", "native",      "--retrain=2", "--retrain-labels",
                      "--preferences", in("wishes"), "-o",       in("a.hoist"), "--calibrate", data,
                      "--verify-data", test_data});
  };
  auto file = NpzFile::open(calibration);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(write_npz(in("images.npz"), {{"image", *file->read("image")}}).ok());
  const Ran none = with(in("images.npz"));
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("needs labels, and the calibration data has none"));
  std::filesystem::remove(in("record.json"));
  const Ran search = with(calibration);
  EXPECT_THAT(search.out, HasSubstr("epoch 2 of 2")) << search.err;
  EXPECT_THAT(content(in("record.json")), HasSubstr("cross-entropy"));
}

TEST_F(BudgetCommand, RetrainingNeedsDataOfItsOwn) {
  const Ran seen = run_hoist({"compile", model, "-o", in("a.hoist"), "--budget", "sqnr=10dB", "--retrain",
                              "--calibrate", calibration, "--verify-data", calibration});
  EXPECT_EQ(seen.code, 3);
  EXPECT_THAT(seen.err, HasSubstr("verification samples are also calibration samples, which are trained on"));
  auto file = NpzFile::open(calibration);
  ASSERT_TRUE(file.ok());
  std::map<std::string, Tensor> few;
  for (const std::string name : {"image", "labels"}) {
    Tensor all = *file->read(name);
    std::vector<int64_t> shape = all.shape();
    shape[0] = 40;
    Tensor part(all.scalar(), shape);
    std::copy_n(all.data(), part.bytes().size(), part.data());
    few.emplace(name, std::move(part));
  }
  ASSERT_TRUE(write_npz(in("few.npz"), few).ok());
  const Ran short_of = run_hoist({"compile", model, "-o", in("a.hoist"), "--budget", "sqnr=10dB", "--retrain",
                                  "--calibrate", in("few.npz"), "--verify-data", test_data});
  EXPECT_EQ(short_of.code, 3);
  EXPECT_THAT(short_of.err, HasSubstr("needs 64 samples for training, and the calibration data has 40"));
  EXPECT_FALSE(fs::exists(in("a.hoist")));
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

// The state left by a process that was killed between verifying and timing.
TEST_F(BudgetCommand, TimesOfZeroInARecordAreMeasuredAgain) {
  const std::string record = in("record.json");
  const std::vector<std::string> words = {"compile",     model,      "--force",   "--no-check", "-o",
                                          in("a.hoist"), "--budget", "sqnr=20dB", "--record",   record};
  const std::vector<std::string> data = {"--calibrate", calibration};
  const Ran first = run_hoist(with(words, data));
  ASSERT_EQ(first.code, 0) << first.err;
  auto poisoned = nlohmann::ordered_json::parse(content(record));
  ASSERT_TRUE(poisoned["complete"].get<bool>());
  for (auto& point : poisoned["points"]) point["time"] = {0.0, 0.0, 0.0};
  auto certificate = nlohmann::ordered_json::parse(poisoned["choices"][0]["certificate"].get<std::string>());
  for (auto& point : certificate["points"]) point["milliseconds"] = 0.0;
  poisoned["choices"][0]["certificate"] = certificate.dump();
  std::ofstream(record) << poisoned.dump();
  const Ran without = run_hoist(words);
  EXPECT_EQ(without.code, 2) << without.out;
  EXPECT_THAT(without.err, HasSubstr("have no run time"));
  const Ran again = run_hoist(with(words, data));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("they are timed now"));
  EXPECT_THAT(again.out, testing::Not(HasSubstr(" 0 us")));
  const auto repaired = parsed(record);
  EXPECT_TRUE(repaired["complete"].get<bool>());
  EXPECT_EQ(repaired["sites"].size(), poisoned["sites"].size());
  for (const auto& point : repaired["points"]) EXPECT_GT(point["time"][0].get<double>(), 0) << point["name"];
}

TEST_F(BudgetCommand, ARecordAndABundleHaveOneWriterAtATime) {
  const std::string record = in("record.json");
  const std::vector<std::string> words = {"compile",     model,       "-o",        in("a.hoist"), "--budget",
                                          "sqnr=20dB",   "--record",  record,      "--time",      "1",
                                          "--calibrate", calibration, "--no-check"};
  {
    const auto lock = FileLock::take(record);
    ASSERT_TRUE(lock.ok());
    const Ran refused = run_hoist(words);
    EXPECT_EQ(refused.code, 3) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(fmt::format("record.json: is being written by process {} on host", ::getpid())));
    const Ran report = run_hoist({"report", model, "--record", record, "--calibrate", calibration});
    EXPECT_EQ(report.code, 3) << report.err;
  }
  {
    const auto lock = FileLock::take(in("a.hoist/"));
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(run_hoist(words).code, 3);
    EXPECT_EQ(run_hoist({"compile", model, "-o", in("a.hoist"), "--no-check"}).code, 3);
  }
  EXPECT_TRUE(files_below(in("")).empty());
  // A killed process leaves its file, but no lock.
  std::ofstream(in(".record.json.lock")) << "process 1 on host elsewhere";
  EXPECT_TRUE(FileLock::take(record).ok());
  EXPECT_FALSE(fs::exists(in(".record.json.lock")));
}

std::string with_other_labels(const std::string& data, const std::string& to) {
  auto file = NpzFile::open(data);
  HOIST_CHECK(file.ok(), "cannot read " + data);
  std::map<std::string, Tensor> arrays;
  for (const auto& [name, header] : file->arrays()) arrays.emplace(name, *file->read(name));
  std::vector<int64_t> labels = arrays.at("labels").as_integers();
  for (int64_t& label : labels) label = (label * 7 + 3) % 10;
  arrays.insert_or_assign("labels", Tensor::of(Scalar::i64, {static_cast<int64_t>(labels.size())}, labels));
  HOIST_CHECK(write_npz(to, arrays).ok(), "cannot write " + to);
  return to;
}

TEST_F(BudgetCommand, AModelAtChanceLevelIsNotCertified) {
  const std::string wrong = with_other_labels(test_data, in("wrong.npz"));
  const std::vector<std::string> words = {
      "compile",        model,         "-o",   in("a.hoist"), "--budget",  "top1=0.5%",     "--time", "15",
      "--no-check",     "--objective", "size", "--calibrate", calibration, "--verify-data", wrong,    "--json",
      in("answer.json")};
  const Ran refused = run_hoist(words);
  EXPECT_EQ(refused.code, 1) << refused.err;
  EXPECT_THAT(refused.out, HasSubstr("the unchanged model: "));
  EXPECT_THAT(refused.err, HasSubstr("right is no better than guessing at"));
  EXPECT_THAT(refused.err, HasSubstr("the model itself is no better than guessing on these data"));
  EXPECT_FALSE(fs::exists(in("a.hoist")));
  EXPECT_TRUE(parsed(in("answer.json"))["budget"]["reference"]["no_better_than_chance"].get<bool>());
  const Ran written = run_hoist(with(words, {"--best-effort"}));
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_TRUE(fs::exists(in("a.hoist/plan.bin")));
}

TEST_F(BudgetCommand, SamplesThatWereCalibratedOnAreTold) {
  const Ran ran =
      run_hoist({"compile", model, "-o", in("a.hoist"), "--budget", "sqnr=10dB", "--time", "6", "--no-check",
                 "--objective", "size", "--calibrate", calibration, "--verify-data", calibration});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, testing::ContainsRegex("([0-9]+) of [0-9]+ verification samples are also calibration"));
  EXPECT_THAT(ran.out, HasSubstr("the unchanged model: "));
}

}  // namespace hoist::budget_test
