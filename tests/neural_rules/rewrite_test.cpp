// Tests rewritten models: the same program without an assignment, bad assignments refused with a suggestion, and graphs
// that can be lowered and that differ from the original by the format's error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lowering/pipeline/lower.h"
#include "neural_rules/formats/formats.h"
#include "neural_rules/rewrite/rewrite_model.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"
#include "tests/support/lower_model.h"

namespace hoist::rewrite_test {

using testing::HasSubstr;

RewrittenModel rewritten(const CalibratedModel& model, const Assignment& assignment) {
  auto result = rewrite(model.program, assignment, model.statistics);
  HOIST_CHECK(result.ok(), result.errors()[0].text());
  return std::move(*result);
}

std::string error_of(const Assignment& assignment) {
  const CalibratedModel model = calibrated(residual_model(1), 1, 7);
  auto result = rewrite(model.program, assignment, model.statistics);
  return result.ok() ? "" : result.errors()[0].text();
}

std::vector<std::string> operations(const Program& program) {
  std::vector<std::string> out;
  for (const NamedCall& layer : named_calls(program)) out.push_back(layer.operation);
  return out;
}

TEST(Rewrite, AnEmptyAssignmentGivesTheSameProgram) {
  const CalibratedModel model = calibrated(residual_model(1), 1, 7);
  const Program same = rewritten(model, {}).program;
  EXPECT_TRUE(same_program(same, model.program));
  EXPECT_TRUE(same.steps.empty());
}

// Properties that rewrites rely on: several results, one of them unused, shapes that became attributes, absorbed
// layers.
TEST(Rewrite, CallsByNameMakeTheSameProgramAgain) {
  NamedModel model;
  model.opset = 23;
  model.inputs = {{"x", Scalar::f32, {6, 4}}};
  model.outputs = {{"y", Scalar::f32, {}}};
  model.constants["shape"] = Tensor::of<int64_t>(Scalar::i64, {2}, {2, -1});
  model.layers = {{"split", "Split", "", {{"num_outputs", int64_t{3}}}, {"x"}, {"a", "", "c"}},
                  {"sum", "Add", "", {}, {"a", "c"}, {"s"}, {"part of the sum"}},
                  {"flat", "Reshape", "", {}, {"s", "shape"}, {"y"}}};
  const auto program = program_of(model);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const std::vector<NamedCall> calls = named_calls(*program);
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_THAT(calls[0].outputs, testing::ElementsAre("a", "", "c"));
  EXPECT_THAT(calls[1].absorbed, testing::ElementsAre("part of the sum"));
  EXPECT_THAT(calls[2].inputs, testing::ElementsAre("s"));
  const auto again = with_calls(*program, calls);
  ASSERT_TRUE(again.ok()) << again.errors()[0].text();
  EXPECT_TRUE(same_program(*program, *again));
}

TEST(Rewrite, UnknownNamesFailWithTheNearMiss) {
  EXPECT_THAT(error_of({{"value relu3", "u8"}}), HasSubstr("did you mean value relu"));
  EXPECT_THAT(error_of({{"product conv1", "w8a9"}}), HasSubstr("did you mean w8a8?"));
  EXPECT_THAT(error_of({{"value relu1", "w8"}}), HasSubstr("the rule is for a product"));
}

TEST(Rewrite, AnIntegerProductNeedsItsInputFormat) {
  EXPECT_THAT(error_of({{"product conv1", "w8a8"}}), HasSubstr("stored as f32"));
  EXPECT_THAT(error_of({{"product conv1", "w8a8"}, {"value x", "f16"}}), HasSubstr("stored as f16"));
  EXPECT_EQ(error_of({{"product conv1", "w8a8"}, {"value x", "u8-mse"}}), "");
}

TEST(Rewrite, StatisticsAreAskedForByName) {
  auto result = rewrite(residual_model(1), {{"value relu1", "u8"}}, {});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.errors()[0].text(), HasSubstr("relu1: there are no statistics"));
}

TEST(Rewrite, MoversRunInTheSmallFormat) {
  const CalibratedModel model = calibrated(residual_model(1), 2, 7);
  const Program program = rewritten(model, {{"value relu2", "u8"}, {"product conv3", "w8a8"}}).program;
  EXPECT_THAT(operations(program), testing::ElementsAre("Conv", "Relu", "Conv", "Add", "Relu", "QuantizeLinear",
                                                        "MaxPool", "DequantizeLinear", "DequantizeLinear", "Conv",
                                                        "Sigmoid", "Mul", "Flatten", "Gemm"));
  const std::vector<NamedCall> layers = named_calls(program);
  EXPECT_EQ(layers[9].inputs[0], layers[7].outputs[0]);
  EXPECT_EQ(layers[9].inputs[0], "pool");
  EXPECT_EQ(layers[9].inputs[1], layers[8].outputs[0]);
}

TEST(Rewrite, MovedNumbersAreThoseOfTheFormat) {
  const CalibratedModel model = calibrated(residual_model(1), 2, 7);
  for (const char* rule : {"f16", "bf16", "u8", "i8", "i16", "e4m3"}) {
    const Program program = rewritten(model, {{"value relu2", rule}}).program;
    const Grid grid = grid_of(*find_value_format(rule), model.statistics.at("relu2"));
    const Bindings before = all_values(model.program, model.samples[0]), after = all_values(program, model.samples[0]);
    const Tensor &pool = before.at("pool"), &moved = after.at("pool");
    for (int64_t i = 0; i < pool.size(); ++i)
      EXPECT_NEAR(moved.float_at(i), rounded(grid, pool.float_at(i)), 1e-6 * std::abs(pool.float_at(i))) << rule;
  }
}

// A model whose input can be stored.
Program one_reader(const std::vector<int64_t>& shape, bool matrix) {
  ModelBuilder b(3);
  b.input("x", shape);
  if (matrix)
    b.layer("MatMul", "y", {"x", b.constant("w", {shape.back(), 2}, 1)});
  else
    b.layer("GlobalAveragePool", "y", {"x"});
  return b.finish({"y"});
}

// By the definition: the exponent of the largest among the block's 32 elements along the axis.
double in_block(const Tensor& x, size_t axis, int64_t i) {
  int64_t inner = 1;
  for (size_t d = axis + 1; d < x.shape().size(); ++d) inner *= x.shape()[d];
  const int64_t extent = x.shape()[axis], at = i / inner % extent, first = at / 32 * 32;
  double largest = 0;
  for (int64_t k = first; k < std::min(first + 32, extent); ++k)
    largest = std::max(largest, std::abs(x.float_at(i + (k - at) * inner)));
  int exponent = 0;
  std::frexp(largest, &exponent);
  const double step = largest == 0 ? 1 : std::ldexp(1.0, exponent - 7);
  return std::min(std::nearbyint(x.float_at(i) / step), 127.0) * step;
}

TEST(Rewrite, BlocksHaveAPowerOfTwoOfTheirOwn) {
  struct Case {
    std::vector<int64_t> shape;
    bool matrix;
    size_t axis;
  };
  for (const Case& c : {Case{{2, 64, 3, 3}, false, 1}, Case{{2, 40, 3, 3}, false, 1}, Case{{1, 5, 4, 4}, false, 1},
                        Case{{3, 7, 72}, true, 2}}) {
    const Program program = one_reader(c.shape, c.matrix);
    const RewrittenModel changed = rewritten({program, {}, {}}, {{"value x", "bfp8"}});
    for (const double deviation : {1.0, 1e-20, 1e30}) {
      SCOPED_TRACE(testing::Message() << testing::PrintToString(c.shape) << " " << deviation);
      Tensor x = normal_tensor(c.shape, deviation, 0, 5);
      // Values at and just below powers of two, and a block of zeros.
      for (int64_t i = 0; i < x.size(); i += 17)
        x.set_float(i,
                    std::ldexp(1.0, std::ilogb(deviation) + static_cast<int>(i % 5)) * (i % 2 == 0 ? 1 : 1 - 0x1p-24));
      for (int64_t i = 0; i < x.size(); ++i) {
        if (c.matrix ? i < c.shape.back() : i % (c.shape[2] * c.shape[3]) == 0) x.set_float(i, 0);
      }
      const Bindings values = all_values(changed.program, {{"x", x}});
      const Tensor& stored = values.at("x/dequantise");
      for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(stored.float_at(i), in_block(x, c.axis, i)) << i;
    }
  }
}

TEST(Rewrite, BlocksNeedChannels) {
  ModelBuilder b(3);
  b.input("x", {70});
  b.layer("Softmax", "y", {"x"});
  const Program program = b.finish({"y"});
  EXPECT_THAT(why_not(*find_neural_rule("bfp8"), find_sites(program)[0], program).value_or(""),
              HasSubstr("no channels"));
}

TEST(Rewrite, ProofsAreStated) {
  const CalibratedModel model = calibrated(residual_model(1), 2, 7);
  const RewrittenModel changed =
      rewritten(model, {{"value x", "u8"}, {"product conv1", "w8a8"}, {"value relu1", "f16"}});
  ASSERT_EQ(changed.uses.size(), 3U);
  EXPECT_THAT(changed.uses[0].parameters, HasSubstr("zero point = "));
  // 27 products of at most 127 * 255.
  EXPECT_THAT(changed.uses[1].proof, testing::StartsWith("sums stay below 2^31: "));
  const double bound = std::stod(changed.uses[1].proof.substr(changed.uses[1].proof.rfind(' ')));
  EXPECT_GT(bound, 127 * 255);
  EXPECT_LE(bound, 27 * 127 * 255);
  EXPECT_THAT(changed.uses[2].proof, HasSubstr("f16 ends at 65504"));
  ASSERT_EQ(changed.program.steps.size(), 3U);
  const ProgramStep& product = changed.program.steps.back();  // values are stored first
  EXPECT_EQ(product.rule, "w8a8");
  EXPECT_EQ(product.rule_class, RuleClass::neural);
  EXPECT_EQ(product.note, changed.uses[1].parameters + "; " + changed.uses[1].proof);
  for (const ProgramStep& step : changed.program.steps) EXPECT_TRUE(step.replays) << step.rule;
}

TEST(Rewrite, NumbersBeyondTheFormatAreRefused) {
  CalibratedModel model = calibrated(residual_model(1), 1, 7);
  model.statistics.at("relu1").high = 40000;
  auto result = rewrite(model.program, {{"value relu1", "f16"}}, model.statistics);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.errors()[0].text(), HasSubstr("largest magnitude is 40000"));
}

TEST(Rewrite, SumsThatMayOverflowAreRefused) {
  ModelBuilder b(1);
  b.input("x", {1, 70000});
  b.constant("w", {70000, 1}, 0, 0.5);
  b.layer("MatMul", "y", {"x", "w"});
  const Program program = b.finish({"y"});
  const Site site = find_sites(program).back();
  EXPECT_THAT(why_not(*find_neural_rule("w8a8"), site, program).value_or(""), HasSubstr("may overflow i32"));
  EXPECT_FALSE(why_not(*find_neural_rule("w8"), site, program).has_value());
}

TEST(Rewrite, OldModelsCannotSayBlocks) {
  Program program = residual_model(1);
  program.version = 18;
  const Site site = find_sites(program)[1];
  EXPECT_THAT(why_not(*find_neural_rule("w4-g32"), site, program).value_or(""), HasSubstr("version 21 can"));
  EXPECT_FALSE(why_not(*find_neural_rule("w8"), site, program).has_value());
}

TEST(Rewrite, OnePairForAllReaders) {
  const CalibratedModel model = calibrated(residual_model(1), 2, 7);
  const Program program = rewritten(model, {{"value relu1", "u8"}}).program;
  int dequantised = 0;
  for (const NamedCall& layer : named_calls(program)) dequantised += layer.operation == "DequantizeLinear" ? 1 : 0;
  EXPECT_EQ(dequantised, 1);
}

TEST(Rewrite, EveryRuleGivesAModelThatLowers) {
  for (const Program& program : {residual_model(1), matrix_model(1)}) {
    const CalibratedModel model = calibrated(program, 2, 7);
    for (const Site& site : find_sites(program)) {
      for (const NeuralRule& rule : neural_rules()) {
        if (rule.kind != site.kind || why_not(rule, site, program)) continue;
        Assignment assignment = {{site.key(), std::string(rule.name)}};
        if (rule.input()) {
          for (const Site& value : find_sites(program)) {
            if (value.kind == SiteKind::value) assignment[value.key()] = row(*rule.input()).name;
          }
        }
        SCOPED_TRACE(site.key() + " " + std::string(rule.name));
        const RewrittenModel changed = rewritten(model, assignment);
        EXPECT_TRUE(lower_model(changed.program, {}, {}).ok());
        if (rule.kind == SiteKind::function) {
          EXPECT_EQ(changed.functions.at(site.layer), rule.name);
          EXPECT_THAT(changed.uses[0].proof, HasSubstr("within "));
          continue;
        }
        const std::string& output = program.outputs[0];
        EXPECT_GT(measured_error(model, changed.program, output), 0);
        EXPECT_LT(measured_error(model, changed.program, output), 0.1 * model.statistics.at(output).mean_square);
      }
    }
  }
}

}  // namespace hoist::rewrite_test
