// Tests faulty data, budgets, metrics and preferences: one clear message each, before the long work, and no
// half-written files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/frontend/model_builder.h"
#include "tests/tools/data/npz_file.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist::budget_input_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path models = fs::path(HOIST_SOURCE_DIR) / "models";
const std::string model = (models / "digits_fully_connected.onnx").string();
const std::string good_data = (models / "digits_fully_connected_calibration.npz").string();

void expect_refused(const std::vector<std::string>& options, const std::string& message, int code = 3) {
  const Folder output;
  std::vector<std::string> words = {"compile", model, "-o", (output.path() / "m.hoist").string()};
  words.insert(words.end(), options.begin(), options.end());
  const Ran ran = run_hoist(words);
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("hoist: error: "));
  EXPECT_THAT(ran.err, HasSubstr(message));
  EXPECT_TRUE(files_below(output.path()).empty());
}

Tensor ramp(std::vector<int64_t> shape) {
  Tensor out(Scalar::f32, std::move(shape));
  for (int64_t i = 0; i < out.size(); ++i) out.set_float(i, static_cast<double>(i % 17) / 17);
  return out;
}
Tensor labels(std::vector<int64_t> classes) {
  return Tensor::of(Scalar::i64, {static_cast<int64_t>(classes.size())}, classes);
}

void expect_data_refused(const std::map<std::string, Tensor>& arrays, const std::string& message,
                         const std::string& budget = "sqnr=30dB") {
  const Folder folder;
  expect_refused({"--budget", budget, "--calibrate", data_file(folder.path(), arrays).string()}, message);
}

TEST(BadData, WrongShapeTypeCountAndName) {
  expect_data_refused({{"image", ramp({8, 1, 8, 7})}}, "is [8][1][8][7]f32, the model takes [1][1][8][8]f32");
  Tensor wide(Scalar::f64, {8, 1, 8, 8});
  expect_data_refused({{"image", wide}}, "f64, the model takes");
  expect_data_refused({{"images", ramp({8, 1, 8, 8})}}, "has no array image");
  expect_data_refused({{"image", Tensor(Scalar::f32, {0, 1, 8, 8})}}, "has no samples");
  expect_data_refused({{"image", ramp({1, 1, 8, 8})}}, "too few samples to reserve some");
}

TEST(BadData, ZerosAndNumbersThatAreNotFinite) {
  expect_data_refused({{"image", Tensor(Scalar::f32, {8, 1, 8, 8})}}, "is zero throughout");
  for (const auto& [value, name] : {std::pair{NAN, "NaN"}, std::pair{INFINITY, "an infinity"}}) {
    Tensor bad = ramp({8, 1, 8, 8});
    bad.set_float(3 * 64 + 5, value);
    expect_data_refused({{"image", bad}}, std::string("sample 3 holds ") + name);
  }
}

TEST(BadData, LabelsThatDoNotMatch) {
  const Tensor images = ramp({4, 1, 8, 8});
  expect_data_refused({{"image", images}, {"labels", labels({1, 2, 3})}}, "has 3 labels for 4 samples");
  expect_data_refused({{"image", images}, {"labels", labels({1, 2, 3, 10})}}, "label 10, output logits has 10 classes");
  expect_data_refused({{"image", images}, {"labels", labels({1, 2, 3, -1})}}, "label -1");
  expect_data_refused({{"image", images}, {"labels", ramp({4})}}, "expected one integer per sample");
  expect_data_refused({{"image", images}}, "needs labels", "top1=1%");
}

TEST(BadBudget, NonsenseAndMissingParts) {
  for (const char* budget : {"top1=-1%", "top1=5", "sqnr=loud", "accuracy=1%", "agreement=101%", "metric="})
    expect_refused({"--budget", budget, "--calibrate", good_data}, "--budget", 2);
  expect_refused({"--budget", "sqnr=30dB"}, "rules are chosen by data", 2);
  expect_refused({"--calibrate", good_data}, "requires --budget", 2);
  expect_refused({"--best-effort"}, "requires --budget", 2);
  expect_refused({"--budget", "sqnr=30dB", "--calibrate", good_data, "--strict"}, "--strict", 2);
}

TEST(BadMetric, FailsOrPrintsRubbish) {
  for (const auto& [command, message] :
       {std::pair{"metric=false", "ends with exit code 1"}, std::pair{"metric=echo", "prints"},
        std::pair{"metric=true", "prints nothing"}, std::pair{"metric=/nowhere/metric", "ends with exit code 127"}})
    expect_refused({"--budget", command, "--calibrate", good_data}, message);
}

// The time limit also holds for each run of the metric, and ends its child processes.
TEST(BadMetric, TakesTooLong) {
  const Folder folder;
  const std::string mark = (folder.path() / "alive").string(), made = (folder.path() / "m.hoist").string();
  const Ran ran = run_hoist({"compile", model, "-o", made, "--budget",
                             "metric=(sleep 5; echo late > " + mark + ") & sleep 60; echo", "--calibrate", good_data,
                             "--time", "2"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("the model stays unchanged: the time was over before"));
  const Ran waited = run_shell("sleep 6");
  EXPECT_EQ(waited.code, 0);
  EXPECT_FALSE(fs::exists(mark));
}

// The folder is one argument whatever its name.
TEST(BadMetric, FolderWithQuotesInItsName) {
  const Folder folder;
  const fs::path odd = folder.path() / "it's \"here\"; touch broken";
  ASSERT_TRUE(fs::create_directory(odd));
  const Folder output;
  const Ran ran = run_shell("cd " + folder.path().string() + " && TMPDIR=\"" + "it's \\\"here\\\"; touch broken" +
                            "\" " HOIST_PROGRAM " compile " + model + " -o " + (output.path() / "m.hoist").string() +
                            " --budget 'metric=test -d' --calibrate " + good_data);
  EXPECT_THAT(ran.err, HasSubstr("prints nothing"));  // and not a failure: the folder exists
  EXPECT_FALSE(fs::exists(folder.path() / "broken"));
}

TEST(EndedBySignal, LeavesNoFolders) {
  const Folder temporary, output;
  const Ran ran = run_shell(
      "export TMPDIR=" + temporary.path().string() + "; " HOIST_PROGRAM " compile " + model + " -o " +
      (output.path() / "m.hoist").string() + " --budget 'metric=sleep 30; echo 1 #' --calibrate " + good_data +
      " & pid=$!; for i in $(seq 600); do sleep 0.1; "
      "ls -d $TMPDIR/hoist-* 2> /dev/null && break; done; kill -TERM $pid; wait $pid; echo code $?");
  EXPECT_THAT(ran.out, HasSubstr("hoist-temporary-")) << "there was a folder to remove\n" << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("code 143"));
  EXPECT_TRUE(files_below(temporary.path()).empty());
  EXPECT_TRUE(files_below(output.path()).empty());
}

TEST(EndedByKill, FoldersGoWithTheNextRun) {
  const Folder temporary;
  const std::string left = (temporary.path() / "hoist-temporary-Abc123").string();
  const std::string others = (temporary.path() / "hoist-Abc123").string();
  for (const std::string& folder : {left, others}) ASSERT_TRUE(fs::create_directory(folder));
  ASSERT_EQ(run_shell("touch " + left + "/x").code, 0);
  // A folder whose owner still runs.
  const std::string held = (temporary.path() / "hoist-temporary-Held00").string();
  ASSERT_TRUE(fs::create_directory(held));
  const Ran ran =
      run_shell("export TMPDIR=" + temporary.path().string() + "; flock " + held + " " HOIST_PROGRAM " compile " +
                model + " -o " + held + "/m.hoist --budget metric=true --calibrate " + good_data);
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_FALSE(fs::exists(left));
  for (const std::string& folder : {others, held}) EXPECT_TRUE(fs::exists(folder)) << folder;
}

TEST(BadPreferences, ContradictionsAndUnknownNames) {
  const Folder folder;
  const auto refused = [&](const std::string& text, const std::string& message) {
    expect_refused(
        {"--budget", "sqnr=30dB", "--calibrate", good_data, "--preferences", folder.write("wishes", text).string()},
        message);
  };
  refused("pin nowhere w8\n", "nowhere");
  refused("pim * w8\n", "did you mean pin");
  refused("pin * w8\nforbid * w8\n", "w8");
}

// Comes before minutes of measuring, whose notes would precede the error.
TEST(BadOutput, IsSaidFirst) {
  const Folder folder;
  const std::string nowhere = (folder.path() / "none" / "r.html").string(), taken = folder.path().string();
  const std::vector<std::string> report = {"report", HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx",
                                           "--calibrate", good_data};
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = report;
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 3) << ran.err;
    return ran.err;
  };
  EXPECT_EQ(refusal({"-o", nowhere}), "hoist: error: " + nowhere + ": cannot be written: No such file or directory\n");
  EXPECT_EQ(refusal({"-o", taken}), "hoist: error: " + taken + ": cannot be written: Is a directory\n");
  EXPECT_EQ(refusal({"--json", nowhere}),
            "hoist: error: " + nowhere + ": cannot be written: No such file or directory\n");
  EXPECT_THAT(refusal({"--record", nowhere, "-o", "-"}), testing::StartsWith("hoist: error: " + nowhere));
  EXPECT_TRUE(files_below(folder.path()).empty());
}

TEST(BadRecord, NoJson) {
  const Folder folder;
  expect_refused({"--budget", "sqnr=30dB", "--record", folder.write("record.json", "{").string()}, "record.json");
}

}  // namespace hoist::budget_input_test
