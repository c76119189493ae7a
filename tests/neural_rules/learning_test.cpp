// Models in the form that training needs: forward values of the rewritten model, and straight-through gradients.
#include <gtest/gtest.h>

#include "neural_rules/formats/formats.h"
#include "neural_rules/learning/trainable_model.h"
#include "neural_rules/rewrite/format_rules.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/random_assignment.h"

namespace hoist::learning_test {

// Two contractions, a maximum and a tanh.
Program small_model() {
  ModelBuilder b(3);
  b.input("x", {2, 3, 8, 8});
  b.constant("w", {8, 3, 3, 3}, 0.3);
  b.constant("b", {8}, 0.2);
  b.layer("Conv", "conv", {"x", "w", "b"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  b.layer("Relu", "relu", {"conv"});
  b.layer("MaxPool", "pool", {"relu"},
          {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  b.layer("Flatten", "flat", {"pool"}, {{"axis", int64_t{1}}});
  b.layer("Tanh", "tanh", {"flat"});
  b.constant("v", {128, 5}, 0.1);
  b.layer("MatMul", "y", {"tanh", "v"});
  return b.finish({"y"});
}

TrainableModel trainable(const CalibratedModel& model, const Assignment& assignment, bool learns_scales = false) {
  auto made = trainable_model(model.program, assignment, model.statistics, learns_scales);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.errors()[0].text());
  return made.ok() ? std::move(*made) : TrainableModel();
}

std::map<std::string, Tensor> constants_of(const TrainableModel& model) {
  std::map<std::string, Tensor> out;
  for (const TrainedConstant& constant : model.constants)
    out.emplace(constant.name, model.program.constants.at(constant.name));
  return out;
}

TEST(TrainableModel, HasTheValuesOfTheRewrittenModelBitForBit) {
  const CalibratedModel model = calibrated(small_model(), 8, 5);
  int compared = 0;
  for (const NeuralRule& rule : neural_rules()) {
    if (!rule.product || rule.product->adaptive || rule.half()) continue;
    Assignment assignment;
    for (const Site& site : find_sites(model.program)) {
      if (site.kind == SiteKind::product && !why_not(rule, site, model.program))
        assignment[site.key()] = std::string(rule.name);
      const auto input = rule.input();
      if (site.kind != SiteKind::value) continue;
      const bool is_signed = input == Scalar::i8, is_long = input == Scalar::i16, is_float = input == Scalar::bf16;
      assignment[site.key()] = is_signed ? "i8" : is_long ? "i16" : is_float ? "bf16" : "u8";
    }
    const auto rewritten = rewrite(model.program, assignment, model.statistics);
    ASSERT_TRUE(rewritten.ok()) << rule.name << ": " << rewritten.errors()[0].text();
    const TrainableModel training = trainable(model, assignment);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(all_values(training.program, model.samples[i]).at("y"),
                all_values(rewritten->program, model.samples[i]).at("y"))
          << rule.name;
    ++compared;
    // Constants that training has not changed give the numbers of packing.
    auto same = *rewritten;
    const auto packed = retrained_weights(training, constants_of(training));
    ASSERT_TRUE(packed.ok());
    ASSERT_TRUE(put_retrained(same.program, *packed).ok());
    EXPECT_EQ(all_values(same.program, model.samples[0]).at("y"),
              all_values(rewritten->program, model.samples[0]).at("y"))
        << rule.name;
  }
  EXPECT_GE(compared, 15);
}

// The derivative of the sum of the outputs along a constant or an input, by central differences in the exact model.
double difference_along(const Program& program, const std::string& name, int64_t at, Bindings inputs, double step) {
  double sums[2];
  for (const int side : {0, 1}) {
    Program moved = program;
    Tensor& tensor = moved.constants.count(name) != 0 ? moved.constants.at(name) : inputs.at(name);
    const double here = tensor.float_at(at);
    tensor.set_float(at, here + (side == 1 ? step : -step));
    const Bindings values = all_values(moved, inputs);
    sums[side] = 0;
    for (int64_t i = 0; i < values.at("y").size(); ++i) sums[side] += values.at("y").float_at(i);
    tensor.set_float(at, here);
  }
  return (sums[1] - sums[0]) / (2 * step);
}

TEST(TrainableModel, GradientsPassRoundingAndStopOutsideTheRange) {
  ModelBuilder b(3);
  b.input("x", {1, 4});
  b.constant("w", Tensor::of<float>(Scalar::f32, {4, 2}, {0.5F, -0.25F, 0.75F, 1, -1, 0.3F, 0.2F, -0.6F}));
  b.layer("MatMul", "y", {"x", "w"});
  CalibratedModel model = calibrated(b.finish({"y"}), 8, 5);
  model.statistics.at("x").low = -1, model.statistics.at("x").high = 1;
  const Assignment assignment = {{site_key(SiteKind::value, "x"), "i8"}, {site_key(SiteKind::product, "y"), "w8"}};
  const TrainableModel training = trainable(model, assignment);
  ASSERT_EQ(training.constants.size(), 1U);
  const std::string weights = training.constants[0].name;
  const auto made = gradient(training.program, {"y", true, {"x", weights}, training.straight_through});
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  const Bindings inputs = {{"x", Tensor::of<float>(Scalar::f32, {1, 4}, {0.3F, -0.7F, 3, -5})}};
  const Bindings values = all_values(*made, inputs);
  const Tensor &of_x = values.at("x.gradient"), &of_w = values.at(weights + ".gradient");
  for (int64_t i = 0; i < 4; ++i) {
    const double expected = i < 2 ? difference_along(model.program, "x", i, inputs, 0.01) : 0;
    EXPECT_NEAR(of_x.float_at(i), expected, 0.01) << i;
  }
  // The gradient of a weight is its rounded and clipped factor; the constant counts steps of the weight's scale.
  const std::vector<float>& scales = training.constants[0].rounded->prepared.packed.scales;
  for (int64_t i = 0; i < 8; ++i) {
    const double factor = std::clamp(inputs.at("x").float_at(i / 2), -1.0, 1.0);
    EXPECT_NEAR(of_w.float_at(i) / scales[static_cast<size_t>(i % 2)], factor, 0.01) << i;
  }
  // A weight outside the range of its scale stays where it is.
  Program outside = training.program;
  outside.constants.at(weights).set_float(1, 4000);
  const auto again = gradient(outside, {"y", true, {weights}, training.straight_through});
  ASSERT_TRUE(again.ok());
  const Bindings found = all_values(*again, inputs);
  EXPECT_EQ(found.at(weights + ".gradient").float_at(1), 0);
  EXPECT_NE(found.at(weights + ".gradient").float_at(0), 0);
}

TEST(TrainableModel, ApproximatedFunctionsHaveTheDerivativeOfTheExactFunction) {
  const CalibratedModel model = calibrated(small_model(), 8, 5);
  std::string function;
  for (const NeuralRule& rule : neural_rules()) {
    if (rule.kind == SiteKind::function && rule.name.starts_with("tanh") && function.empty()) function = rule.name;
  }
  const Assignment assignment = {{site_key(SiteKind::product, "y"), "w8"},
                                 {site_key(SiteKind::function, "tanh"), function}};
  const TrainableModel training = trainable(model, assignment);
  const auto made = gradient(training.program, {"y", true, {"x"}, training.straight_through});
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  const auto exact = gradient(model.program, {"y", true, {"x"}});
  ASSERT_TRUE(exact.ok());
  const Tensor found = all_values(*made, model.samples[0]).at("x.gradient"),
               wanted = all_values(*exact, model.samples[0]).at("x.gradient");
  for (int64_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found.float_at(i), wanted.float_at(i), 5e-3);
}

TEST(RetrainedWeights, AreStepsThatReplay) {
  const CalibratedModel model = calibrated(small_model(), 8, 5);
  const Assignment assignment = {{site_key(SiteKind::product, "conv"), "w4-g32"},
                                 {site_key(SiteKind::product, "y"), "w8"}};
  const TrainableModel training = trainable(model, assignment);
  ASSERT_EQ(training.constants.size(), 3U);
  auto constants = constants_of(training);
  for (auto& [name, tensor] : constants) {
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_float(i, tensor.float_at(i) * 0.8 + 0.01);
  }
  const auto retrained = retrained_weights(training, constants);
  ASSERT_TRUE(retrained.ok());
  auto rewritten = rewrite(model.program, assignment, model.statistics);
  ASSERT_TRUE(rewritten.ok());
  const size_t before = rewritten->program.steps.size();
  ASSERT_TRUE(put_retrained(rewritten->program, *retrained).ok());
  ASSERT_EQ(rewritten->program.steps.size(), before + 3);
  // The last step of training has computed with the same numbers.
  Program last = training.program;
  for (const auto& [name, tensor] : constants) last.constants.at(name) = tensor;
  EXPECT_EQ(all_values(last, model.samples[0]).at("y"), all_values(rewritten->program, model.samples[0]).at("y"));
  Program again = model.program;
  for (const ProgramStep& step : rewritten->program.steps) {
    const auto repeated = repeat_neural_step(step, again);
    ASSERT_TRUE(repeated.ok() && *repeated) << step.rule << " at " << step.value;
  }
  EXPECT_EQ(again.withheld.size(), 2U) << "large constants are known by their hashes, the bias by its values";
  ASSERT_EQ(again.definitions.size(), rewritten->program.definitions.size());
  for (size_t i = 0; i < again.definitions.size(); ++i)
    EXPECT_EQ(again.definitions[i].expression, rewritten->program.definitions[i].expression);
}

// A scale's gradient is the sum over its weights of quotient and factor; after training the rewritten model has the new
// scales.
TEST(RetrainedWeights, MayHaveOtherScales) {
  const CalibratedModel model = calibrated(small_model(), 8, 5);
  for (const std::string of_conv : {"w8", "w4-g32"}) {
    const Assignment assignment = {{site_key(SiteKind::product, "conv"), of_conv},
                                   {site_key(SiteKind::product, "y"), "w4-g32"}};
    const TrainableModel fixed = trainable(model, assignment), training = trainable(model, assignment, true);
    EXPECT_EQ(all_values(fixed.program, model.samples[0]).at("y"),
              all_values(training.program, model.samples[0]).at("y"));
    auto constants = constants_of(training);
    std::vector<std::string> factors;
    for (const TrainedConstant& constant : training.constants) {
      if (constant.part != RetrainedPart::scales) continue;
      factors.push_back(constant.name);
      Tensor& tensor = constants.at(constant.name);
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.set_float(i, tensor.float_at(i) * (1 + 0.01 * static_cast<double>(i % 5)));
    }
    EXPECT_EQ(factors.size(), 2U);
    const auto retrained = retrained_weights(training, constants);
    ASSERT_TRUE(retrained.ok());
    auto rewritten = rewrite(model.program, assignment, model.statistics);
    ASSERT_TRUE(rewritten.ok());
    const auto put = put_retrained(rewritten->program, *retrained);
    ASSERT_TRUE(put.ok()) << put.errors()[0].text();
    Program last = training.program;
    for (const auto& [name, tensor] : constants) last.constants.at(name) = tensor;
    const Tensor found = all_values(last, model.samples[0]).at("y");
    EXPECT_EQ(found, all_values(rewritten->program, model.samples[0]).at("y"));
    EXPECT_NE(found, all_values(fixed.program, model.samples[0]).at("y"));
    Program again = model.program;
    for (const ProgramStep& step : rewritten->program.steps) {
      const auto repeated = repeat_neural_step(step, again);
      ASSERT_TRUE(repeated.ok() && *repeated) << step.rule << " at " << step.value;
    }
    // The gradient of the last layer's factors against differences of its result, which is linear in them; rounded
    // quotients differ from quotients by at most a half.
    const auto made = gradient(training.program, {"y", true, {factors.back()}, training.straight_through});
    ASSERT_TRUE(made.ok()) << made.errors()[0].text();
    const Tensor gradients = all_values(*made, model.samples[0]).at(factors.back() + ".gradient");
    double product = 0, squares = 0, others = 0;
    for (int64_t i = 0; i < gradients.size(); ++i) {
      const double expected = difference_along(training.program, factors.back(), i, model.samples[0], 0.5);
      product += expected * gradients.float_at(i);
      squares += expected * expected, others += gradients.float_at(i) * gradients.float_at(i);
    }
    EXPECT_GT(product / std::sqrt(squares * others), 0.98);
  }
}

// The gradient of a value's scale: the rounding error of each element inside the range, and the end of the range
// outside.
TEST(RetrainedWeights, MayHaveOtherRangesOfValues) {
  const CalibratedModel model = calibrated(small_model(), 8, 5);
  const Assignment assignment = {{site_key(SiteKind::value, "x"), "i8"},
                                 {site_key(SiteKind::value, "relu"), "u8"},
                                 {site_key(SiteKind::product, "conv"), "w8"}};
  const TrainableModel fixed = trainable(model, assignment), training = trainable(model, assignment, true);
  EXPECT_EQ(all_values(fixed.program, model.samples[0]).at("y"),
            all_values(training.program, model.samples[0]).at("y"));
  auto constants = constants_of(training);
  std::map<std::string, const TrainedConstant*> factors;
  for (const TrainedConstant& constant : training.constants) {
    if (constant.part != RetrainedPart::range) continue;
    factors[constant.layer] = &constant;
    constants.at(constant.name).set_float(0, 0.6 / constant.unit);
  }
  ASSERT_EQ(factors.size(), 2U);
  const auto retrained = retrained_weights(training, constants);
  ASSERT_TRUE(retrained.ok());
  auto rewritten = rewrite(model.program, assignment, model.statistics);
  ASSERT_TRUE(rewritten.ok());
  const auto put = put_retrained(rewritten->program, *retrained);
  ASSERT_TRUE(put.ok()) << put.errors()[0].text();
  Program last = training.program;
  for (const auto& [name, tensor] : constants) last.constants.at(name) = tensor;
  const Bindings values = all_values(last, model.samples[0]);
  EXPECT_EQ(values.at("y"), all_values(rewritten->program, model.samples[0]).at("y"));
  EXPECT_NE(values.at("y"), all_values(fixed.program, model.samples[0]).at("y"));
  Program again = model.program;
  for (const ProgramStep& step : rewritten->program.steps) {
    const auto repeated = repeat_neural_step(step, again);
    ASSERT_TRUE(repeated.ok() && *repeated) << step.rule << " at " << step.value;
  }
  for (size_t i = 0; i < again.definitions.size(); ++i)
    EXPECT_EQ(again.definitions[i].expression, rewritten->program.definitions[i].expression);
  const TrainedConstant& of_x = *factors.at("x/scale");
  const auto reads_quotients = [](const Definition& d) {
    const std::vector<Expr> read = parameters_of(d.expression);
    return std::any_of(read.begin(), read.end(), [](Expr p) { return p->name == "x/quotients"; });
  };
  const std::string rounded_x = std::find_if(last.definitions.begin(), last.definitions.end(), reads_quotients)->value;
  const auto made = gradient(last, {"y", true, {of_x.name, rounded_x}, training.straight_through});
  ASSERT_TRUE(made.ok()) << made.errors()[0].text();
  const Bindings found = all_values(*made, model.samples[0]);
  const double scale = of_x.scales[0] * 0.6F;
  double expected = 0;
  int clipped = 0;
  for (int64_t i = 0; i < model.samples[0].at("x").size(); ++i) {
    const double quotient = model.samples[0].at("x").float_at(i) / scale;
    const bool is_inside = std::abs(quotient) < 127;
    const double number = is_inside ? to_even(quotient) - quotient : std::clamp(quotient, -128.0, 127.0);
    expected += found.at(rounded_x + ".gradient").float_at(i) * number * of_x.scales[0] * of_x.unit;
    clipped += is_inside ? 0 : 1;
  }
  EXPECT_GT(clipped, 1);
  EXPECT_NEAR(found.at(of_x.name + ".gradient").float_at(0) / expected, 1, 0.01);
  EXPECT_FALSE(put_retrained(rewritten->program, {{"w", RetrainedPart::range, Tensor(Scalar::f32, {1})}}).ok());
}

TEST(RetrainedWeights, OfOtherModelsAreRefused) {
  const CalibratedModel model = calibrated(small_model(), 8, 5);
  const Assignment assignment = {{site_key(SiteKind::product, "y"), "w8"}};
  auto rewritten = rewrite(model.program, assignment, model.statistics);
  ASSERT_TRUE(rewritten.ok());
  EXPECT_FALSE(
      put_retrained(rewritten->program, {{"nothing", RetrainedPart::weights, Tensor(Scalar::i8, {128, 5})}}).ok());
  EXPECT_FALSE(put_retrained(rewritten->program, {{"y", RetrainedPart::weights, Tensor(Scalar::i8, {5, 128})}}).ok());
  EXPECT_FALSE(put_retrained(rewritten->program, {{"y", RetrainedPart::bias, Tensor(Scalar::f32, {5})}}).ok());
  const auto nothing = trainable_model(model.program, {}, model.statistics);
  ASSERT_FALSE(nothing.ok());
  EXPECT_NE(nothing.errors()[0].what.find("no weights that the rules round"), std::string::npos);
}

}  // namespace hoist::learning_test
