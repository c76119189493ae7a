// Tests kernels of GPUs: work-items share sums if there are few results or long rows, values are equal up to rounding,
// shared values are computed once; copies and elementwise kernels load adjacent elements together.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "ir/base/seeded.h"
#include "ir/properties/properties.h"
#include "lowering/pipeline/lower.h"
#include "lowering/pipeline/passes.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/gpu_profile.h"
#include "tests/support/lower_model.h"

namespace hoist::gpu_strategies_test {

Profile gpu() { return gpu_profile(132); }

NamedModel model_of(const std::vector<int64_t>& x, const std::map<std::string, Tensor>& constants,
                    const std::vector<NamedCall>& layers) {
  NamedModel graph;
  graph.opset = 21;
  graph.inputs = {{"x", Scalar::f32, x}};
  graph.constants = constants;
  graph.layers = layers;
  graph.outputs = {{"y", Scalar::f32, {}}};
  return graph;
}

Tensor weights(const std::vector<int64_t>& shape) { return seeded_tensor(Scalar::f32, shape, 7, 1, -1, 1); }

size_t count_nodes(Expr e, const std::function<bool(Expr)>& test) {
  std::set<Expr> seen, found;
  const std::function<void(Expr)> visit = [&](Expr n) {
    if (!seen.insert(n).second) return;
    if (test(n)) found.insert(n);
    for (Expr child : n->children) visit(child);
  };
  visit(e);
  return found.size();
}

bool is_shared(Expr e) {
  return e->pattern == Pattern::materialise && e->memory == Memory::local && e->children[0]->pattern == Pattern::map &&
         e->children[0]->mode == Mode::local;
}
bool is_tile(Expr e) {
  return e->pattern == Pattern::materialise && e->memory == Memory::local &&
         !(e->children[0]->pattern == Pattern::map && e->children[0]->mode == Mode::local);
}

LoweredModel lowered(const NamedModel& graph, bool strict = false) {
  LowerOptions options;
  options.strict = strict;
  options.convolution = ConvolutionForm::stencil;
  auto model = lower_model(graph, options, gpu());
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

// The kernel with the most operations, after checking its result.
Expr kernel_of(const NamedModel& graph, const std::vector<int64_t>& x) {
  const LoweredModel model = lowered(graph), strict = lowered(graph, true);
  const Bindings inputs = {{"x", seeded_tensor(Scalar::f32, x, 7, 0, -1, 1)}};
  EXPECT_TRUE(close(outputs_of(model, inputs).at("y"), outputs_of(strict, inputs).at("y"), 1e-4));
  for (const LoweredKernel& kernel : strict.kernels) EXPECT_EQ(count_nodes(kernel.expression, is_shared), 0u);
  const LoweredKernel* most = nullptr;
  for (const LoweredKernel& kernel : model.kernels) {
    if (most == nullptr || kernel.operations > most->operations) most = &kernel;
  }
  return most->expression;
}

TEST(GpuSums, FewResultsOfLongSumsAreSharedOut) {
  const Expr kernel =
      kernel_of(model_of({1, 64, 4, 4}, {{"w", weights({16, 64, 3, 3})}},
                         {{"conv", "Conv", "", {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}, {"x", "w"}, {"y"}}}),
                {1, 64, 4, 4});
  EXPECT_EQ(count_nodes(kernel, is_shared), 1u);
}

TEST(GpuSums, ResultsThatAreNoMatrixAreSharedOutByElements) {
  const Tensor shape = [] {
    Tensor out(Scalar::i64, {3});
    out.set_integer(0, 1), out.set_integer(1, -1), out.set_integer(2, 4);
    return out;
  }();
  const Expr kernel =
      kernel_of(model_of({1, 64, 3, 5}, {{"w", weights({12, 64, 3, 3})}, {"shape", shape}},
                         {{"conv", "Conv", "", {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}, {"x", "w"}, {"c"}},
                          {"last", "Transpose", "", {{"perm", std::vector<int64_t>{0, 2, 3, 1}}}, {"c"}, {"t"}},
                          {"rows", "Reshape", "", {}, {"t", "shape"}, {"y"}}}),
                {1, 64, 3, 5});
  EXPECT_EQ(count_nodes(kernel, is_shared), 1u);
  EXPECT_EQ(count_nodes(kernel, [](Expr e) { return e->mode == Mode::global; }), 0u);
}

// As in a search: the block sums have more dimensions than an image.
TEST(GpuSums, ConvolutionsAreSummedInBlocks) {
  const std::vector<int64_t> x = {1, 256, 4, 5};
  const NamedModel graph =
      model_of(x, {{"w", weights({6, 256, 3, 3})}, {"b", weights({6})}},
               {{"conv", "Conv", "", {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}, {"x", "w", "b"}, {"y"}}});
  const Bindings inputs = {{"x", seeded_tensor(Scalar::f32, x, 7, 0, -1, 1)}};
  const Tensor expected = outputs_of(lowered(graph, true), inputs).at("y");
  for (const int64_t blocks : {2, 4}) {
    LowerOptions options;
    options.convolution = ConvolutionForm::stencil;
    options.records = [&](const TuningTask&) { return KnobValues{{std::string(blocks_knob), blocks}}; };
    const auto model = lower_model(graph, options, gpu());
    ASSERT_TRUE(model.ok()) << model.errors()[0].text();
    EXPECT_GT(model->kernels.size(), 1u) << "sums of blocks, and their sums";
    EXPECT_TRUE(close(outputs_of(*model, inputs).at("y"), expected, 1e-4)) << blocks;
  }
}

// x * sigmoid(x) uses the convolution twice.
TEST(GpuSums, WhatIsNamedTwiceIsComputedOnce) {
  for (const int64_t side : {4, 64}) {
    const Expr kernel = kernel_of(model_of({1, 32, side, side}, {{"w", weights({16, 32, 1, 1})}},
                                           {{"conv", "Conv", "", {}, {"x", "w"}, {"c"}},
                                            {"sigmoid", "Sigmoid", "", {}, {"c"}, {"s"}},
                                            {"silu", "Mul", "", {}, {"c", "s"}, {"y"}}}),
                                  {1, 32, side, side});
    const auto is_product = [](Expr e) { return e->pattern == Pattern::fold && e->mode == Mode::unroll; };
    EXPECT_LE(count_nodes(kernel, is_shared), 1u) << side;
    EXPECT_LE(count_nodes(kernel, is_tile), 2u) << side << ": one of each operand";
    EXPECT_EQ(count_nodes(kernel, is_product), 1u) << side;
  }
}

TEST(GpuSums, RowsShareTheirFolds) {
  const Expr softmax =
      kernel_of(model_of({4, 128}, {}, {{"softmax", "Softmax", "", {{"axis", int64_t{-1}}}, {"x"}, {"y"}}}), {4, 128});
  EXPECT_EQ(count_nodes(softmax, is_shared), 2u) << "the maximum and the sum";
  const Expr odd =
      kernel_of(model_of({4, 129}, {}, {{"softmax", "Softmax", "", {{"axis", int64_t{-1}}}, {"x"}, {"y"}}}), {4, 129});
  EXPECT_EQ(count_nodes(odd, is_shared), 0u) << "nothing divides a row";
  const Expr short_rows =
      kernel_of(model_of({4, 32}, {}, {{"softmax", "Softmax", "", {{"axis", int64_t{-1}}}, {"x"}, {"y"}}}), {4, 32});
  EXPECT_EQ(count_nodes(short_rows, is_shared), 0u);
}

Expr kernel_of_layer(const std::string& type, const std::vector<int64_t>& x, const Attributes& attributes = {}) {
  return kernel_of(model_of(x, {}, {{"layer", type, "", attributes, {"x"}, {"y"}}}), x);
}

size_t count_mode(Expr e, Mode mode) {
  return count_nodes(e, [&](Expr n) { return n->pattern == Pattern::map && n->mode == mode; });
}

TEST(GpuFolds, AGroupFoldsAdjacentElements) {
  const Attributes rows = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}};
  const auto folded = [&](const std::vector<int64_t>& x, const Attributes& attributes) {
    NamedModel graph = model_of(x, {}, {{"layer", "ReduceMean", "", attributes, {"x"}, {"y"}}});
    graph.opset = 13;  // axes are an attribute
    return kernel_of(graph, x);
  };
  const Expr long_rows = folded({37, 4096}, rows);
  EXPECT_EQ(count_nodes(long_rows, is_shared), 2u) << "256 parts, and 16 parts of these";
  EXPECT_EQ(count_mode(long_rows, Mode::global), 0u);
  EXPECT_EQ(count_nodes(folded({37, 256}, rows), is_shared), 1u + 1u);
  const Expr odd = folded({37, 4099}, rows);
  EXPECT_EQ(count_nodes(odd, is_shared), 0u) << "nothing divides a row";
  EXPECT_EQ(count_mode(odd, Mode::global), 1u) << "a group would have one work-item";
  const Attributes columns = {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}};
  EXPECT_EQ(count_mode(folded({128, 4096}, columns), Mode::group), 0u) << "adjacent work-items read adjacent columns";
  EXPECT_EQ(count_nodes(folded({4096, 37}, columns), is_shared), 2u) << "37 work-items would be few";
}

TEST(GpuFolds, PoolsOfFewChannelsAreShared) {
  EXPECT_EQ(count_nodes(kernel_of_layer("GlobalAveragePool", {1, 12, 64, 64}), is_shared), 2u);
}

// Two steps: blocks of 512 elements, and their sum.
TEST(GpuFolds, TheOnlyElementIsFoldedInSteps) {
  const std::vector<int64_t> x = {1 << 17};
  const NamedModel graph = model_of(x, {}, {{"layer", "ReduceSum", "", {{"keepdims", int64_t{0}}}, {"x"}, {"y"}}});
  const LoweredModel model = lowered(graph), strict = lowered(graph, true);
  EXPECT_GE(model.kernels.size(), 2u);
  const Bindings inputs = {{"x", seeded_tensor(Scalar::f32, x, 7, 0, -1, 1)}};
  EXPECT_TRUE(close(outputs_of(model, inputs).at("y"), outputs_of(strict, inputs).at("y"), 1e-3));
}

TEST(GpuElements, AdjacentElementsAreLoadedTogether) {
  EXPECT_EQ(count_mode(kernel_of_layer("Relu", {1024, 1024}), Mode::vec), 1u);
  EXPECT_EQ(count_mode(kernel_of_layer("Relu", {2, 8, 64, 1024}), Mode::vec), 1u);
  EXPECT_EQ(count_mode(kernel_of_layer("Relu", {1024, 1022}), Mode::vec), 0u) << "rows are not aligned";
  EXPECT_EQ(count_mode(kernel_of_layer("Relu", {64, 64}), Mode::vec), 0u) << "too few work-items";
}

TEST(GpuElements, TranspositionsTurnInLocalMemory) {
  const auto turned = [](const std::vector<int64_t>& x, const std::vector<int64_t>& order) {
    return count_nodes(kernel_of_layer("Transpose", x, {{"perm", order}}), is_tile);
  };
  EXPECT_EQ(turned({70, 100}, {1, 0}), 1u);
  EXPECT_EQ(turned({2, 33, 3, 40}, {0, 2, 3, 1}), 1u);
  EXPECT_EQ(turned({2, 3, 34, 37}, {0, 3, 1, 2}), 1u) << "channels are adjacent";
  EXPECT_EQ(turned({2, 33, 34}, {1, 0, 2}), 0u) << "rows stay rows";
  EXPECT_EQ(turned({100, 3}, {1, 0}), 0u) << "no tile";
}

}  // namespace hoist::gpu_strategies_test
