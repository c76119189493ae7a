// Tests a bundle for several sizes as a user makes and runs it: compile --dim N=1,4, and each command with it.
#include "tools/driver/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ir/base/seeded.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist::sizes_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string folder_of_models = std::string(HOIST_SOURCE_DIR) + "/models/";
const std::string sized_model = folder_of_models + "digits_fully_connected.onnx";

class SizesTest : public InTemporaryFolder {
 protected:
  Ran compile(const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"compile", sized_model, "-o", in(name)};
    words.insert(words.end(), more.begin(), more.end());
    return run_hoist(words);
  }
  // Writes an input with this number of samples.
  std::string input(int64_t samples) {
    const std::string file = in("x" + std::to_string(samples) + ".npy");
    EXPECT_TRUE(write_npy(file, seeded_tensor(Scalar::f32, {samples, 1, 8, 8}, 1, 0, 0, 1)).ok());
    return "image=" + file;
  }
  std::string text_of(const std::string& file) {
    auto text = read_file(in(file));
    EXPECT_TRUE(text.ok());
    return text ? *text : "";
  }
};

TEST_F(SizesTest, EveryCommandKnowsTheSizes) {
  const Ran compiled = compile("s.hoist", {"--dim", "N=1,4", "--json", in("s.json")});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("for N=4:"));
  const auto answer = nlohmann::json::parse(text_of("s.json"));
  ASSERT_EQ(answer.at("specialisations").size(), 2u);
  EXPECT_EQ(answer["specialisations"][1]["sizes"]["N"], 4);

  // The first plan equals that of a bundle for this size alone, byte for byte. Weights that both sizes use unpacked are
  // stored once, followed by the weights that each packs for its own tiles.
  ASSERT_EQ(compile("one.hoist", {"--dim", "N=1"}).code, 0);
  for (const char* file :
       {"kernels.cl", "check.bin", "expressions.lift", "derivation.lift", "example.c", "Makefile", "CMakeLists.txt"})
    EXPECT_TRUE(text_of(std::string("s.hoist/") + file) == text_of(std::string("one.hoist/") + file)) << file;
  const std::string weights = text_of("s.hoist/weights.bin"), alone = text_of("one.hoist/weights.bin");
  EXPECT_TRUE(weights.starts_with(alone));
  ASSERT_EQ(compile("four.hoist", {"--dim", "N=4"}).code, 0);
  EXPECT_LT(weights.size(), alone.size() + text_of("four.hoist/weights.bin").size());
  EXPECT_FALSE(fs::exists(in("s.hoist/specialisation-1/weights.bin")));
  EXPECT_FALSE(fs::exists(in("one.hoist/specialisation-1")));

  // run selects the size by the shape of the file.
  for (const int64_t samples : {1, 4}) {
    const Ran ran = run_hoist({"run", in("s.hoist"), "--input", input(samples)});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("[" + std::to_string(samples) + "][10]f32"));
  }
  const Ran none = run_hoist({"run", in("s.hoist"), "--input", input(3)});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("not compiled for [3,1,8,8] (there are: [1,1,8,8] [4,1,8,8])"));

  const Ran verified = run_hoist({"verify", in("s.hoist"), "--all"});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("_N4: "));
  EXPECT_THAT(run_hoist({"verify", in("s.hoist"), "--dim", "N=4"}).out, HasSubstr("_N4: "));
  const Ran derived = run_hoist({"verify", in("s.hoist"), "--derivation", "--model", sized_model});
  EXPECT_EQ(derived.code, 0) << derived.out << derived.err;
  EXPECT_THAT(derived.out, HasSubstr("its start for N=4"));

  const std::string data = folder_of_models + "digits_fully_connected_test.npz";
  for (const char* size : {"N=1", "N=4"}) {
    const Ran evaluated = run_hoist({"evaluate", in("s.hoist"), "--dim", size, "--data", data});
    EXPECT_EQ(evaluated.code, 0) << evaluated.err;
    EXPECT_THAT(evaluated.out, HasSubstr("of 500 right"));
    EXPECT_EQ(run_hoist({"bench", in("s.hoist"), "--dim", size, "--seconds", "0.01"}).code, 0);
  }
  EXPECT_THAT(run_hoist({"inspect", in("s.hoist")}).out, HasSubstr("compiled for N=1; N=4"));
  EXPECT_THAT(run_hoist({"inspect", in("s.hoist"), "--dim", "N=4"}).out, HasSubstr("[4][1][8][8]f32"));
  EXPECT_THAT(run_hoist({"inspect", in("s.hoist"), "--dim", "N=4", "--json", "-"}).out,
              HasSubstr("\"specialisations\""));
  EXPECT_THAT(run_hoist({"explain", in("s.hoist"), "dense1", "--dim", "N=4"}).out, HasSubstr("_N4 computes"));
  const Ran unknown = run_hoist({"inspect", in("s.hoist"), "--dim", "N=2"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("it has N=1; N=4"));
  EXPECT_EQ(run_hoist({"bench", in("one.hoist"), "--dim", "N=1"}).code, 3);
}

TEST_F(SizesTest, ProgramsOfAllSizesAreKeptInTheBundle) {
  ASSERT_EQ(compile("s.hoist", {"--dim", "N=1,4", "--programs"}).code, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(in("s.hoist/programs")), {}), 2);
  // In processes of their own: PoCL's devices are those at the first use of OpenCL in a process, and one without launch
  // threads, which small bundles prefer, may not be among them after other tests.
  for (const char* size : {"N=1", "N=4"}) {
    const Ran timed = run_hoist({"bench", in("s.hoist"), "--dim", size, "--seconds", "0.01", "--json", "-"},
                                "XDG_CACHE_HOME=" + in("cache") + " ");
    EXPECT_THAT(timed.out, HasSubstr("hit: programs/ of the bundle")) << size << timed.err;
  }
  EXPECT_FALSE(fs::exists(in("cache/hoist")));
  EXPECT_EQ(run_hoist({"verify", in("s.hoist")}).code, 0);
  EXPECT_EQ(compile("s.hoist", {"--force"}).code, 0);
  EXPECT_FALSE(fs::exists(in("s.hoist/programs")));

  const Ran native = compile("n.hoist", {"--target", "native", "--programs"});
  EXPECT_EQ(native.code, 2);
  EXPECT_THAT(native.err, HasSubstr("--programs: applies to OpenCL, and native code is compiled already"));
  EXPECT_EQ(compile("n.hoist", {"--no-check", "--programs"}).code, 2);
  EXPECT_FALSE(fs::exists(in("n.hoist")));
}

TEST_F(SizesTest, NativeCodeForSeveralSizesLoadsAndLinks) {
  const Ran compiled = compile("s.hoist", {"--dim", "N=1,4", "--target", "native"});
  if (compiled.err.find("no target is for this processor") != std::string::npos) GTEST_SKIP() << compiled.err;
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_EQ(run_hoist({"verify", in("s.hoist"), "--all"}).code, 0);
  const Ran made = run_shell("make -C " + in("s.hoist") + " CFLAGS='-O1 -Wall -Wextra -Werror' example example-static");
  ASSERT_EQ(made.code, 0) << made.out << made.err;
  for (const char* program : {"/example", "/example-static"}) {
    const Ran ran = run_shell(in("s.hoist") + program + " --verify");
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("_N4: "));
    EXPECT_THAT(ran.out, HasSubstr(" of N=4: "));
  }
}

TEST_F(SizesTest, WhatCannotBeIsSaid) {
  const auto refused = [&](const std::vector<std::string>& more) {
    const Ran ran = compile("no.hoist", more);
    EXPECT_EQ(ran.code, 2);
    EXPECT_FALSE(fs::exists(in("no.hoist")));
    return ran.err;
  };
  EXPECT_THAT(refused({"--dim", "N=1,2,1"}), HasSubstr("has 1 twice"));
  EXPECT_THAT(refused({"--dim", "N=1,2", "--dim", "N=3,4"}), HasSubstr("the second list of sizes for N"));
  EXPECT_THAT(refused({"--dim", "N=1,"}), HasSubstr("is not NAME=N"));
  EXPECT_THAT(refused({"--dim", "N=1,2", "--stop-after", "inline-definitions"}),
              HasSubstr("--dim lists several sizes"));
  EXPECT_THAT(refused({"--dim", "N=1,2", "--budget", "sqnr=30dB", "--calibrate", "x.npz"}),
              HasSubstr("a budget is measured for one"));
  std::string many = "N=1";
  for (int i = 2; i <= 65; ++i) many += "," + std::to_string(i);
  EXPECT_THAT(refused({"--dim", many}), HasSubstr("at most 64 (most_specialisations)"));
}

TEST(Sizes, CombinationsAreAllThatThereAre) {
  auto choices = size_choices({"a.0=1,2", "fixed=7", "b=3,4,5"});
  ASSERT_TRUE(choices.ok());
  ASSERT_EQ(choices->size(), 6u);
  EXPECT_EQ((*choices)[0].dimensions, (std::vector<std::string>{"a.0=1", "fixed=7", "b=3"}));
  EXPECT_EQ(sizes_text((*choices)[4].sizes), "a.0=2, b=4");
  EXPECT_EQ(sizes_suffix((*choices)[4].sizes), "_a_02_b4");
  EXPECT_EQ(size_choices({"N=3"})->size(), 1u);
  EXPECT_TRUE(size_choices({"N=3"})->front().sizes.empty());
  EXPECT_FALSE(size_choices({"a=1,2,3,4,5,6,7,8,9", "b=1,2,3,4,5,6,7,8"}).ok());
}

}  // namespace hoist::sizes_test
