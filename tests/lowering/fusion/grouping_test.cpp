// Tests models that grow in one direction: lowering time is proportional, kernels stay small enough for compilers, and
// constant folding has a budget.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "ir/evaluate/interpreter/interpret_cost.h"
#include "lowering/fusion/kernel_size.h"
#include "lowering/pipeline/lower.h"
#include "lowering/terms/terms.h"
#include "tests/support/lower_model.h"

namespace hoist {
namespace {

using Ints = std::vector<int64_t>;

std::string value(int i) { return "t" + std::to_string(i); }

NamedModel chain(int count, const std::string& operation, size_t operands) {
  NamedModel out;
  out.opset = 21;
  out.inputs = {{value(0), Scalar::f32, {2, 6}}};
  out.outputs = {{value(count), Scalar::f32, {}}};
  for (int i = 0; i < count; ++i) {
    out.layers.push_back(
        {"layer" + std::to_string(i), operation, "", {}, std::vector<std::string>(operands, value(i)), {value(i + 1)}});
  }
  return out;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

LoweredModel lowered(const NamedModel& graph, double& seconds) {
  const double before = processor_seconds();
  auto out = lower_model(graph, {}, {});
  HOIST_CHECK(out.ok(), out.errors()[0].text());
  seconds = processor_seconds() - before;
  return std::move(*out);
}

size_t largest(const LoweredModel& model) {
  size_t out = 0;
  for (const LoweredKernel& kernel : model.kernels) out = std::max(out, tree_size(kernel.expression));
  return out;
}

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

// One operator of a family, of which a chain is made: each layer reads the result of the layer before.
struct Link {
  const char* operation;
  Ints shape;
  std::vector<Tensor> constants;
  std::map<std::string, Attribute> attributes;
  size_t results = 1;
};

NamedModel chain_of(const Link& link, int count) {
  NamedModel out;
  out.opset = 21;
  out.inputs = {{value(0), Scalar::f32, link.shape}};
  out.outputs = {{value(count), Scalar::f32, {}}};
  std::vector<std::string> constants;
  for (const Tensor& constant : link.constants)
    out.constants[constants.emplace_back("c" + std::to_string(constants.size()))] = constant;
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> inputs = {value(i)}, outputs = {value(i + 1)};
    inputs.insert(inputs.end(), constants.begin(), constants.end());
    for (size_t k = 1; k < link.results; ++k) outputs.push_back(value(i + 1) + "_" + std::to_string(k));
    out.layers.push_back({"layer" + std::to_string(i), link.operation, "", link.attributes, inputs, outputs});
  }
  return out;
}

// Kernels of bounded size compile in bounded time, so that a whole compilation is linear as well.
TEST(Grouping, ChainsOfEveryFamilyAreLoweredInLinearTime) {
  const auto ones = [](const Ints& shape) {
    return Tensor::of(Scalar::f32, shape, std::vector<double>(static_cast<size_t>(element_count(shape)), 0.5));
  };
  const auto integers = [](const Ints& shape, const Ints& values) { return Tensor::of(Scalar::i64, shape, values); };
  const Ints rows = {4, 8}, images = {1, 4, 6, 6}, border = {1, 1, 1, 1};
  const std::map<std::string, Attribute> window = {{"kernel_shape", Ints{3, 3}}, {"pads", border}};
  const std::vector<Link> families = {
      {"Conv", images, {ones({4, 4, 3, 3})}, {{"pads", border}}},
      {"ConvTranspose", images, {ones({4, 4, 3, 3})}, {{"pads", border}}},
      {"MaxPool", images, {}, window},
      {"AveragePool", images, {}, window},
      {"LRN", images, {}, {{"size", int64_t{3}}}},
      {"MatMul", rows, {ones({8, 8})}, {}},
      {"Gemm", rows, {ones({8, 8}), ones({8})}, {}},
      {"Einsum", rows, {ones({8, 8})}, {{"equation", std::string("ij,jk->ik")}}},
      {"LayerNormalization", rows, {ones({8})}, {}},
      {"InstanceNormalization", images, {ones({4}), ones({4})}, {}},
      {"GroupNormalization", images, {ones({4}), ones({4})}, {{"num_groups", int64_t{2}}}},
      {"BatchNormalization", images, {ones({4}), ones({4}), ones({4}), ones({4})}, {}},
      {"Softmax", rows, {}, {}},
      {"CumSum", rows, {integers({}, {1})}, {}},
      {"TopK", rows, {integers({1}, {8})}, {}, 2},
      {"Gather", rows, {integers({8}, {1, 2, 3, 4, 5, 6, 7, 0})}, {{"axis", int64_t{1}}}},
      {"GatherElements", rows, {integers({4, 8}, Ints(32, 1))}, {}},
      {"ScatterElements", rows, {integers({1, 1}, {2}), ones({1, 1})}, {}},
      {"ScatterND", rows, {integers({1, 1}, {2}), ones({1, 8})}, {}},
      {"Trilu", rows, {}, {}},
      {"Pad", rows, {integers({4}, {0, 1, 0, -1})}, {{"mode", std::string("edge")}}},
      {"Resize",
       images,
       {Tensor(Scalar::f32, {0}), Tensor(Scalar::f32, {0}), integers({4}, {1, 4, 6, 6})},
       {{"mode", std::string("linear")}}},
      {"Clip", rows, {ones({}), ones({})}, {}},
      {"Mul", rows, {ones({8})}, {}},
  };
  for (const Link& link : families) {
    SCOPED_TRACE(link.operation);
    double once = 0, thrice = 0;
    const LoweredModel small = lowered(chain_of(link, 100), once), large = lowered(chain_of(link, 300), thrice);
    EXPECT_LE(large.steps.size(), 3 * small.steps.size() + 1);
    EXPECT_LT(thrice, 6 * once + 1) << "linear in layers, with room for a busy machine";
    EXPECT_LT(largest(large), 5000u);
    for (const LoweredKernel& kernel : large.kernels)
      EXPECT_LE(position_depth(kernel.expression).nestings, 2 * most_nestings);
  }
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

// Passes that search the program for each definition take a time that grows with its square, which short chains do not
// show. Each link: a layer or two of about the same work.
TEST(Grouping, PassesThatAddDefinitionsTakeLinearTime) {
  const auto model = [](Scalar scalar) {
    NamedModel out;
    out.opset = 21;
    out.inputs = {{value(0), scalar, {4, 8}}};
    out.constants["scale"] = Tensor::of(Scalar::f32, {}, std::vector<double>{0.1});
    out.constants["zero"] = Tensor::of(Scalar::i8, {}, std::vector<int>{0});
    out.constants["eight"] = Tensor::of(Scalar::i64, {1}, std::vector<int>{8});
    return out;
  };
  const auto conditional = [&](int count) {
    NamedModel out = model(Scalar::f32);
    out.inputs.push_back({"condition", Scalar::boolean, {}});
    const auto body = [](const char* branch, const char* operation, int i) {
      return NamedBody{branch, branch, {}, {}, {{"inner", operation, "", {}, {value(i)}, {"result"}}}, {"result"}};
    };
    for (int i = 0; i < count; ++i) {
      NamedCall call{"layer" + std::to_string(i), "If", "", {}, {"condition"}, {value(i + 1)}};
      call.bodies = {body("then_branch", "Neg", i), body("else_branch", "Abs", i)};
      out.layers.push_back(std::move(call));
    }
    return out;
  };
  const auto quantised = [&](int count) {
    NamedModel out = model(Scalar::f32);
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i), q = "q" + number;
      out.layers.push_back({"quantise" + number, "QuantizeLinear", "", {}, {value(i), "scale", "zero"}, {q}});
      out.layers.push_back({"dequantise" + number, "DequantizeLinear", "", {}, {q, "scale", "zero"}, {value(i + 1)}});
    }
    return out;
  };
  const auto sorted = [&](int count) {
    NamedModel out = model(Scalar::f32);
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      out.layers.push_back({"sort" + number, "TopK", "", {}, {value(i), "eight"}, {value(i + 1), "order" + number}});
    }
    return out;
  };
  const std::vector<std::pair<const char*, std::function<NamedModel(int)>>> families = {
      {"bodies", conditional}, {"quantisation", quantised}, {"sorting", sorted}};
  for (const auto& [name, chain_of_length] : families) {
    SCOPED_TRACE(name);
    double once = 0, four = 0;
    for (auto [count, seconds] : {std::pair(500, &once), std::pair(2000, &four)}) {
      NamedModel chained = chain_of_length(count);
      chained.outputs = {{value(count), Scalar::f32, {}}};
      lowered(chained, *seconds);
    }
    EXPECT_LT(four, 6 * once + 0.5) << "linear in layers, with room for a busy machine";
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

}  // namespace
}  // namespace hoist
