// Programs between passes, by the program as people run it: inspect writes one, rewrite changes it, compile prints it.
#include <gmock/gmock.h>

#include <fstream>

#include "program.h"
#include "tools/files.h"

namespace hoist {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string model = HOIST_SOURCE_DIR "/models/digits_residual.onnx";

class RewriteCommand : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::make();
    ASSERT_TRUE(folder.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(*folder));
  }
  std::string in_folder(const std::string& name) const { return (folder_->path() / name).string(); }
  std::string written(const std::string& name, const std::string& text) const {
    std::ofstream(in_folder(name)) << text;
    return in_folder(name);
  }

  std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(RewriteCommand, RunsPassesOnAModelsProgram) {
  const std::string file = in_folder("digits.lift");
  ASSERT_EQ(run_hoist({"inspect", model, "--stage", "graph", "-o", file}).code, 0);
  Ran ran = run_hoist({"rewrite", file});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("BatchNormalization("));
  EXPECT_EQ(ran.out, run_hoist({"inspect", model, "--stage", "graph"}).out);
  ran = run_hoist({"rewrite", file, "--pass", "fold-batch-norm"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("BatchNormalization(")));
  EXPECT_THAT(ran.out, HasSubstr("Conv("));
  ran = run_hoist({"rewrite", file, "--pass", "unfold"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("Conv(")));
  // The same pass inside compile.
  ran = run_hoist({"compile", model, "-o", in_folder("digits.hoist"), "--stop-after", "fold-batch-norm"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("-- after fold-batch-norm\nprogram"));
  EXPECT_FALSE(std::filesystem::exists(in_folder("digits.hoist")));
}

TEST_F(RewriteCommand, AppliesRulesToTermsAndDefinitions) {
  const std::string term = written("term.lift", "-- doubled\nmap (* 2) %x : [8]f32\n");
  EXPECT_EQ(run_hoist({"rewrite", term, "--rule", "split-join(k = 4)"}).out,
            "%x : [8]f32 |> split 4 |> map2d (* 2) |> join\n");
  EXPECT_EQ(run_hoist({"rewrite", term, "--rule", "split-join(k = 3)"}).code, 1);
  const std::string program = written("program.lift",
                                      "program version 21\ninput %x : [2]f32\nconstant %s : f32 = {0.5}\n"
                                      "define %y : [2]u8 = QuantizeLinear(%x, %s) from \"q\"\noutput %y\n");
  const Ran ran = run_hoist({"rewrite", program, "--rule", "quantise-by-reciprocal", "--at", "y"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("constant %\"y.reciprocal\" : f32 = {2}"));
  EXPECT_EQ(run_hoist({"rewrite", program, "--rule", "batch-norm-folding", "--at", "y"}).code, 1);
}

TEST_F(RewriteCommand, WrongUseIsSaid) {
  const std::string term = written("term.lift", "%x : f32\n");
  Ran ran = run_hoist({"rewrite", term, "--pass", "unfold"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("is for programs, and this file holds a term"));
  ran = run_hoist({"rewrite", written("bad.lift", "program\ndefine %y : f32 = %x\n")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("bad.lift:2:19: the type of %x is not known"));
  ran = run_hoist({"compile", model, "-o", in_folder("b"), "--stop-after", "unfolded"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("did you mean unfold?"));
  ran = run_hoist({"rewrite", in_folder("nothing.lift")});
  EXPECT_EQ(ran.code, 3);
}

}  // namespace
}  // namespace hoist
