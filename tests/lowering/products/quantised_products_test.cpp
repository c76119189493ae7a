// Tests models in quantise-dequantise form: which contractions become integer ones, which stay, and that values stay
// within rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/program/program_values.h"
#include "ir/properties/properties.h"
#include "lowering/cost/work.h"
#include "lowering/pipeline/lower.h"
#include "lowering/pipeline/passes.h"
#include "lowering/terms/terms.h"
#include "tests/support/lower_model.h"
#include "tests/support/named_model.h"

namespace hoist::quantised_products_test {

using Ints = std::vector<int64_t>;

Tensor numbers(Scalar scalar, const Ints& shape, int64_t low, int64_t high, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor out(scalar, shape);
  for (int64_t i = 0; i < out.size(); ++i)
    out.set_integer(i, low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1)));
  return out;
}

Tensor random_floats(const Ints& shape, uint64_t seed, double low = -1, double high = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(low, high);
  Tensor out(Scalar::f32, shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set_float(i, draw(random));
  return out;
}

Tensor scalar_of(Scalar scalar, double value) {
  Tensor out(scalar, {});
  if (is_float(scalar))
    out.set_float(0, value);
  else
    out.set_integer(0, static_cast<int64_t>(value));
  return out;
}

// x -> quantise -> dequantise -> contraction with dequantised weights and a bias -> Relu -> quantise -> dequantise.
struct Case {
  Scalar activation = Scalar::u8;
  int64_t zero_point = 3;
  bool by_channel = true;
  Ints input = {1, 8, 6, 5};
  Ints weights = {16, 8, 3, 3};
  std::string product = "Conv";
  std::map<std::string, Attribute> attributes = {{"pads", Ints{1, 1, 1, 1}}};
  int64_t axis = 0;

  NamedModel graph() const {
    NamedModel g;
    g.opset = 21;
    g.inputs = {{"x", Scalar::f32, input}};
    g.outputs = {{"y", Scalar::f32, {}}};
    const int64_t outputs = weights[static_cast<size_t>(axis)];
    g.constants["w"] = numbers(Scalar::i8, weights, -127, 127, 1);
    g.constants["w_scale"] = by_channel ? random_floats({outputs}, 2, 0.001, 0.02) : scalar_of(Scalar::f32, 0.01);
    g.constants["bias"] = random_floats({outputs}, 3);
    g.constants["x_scale"] = scalar_of(Scalar::f32, 0.011);
    g.constants["x_zero"] = scalar_of(activation, static_cast<double>(zero_point));
    g.constants["y_scale"] = scalar_of(Scalar::f32, 0.05);
    g.constants["y_zero"] = scalar_of(Scalar::u8, 0);
    std::map<std::string, Attribute> along = {{"axis", axis}};
    g.layers = {
        {"quantise", "QuantizeLinear", "", {}, {"x", "x_scale", "x_zero"}, {"xq"}},
        {"dequantise", "DequantizeLinear", "", {}, {"xq", "x_scale", "x_zero"}, {"xd"}},
        {"weights", "DequantizeLinear", "", along, {"w", "w_scale"}, {"wd"}},
        {"product", product, "", attributes, {"xd", "wd"}, {"p"}},
        {"relu", "Relu", "", {}, {"p"}, {"r"}},
        {"quantise_y", "QuantizeLinear", "", {}, {"r", "y_scale", "y_zero"}, {"yq"}},
        {"dequantise_y", "DequantizeLinear", "", {}, {"yq", "y_scale", "y_zero"}, {"y"}},
    };
    if (product != "MatMul") g.layers[3].inputs.push_back("bias");
    return g;
  }
};

// The program after the passes over operator calls up to this one.
Program program_after(const NamedModel& graph, std::string_view last) {
  auto program = program_of(graph);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  auto done =
      run_passes(*program, Pass::calls, {}, [&](const Pass& pass, const Program&) { return pass.name != last; });
  HOIST_CHECK(done.ok(), done.errors()[0].text());
  return *program;
}

// True if the program has a step of a rule whose name begins with `rule`.
bool has_step(const Program& program, const std::string& rule) {
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [&](const ProgramStep& s) { return s.rule.starts_with(rule); });
}

// All outputs, by the evaluator.
Tensor output_of(const Program& program, const Tensor& x) {
  auto outputs = program_outputs(program, {x});
  HOIST_CHECK(outputs.ok(), outputs.errors()[0].text());
  return (*outputs)[0];
}

void expect_within_a_step(const Case& c) {
  const NamedModel graph = c.graph();
  auto exact = lower_calls(graph, true), integers = lower_calls(graph, false);
  ASSERT_TRUE(exact.ok()) << exact.errors()[0].text();
  ASSERT_TRUE(integers.ok()) << integers.errors()[0].text();
  EXPECT_TRUE(std::any_of(integers->definitions.begin(), integers->definitions.end(),
                          [](const Definition& d) { return leaf_of(d.expression->type) == scalar_type(Scalar::i32); }));
  const Tensor x = random_floats(c.input, 4);
  const Tensor a = output_of(*exact, x), b = output_of(*integers, x);
  ASSERT_EQ(a.shape(), b.shape());
  int64_t different = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    EXPECT_LE(std::abs(a.float_at(i) - b.float_at(i)), 0.0501) << i;
    different += a.float_at(i) != b.float_at(i) ? 1 : 0;
  }
  // Only values halfway between two quantisation steps may differ.
  EXPECT_LE(different, a.size() / 50 + 1);
}

TEST(QuantisedProducts, AreWithinOneStepOfTheOutputsGrid) {
  expect_within_a_step({});
  Case signed_numbers;
  signed_numbers.activation = Scalar::i8;
  signed_numbers.zero_point = -20;
  signed_numbers.by_channel = false;
  expect_within_a_step(signed_numbers);
  Case odd;  // three channels, stride
  odd.input = {2, 3, 7, 9};
  odd.weights = {5, 3, 3, 3};
  odd.attributes = {{"pads", Ints{0, 1, 2, 1}}, {"strides", Ints{2, 2}}};
  expect_within_a_step(odd);
  Case depthwise;
  depthwise.weights = {8, 1, 3, 3};
  depthwise.attributes["group"] = int64_t{8};
  expect_within_a_step(depthwise);
  Case gemm;
  gemm.input = {3, 10};
  gemm.weights = {7, 10};
  gemm.product = "Gemm";
  gemm.attributes = {{"transB", int64_t{1}}};
  expect_within_a_step(gemm);
  Case matrices;
  matrices.input = {2, 4, 12};
  matrices.weights = {12, 6};
  matrices.product = "MatMul";
  matrices.attributes = {};
  matrices.axis = 1;
  expect_within_a_step(matrices);
  // Sums that fill no whole words, with batch dimensions that the weights do not have.
  for (const Ints& input : {Ints{5, 9}, Ints{2, 4, 9}, Ints{2, 3, 8, 9}}) {
    matrices.input = input;
    matrices.weights = {9, 5};
    expect_within_a_step(matrices);
  }
}

// MatMulInteger of x and w, with one zero point for x.
Tensor integer_product(const Tensor& x, const Tensor& w, int64_t zero, bool strict) {
  NamedModel g;
  g.opset = 21;
  g.inputs = {{"x", x.scalar(), x.shape()}};
  g.outputs = {{"y", Scalar::i32, {}}};
  g.constants["w"] = w;
  g.constants["z"] = scalar_of(x.scalar(), static_cast<double>(zero));
  g.layers = {{"product", "MatMulInteger", "", {}, {"x", "w", "z"}, {"y"}}};
  auto program = lower_calls(g, strict);
  EXPECT_TRUE(program.ok()) << program.errors()[0].text();
  return program.ok() ? output_of(*program, x) : Tensor();
}

TEST(QuantisedProducts, WholeWordsOfMatricesOfAnyRank) {
  for (const auto& [a, b] : std::vector<std::pair<Ints, Ints>>{{{9}, {9, 5}},
                                                               {{4, 9}, {9, 5}},
                                                               {{2, 3, 8, 9}, {9, 5}},
                                                               {{2, 3, 4, 7}, {2, 3, 7, 5}},
                                                               {{4, 7}, {2, 3, 7, 5}},
                                                               {{3, 1, 4, 6}, {2, 6, 5}},
                                                               {{2, 4, 7}, {7}},
                                                               {{7}, {7}}}) {
    const Tensor x = numbers(Scalar::u8, a, 0, 255, 1), w = numbers(Scalar::i8, b, -128, 127, 2);
    EXPECT_EQ(integer_product(x, w, 5, false), integer_product(x, w, 5, true)) << a.size() << " " << b.size();
  }
}

TEST(QuantisedProducts, SignedActivationsBecomeUnsigned) {
  Case c;
  c.activation = Scalar::i8;
  c.zero_point = -128;
  EXPECT_TRUE(has_step(program_after(c.graph(), "pad-to-four"), "signed-to-unsigned"));
  // Not if the quantised values are also an output.
  NamedModel graph = c.graph();
  graph.outputs.push_back({"xq", Scalar::i8, {}});
  const Program program = program_after(graph, "pad-to-four");
  EXPECT_FALSE(has_step(program, "signed-to-unsigned"));
  EXPECT_TRUE(has_step(program, "dequantise-"));
}

TEST(QuantisedProducts, StayAsTheyAreWithoutAProof) {
  Case c;
  auto rewritten = [&](const std::function<void(NamedModel&)>& change) {
    NamedModel graph = c.graph();
    change(graph);
    return has_step(program_after(graph, "pad-to-four"), "dequantise-");
  };
  EXPECT_TRUE(rewritten([](NamedModel&) {}));
  EXPECT_TRUE(rewritten([](NamedModel& g) {  // a zero point per output channel
    g.constants["w_zero"] = numbers(Scalar::i8, {16}, -128, 127, 1);
    g.layers[2].inputs.push_back("w_zero");
  }));
  EXPECT_FALSE(rewritten([](NamedModel& g) {  // computed zero points
    g.inputs.push_back({"w_zero", Scalar::i8, {16}});
    g.layers[2].inputs.push_back("w_zero");
  }));
  EXPECT_FALSE(rewritten([](NamedModel& g) {  // per input channel
    g.constants["w_scale"] = random_floats({8}, 2, 0.001, 0.02);
    g.layers[2].attributes["axis"] = int64_t{1};
  }));
  EXPECT_FALSE(rewritten([](NamedModel& g) {
    g.constants.erase("w"), g.inputs.push_back({"w", Scalar::i8, {16, 8, 3, 3}});
  }));
  EXPECT_FALSE(rewritten([](NamedModel& g) {
    g.constants["x_scale"] = random_floats({8}, 1, 0.1, 0.2);
    g.constants["x_zero"] = numbers(Scalar::u8, {8}, 3, 3, 1);
  }));
  // More weights of the largest size than 2^31 / (2 * 255) / 127 may overflow.
  c.input = {1, 40000};
  c.weights = {2, 40000};
  c.product = "Gemm";
  c.attributes = {{"transB", int64_t{1}}};
  EXPECT_FALSE(rewritten([](NamedModel& g) { g.constants["w"] = numbers(Scalar::i8, {2, 40000}, 127, 127, 1); }));
}

TEST(QuantisedProducts, CountTwoOperationsEach) {
  const Expr x = parameter("x", array_type(Nat(8), scalar_type(Scalar::u8))),
             w = parameter("w", array_type(Nat(8), scalar_type(Scalar::i8)));
  const Expr sum = fold(
      [](Expr total, Expr p) {
        return call(Function::add,
                    {total, call(Function::multiply, {cast(Scalar::i32, get(0, p)), cast(Scalar::i32, get(1, p))})});
      },
      literal(Scalar::i32, 0), zip({x, w}));
  const Work work = executed_work(sum);
  EXPECT_EQ(work.arithmetic(), 16);
  EXPECT_EQ(work.of(OperationClass::integer), 16);
  EXPECT_EQ(work.of(OperationClass::conversion), 16);
  EXPECT_EQ(work.products, 8);
}

TEST(QuantisedProducts, ReadWholeWordsWhereThereIsAnInstruction) {
  Profile profile;
  profile.dot_instructions = true;
  Case c;
  c.input = {1, 3, 6, 5};
  c.weights = {16, 3, 3, 3};
  for (bool dot : {true, false}) {
    profile.dot_instructions = dot;
    auto lowered = lower_model(c.graph(), {}, profile);
    ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
    bool found = false;
    for (const LoweredKernel& kernel : lowered->kernels) {
      found |= any_node(kernel.expression, [](Expr n) { return n->pattern == Pattern::fold && n->mode == Mode::vec; });
    }
    EXPECT_EQ(found, dot);
    // The border of a padded array is the zero point.
    EXPECT_TRUE(std::any_of(lowered->arrays.begin(), lowered->arrays.end(), [](const PlanArray& a) {
      return a.place == Place::cleared && a.scalar == Scalar::u8 && a.fill == 3;
    }));
  }
}

// Without byte instructions, inputs are stored in the 16 bits that are multiplied, weights as bytes. A border must be
// zeros then, so a zero point is subtracted before.
TEST(QuantisedProducts, ReadPairsOfSixteenBitsWhereTheirProductsAreFaster) {
  Profile profile;
  profile.dot_instructions = true;
  profile.pair_products = 2;
  const auto reads_pairs = [&](const Case& c) {
    auto lowered = lower_model(c.graph(), {}, profile);
    HOIST_CHECK(lowered.ok(), lowered.errors()[0].text());
    return std::any_of(lowered->kernels.begin(), lowered->kernels.end(), [](const LoweredKernel& kernel) {
      return any_node(kernel.expression, [](Expr n) {
        return n->pattern == Pattern::fold && n->mode == Mode::vec && n->children[2]->type->size == Nat(2);
      });
    });
  };
  Case c;
  c.attributes = {};
  c.weights = {16, 8, 1, 1};
  EXPECT_TRUE(reads_pairs(c));
  c.weights = {16, 8, 3, 3};
  c.attributes = {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}};
  EXPECT_TRUE(reads_pairs(c)) << "less the zero point 3";
  c.zero_point = 0;
  EXPECT_TRUE(reads_pairs(c));
  profile.pair_products = 0;
  EXPECT_FALSE(reads_pairs(c));
}

TEST(QuantisedProducts, AreMatrixInstructionsWhereThereAreRowsEnough) {
  Profile profile;
  profile.dot_instructions = true;
  const auto uses = [&](int64_t tile, std::vector<int64_t> input, std::vector<int64_t> weights, bool output = false) {
    profile.matrix_tile = tile;
    Case c;
    c.input = std::move(input);
    c.weights = std::move(weights);
    NamedModel graph = c.graph();
    if (!output) {
      graph.layers.push_back({"pool", "GlobalMaxPool", "", {}, {"y"}, {"z"}});
      graph.outputs = {{"z", Scalar::f32, {}}};
    }
    auto lowered = lower_model(graph, {}, profile);
    EXPECT_TRUE(lowered.ok());
    bool maps = false, folds = false;
    for (const LoweredKernel& kernel : lowered->kernels) {
      maps |= any_node(kernel.expression, [](Expr n) { return n->pattern == Pattern::map && n->mode == Mode::matrix; });
      folds |=
          any_node(kernel.expression, [](Expr n) { return n->pattern == Pattern::fold && n->mode == Mode::matrix; });
    }
    EXPECT_EQ(maps, folds);
    return folds;
  };
  EXPECT_TRUE(uses(16, {1, 64, 16, 16}, {32, 64, 3, 3}));
  EXPECT_TRUE(uses(16, {1, 64, 16, 16}, {32, 64, 3, 3}, true)) << "channels second";
  EXPECT_FALSE(uses(0, {1, 64, 16, 16}, {32, 64, 3, 3}));
  EXPECT_FALSE(uses(16, {1, 64, 16, 1}, {32, 64, 1, 1}));  // a row has one position
  EXPECT_FALSE(uses(16, {1, 4, 16, 16}, {32, 4, 3, 3}));   // and one word each
}

TEST(QuantisedProducts, MatrixTilesDivideRowsAndWords) {
  Profile profile;
  profile.matrix_tile = 16;
  for (int64_t rows = 2; rows <= 64; ++rows) {
    for (const int64_t inner : {8, 24, 64, 200}) {
      const Tile tile =
          choose_tile(CpuResults{.rows = rows, .columns = 48, .terms = 9 * inner, .inner = inner}, profile);
      if (tile.cpu().matrix_rows == 0) continue;
      EXPECT_EQ(rows % tile.rows, 0) << rows;
      EXPECT_EQ(tile.rows % tile.cpu().matrix_rows, 0) << rows;
      EXPECT_LE(tile.cpu().matrix_rows, 16) << rows;
      EXPECT_EQ(inner / 4 % tile.cpu().matrix_words, 0) << inner;
      EXPECT_LE(tile.cpu().matrix_words, 16) << inner;
      EXPECT_EQ(tile.columns % 16, 0);
    }
  }
  EXPECT_GT(choose_tile(CpuResults{.rows = 32, .columns = 48, .terms = 9 * 64, .inner = 64}, profile).cpu().matrix_rows,
            0);
}

}  // namespace hoist::quantised_products_test
