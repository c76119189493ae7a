// Tests the derivation of a bundle: replayed and compared by verify, shown by explain, counted by rules, and changed by
// the user's files.
#include "tools/inspection/derivation.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/base/temporary_folder.h"
#include "tests/tools/program.h"

namespace hoist::derivation_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string models = HOIST_SOURCE_DIR "/models/";

class Derivations : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto folder = TemporaryFolder::make();
    ASSERT_TRUE(folder.ok());
    folder_ = new TemporaryFolder(std::move(*folder));
    // With one launch per layer, and with one for all layers.
    for (const auto& [model, fusion] : {std::pair{"digits_residual", "none"}, {"digits_fully_connected", "launch"}}) {
      const Ran ran = run_hoist({"compile", models + model + ".onnx", "-o", in(model), "--no-check", "--pass",
                                 std::string("fusion=") + fusion});
      ASSERT_EQ(ran.code, 0) << ran.err;
    }
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string in(const std::string& name) { return (folder_->path() / name).string(); }
  static std::string written(const std::string& name, const std::string& text) {
    std::ofstream(in(name)) << text;
    return in(name);
  }
  static BundleInfo bundle(const std::string& name) {
    auto info = read_bundle(in(name), true);
    HOIST_CHECK(info.ok(), info.errors()[0].text());
    return std::move(*info);
  }
  // The failures of the checks.
  static std::string faults(const BundleInfo& info) {
    auto findings = check_derivation(info, nullptr);
    if (!findings.ok()) return findings.errors()[0].text();
    std::string out;
    for (const Finding& finding : *findings) {
      if (!finding.passed) out += finding.subject + ": " + finding.message + "\n";
    }
    return out;
  }
  static std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return at == std::string::npos ? text : text.replace(at, what.size(), by);
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Derivations::folder_ = nullptr;

TEST_F(Derivations, VerifyReplaysThem) {
  Ran ran = run_hoist({"verify", in("digits_residual"), "--derivation"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("2 of 2 checks passed\n"));
  ran = run_hoist({"verify", in("digits_residual"), "--derivation", "--model", models + "digits_residual.onnx"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("passed derivation, its start\n"));
  std::filesystem::copy_file(models + "digits_residual.onnx", in("under another name.onnx"));
  ran = run_hoist({"verify", in("digits_residual"), "--derivation", "--model", in("under another name.onnx")});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  ran = run_hoist({"verify", in("digits_residual"), "--derivation", "--model", models + "digits_fully_connected.onnx"});
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("failed derivation, its start: the model is another program"));
  ran = run_hoist({"verify", in("digits_residual"), "--model", models + "digits_residual.onnx"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--derivation"));
  const auto json =
      nlohmann::json::parse(run_hoist({"verify", in("digits_residual"), "--derivation", "--json", "-"}).out);
  EXPECT_EQ(json["passed"], true);
  EXPECT_EQ(json["findings"].size(), 2U);
}

TEST_F(Derivations, WhatDoesNotLeadToTheBundleIsFound) {
  const BundleInfo info = bundle("digits_residual");
  EXPECT_EQ(faults(info), "");
  BundleInfo other = info;
  other.plan.derivation = replaced(info.plan.derivation, "multiply-add-to-fma at", "fma-to-multiply-add at");
  EXPECT_THAT(faults(other), HasSubstr("does not apply"));
  other.plan.derivation = replaced(info.plan.derivation, "open-unroll at", "open-seq at");
  EXPECT_THAT(faults(other), HasSubstr("kernel "));
  EXPECT_THAT(faults(other), HasSubstr("expected"));
  // A constant of the model that a kernel reads unchanged, and one that a step has computed.
  const std::string bias = "  constant %\"block2/normalize2.bias\" : [32]f32 = #";
  other.plan.derivation = replaced(info.plan.derivation, bias, bias + "0");
  EXPECT_THAT(faults(other), HasSubstr("the weights block2/normalize2.bias are #"));
  other = info;
  for (PlanArray& array : other.plan.arrays) {
    if (array.place != Place::weights) continue;
    array.constant.data()[0] ^= std::byte{1};
    break;
  }
  EXPECT_THAT(faults(other), HasSubstr("the weights "));
  other.plan.derivation = "program\nsteps\ninline-definitions\n";
  EXPECT_THAT(faults(other), HasSubstr("unknown pass inline-definitions over the whole program"));
  other.plan.derivation = "nothing";
  EXPECT_THAT(faults(other), HasSubstr("derivation.lift"));
}

TEST_F(Derivations, ExplainShowsBothSidesOfEveryStep) {
  for (const std::vector<std::string>& subject :
       {std::vector<std::string>{in("digits_residual")}, {models + "digits_residual.onnx", "--pass", "fusion=none"}}) {
    const auto explained = [&](const std::vector<std::string>& options) {
      std::vector<std::string> words = {"explain"};
      words.insert(words.end(), subject.begin(), subject.end());
      words.insert(words.end(), "conv1");
      words.insert(words.end(), options.begin(), options.end());
      return run_hoist(words);
    };
    const Ran ran = explained({});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("inline-definitions(operator = Relu) at layer relu1  [exact]  inlines the "
                                   "definition of every operator call"));
    EXPECT_THAT(ran.out, HasSubstr("          Relu(%normalize1)\n        = %normalize1 |> map3d (map relu)\n"));
    EXPECT_THAT(ran.out, HasSubstr("          %x1 + %x0.0 * %x0.1\n        = fma(%x0.0, %x0.1, %x1)\n"));
    EXPECT_THAT(ran.out, Not(HasSubstr("relu1:1.")));
    const Ran paths = explained({"--paths"});
    EXPECT_THAT(paths.out, HasSubstr("open-unroll at relu1:1."));
    EXPECT_GT(explained({"--terms"}).out.size(), ran.out.size());
  }
}

TEST_F(Derivations, ConvolutionsInSeveralKernelsReplay) {
  const std::string model = models + "digits_residual.onnx", folder = in("winograd");
  Ran ran = run_hoist({"compile", model, "-o", folder, "--pass", "convolution=winograd", "--no-check"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_hoist({"verify", folder, "--derivation", "--model", model});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  // Each kernel of the form has its derivation.
  ran = run_hoist({"explain", folder, "conv1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  size_t cuts = 0;
  for (size_t at = 0; (at = ran.out.find(" outline-kernels at layer ", at)) != std::string::npos; ++at) ++cuts;
  EXPECT_EQ(cuts, 6U) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr(" winograd-f4x4-3x3-bias(i = 0, j = 0) at layer conv1  [rounding]"));
  ran = run_hoist({"compile", model, "-o", in("both"), "--pass", "convolution=winograd", "--strict"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--pass convolution=winograd: rounds differently from the model"));
}

TEST_F(Derivations, LongTextsAreCutAndSharedPartsNamed) {
  Expr x = parameter("x", array_type(8, scalar_type(Scalar::f32)));
  Expr sum = reduce(Function::add, literal(Scalar::f32, 0), map([](Expr e) { return operator_multiply(e, e); }, x));
  const auto [left, right] = sides_of_step(operator_add(sum, sum), operator_multiply(sum, literal(Scalar::f32, 2)));
  EXPECT_EQ(left, "%A + %A");
  EXPECT_EQ(right, "%A * 2");
}

TEST_F(Derivations, RulesCountsWhatBundlesUse) {
  const Ran ran = run_hoist({"rules", "--used", in("digits_residual"), in("digits_fully_connected")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("  batch-norm-folding\n"));
  EXPECT_THAT(ran.out, HasSubstr("  inline-definitions Relu\n"));
  EXPECT_THAT(ran.out, HasSubstr("are used by 2 bundles\n"));
  const auto both = nlohmann::json::parse(
      run_hoist({"rules", "--used", in("digits_residual"), in("digits_fully_connected"), "--json", "-"}).out);
  const auto one = nlohmann::json::parse(run_hoist({"rules", "--used", in("digits_residual"), "--json", "-"}).out);
  EXPECT_EQ(one["rules"]["batch-norm-folding"], both["rules"]["batch-norm-folding"]);
  EXPECT_GT(both["rules"]["inline-definitions Relu"], one["rules"]["inline-definitions Relu"]);
  EXPECT_EQ(run_hoist({"rules", "map-fusion", "--used", in("digits_residual")}).code, 2);
  EXPECT_EQ(run_hoist({"rules", "--used", in("no-bundle")}).code, 3);
  EXPECT_THAT(run_hoist({"rules", "map-fusion"}).out, HasSubstr("    library: "));
  EXPECT_THAT(run_hoist({"rules", "open-tiles"}).out, Not(HasSubstr("    library: ")));
}

constexpr char rules[] =
    "rule halve-loop exact\n  given x: [2*m]T, f: T -> U\n  left map f x\n"
    "  right join (map (map f) (split 2 x))\n  meaning a loop of pairs\n";

TEST_F(Derivations, UsersScheduleAKernel) {
  const std::string model = models + "digits_fully_connected.onnx";
  const std::string mine = written("mine.rules", rules);
  const std::string layers = run_hoist({"inspect", model}).out;
  const std::string layer = "dense2";
  ASSERT_THAT(layers, HasSubstr(layer)) << layers;
  const std::string steps = written("mine.steps",
                                    "reduce-map-fusion-to-fold everywhere\nmultiply-add-to-fma everywhere\n"
                                    "open-tiles(R = 1, C = 16) at result\nopen-unroll in map group(2)\n"
                                    "open-vectors(k = 4) in map unroll\n");
  // The values are the same: the self-check runs the kernel on the device.
  Ran ran = run_hoist({"compile", model, "-o", in("scripted"), "--rules", mine, "--steps", layer + "=" + steps});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(run_hoist({"verify", in("scripted"), "--derivation", "--model", model}).code, 0);
  EXPECT_THAT(run_hoist({"explain", in("scripted"), layer}).out, HasSubstr("open-tiles(C = 16, R = 1)"));
  ran = run_hoist({"inspect", model, layer, "--stage", "low", "--steps", layer + "=" + steps});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("split 16"));

  const std::string wrong = written("wrong.steps", "open-tyles at result\n");
  ran = run_hoist({"compile", model, "-o", in("wrong"), "--steps", layer + "=" + wrong});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("wrong.steps:1: unknown rule open-tyles (did you mean open-tiles?)"));
  EXPECT_FALSE(fs::exists(in("wrong")));
  EXPECT_EQ(run_hoist({"compile", model, "-o", in("wrong"), "--steps", layer}).code, 2);
  EXPECT_EQ(run_hoist({"explain", in("scripted"), layer, "--steps", layer + "=" + steps}).code, 2);
  ran = run_hoist({"compile", model, "-o", in("wrong"), "--rules",
                   written("wrong.rules", replaced(rules, "split 2 x", "split 2 y"))});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr(": halve-loop"));
  EXPECT_FALSE(fs::exists(in("wrong")));
}

TEST_F(Derivations, RulesBetweenCallsApplyAndReplay) {
  const std::string model = models + "digits_fully_connected.onnx";
  const std::string text =
      "rule relu-as-maximum exact\n  given x: X\n  left Relu(x)\n  right Max(x, zero) where zero = fill 0f32 [1]\n"
      "  meaning the larger of a number and zero\n  example Relu(%x : [n][m]f32)\n";
  const std::string mine = written("calls.rules", text);
  Ran ran = run_hoist({"compile", model, "-o", in("ruled"), "--rules", mine});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, Not(HasSubstr("--steps applies them")));
  ran = run_hoist({"verify", in("ruled"), "--derivation", "--model", model});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  ran = run_hoist({"rules", "--used", in("ruled")});
  EXPECT_THAT(ran.out, HasSubstr("  relu-as-maximum\n"));
  EXPECT_THAT(run_hoist({"compile", model, "-o", in("stopped"), "--rules", mine, "--stop-after", "user-rules"}).out,
              HasSubstr("Max("));
  const std::string rounding = written("rounding.rules", replaced(text, "exact", "rounding"));
  ran = run_hoist({"compile", model, "-o", in("strict"), "--rules", rounding, "--strict"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("relu-as-maximum: is a rounding rule, and --strict allows only exact rules"));
  EXPECT_FALSE(fs::exists(in("strict")));
}

TEST_F(Derivations, RewriteTakesTheUsersRules) {
  const std::string term = written("term.lift", "map (* 2) %x : [8]f32\n");
  const Ran ran = run_hoist({"rewrite", term, "--rules", written("mine.rules", rules), "--rule", "halve-loop"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "%x : [8]f32 |> split 2 |> map2d (* 2) |> join\n");
  EXPECT_EQ(run_hoist({"rewrite", term, "--rule", "halve-loop"}).code, 2);
}

}  // namespace hoist::derivation_test
