// Tests models that grow in one direction: lowering time is proportional, kernels stay small enough for compilers, and
// constant folding has a budget.
#include <gtest/gtest.h>

#include "ir/evaluate/interpreter/interpret_cost.h"
#include "lowering/fusion/kernel_size.h"
#include "lowering/pipeline/lower.h"
#include "lowering/terms/terms.h"
#include "tests/lowering/fusion/long_models.h"

namespace hoist::grouping_test {

TEST(Grouping, LongChainsBecomeKernelsOfBoundedSize) {
  double once = 0, thrice = 0;
  const LoweredModel small = lowered(chain(1000, "Relu", 1), once), large = lowered(chain(3000, "Relu", 1), thrice);
  EXPECT_LT(small.steps.size(), 50u);
  EXPECT_LE(large.steps.size(), 3 * small.steps.size() + 1);
  EXPECT_LT(largest(large), 5000u);
  EXPECT_LT(thrice, 6 * once + 1) << "linear in layers, with room for a busy machine";
  size_t layers = 0;
  for (const PlanStep& step : large.steps) layers += step.layers.size();
  EXPECT_EQ(layers, 3000u);
}

// Code generators write a polynomial for each of these functions.
TEST(Grouping, LongChainsOfFunctionsBecomeSmallerKernels) {
  double once = 0, thrice = 0;
  EXPECT_EQ(lowered(chain(100, "Tanh", 1), once).steps.size(), 1u);
  const LoweredModel small = lowered(chain(500, "Tanh", 1), once), large = lowered(chain(1500, "Tanh", 1), thrice);
  EXPECT_GE(small.steps.size(), 4u);
  EXPECT_LE(large.steps.size(), 3 * small.steps.size() + 1);
  EXPECT_LT(thrice, 6 * once + 1);
  for (const PlanStep& step : large.steps) EXPECT_LT(step.layers.size(), 130u);
}

// Each pair regroups the dimensions, which doubles the position's expression.
TEST(Grouping, ChainsOfReshapesAndTranspositionsBecomeKernelsOfBoundedSize) {
  const Ints shapes[] = {{5, 42}, {7, 30}, {10, 21}, {14, 15}, {6, 35}};
  const auto pairs = [&](int count) {
    NamedModel out;
    out.opset = 21;
    out.inputs = {{"x", Scalar::f32, {6, 35}}};
    out.outputs = {{"t" + std::to_string(count - 1), Scalar::f32, {}}};
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i), before = i == 0 ? "x" : "t" + std::to_string(i - 1);
      out.constants["s" + number] = Tensor::of(Scalar::i64, {2}, shapes[i % 5]);
      out.layers.push_back({"reshape" + number, "Reshape", "", {}, {before, "s" + number}, {"r" + number}});
      out.layers.push_back({"transpose" + number, "Transpose", "", {}, {"r" + number}, {"t" + number}});
    }
    return out;
  };
  double once = 0, thrice = 0;
  const LoweredModel small = lowered(pairs(40), once), large = lowered(pairs(120), thrice);
  for (const LoweredKernel& kernel : large.kernels)
    EXPECT_LE(position_depth(kernel.expression).regroupings, most_regroupings);
  EXPECT_LE(large.steps.size(), 3 * small.steps.size() + 1);
  EXPECT_LT(small.steps.size(), 20u);
  EXPECT_LT(thrice, 6 * once + 1);
  EXPECT_EQ(lowered(pairs(3), once).steps.size(), 1u);
}

// Copies of small parts share kernels; a part that a layer computes is computed in its place.
TEST(Grouping, SmallPartsOfAConcatenationAreCopiedTogether) {
  struct Parts {
    int64_t axis;
    int count;
    size_t kernels;  // of the copies before the computed part and after it, and of that part
  };
  for (const auto& [axis, count, kernels] : {Parts{0, 100, 4 + 4 + 1}, Parts{1, 20, 1 + 1 + 1}}) {
    SCOPED_TRACE(axis);
    NamedModel model;
    model.opset = 21;
    model.outputs = {{"y", Scalar::f32, {}}};
    model.layers = {{"negated", "Neg", "", {}, {value(0)}, {"n"}},
                    {"layer", "Concat", "", {{"axis", axis}}, {}, {"y"}}};
    for (int i = 0; i < count; ++i) {
      model.inputs.push_back({value(i), Scalar::f32, {2, 3}});
      model.layers[1].inputs.push_back(i == count / 2 ? "n" : value(i));
    }
    double seconds = 0;
    EXPECT_EQ(lowered(model, seconds).steps.size(), kernels);
    for (ValueInfo& input : model.inputs) input.shape = {2, 3000};
    EXPECT_EQ(lowered(model, seconds).steps.size(), static_cast<size_t>(count))
        << "large parts are copied at the speed of memory";
  }
}

TEST(Grouping, KernelsReadABoundedNumberOfArrays) {
  NamedModel model;
  model.opset = 21;
  model.outputs = {{"y", Scalar::f32, {}}};
  model.layers = {{"layer", "Sum", "", {}, {}, {"y"}}};
  for (int i = 0; i < 1000; ++i) {
    model.inputs.push_back({value(i), Scalar::f32, {2, 3}});
    model.layers[0].inputs.push_back(value(i));
  }
  double seconds = 0;
  const LoweredModel lowered_sum = lowered(model, seconds);
  EXPECT_GE(lowered_sum.steps.size(), 15u);
  EXPECT_LE(lowered_sum.steps.size(), 33u);
  for (const LoweredKernel& kernel : lowered_sum.kernels)
    EXPECT_LE(parameters_of(kernel.expression).size(), most_arrays);
}

// Each column of a matmul would recompute its row, in any number of dimensions; windows without overlap read each
// element once.
TEST(Grouping, WhatIsReadAgainIsComputedOnce) {
  const auto kernels = [](const Ints& input, const std::string& reader, const std::map<std::string, Attribute>& how,
                          const Ints& weights) {
    NamedModel g;
    g.opset = 21;
    g.inputs = {{"x", Scalar::f32, input}};
    g.outputs = {{"y", Scalar::f32, {}}};
    g.layers = {{"first", "Sigmoid", "", {}, {"x"}, {"s"}}, {"second", reader, "", how, {"s"}, {"y"}}};
    if (!weights.empty()) {
      g.constants["w"] = Tensor(Scalar::f32, weights);
      g.layers[1].inputs.emplace_back("w");
    }
    double seconds = 0;
    return lowered(g, seconds).steps.size();
  };
  for (const Ints& rows : {Ints{6, 8}, Ints{3, 6, 8}, Ints{2, 3, 6, 8}})
    EXPECT_EQ(kernels(rows, "MatMul", {}, {8, 16}), 2U) << rows.size();
  EXPECT_EQ(kernels({1, 4, 8, 8}, "MaxPool", {{"kernel_shape", Ints{3, 3}}}, {}), 2U);
  EXPECT_EQ(kernels({1, 4, 8, 8}, "MaxPool", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}, {}), 1U);
}

TEST(Grouping, CpusTurnProductsInKernelsOfTheirOwn) {
  NamedModel g;
  g.opset = 21;
  g.inputs = {{"x", Scalar::f32, {32, 8}}};
  g.outputs = {{"z", Scalar::f32, {}}};
  g.constants["w"] = Tensor(Scalar::f32, {8, 48});
  g.layers = {{"product", "MatMul", "", {}, {"x", "w"}, {"y"}},
              {"turn", "Transpose", "", {}, {"y"}, {"t"}},
              {"activation", "Sigmoid", "", {}, {"t"}, {"z"}}};
  for (const bool gpu : {false, true}) {
    Profile profile;
    profile.gpu = gpu;
    auto model = lower_model(g, {}, profile);
    ASSERT_TRUE(model.ok()) << model.errors()[0].text();
    EXPECT_EQ(model->steps.size(), gpu ? 1U : 2U);
  }
}

// Relative positions along the sides of an image divide the rows of scores; a kernel of both would store and read by
// short rows.
TEST(Grouping, ScoresStayApartFromLayersThatDivideTheirRows) {
  NamedModel g;
  g.opset = 21;
  g.inputs = {{"q", Scalar::f32, {2, 36, 16}}, {"k", Scalar::f32, {2, 36, 16}}, {"r", Scalar::f32, {2, 36, 6, 1}}};
  g.outputs = {{"y", Scalar::f32, {}}};
  g.constants["divided"] = Tensor::of(Scalar::i64, {4}, Ints{2, 36, 6, 6});
  g.layers = {{"turn", "Transpose", "", {{"perm", Ints{0, 2, 1}}}, {"k"}, {"t"}},
              {"scores", "MatMul", "", {}, {"q", "t"}, {"s"}},
              {"divide", "Reshape", "", {}, {"s", "divided"}, {"d"}},
              {"add", "Add", "", {}, {"d", "r"}, {"y"}}};
  auto model = lower_model(g, {}, Profile());
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  ASSERT_FALSE(model->groups.empty());
  EXPECT_EQ(model->groups.back().layers, (std::vector<std::string>{"divide", "add"}));
}

// Stored in the order of a later convolution (NHWC), copies along time would fold once for each time.
TEST(Grouping, FoldsStayApartFromTheirCopies) {
  for (const bool copies : {false, true}) {
    NamedModel g;
    g.opset = 13;
    g.inputs = {{"x", Scalar::f32, {1, 24, 50}}};
    g.outputs = {{"y", Scalar::f32, {}}};
    g.constants["shape"] = Tensor::of(Scalar::i64, {3}, Ints{1, 24, 50});
    g.layers = {{"mean", "ReduceMean", "", {{"axes", Ints{2}}}, {"x"}, {"m"}},
                {"copy", "Expand", "", {}, {"m", "shape"}, {copies ? "y" : "c"}},
                {"subtract", "Sub", "", {}, {"x", "c"}, {"y"}}};
    if (copies) g.layers.pop_back();
    auto model = lower_model(g, {}, Profile());
    ASSERT_TRUE(model.ok()) << model.errors()[0].text();
    EXPECT_EQ(model->groups.size(), copies ? 2U : 1U) << "rows that use the mean share it";
  }
}

// Relative positions shift each row of scores by one, through views that divide rows at other places: in a kernel of
// both no operand of the product would serve several results. A view that divides rows into whole heads is fused.
TEST(Grouping, ScoresStayApartFromLayersThatShiftTheirRows) {
  for (const bool shifts : {false, true}) {
    NamedModel g;
    g.opset = 21;
    g.inputs = {{"q", Scalar::f32, {2, 36, 16}}, {"k", Scalar::f32, {2, 16, 36}}};
    g.outputs = {{"y", Scalar::f32, {}}};
    g.constants["view"] = Tensor::of(Scalar::i64, {3}, shifts ? Ints{2, 37, 35} : Ints{2, 36, 36});
    g.constants["flat"] = Tensor::of(Scalar::i64, {2}, Ints{2, 36 * 36});
    g.constants["one"] = Tensor::of(Scalar::i64, {1}, Ints{1});
    g.constants["end"] = Tensor::of(Scalar::i64, {1}, Ints{36 * 36});
    g.layers = {{"scores", "MatMul", "", {}, {"q", "k"}, {"s"}},
                {"join", "Reshape", "", {}, {"s", "flat"}, {"f"}},
                {"cut", "Slice", "", {}, {"f", "one", "end", "one"}, {"c"}},
                {"view", "Reshape", "", {}, {shifts ? "c" : "f", "view"}, {"v"}},
                {"relu", "Relu", "", {}, {"v"}, {"y"}}};
    if (!shifts) g.layers.erase(g.layers.begin() + 2);
    auto model = lower_model(g, {}, Profile());
    ASSERT_TRUE(model.ok()) << model.errors()[0].text();
    EXPECT_EQ(model->groups.size(), shifts ? 2U : 1U);
  }
}

// Heads of a few columns that are moved apart: neither rows nor columns of the result share the matrix of weights.
TEST(Grouping, ProductsStayApartFromViewsThatMoveTheirColumns) {
  NamedModel g;
  g.opset = 21;
  g.inputs = {{"x", Scalar::f32, {20, 16}}};
  g.outputs = {{"y", Scalar::f32, {}}};
  g.constants["w"] = Tensor::of(Scalar::f32, {16, 24}, std::vector<double>(16 * 24, 0.5));
  g.constants["heads"] = Tensor::of(Scalar::i64, {4}, Ints{20, 2, 3, 4});
  g.layers = {{"product", "MatMul", "", {}, {"x", "w"}, {"p"}},
              {"divide", "Reshape", "", {}, {"p", "heads"}, {"d"}},
              {"move", "Transpose", "", {{"perm", Ints{1, 0, 2, 3}}}, {"d"}, {"m"}},
              {"relu", "Relu", "", {}, {"m"}, {"y"}}};
  auto model = lower_model(g, {}, Profile());
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  ASSERT_EQ(model->groups.size(), 2U);
  EXPECT_EQ(model->groups[0].layers, (std::vector<std::string>{"product"}));
}

// There are a billion billion paths through sixty sums of a value with itself.
TEST(Grouping, SumsOfAValueWithItself) {
  double seconds = 0;
  const LoweredModel model = lowered(chain(60, "Add", 2), seconds);
  EXPECT_LT(seconds, 5);
  for (const LoweredKernel& kernel : model.kernels) EXPECT_LT(interpretation_steps(kernel.expression), 100000);
}

// A sum of constants with too many elements to compute or store.
NamedModel constant_sum(int64_t n) {
  NamedModel out;
  out.opset = 21;
  out.inputs = {{"x", Scalar::f32, {2}}};
  out.outputs = {{"y", Scalar::f32, {}}};
  out.constants["s"] = Tensor::of(Scalar::i64, {2}, Ints{n, n});
  out.layers = {{"fill", "ConstantOfShape", "", {}, {"s"}, {"a"}},
                {"exp", "Exp", "", {}, {"a"}, {"b"}},
                {"sum", "ReduceSum", "", {}, {"b"}, {"c"}},
                {"add", "Add", "", {}, {"x", "c"}, {"y"}}};
  return out;
}

TEST(Grouping, ScansStayApartFromScatters) {
  NamedModel model;
  model.opset = 21;
  model.inputs = {
      {"x", Scalar::f32, {7, 31, 7}}, {"places", Scalar::i64, {7, 31, 7}}, {"new", Scalar::f32, {7, 31, 7}}};
  model.constants = {{"axis", Tensor::of(Scalar::i64, Ints(), Ints{1})}};
  model.layers = {{"sums", "CumSum", "", {{"reverse", int64_t{1}}}, {"x", "axis"}, {"v"}},
                  {"put", "ScatterElements", "", {{"axis", int64_t{-2}}}, {"v", "places", "new"}, {"y"}}};
  model.outputs = {{"y", Scalar::f32, {}}};
  double seconds = 0;
  EXPECT_EQ(lowered(model, seconds).steps.size(), 2u) << "each computes a row as a whole";
}

TEST(Folding, StaysWithinItsBudget) {
  auto folded = lower_calls(constant_sum(20), false);
  ASSERT_TRUE(folded.ok());
  EXPECT_EQ(folded->definitions.size(), 1u);
  EXPECT_EQ(folded->evaluated.size(), 3u);
  EXPECT_TRUE(folded->notes.empty());

  const double before = processor_seconds();
  auto left = lower_calls(constant_sum(40000), false);
  ASSERT_TRUE(left.ok()) << left.errors()[0].text();
  EXPECT_LT(processor_seconds() - before, 5);
  EXPECT_GE(left->definitions.size(), 2u);
  ASSERT_FALSE(left->notes.empty());
  EXPECT_NE(left->notes.back().find("--bound fold-operations"), std::string::npos) << left->notes.back();

  for (const FoldingBudget& budget : {FoldingBudget{100, int64_t{1} << 30}, FoldingBudget{1 << 30, 64}}) {
    auto tight = lower_calls(constant_sum(20), false, {}, ConstantUse::computed, budget);
    ASSERT_TRUE(tight.ok());
    EXPECT_GT(tight->definitions.size(), 1u);
  }
}

// Shapes are folded even if other values have used up the budget.
TEST(Folding, SmallResultsHaveHalfOfTheBudgetForThemselves) {
  NamedModel graph = constant_sum(400);
  graph.layers.push_back({"shape", "Shape", "", {}, {"x"}, {"n"}});
  graph.layers.push_back({"reshape", "Reshape", "", {}, {"y", "n"}, {"z"}});
  graph.outputs = {{"z", Scalar::f32, {}}};
  auto program = lower_calls(graph, false, {}, ConstantUse::computed, {200000, int64_t{1} << 30});
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
}

}  // namespace hoist::grouping_test
