// hoist tune as a process, and the database that it leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/tools/program.h"
#include "tools/files.h"
#include "tools/tuning/tuning_database.h"

namespace hoist {
namespace {

using testing::HasSubstr;
using tuning::Measurement;
using tuning::TuningDatabase;

const tuning::TunedDevice this_device = {"name=this\n", ""}, other_device = {"name=this\n", "znver4"};

class TuningTest : public InTemporaryFolder {};

TEST_F(TuningTest, ADatabaseKeepsWhatWasMeasured) {
  const TuningTask task = {"aa", {8, -16}}, other = {"aa", {8}};
  const std::vector<Measurement> measured = {{{{"rows", 4}, {"width", 16}}, 0.5},
                                             {{{"rows", 8}, {"width", 16}}, std::numeric_limits<double>::infinity()}};
  {
    auto database = TuningDatabase::open(in("a.tuning"));
    ASSERT_TRUE(database.ok()) << database.errors()[0].text();
    ASSERT_TRUE(database->add(this_device, task, measured).ok());
    ASSERT_TRUE(database->add(this_device, task, {{{{"rows", 4}, {"width", 16}}, 0.75}}).ok());  // again
    ASSERT_TRUE(database->choose(this_device, {{task, measured[0].knobs, 0.5}}).ok());
    ASSERT_TRUE(database->choose(this_device, {{task, measured[1].knobs, 0.9}}).ok());
  }
  auto database = TuningDatabase::open_to_read(in("a.tuning"));
  ASSERT_TRUE(database.ok()) << database.errors()[0].text();
  auto read = database->measurements(this_device, task);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].knobs, measured[0].knobs);
  EXPECT_EQ((*read)[0].ratio, 0.75);
  EXPECT_TRUE(std::isinf((*read)[1].ratio));
  EXPECT_TRUE(database->measurements(this_device, other)->empty());
  EXPECT_TRUE(database->measurements(other_device, task)->empty());
  auto choices = database->choices(this_device);
  ASSERT_TRUE(choices.ok());
  ASSERT_EQ(choices->size(), 1u);
  EXPECT_EQ((*choices)[0].task, task);
  EXPECT_EQ((*choices)[0].knobs, measured[1].knobs);
  EXPECT_TRUE(database->choices(other_device)->empty());
  EXPECT_FALSE(database->add(this_device, task, measured).ok());  // it is open to be read
}

TEST_F(TuningTest, OtherFilesAreNoDatabases) {
  std::ofstream(in("text")) << "hello, this is a text that is long enough to be mistaken for something else";
  std::ofstream(in("empty"));
  EXPECT_THAT(TuningDatabase::open_to_read(in("none")).errors()[0].text(), HasSubstr("none"));
  EXPECT_THAT(TuningDatabase::open_to_read(in("text")).errors()[0].text(), HasSubstr("not a database"));
  EXPECT_THAT(TuningDatabase::open(in("text")).errors()[0].text(), HasSubstr("not a database"));
  EXPECT_THAT(TuningDatabase::open_to_read(in("empty")).errors()[0].text(), HasSubstr("is no database"));
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";
  const Ran ran = run_hoist({"compile", model, "-o", in("x.hoist"), "--tuning", in("text")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr(in("text")));
  EXPECT_FALSE(std::filesystem::exists(in("x.hoist")));
}

TEST_F(TuningTest, KnobsAreReadBackOrRefused) {
  const KnobValues knobs = {{"rows", 4}, {"width", -16}};
  EXPECT_EQ(tuning::knobs_text(knobs), "rows=4 width=-16");
  EXPECT_EQ(tuning::parse_knobs("rows=4 width=-16"), knobs);
  for (const char* wrong : {"rows", "=4", "rows=", "rows=4x", "rows=99999999999999999999"})
    EXPECT_FALSE(tuning::parse_knobs(wrong).has_value()) << wrong;
}

TEST_F(TuningTest, ATunedModelCompilesAndReplays) {
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";
  const std::vector<std::string> words = {"tune",  model, "-o",     in("m.tuning"), "--target",       "native",
                                          "--dim", "N=2", "--json", in("m.json"),   "--measurements", "3"};
  const Ran tuned = run_hoist(words);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  auto text = read_file(in("m.json"));
  ASSERT_TRUE(text.ok());
  const auto answer = nlohmann::json::parse(*text);
  ASSERT_FALSE(answer.at("kernels").empty());
  for (const auto& kernel : answer["kernels"]) {
    EXPECT_GT(kernel.at("us"), 0);
    EXPECT_LE(kernel.at("ratio"), 1);
    EXPECT_LE(kernel.at("measured"), 3);
    EXPECT_EQ(kernel.at("refused"), 0);
  }
  // What was measured is not measured again.
  const Ran again = run_hoist(words);
  ASSERT_EQ(again.code, 0) << again.err;
  const Ran compiled = run_hoist(
      {"compile", model, "-o", in("m.hoist"), "--tuning", in("m.tuning"), "--target", "native", "--dim", "N=2"});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_EQ(run_hoist({"verify", in("m.hoist"), "--derivation", "--all"}).code, 0);
}

TEST_F(TuningTest, ChoicesAreListed) {
  const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_residual.onnx";
  const Ran inspected = run_hoist({"tune", model, "--target", "native:x86-64-v3", "--list", "nothing"});
  EXPECT_EQ(inspected.code, 3);
  EXPECT_THAT(inspected.err, HasSubstr("has no kernel with knobs"));
  const Ran listed = run_hoist({"tune", model, "--target", "native:x86-64-v3", "--list", "conv1"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("an estimate chooses matrix_rows=0 rows="));
  EXPECT_THAT(listed.out, HasSubstr("  vectors 1 2"));
  const Ran strategy = run_hoist({"tune", model, "--strategy", "boosted-tree"});
  EXPECT_EQ(strategy.code, 2);
  EXPECT_THAT(strategy.err, HasSubstr("boosted-trees"));
  EXPECT_EQ(run_hoist({"tune", model, "--profile", "nvidia-a100"}).code, 2);
}

}  // namespace
}  // namespace hoist
