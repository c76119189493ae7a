// Tests all outputs of a model as one: the outputs that are scores, and the sum of errors.
#include "neural_rules/choice/outputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/base/strings.h"
#include "tests/neural_rules/calibrated_model.h"

namespace hoist::outputs_test {

Program with_output_shapes(const std::vector<std::vector<int64_t>>& shapes) {
  Program out;
  for (const std::vector<int64_t>& shape : shapes) {
    const std::string name = "output " + std::to_string(out.outputs.size());
    out.outputs.push_back(name);
    out.inputs.emplace_back(name, type_of(ValueInfo{name, Scalar::f32, shape}));
  }
  return out;
}

Tensor floats(const std::vector<double>& values) {
  return Tensor::of(Scalar::f32, {static_cast<int64_t>(values.size())}, values);
}

TEST(Outputs, ScoresAreOneRowOfClassesASample) {
  const auto kind = [](const std::vector<int64_t>& shape) { return output_kinds(with_output_shapes({shape})).of[0]; };
  EXPECT_EQ(kind({1, 10}), OutputKind::logits);
  EXPECT_EQ(kind({8, 2}), OutputKind::logits);
  EXPECT_EQ(kind({1, 1000, 1, 1}), OutputKind::logits);
  EXPECT_EQ(kind({1, 1000, 1, 2}), OutputKind::values);
  EXPECT_EQ(kind({1, 1, 28, 28}), OutputKind::values);
  EXPECT_EQ(kind({4, 1}), OutputKind::values);
  EXPECT_EQ(kind({10}), OutputKind::values);
  EXPECT_EQ(class_count(with_output_shapes({{1, 1000, 1, 1}})), 1000);
}

TEST(Outputs, ASoftmaxBehindViewsMakesProbabilities) {
  ModelBuilder b(1);
  b.input("x", {1, 10});
  b.layer("Softmax", "y", {"x"});
  b.constant("shape", Tensor::of<int64_t>(Scalar::i64, {4}, {1, 10, 1, 1}));
  b.layer("Reshape", "output", {"y", "shape"});
  const Program program = b.finish({"output"});
  EXPECT_EQ(output_kinds(program).main_kind(), OutputKind::probabilities);
}

TEST(Outputs, ClassesAreReadOffTheFirstOutputOfScores) {
  const OutputKinds found = output_kinds(with_output_shapes({{1, 3, 8, 8}, {1, 5}, {1, 7}}));
  EXPECT_EQ(found.main, 1u);
  EXPECT_EQ(found.main_kind(), OutputKind::logits);
  EXPECT_EQ(output_kinds(with_output_shapes({{1, 3, 8, 8}, {4}})).main, 0u);
}

TEST(Outputs, ErrorsOfAllOutputsAreAddedAtThePowerOfTheMainOne) {
  Samples samples;
  samples.count = 2;
  const OutputKinds kinds{{OutputKind::values, OutputKind::values, OutputKind::values}, 0};
  const Tensor empty = floats({});
  const RunOutputs reference = {{floats({3, 4}), floats({300, 400}), empty},
                                {floats({3, -4}), floats({300, 400}), empty}};
  RunOutputs changed = reference;
  const auto error = [&] {
    const auto found = compare_runs(kinds, samples, reference, changed);
    HOIST_CHECK(found.ok(), "outputs of the same shapes");
    EXPECT_DOUBLE_EQ(found->sqnr, sqnr_of(found->signal_power, found->mean_squared_error));
    return found->mean_squared_error;
  };
  EXPECT_EQ(error(), 0);
  changed[0][1] = floats({300, 420});
  // An error of 20 in one of 4 values: a mean square of 100, relative to 125,000, times a power of 12.5.
  EXPECT_DOUBLE_EQ(error(), 0.01);
  changed[1][0] = floats({3, -5});
  EXPECT_DOUBLE_EQ(error(), 0.26);
}

TEST(Outputs, AnOutputWithoutPowerCountsAsItIs) {
  Samples samples;
  samples.count = 1;
  const OutputKinds kinds{{OutputKind::values, OutputKind::values}, 0};
  const auto found = compare_runs(kinds, samples, {{floats({3, 4}), floats({0})}}, {{floats({3, 4}), floats({0.5})}});
  ASSERT_TRUE(found.ok());
  EXPECT_DOUBLE_EQ(found->mean_squared_error, 0.25);
}

TEST(Outputs, TextsAreTheSameOrNot) {
  const auto texts = [](const std::vector<std::string>& words) {
    auto made = tensor_of_strings({1, static_cast<int64_t>(words.size())}, words);
    HOIST_CHECK(made.ok(), "few words");
    return *made;
  };
  Samples samples;
  samples.count = 2;
  const OutputKinds kinds{{OutputKind::values}, 0};
  const RunOutputs reference = {{texts({"cat", "dog"})}, {texts({"cat", "cat"})}};
  const auto found = compare_runs(kinds, samples, reference, {{texts({"cat", "cow"})}, {texts({"cat", "cat"})}});
  ASSERT_TRUE(found.ok());
  EXPECT_DOUBLE_EQ(found->signal_power, 1);
  EXPECT_DOUBLE_EQ(found->mean_squared_error, 0.25);
  EXPECT_EQ(digest_of(kinds, samples, reference).mean_squares, (std::vector<double>{0}));
}

TEST(Outputs, TheDigestHasThePowerOfEachAndTheClassesOfTheMainOne) {
  Samples samples;
  samples.samples_a_run = 2;
  samples.count = 3;  // the last run is padded
  const OutputKinds kinds{{OutputKind::values, OutputKind::logits}, 1};
  const Tensor first = Tensor::of(Scalar::f32, {2, 2}, std::vector<double>{1, 2, 4, 3});
  const OutputDigest found = digest_of(kinds, samples, {{floats({1, 3}), first}, {floats({5, 1}), first}});
  EXPECT_EQ(found.main, 1u);
  EXPECT_EQ(found.classes, (std::vector<int64_t>{1, 0, 1}));
  ASSERT_EQ(found.mean_squares.size(), 2u);
  EXPECT_DOUBLE_EQ(found.mean_squares[0], 9);
  EXPECT_DOUBLE_EQ(found.mean_squares[1], 7.5);
}

}  // namespace hoist::outputs_test
