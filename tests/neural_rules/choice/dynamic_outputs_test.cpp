// Tests studies of models with dynamic outputs: boxes that are kept, elements that are chosen. The program has more
// outputs than the model: the actual extents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "neural_rules/choice/choose.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/neural_rules/evaluated_model.h"

namespace hoist::dynamic_outputs_test {

using testing::HasSubstr;

Tensor integers(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return Tensor::of(Scalar::i64, std::move(shape), values);
}
Tensor number(double value) { return Tensor::of(Scalar::f32, {}, std::vector<double>{value}); }

// Products, then the boxes that NonMaxSuppression keeps, and all boxes.
Program detector() {
  ModelBuilder b(5);
  b.input("x", {1, 16});
  b.layer("MatMul", "hidden", {"x", b.constant("w0", {16, 24}, 0.3)});
  b.layer("Relu", "relu", {"hidden"});
  b.layer("MatMul", "sides", {"relu", b.constant("w1", {24, 32}, 0.3)});
  b.layer("MatMul", "marks", {"relu", b.constant("w2", {24, 8}, 0.3)});
  b.constant("boxes_shape", integers({3}, {1, 8, 4}));
  b.constant("scores_shape", integers({3}, {1, 1, 8}));
  b.layer("Reshape", "boxes", {"sides", "boxes_shape"});
  b.layer("Reshape", "scores", {"marks", "scores_shape"});
  b.constant("most", integers({}, {5}));
  b.constant("overlap", number(0.5));
  b.constant("least", number(0.1));
  b.layer("NonMaxSuppression", "kept", {"boxes", "scores", "most", "overlap", "least"});
  b.constant("third", integers({1}, {2}));
  b.constant("flat", integers({1}, {-1}));
  b.layer("Gather", "column", {"kept", "third"}, {{"axis", int64_t{1}}});
  b.layer("Reshape", "places", {"column", "flat"});
  b.layer("Reshape", "rows", {"boxes", b.constant("rows_shape", integers({2}, {8, 4}))});
  b.layer("Gather", "found", {"rows", "places"});
  return b.finish({"boxes", "kept", "found"});
}

// Elements above zero; their number becomes the extent of a dimension that usually holds channels.
Program chooser() {
  ModelBuilder b(6);
  b.input("x", {1, 16});
  b.layer("MatMul", "hidden", {"x", b.constant("w0", {16, 24}, 0.3)});
  b.layer("MatMul", "sums", {"hidden", b.constant("w1", {24, 24}, 0.3)});
  b.constant("zero", number(0));
  b.layer("Greater", "above", {"hidden", "zero"});
  b.layer("Reshape", "mask", {"above", b.constant("flat", integers({1}, {-1}))});
  b.layer("Compress", "some", {"sums", "mask"}, {{"axis", int64_t{1}}});
  b.layer("Mul", "twice", {"some", b.constant("two", number(2))});
  return b.finish({"twice"});
}

Choosing studied(const Program& program, const std::string& budget) {
  ChooseOptions options;
  options.budget = *parse_budget(budget);
  options.objective = Objective::size;
  options.least_timing_seconds = 0;
  auto found =
      choose(program, normal_samples(program, 8, 1), normal_samples(program, 6, 100), evaluated_models(), options);
  HOIST_CHECK(found.ok(), found.errors()[0].text());
  return std::move(*found);
}

TEST(DynamicOutputs, AreStudiedToTheEnd) {
  for (Program (*make)() : {detector, chooser}) {
    const Program program = make();
    ASSERT_FALSE(program.extents.empty());
    const Choosing found = studied(program, "sqnr=5dB");
    EXPECT_EQ(found.reference_outputs.mean_squares.size(), model_output_count(program));
    EXPECT_TRUE(found.study.budget_met);
    EXPECT_TRUE(found.measured.sensitivity.complete);
    EXPECT_GT(found.study.points.size(), 2u);
    EXPECT_EQ(found.study.points[0].error, 0);
    EXPECT_EQ(found.study.points[0].sqnr, INFINITY);
  }
}

TEST(DynamicOutputs, ValuesThatAreSeenStandBeforeTheExtents) {
  const Program program = detector();
  const auto seen = with_outputs(program, {"relu", "scores"});
  ASSERT_TRUE(seen.ok()) << seen.errors()[0].text();
  const size_t own = model_output_count(program);
  ASSERT_EQ(model_output_count(*seen), own + 2);
  EXPECT_EQ(seen->outputs[own], "relu.seen");
  EXPECT_EQ(seen->outputs[own + 1], "scores.seen");
}

OutputMetrics compared(const std::vector<std::pair<Tensor, Tensor>>& runs) {
  OutputComparison comparison(OutputKind::values, true);
  for (const auto& [reference, changed] : runs)
    HOIST_CHECK(comparison.add(reference, changed, 1, 1).ok(), "runs of any size");
  return comparison.metrics();
}

Tensor row(const std::vector<double>& values) {
  return Tensor::of(Scalar::f32, {static_cast<int64_t>(values.size())}, values);
}

TEST(DynamicOutputs, EachRunHasASizeOfItsOwn) {
  const OutputMetrics same = compared({{row({1, 2}), row({1, 2})}, {row({}), row({})}, {row({3}), row({4})}});
  EXPECT_EQ(same.samples, 3);
  EXPECT_DOUBLE_EQ(same.signal_power, 14.0 / 3);
  EXPECT_DOUBLE_EQ(same.mean_squared_error, 1.0 / 3);
  const OutputMetrics other = compared({{row({1, 2}), row({1, 2})}, {row({1, 2}), row({1})}});
  EXPECT_EQ(other.mean_squared_error, INFINITY);
  EXPECT_EQ(other.sqnr, -INFINITY);
  const OutputMetrics nothing = compared({{row({}), row({})}});
  EXPECT_EQ(nothing.mean_squared_error, 0);
}

}  // namespace hoist::dynamic_outputs_test
