// Tests the sites of rules: one site per decision, none inside a kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neural_rules/model/constants.h"
#include "neural_rules/neural_rules.h"
#include "neural_rules/rewrite/format_rules.h"
#include "tests/neural_rules/calibrated_model.h"

namespace hoist::sites_test {

using testing::ElementsAre;

std::vector<std::string> keys(const Program& program) {
  std::vector<std::string> out;
  for (const Site& site : find_sites(program)) out.push_back(site.key());
  return out;
}

TEST(Sites, OneForEachDecisionInTheOrderOfTheProgram) {
  EXPECT_THAT(keys(residual_model(1)),
              ElementsAre("value x", "product conv1", "value relu1", "product conv2", "value relu2", "product conv3",
                          "function gate", "value silu", "product dense"));
}

TEST(Sites, PartsThatOnlyAConcatenationReadsShareItsFormat) {
  ModelBuilder b(3);
  b.input("x", {1, 4, 5, 5});
  b.layer("Conv", "left", {"x", b.constant("w1", {4, 4, 1, 1}, 1)});
  b.layer("Conv", "right", {"x", b.constant("w2", {4, 4, 1, 1}, 1)});
  b.layer("Relu", "positive", {"right"});
  b.layer("Concat", "both", {"left", "positive"}, {{"axis", int64_t{1}}});
  b.layer("Conv", "last", {"both", b.constant("w3", {2, 8, 1, 1}, 1)});
  EXPECT_THAT(keys(b.finish({"last"})),
              ElementsAre("value x", "product left", "product right", "value both", "product last"));
}

TEST(Sites, APartThatOthersReadKeepsAFormatOfItsOwn) {
  ModelBuilder b(3);
  b.input("x", {1, 4, 5, 5});
  b.layer("Conv", "left", {"x", b.constant("w1", {4, 4, 1, 1}, 1)});
  b.layer("Conv", "right", {"left", b.constant("w2", {4, 4, 1, 1}, 1)});
  b.layer("Concat", "both", {"left", "right"}, {{"axis", int64_t{1}}});
  b.layer("Conv", "last", {"both", b.constant("w3", {2, 8, 1, 1}, 1)});
  EXPECT_THAT(keys(b.finish({"last"})), ElementsAre("value x", "product left", "value left", "product right",
                                                    "value right", "value both", "product last"));
}

TEST(Sites, WhatIsMadeOfConstantsOrQuantisedAlreadyIsNone) {
  ModelBuilder b(3);
  b.input("x", {2, 4});
  b.constant("w", {4, 4}, 1);
  b.layer("Transpose", "transposed", {"w"});
  b.constant("scale", Tensor::of<double>(Scalar::f32, {}, {0.1}));
  b.layer("QuantizeLinear", "q", {"x", "scale"});
  b.layer("DequantizeLinear", "dq", {"q", "scale"});
  b.layer("MatMul", "y", {"dq", "transposed"});
  EXPECT_THAT(keys(b.finish({"y"})), ElementsAre());
}

TEST(Sites, WeightsThatTheModelReshapesAreConstants) {
  ModelBuilder b(3);
  b.input("x", {2, 12});
  b.constant("w", {3, 4, 5}, 1);
  b.constant("shape", Tensor::of<int64_t>(Scalar::i64, {2}, {-1, 5}));
  b.layer("Reshape", "matrix", {"w", "shape"});
  b.layer("MatMul", "y", {"x", "matrix"});
  CalibratedModel model = calibrated(b.finish({"y"}), 1, 3);
  EXPECT_THAT(keys(model.program), ElementsAre("value x"));
  Program folded = model.program;
  fold_constant_shapes(folded);
  EXPECT_THAT(keys(folded), ElementsAre("value x", "product y"));
  EXPECT_EQ(folded.constants.at("matrix").shape(), (std::vector<int64_t>{12, 5}));
  EXPECT_EQ(measured_error(model, folded, "y"), 0);
  // The step replays; without the weights' values it leads to weights with the hash in the step.
  Program again = model.program, withheld = model.program;
  withheld.withheld["w"] = "0123456789abcdef";
  ASSERT_EQ(folded.steps.size(), 1U);
  EXPECT_TRUE(*repeat_neural_step(folded.steps[0], again));
  EXPECT_TRUE(same_program(again, folded));
  EXPECT_TRUE(*repeat_neural_step(folded.steps[0], withheld));
  EXPECT_EQ(withheld.withheld.count("matrix"), 1U);
  EXPECT_EQ(withheld.withheld.count("w"), 0U);
}

}  // namespace hoist::sites_test
