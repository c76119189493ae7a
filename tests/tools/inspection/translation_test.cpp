// Tests the comparison of both sides of every step (compile --validate, bisect), and the smallest model with a fault
// (reduce).
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/tools/program.h"
#include "tools/base/files.h"

namespace hoist::translation_test {

using testing::HasSubstr;

const std::string model = HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx";

// Correct if x + x is finite, so random instances do not refute it.
constexpr char overflowing[] =
    "rule maximum-of-double exact\n  given x: f32\n  left max(x, 0f32)\n"
    "  right max(x + x, 0f32) * 0.5f32\n  meaning the larger of x and 0\n";

class Translation : public InTemporaryFolder {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(InTemporaryFolder::SetUp());
    std::ofstream(in("mine.rules")) << overflowing;
    std::ofstream(in("mine.steps")) << "maximum-of-double\nstrategy\n";
  }
  std::vector<std::string> scripted(std::vector<std::string> words) const {
    words.insert(words.end(), {"--rules", in("mine.rules"), "--steps", "relu1=" + in("mine.steps")});
    return words;
  }

 private:
};

TEST_F(Translation, EveryStepOfAModelKeepsItsNumbers) {
  Ran ran = run_hoist({"bisect", model});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("every step keeps the values"));
  ran = run_hoist({"compile", model, "-o", in("bundle"), "--validate", "--no-check"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("every step keeps the values"));
  EXPECT_TRUE(std::filesystem::exists(in("bundle")));
  ran = run_hoist({"reduce", model, "-o", in("small.onnx"), "--no-check"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_FALSE(std::filesystem::exists(in("small.onnx")));
}

TEST_F(Translation, AStepThatIsWrongForLargeNumbersIsNamed) {
  const Ran ran = run_hoist(scripted({"compile", model, "-o", in("bundle"), "--validate", "--no-check"}));
  EXPECT_EQ(ran.code, 5) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("maximum-of-double at "));
  EXPECT_THAT(ran.err, HasSubstr("inputs: largest and smallest numbers"));
  EXPECT_FALSE(std::filesystem::exists(in("bundle")));
  const Ran found = run_hoist(scripted({"bisect", model, "--no-check"}));
  EXPECT_EQ(found.code, 5);
  EXPECT_THAT(found.err, HasSubstr("maximum-of-double at "));
}

TEST_F(Translation, AModelIsReducedToTheLayersThatShowTheFault) {
  Ran ran = run_hoist(scripted({"reduce", model, "-o", in("small.onnx"), "--no-check"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("maximum-of-double at "));
  EXPECT_THAT(ran.out, HasSubstr("small.onnx: 1 of "));
  ran = run_hoist(scripted({"bisect", in("small.onnx"), "--no-check"}));
  EXPECT_EQ(ran.code, 5) << ran.err;
}

TEST_F(Translation, WhatIsNoModelIsBadInput) {
  EXPECT_EQ(run_hoist({"bisect", in("mine.rules")}).code, 3);
  EXPECT_EQ(run_hoist({"bisect", in("none.onnx")}).code, 3);
  EXPECT_EQ(run_hoist({"reduce", model}).code, 2);
}

}  // namespace hoist::translation_test
