// Tests hoist grad with the command line: the printed program, a bundle that is verified, and errors.
#include <gmock/gmock.h>

#include "ir/base/temporary_folder.h"
#include "tests/tools/program.h"

namespace hoist::grad_test {

using testing::HasSubstr;

const std::string model = HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx";

Ran grad(std::vector<std::string> more, const std::string& loss = "sum(logits)") {
  std::vector<std::string> all = {"grad", model, "--dim", "N=2", "--of", loss};
  all.insert(all.end(), more.begin(), more.end());
  return run_hoist(all);
}

TEST(GradCommand, PrintsTheProgram) {
  const Ran ran = grad({"--wrt", "inputs,dense1/bias"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("define %\"logits.sum\" : f32 ="));
  EXPECT_THAT(ran.out,
              HasSubstr("output %\"logits.sum\"\noutput %\"image.gradient\"\noutput %\"dense1/bias.gradient\"\n"));
}

TEST(GradCommand, CompilesToAVerifiedBundle) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  for (const std::string target : {"native", "opencl"}) {
    const std::string bundle = (folder->path() / (target + ".hoist")).string();
    Ran ran = grad({"--wrt", "weights,inputs", "--target", target, "-o", bundle});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("agree with the interpreter"));
    ran = run_hoist({"verify", bundle});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("output dense1/weight.gradient"));
    EXPECT_EQ(run_hoist({"verify", bundle, "--derivation"}).code, 0) << target;
    ran = grad({"--wrt", "weights", "--target", target, "-o", bundle});
    EXPECT_EQ(ran.code, 3);
    EXPECT_THAT(ran.err, HasSubstr("use --force to replace the bundle"));
  }
}

TEST(GradCommand, AddsALossToTheOutput) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  for (const std::string loss : {"cross-entropy", "mse"}) {
    const std::string bundle = (folder->path() / loss).string();
    Ran ran = run_hoist(
        {"grad", model, "--dim", "N=2", "--loss", loss, "--wrt", "weights", "--target", "native", "-o", bundle});
    ASSERT_EQ(ran.code, 0) << ran.err;
    ran = run_hoist({"verify", bundle});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("passed kernel loss"));
  }
  // The input of the loss is none of the model's inputs.
  const Ran ran = run_hoist({"grad", model, "--dim", "N=2", "--loss", "mse", "--wrt", "inputs"});
  EXPECT_THAT(ran.out, HasSubstr("input %target : [2][10]f32"));
  EXPECT_THAT(ran.out, HasSubstr("output %loss\noutput %\"image.gradient\"\n"));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("target.gradient")));
}

TEST(GradCommand, CompilesForSeveralSizes) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string bundle = (folder->path() / "sizes").string();
  Ran ran = run_hoist({"grad", model, "--dim", "N=2,3", "--loss", "cross-entropy", "--wrt", "weights", "--target",
                       "native", "-o", bundle});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("for N=3:"));
  ran = run_hoist({"verify", bundle, "--dim", "N=3"});
  EXPECT_EQ(ran.code, 0) << ran.err;
}

// With less memory values are computed again; the derivation has the steps.
TEST(GradCommand, KeepsToAMemory) {
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const std::string attention = HOIST_SOURCE_DIR "/models/digits_attention.onnx";
  const auto path = [&](const std::string& name) { return (folder->path() / name).string(); };
  const auto compiled = [&](const std::string& mib) {
    return run_hoist({"grad", attention, "--dim", "N=16", "--of", "sum(logits)", "--wrt", "weights", "--target",
                      "native", "-o", path(mib), "--memory", mib});
  };
  ASSERT_EQ(compiled("0").code, 0);
  const Ran ran = compiled("0.3");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out + ran.err, HasSubstr("values are computed again"));
  const Ran verified = run_hoist({"verify", path("0.3"), "--derivation"});
  EXPECT_EQ(verified.code, 0) << verified.out;
  const Ran refused = compiled("0.01");
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("raise --memory"));
}

TEST(GradCommand, RefusesWhatHasNoGradient) {
  Ran ran = grad({"--wrt", "weights"}, "logits");
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("logits: is [2][10]f32, and a loss is one number (sum(logits) is the sum"));
  ran = grad({"--wrt", "dense1/wieght"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("dense1/wieght: is no value of the model (did you mean dense1/weight?)"));
  ran = grad({"--wrt", "weights", "--loss", "hinge"}, "logits");
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("hinge: is no loss (cross-entropy, attention-transfer, distillation, mse)"));
  EXPECT_EQ(grad({"--wrt", "inputs", "--no-check"}).code, 2);
  EXPECT_EQ(run_hoist({"grad", model, "--of", "sum(logits)"}).code, 2);
}

}  // namespace hoist::grad_test
