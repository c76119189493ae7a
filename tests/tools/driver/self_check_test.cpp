// Tests the self-check of compile: correct kernels pass, at every element if that is affordable; a wrong kernel is
// reported with the step of its derivation that made it wrong, and with its layers as a model.
#include "tools/driver/self_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/bundle/bundle.h"
#include "frontend/write_model.h"
#include "ir/base/temporary_folder.h"
#include "tests/support/named_model.h"
#include "tools/base/files.h"

namespace hoist::self_check_test {

using testing::HasSubstr;
using Ints = std::vector<int64_t>;

// x -> Relu -> CumSum -> Mul by the summed values -> y.
NamedModel running_sums(const Ints& shape, int64_t axis, bool exclusive) {
  NamedModel graph;
  graph.name = "sums";
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::f32, shape}};
  graph.outputs = {{"y", Scalar::f32, shape}};
  graph.constants["axis"] = Tensor::of(Scalar::i64, {}, Ints{axis});
  graph.layers = {{"relu", "Relu", "", {}, {"x"}, {"r"}},
                  {"sums", "CumSum", "", {{"exclusive", int64_t{exclusive}}}, {"r", "axis"}, {"s"}},
                  {"product", "Mul", "", {}, {"s", "r"}, {"y"}}};
  return graph;
}

class SelfCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make();
    ASSERT_TRUE(made.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(*made));
  }

  // Compiles as hoist compile does, without writing the bundle.
  CompiledModel compiled(const NamedModel& graph) {
    auto out = compile_model(*program_of(graph), ModelOptions{});
    HOIST_CHECK(out.ok(), out.errors()[0].text());
    return std::move(*out);
  }

  SelfCheck checked(const CompiledModel& model, double seconds = 1) {
    const auto path = folder_->path() / "a.hoist";
    auto written = write_bundle(model.plan, path, {.force = true});
    HOIST_CHECK(written.ok(), written.errors()[0].text());
    auto out = self_check(path, model.plan, model.groups, seconds);
    HOIST_CHECK(out.ok(), out.errors()[0].text());
    return *out;
  }

  std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(SelfCheckTest, RightKernelsPassAtEveryElement) {
  const CompiledModel model = compiled(running_sums({2, 3, 4}, 0, true));
  const SelfCheck check = checked(model);
  EXPECT_FALSE(check.mismatch.has_value()) << check.mismatch->comparison.message << "\n" << check.mismatch->origin;
  EXPECT_EQ(check.kernels, model.plan.kernels.size());
  EXPECT_EQ(check.kernels_whole, check.kernels);
  EXPECT_GE(check.compared, 24u);
}

// The ends of every axis are checked even without time.
TEST_F(SelfCheckTest, LargeResultsAreSampled) {
  const CompiledModel model = compiled(running_sums({40, 300, 301}, 2, false));
  const SelfCheck check = checked(model, 1e-3);
  EXPECT_FALSE(check.mismatch.has_value()) << check.mismatch->comparison.message;
  EXPECT_EQ(check.kernels_whole, 0u);
  EXPECT_GE(check.compared, check.kernels);
}

TEST_F(SelfCheckTest, AWrongKernelIsTold) {
  CompiledModel model = compiled(running_sums({2, 3, 5}, 0, true));
  bool broken = false;
  for (PlanKernel& kernel : model.plan.kernels) {
    // Makes sums start from one.
    const std::string zero = "float_from_bits(0 /* 0 */)";
    for (size_t at; (at = kernel.source.find(zero)) != std::string::npos; broken = true)
      kernel.source.replace(at, zero.size(), "1.0f");
  }
  ASSERT_TRUE(broken) << model.plan.kernels[0].source;
  const SelfCheck check = checked(model);
  ASSERT_TRUE(check.mismatch.has_value());
  EXPECT_GT(check.mismatch->comparison.different, 0u);
  EXPECT_THAT(check.mismatch->comparison.message, HasSubstr("expected"));
  EXPECT_THAT(check.mismatch->origin, HasSubstr("every term of its derivation has the value"));
}

TEST_F(SelfCheckTest, TheFirstWrongRuleIsNamed) {
  const std::vector<RuleRow> rows = {
      {"concat-first", "", "x: [n]T, v: T", "pad 1 0 v x", "concat(repeat 1 v, x)", "", RuleClass::exact, ""},
      {"wrong", "", "x: [n]T, v: T", "concat(repeat 1 v, x)", "concat(x, repeat 1 v)", "", RuleClass::exact, ""}};
  auto table = RuleTable::load(rows);
  ASSERT_TRUE(table.ok()) << table.errors()[0].text();
  Derivation derivation;
  derivation.start = pad(1, 0, literal(Scalar::f32, 7), parameter("x", array_type(3, scalar_type(Scalar::f32))));
  derivation.steps = {{"concat-first", {}, {}, RuleClass::exact}, {"wrong", {}, {}, RuleClass::exact}};
  const Bindings reads = {{"x", Tensor::of(Scalar::f32, {3}, std::vector<double>{1, 2, 3})}};
  EXPECT_THAT(origin_of(*table, derivation, reads, 0),
              HasSubstr("step 2 of its derivation changes 7 to 1: wrong at root"));
  derivation.steps.pop_back();
  EXPECT_THAT(origin_of(*table, derivation, reads, 0), HasSubstr("every term of its derivation has the value 7"));
}

TEST_F(SelfCheckTest, TheLayersAloneAreAModel) {
  const CompiledModel model = compiled(running_sums({2, 3, 4}, 1, true));
  const Program alone = model_of_layers(model.program, {"sums"});
  ASSERT_EQ(alone.definitions.size(), 1u);
  ASSERT_EQ(alone.inputs.size(), 1u);
  EXPECT_EQ(alone.inputs[0].first, "r");
  EXPECT_EQ(shape_of(alone.inputs[0].second), (Ints{2, 3, 4}));
  EXPECT_EQ(alone.outputs, (std::vector<std::string>{"s"}));
  auto bytes = write_model(alone);
  ASSERT_TRUE(bytes.ok()) << bytes.errors()[0].text();
  const auto path = folder_->path() / "alone.onnx";
  ASSERT_TRUE(write_file(path, *bytes).ok());
  auto again = compile_model(path, ModelOptions{});
  EXPECT_TRUE(again.ok()) << again.errors()[0].text();
}

// A device's own functions may have errors of a bit, which a large factor amplifies.
TEST_F(SelfCheckTest, ActivationsOfExtremeNumbers) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x = {-3e38, -infinity, -20, -9.5, 0, 3e38, nan, -1e10};
  struct Row {
    std::string operation;
    std::map<std::string, Attribute> attributes;
    std::vector<double> expected;
  };
  const std::vector<Row> rows = {
      {"Gelu", {}, {0, nan, 0, 0, 0, 3e38, nan, 0}},
      {"Gelu", {{"approximate", std::string("tanh")}}, {0, nan, 0, 0, 0, 3e38, nan, 0}},
      {"Mish", {}, {0, nan, -20 * 2.0611536181902037e-09, -9.5 * 7.48518298877e-05, 0, 3e38, nan, 0}},
      {"Shrink", {}, {-3e38, -infinity, -20, -9.5, 0, 3e38, 0, -1e10}}};
  for (const Row& row : rows) {
    NamedModel graph;
    graph.name = row.operation;
    graph.opset = 21;
    graph.inputs = {{"x", Scalar::f32, {8}}};
    graph.outputs = {{"y", Scalar::f32, {8}}};
    graph.layers = {{"layer", row.operation, "", row.attributes, {"x"}, {"y"}}};
    const CompiledModel model = compiled(graph);
    const auto path = folder_->path() / "b.hoist";
    ASSERT_TRUE(write_bundle(model.plan, path, {.force = true}).ok());
    auto runner = BundleRunner::open(path);
    ASSERT_TRUE(runner.ok());
    auto outputs = runner->run({Tensor::of(Scalar::f32, {8}, x)});
    ASSERT_TRUE(outputs.ok());
    for (int64_t i = 0; i < 8; ++i) {
      const double found = (*outputs)[0].float_at(i), wanted = static_cast<float>(row.expected[static_cast<size_t>(i)]);
      if (std::isnan(wanted) || std::isinf(wanted))
        EXPECT_TRUE(std::isnan(wanted) ? std::isnan(found) : found == wanted)
            << row.operation << " of " << x[static_cast<size_t>(i)] << ": " << found;
      else
        EXPECT_NEAR(found, wanted, 1e-5 * std::abs(wanted) + 1e-6)
            << row.operation << " of " << x[static_cast<size_t>(i)];
    }
  }
}

TEST(BoundaryPositions, HoldTheEndsOfEveryAxis) {
  const Region region{{4, 10, 70}, {1, 2, 3}, {2, 5, 61}};
  const std::vector<int64_t> positions = boundary_positions(region, 1);
  EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
  for (int64_t a : {0, 1}) {
    for (int64_t b : {0, 4}) {
      for (int64_t c : {0, 60}) {
        const int64_t flat = ((a + 1) * 10 + b + 2) * 70 + c + 3;
        EXPECT_TRUE(std::binary_search(positions.begin(), positions.end(), flat)) << a << b << c;
      }
    }
  }
  for (int64_t position : positions) {
    const int64_t c = position % 70 - 3, b = position / 70 % 10 - 2, a = position / 700 - 1;
    EXPECT_TRUE(a >= 0 && a < 2 && b >= 0 && b < 5 && c >= 0 && c < 61) << position;
  }
  EXPECT_EQ(boundary_positions({{}, {}, {}}, 1), (std::vector<int64_t>{0}));
  EXPECT_TRUE(boundary_positions({{3, 0}, {0, 0}, {3, 0}}, 1).empty());
}

}  // namespace hoist::self_check_test
