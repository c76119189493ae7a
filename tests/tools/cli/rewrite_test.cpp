// Tests programs between passes with the command line: inspect writes a program, rewrite changes it, compile prints it.
#include <gmock/gmock.h>

#include <fstream>

#include "ir/base/temporary_folder.h"
#include "tests/tools/program.h"

namespace hoist::rewrite_test {

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
  EXPECT_EQ("-- after import\n" + ran.out, run_hoist({"inspect", model, "--stop-after", "import"}).out);
  ran = run_hoist({"rewrite", file, "--pass", "fold-batch-norm"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("BatchNormalization(")));
  EXPECT_THAT(ran.out, HasSubstr("Conv("));
  ran = run_hoist({"rewrite", file, "--pass", "inline-definitions"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("Conv(")));
  // The same pass inside compile.
  ran = run_hoist({"compile", model, "-o", in_folder("digits.hoist"), "--stop-after", "fold-batch-norm"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("-- after fold-batch-norm\nprogram"));
  EXPECT_FALSE(std::filesystem::exists(in_folder("digits.hoist")));
}

TEST_F(RewriteCommand, PassesBeforeThePlanFollowTheTarget) {
  const auto shown = [](const std::string& option, const std::string& name) {
    const Ran ran = run_hoist({"inspect", HOIST_SOURCE_DIR "/models/digits_attention.onnx", "--stop-after",
                               "materialise-transposed-operands", option, name});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  EXPECT_NE(shown("--target", "native:x86-64-v3"), shown("--profile", "nvidia-a100"));
  EXPECT_EQ(run_hoist({"inspect", model, "--stop-after", "import", "--target", "native:of-no-processor"}).code, 2);
}

TEST_F(RewriteCommand, NamesTheCommandThatReadsModels) {
  const Ran ran = run_hoist({"rewrite", model});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("digits_residual.onnx: is no text of a program or a term"));
  EXPECT_THAT(ran.err, HasSubstr("hoist inspect MODEL.onnx --stage graph"));
}

TEST_F(RewriteCommand, AppliesRulesToTermsAndDefinitions) {
  const std::string term = written("term.lift", "-- doubled\nmap (* 2) %x : [8]f32\n");
  EXPECT_EQ(run_hoist({"rewrite", term, "--rule", "split-join(k = 4)"}).out,
            "%x : [8]f32 |> split 4 |> map2d (* 2) |> join\n");
  EXPECT_EQ(run_hoist({"rewrite", term, "--rule", "split-join(k = 3)"}).code, 1);
  const std::string program = written("program.lift",
                                      "program version 21\ninput %x : [2]i32\nconstant %s : f32 = {0.5}\n"
                                      "define %c : [2]f32 = Cast(%x; to = 1)\ndefine %m : [2]f32 = Mul(%c, %s)\n"
                                      "define %y : [2]u8 = QuantizeLinear(%m, %s) from \"q\"\noutput %y\n");
  const Ran ran = run_hoist({"rewrite", program, "--rule", "quantised-sums", "--at", "y"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("constant %\"y.factor\" : f32 = {1}"));
  EXPECT_EQ(run_hoist({"rewrite", program, "--rule", "batch-norm-folding", "--at", "y"}).code, 1);
}

TEST_F(RewriteCommand, PutsNumbersInThePlaceOfSizes) {
  const std::string open = written("open.lift",
                                   "program %net version 28\nsize batch from 1 to 8\ninput %x : [batch][2]f32\n"
                                   "define %y : [batch][2]f32 = Softmax(%x; axis = 1) from \"softmax\"\noutput %y\n");
  Ran ran = run_hoist({"rewrite", open});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("size batch from 1 to 8\n"));
  ran = run_hoist({"rewrite", open, "--pass", "inline-definitions"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("program net: has sizes without numbers: batch from 1 to 8 (hoist rewrite FILE.lift "
                                 "--dim batch=1 replaces them by numbers)"));
  ran = run_hoist({"rewrite", open, "--dim", "batch=4", "-o", in_folder("four.lift")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_hoist({"rewrite", in_folder("four.lift"), "--pass", "inline-definitions"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("define %y : [4][2]f32"));
  EXPECT_EQ(run_hoist({"rewrite", open, "--dim", "batch=4", "--pass", "inline-definitions"}).out, ran.out);
  ran = run_hoist({"rewrite", open, "--dim", "batch=9"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("size batch: 9 lies outside its bounds, from 1 to 8"));
  ran = run_hoist({"compile", open, "-o", in_folder("open.hoist")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("is a program as text, and an ONNX model is needed (hoist rewrite runs passes"));
  EXPECT_EQ(run_hoist({"rewrite", open, "--dim", "batch"}).code, 2);
  EXPECT_EQ(run_hoist({"rewrite", open, "--dim", "batch=1", "--dim", "batch=2"}).code, 2);
  EXPECT_EQ(run_hoist({"rewrite", written("term.lift", "%x : f32\n"), "--dim", "n=1"}).code, 2);
}

TEST_F(RewriteCommand, TakesAUsersRulesBetweenCalls) {
  const std::string program = written("net.lift",
                                      "program version 28\ninput %x : [2]f32\ndefine %a : [2]f32 = Neg(%x)\n"
                                      "define %y : [2]f32 = Neg(%a)\ndefine %z : [2]f32 = Add(%y, %x)\noutput %z\n");
  const std::string head = "  meaning m\n  left Neg(Neg(x))\n  right Identity(x)\n  example Neg(Neg(%x : [n]f32))\n";
  const std::string rules = written("mine.rules", "rule twice-negated exact\n" + head);
  Ran ran = run_hoist({"rewrite", program, "--rules", rules, "--rule", "twice-negated", "--at", "y"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("define %y : [2]f32 = Identity(%x)"));
  EXPECT_THAT(ran.out, Not(HasSubstr("Neg(")));
  EXPECT_EQ(run_hoist({"rewrite", program, "--rules", rules, "--pass", "user-rules"}).out, ran.out);
  EXPECT_EQ(run_hoist({"rewrite", program, "--rules", rules, "--rule", "twice-negated", "--at", "z"}).code, 1);
  EXPECT_EQ(run_hoist({"rewrite", program, "--pass", "user-rules"}).code, 3);
  const std::string rounding = written("rounding.rules", "rule twice-negated rounding\n" + head);
  ran = run_hoist({"rewrite", program, "--rules", rounding, "--strict", "--rule", "twice-negated", "--at", "y"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("twice-negated: is a rounding rule, and --strict allows only exact rules"));
  EXPECT_EQ(run_hoist({"rewrite", program, "--rules", rounding, "--strict", "--pass", "user-rules"}).code, 3);
  ran = run_hoist({"rewrite", program, "--rules",
                   written("wrong.rules",
                           "rule lost-sign exact\n  meaning m\n  left Abs(x)\n  right Identity(x)\n"
                           "  example Abs(%x : [n]f32)\n")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("wrong.rules:1:6: lost-sign: is wrong as a rule of class exact"));
}

TEST_F(RewriteCommand, WrongUseIsSaid) {
  const std::string term = written("term.lift", "%x : f32\n");
  Ran ran = run_hoist({"rewrite", term, "--pass", "inline-definitions"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("applies to programs, and this file holds a term"));
  ran = run_hoist({"rewrite", written("bad.lift", "program\ndefine %y : f32 = %x\n")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("bad.lift:2:19: the type of %x is not known"));
  ran = run_hoist({"compile", model, "-o", in_folder("b"), "--stop-after", "inline-definition"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("did you mean inline-definitions?"));
  ran = run_hoist({"rewrite", in_folder("nothing.lift")});
  EXPECT_EQ(ran.code, 3);
}

}  // namespace hoist::rewrite_test
