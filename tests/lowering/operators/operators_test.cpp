// Tests operators by hand: small cases with results that can be checked by eye, the forms that strategies rely on, and
// errors. The ONNX project's own cases run in tests/conformance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "ir/language/expression.h"
#include "ir/program/onnx_type.h"
#include "ir/properties/properties.h"
#include "ir/text/text.h"
#include "tests/lowering/operators/operators_layer.h"

namespace hoist {
namespace {

using Ints = std::vector<int64_t>;

// ---- Forms ---------------------------------------------------------------------------------------------------------

Type matrix(int64_t rows, int64_t columns) { return array_type({Nat(rows), Nat(columns)}, scalar_type(Scalar::f32)); }

Expr products(Expr row, Expr column) {
  Expr pairs = map([](Expr p) { return operator_multiply(get(0, p), get(1, p)); }, zip({row, column}));
  return reduce(Function::add, literal(Scalar::f32, 0), pairs);
}

TEST(OperatorForms, MatMulIsRowsAgainstColumns) {
  Expr a = parameter("x0", matrix(2, 3)), b = parameter("x1", matrix(3, 4));
  Expr wanted = map([&](Expr row) { return map([&](Expr column) { return products(row, column); }, transpose(b)); }, a);
  auto found = LayerCase("MatMul", {counting({2, 3}), counting({3, 4})}).lower();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[0], wanted) << print((*found)[0]) << "\nwanted\n" << print(wanted);
}

TEST(OperatorForms, GemmAddsItsBiasInsideAndDropsFactorsOfOne) {
  Expr a = parameter("x0", matrix(2, 3)), b = parameter("x1", matrix(4, 3));
  Expr c = parameter("x2", array_type(Nat(4), scalar_type(Scalar::f32)));
  Expr wanted = map(
      [&](Expr row) {
        return map([&](Expr p) { return operator_add(products(row, get(0, p)), get(1, p)); }, zip({b, c}));
      },
      a);
  auto found = LayerCase("Gemm", {counting({2, 3}), counting({4, 3}), counting({4})}, {{"transB", int64_t{1}}}).lower();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[0], wanted) << print((*found)[0]) << "\nwanted\n" << print(wanted);
}

TEST(OperatorForms, ABatchedProductClosesOverAPlainMatrix) {
  Expr a = parameter("x0", array_type({Nat(5), Nat(2), Nat(3)}, scalar_type(Scalar::f32))),
       b = parameter("x1", matrix(3, 4));
  Expr wanted = map_at(
      2, [&](Expr row) { return map([&](Expr column) { return products(row, column); }, transpose(b)); }, a);
  auto found = LayerCase("MatMul", {counting({5, 2, 3}), counting({3, 4})}).lower();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[0], wanted) << print((*found)[0]) << "\nwanted\n" << print(wanted);
}

TEST(OperatorForms, ConvIsFiltersAgainstWindows) {
  Type four = array_type({Nat(1), Nat(2), Nat(5), Nat(5)}, scalar_type(Scalar::f32));
  Expr x = parameter("x0", four),
       w = parameter("x1", array_type({Nat(3), Nat(2), Nat(3), Nat(3)}, scalar_type(Scalar::f32)));
  Expr bias = parameter("x2", array_type(Nat(3), scalar_type(Scalar::f32)));
  Expr nothing = literal(Scalar::f32, 0);
  // The pad is applied to all images at once, the windows to each.
  Expr padded = map_at(
      2, [&](Expr plane) { return pad(1, 1, repeat(5, nothing), plane); }, x);
  padded = map_at(
      3, [&](Expr line) { return pad(1, 1, nothing, line); }, padded);
  auto windows = [&](Expr image) {
    Expr slid = map([](Expr plane) { return slide(3, 2, 1, plane); }, image);
    slid = map_at(
        3, [](Expr line) { return slide(3, 2, 1, line); }, slid);
    return transpose({1, 3, 0, 2, 4}, slid);
  };
  Expr wanted = map(
      [&](Expr image) {
        return map(
            [&](Expr p) {
              return map_at(
                  2,
                  [&](Expr window) {
                    return operator_add(products(join(join(window)), join(join(get(0, p)))), get(1, p));
                  },
                  windows(image));
            },
            zip({w, bias}));
      },
      padded);
  auto found = LayerCase("Conv", {counting({1, 2, 5, 5}), counting({3, 2, 3, 3}), counting({3})},
                         {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}})
                   .lower();
  ASSERT_TRUE(found.ok()) << found.errors()[0].text();
  EXPECT_EQ((*found)[0], wanted) << print((*found)[0]) << "\nwanted\n" << print(wanted);
}

TEST(OperatorForms, BroadcastingClosesOverMissingDimensions) {
  Expr x = parameter("x0", matrix(2, 3)), b = parameter("x1", array_type(Nat(3), scalar_type(Scalar::f32)));
  Expr wanted = map(
      [&](Expr row) {
        return map([](Expr p) { return operator_add(get(0, p), get(1, p)); }, zip({row, b}));
      },
      x);
  auto found = LayerCase("Add", {counting({2, 3}), counting({3})}).lower();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[0], wanted) << print((*found)[0]) << "\nwanted\n" << print(wanted);
}

TEST(OperatorForms, ReshapeJoinsAndSplitsOnlyWhatDiffers) {
  Expr x = parameter("x0", array_type({Nat(2), Nat(3), Nat(4)}, scalar_type(Scalar::f32)));
  auto found = LayerCase("Reshape", {counting({2, 3, 4}), integers({2}, {2, -1})}).with_known({false, true}).lower();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ((*found)[0], map([](Expr rows) { return join(rows); }, x)) << print((*found)[0]);
}

// ---- Values --------------------------------------------------------------------------------------------------------

TEST(Operators, ElementwiseBroadcasts) {
  EXPECT_EQ(show(LayerCase("Add", {counting({2, 1}), counting({3})}).run()), "[2][3] 0 1 2 1 2 3");
  EXPECT_EQ(show(LayerCase("Sub", {floats({}, {5}), counting({2, 2})}).run()), "[2][2] 5 4 3 2");
  EXPECT_EQ(show(LayerCase("Div", {integers({2}, {-7, 7}), integers({1}, {2})}).run()), "[2] -3 3");
  EXPECT_EQ(show(LayerCase("Mod", {integers({2}, {-7, 7}), integers({2}, {3, -3})}).run()), "[2] 2 -2");
  EXPECT_EQ(show(LayerCase("Mod", {integers({2}, {-7, 7}), integers({2}, {3, -3})}, {{"fmod", int64_t{1}}}).run()),
            "[2] -1 1");
  EXPECT_EQ(show(LayerCase("Pow", {integers({3}, {1, 2, 3}), floats({}, {2})}).run()), "[3] 1 4 9");
  EXPECT_EQ(show(LayerCase("Mean", {floats({1}, {1}), floats({1}, {2}), floats({1}, {6})}).run()), "[1] 3");
}

TEST(Operators, ClipWithCrossedBoundsGivesTheUpperOne) {
  EXPECT_EQ(show(LayerCase("Clip", {counting({4}), floats({}, {2}), floats({}, {1})}).run()), "[4] 1 1 1 1");
}

TEST(Operators, BoundsOfClipThatAreKnownAreNumbers) {
  LayerCase known =
      LayerCase("Clip", {counting({4}), floats({}, {1}), floats({}, {2})}).with_known({false, true, true});
  const auto found = known.lower();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(parameters_of((*found)[0]).size(), 1u) << print((*found)[0]);
  EXPECT_EQ(show(known.run()), "[4] 1 1 2 2");
  const auto one_bound =
      LayerCase("Clip", {counting({4}), floats({}, {1}), floats({}, {2})}).with_known({false, true, false});
  EXPECT_EQ(show(one_bound.run()), "[4] 1 1 2 2");
  // Integers stay exact: a 64-bit value may not fit the type in which the definition computes.
  const auto whole = LayerCase("Clip", {integers({3}, {-5, 0, 9}), integers({}, {-1}), integers({}, {4})})
                         .with_known({false, true, true});
  EXPECT_EQ(show(whole.run()), "[3] -1 0 4");
  const float none = std::numeric_limits<float>::quiet_NaN();
  const auto no_number =
      LayerCase("Clip", {counting({2}), floats({}, {none}), floats({}, {2})}).with_known({false, true, true});
  EXPECT_TRUE(std::isnan(no_number.run().float_at(0)));
}

TEST(Operators, CastKeepsLowBitsOfIntegers) {
  auto cast_to = [](int64_t type, Tensor x) { return show(LayerCase("Cast", {std::move(x)}, {{"to", type}}).run()); };
  EXPECT_EQ(cast_to(3, integers({3}, {200, -129, 5})), "[3] -56 127 5");               // i8
  EXPECT_EQ(cast_to(2, integers({3}, {256, -1, 5})), "[3] 0 255 5");                   // u8
  EXPECT_EQ(cast_to(6, integers({2}, {int64_t{1} << 31, -1})), "[2] -2147483648 -1");  // i32
  EXPECT_EQ(cast_to(13, Tensor::of(Scalar::i32, {2}, Ints{-1, 7})), "[2] -1 7");       // u64, all bits set
  EXPECT_EQ(cast_to(3, Tensor::of(Scalar::u8, {2}, Ints{255, 127})), "[2] -1 127");    // i8 of the same width
  EXPECT_EQ(cast_to(7, floats({2}, {-2.9, 2.9})), "[2] -2 2");
  EXPECT_EQ(cast_to(9, floats({3}, {0, 0.5, std::numeric_limits<double>::quiet_NaN()})), "[3] 0 1 1");
}

TEST(Operators, ProductsTakeBatchesAndVectors) {
  EXPECT_EQ(show(LayerCase("MatMul", {counting({3}), counting({3, 2})}).run()), "[2] 10 13");
  EXPECT_EQ(show(LayerCase("MatMul", {counting({2, 3}), counting({3})}).run()), "[2] 5 14");
  EXPECT_EQ(show(LayerCase("MatMul", {counting({2, 1, 2}), counting({1, 2, 1})}).run()), "[2][1][1] 1 3");
  EXPECT_EQ(
      show(LayerCase("Gemm", {counting({2, 2}), counting({2, 2}), floats({2, 1}, {10, 20})}, {{"alpha", 2.0}}).run()),
      "[2][2] 14 16 32 42");
  EXPECT_EQ(
      show(LayerCase("Einsum", {counting({2, 2}), counting({2, 2})}, {{"equation", std::string("ij,ij->i")}}).run()),
      "[2] 1 13");
}

TEST(Operators, ConvolutionInGroupsWithDilation) {
  // Each channel has its own filter: x[i] + 10 * x[i + 2].
  EXPECT_EQ(show(LayerCase("Conv", {counting({1, 2, 4}), floats({2, 1, 2}, {1, 10, 1, 10})},
                           {{"group", int64_t{2}}, {"dilations", Ints{2}}})
                     .run()),
            "[1][2][2] 20 31 64 75");
  EXPECT_EQ(show(LayerCase("Conv", {counting({1, 1, 3}), floats({1, 1, 2}, {1, 1})},
                           {{"auto_pad", std::string("SAME_UPPER")}})
                     .run()),
            "[1][1][3] 1 3 2");
  EXPECT_EQ(show(LayerCase("Conv", {counting({1, 1, 3}), floats({1, 1, 2}, {1, 1})},
                           {{"auto_pad", std::string("SAME_LOWER")}})
                     .run()),
            "[1][1][3] 0 1 3");
}

TEST(Operators, TransposedConvolutionSpreadsItsInput) {
  EXPECT_EQ(show(LayerCase("ConvTranspose", {floats({1, 1, 3}, {1, 2, 3}), floats({1, 1, 2}, {1, 10})},
                           {{"strides", Ints{2}}})
                     .run()),
            "[1][1][6] 1 10 2 20 3 30");
  EXPECT_EQ(show(LayerCase("ConvTranspose",
                           {floats({1, 1, 2}, {1, 2}), floats({1, 2, 2}, {1, 10, 2, 20}), floats({2}, {0, 5})})
                     .run()),
            "[1][2][3] 1 12 20 7 29 45");
}

Tensor bytes(Ints shape, const Ints& values) { return Tensor::of(Scalar::u8, std::move(shape), values); }
Tensor signed_bytes(Ints shape, const Ints& values) { return Tensor::of(Scalar::i8, std::move(shape), values); }

TEST(Operators, QuantisingRoundsHalfToEvenThenSaturates) {
  // The zero point is added after rounding: 0.5 rounds to 0 for any zero point.
  EXPECT_EQ(
      show(LayerCase("QuantizeLinear", {floats({5}, {1, 3, 5, -300, 1000}), floats({}, {2}), bytes({}, {3})}).run()),
      "[5] 3 5 5 0 255");
  EXPECT_EQ(
      show(LayerCase("QuantizeLinear", {floats({2}, {-9, 8}), floats({}, {1})}, {{"output_dtype", int64_t{22}}}).run()),
      "[2] -8 7");
  // One scale and zero point per column; blocks of two columns, with a partial last block.
  EXPECT_EQ(
      show(LayerCase("QuantizeLinear", {counting({2, 2}), floats({2}, {1, 0.5}), signed_bytes({2}, {0, 100})}).run()),
      "[2][2] 0 102 2 106");
  EXPECT_EQ(
      show(LayerCase("QuantizeLinear", {counting({1, 3}), floats({1, 2}, {1, 0.125})}, {{"block_size", int64_t{2}}})
               .run()),
      "[1][3] 0 1 16");
}

TEST(Operators, DequantisingScalesWhatLiesAboveTheZeroPoint) {
  EXPECT_EQ(show(LayerCase("DequantizeLinear", {bytes({3}, {0, 128, 255}), floats({}, {0.5}), bytes({}, {128})}).run()),
            "[3] -64 0 63.5");
  EXPECT_EQ(show(LayerCase("DequantizeLinear", {signed_bytes({2, 2}, {1, 2, 3, 4}), floats({2}, {1, 10})},
                           {{"axis", int64_t{0}}})
                     .run()),
            "[2][2] 1 2 30 40");
  EXPECT_EQ(show(LayerCase("DequantizeLinear",
                           {signed_bytes({3, 1}, {1, 2, 3}), floats({2, 1}, {1, 10}), signed_bytes({2, 1}, {0, 1})},
                           {{"axis", int64_t{0}}, {"block_size", int64_t{2}}})
                     .run()),
            "[3][1] 1 2 20");
}

TEST(Operators, IntegerProductsSubtractZeroPoints) {
  EXPECT_EQ(show(LayerCase("MatMulInteger", {bytes({2, 2}, {255, 255, 0, 0}), signed_bytes({2, 1}, {-128, -128}),
                                             bytes({2}, {0, 1}), signed_bytes({1}, {127})})
                     .run()),
            "[2][1] -130050 510");
  // Padding means the value zero: it is the zero point, not 0.
  EXPECT_EQ(
      show(LayerCase("ConvInteger",
                     {bytes({1, 1, 2}, {11, 12}), bytes({2, 1, 2}, {1, 2, 3, 4}), bytes({}, {10}), bytes({2}, {0, 1})},
                     {{"pads", Ints{1, 1}}})
               .run()),
      "[1][2][3] 2 5 2 3 8 4");
}

TEST(Operators, QuantisedProductsScaleTheSumOnce) {
  Tensor one = floats({}, {1}), half = floats({}, {0.5}), none = bytes({}, {0});
  // The sums 1, 3, 5 and 250, halved, are rounded half to even before the zero point is added.
  EXPECT_EQ(show(LayerCase("QLinearMatMul", {bytes({4, 1}, {1, 3, 5, 250}), half, none, bytes({1, 1}, {1}), one, none,
                                             one, bytes({}, {7})})
                     .run()),
            "[4][1] 7 9 9 132");
  EXPECT_EQ(show(LayerCase("QLinearMatMul",
                           {bytes({2, 1}, {10, 10}), floats({2}, {1, 10}), none, signed_bytes({1, 2}, {1, -1}),
                            floats({2}, {1, 2}), signed_bytes({}, {0}), one, signed_bytes({}, {-100})})
                     .run()),
            "[2][2] -90 -120 0 -128");
  // The result's scale and zero point are per row too.
  EXPECT_EQ(show(LayerCase("QLinearMatMul", {bytes({2, 1}, {8, 8}), one, none, bytes({1, 2}, {1, 2}), one, none,
                                             floats({2}, {1, 4}), bytes({2}, {0, 50})})
                     .run()),
            "[2][2] 8 16 52 54");
  for (bool known : {false, true}) {  // the bias decides if i32 holds the sums
    EXPECT_EQ(show(LayerCase("QLinearConv",
                             {bytes({1, 1, 2}, {11, 12}), one, bytes({}, {10}), signed_bytes({2, 1, 2}, {1, 2, 3, 4}),
                              floats({2}, {1, 0.5}), signed_bytes({2}, {0, 0}), floats({1}, {2}), bytes({}, {1}),
                              Tensor::of(Scalar::i32, {2}, Ints{1, INT32_MAX})},
                             {{"pads", Ints{1, 1}}})
                       .with_known({false, true, true, true, true, true, true, true, known})
                       .run()),
              "[1][2][3] 3 4 3 255 255 255");
  }
}

TEST(Operators, PoolingCountsPaddingOnlyWhenAsked) {
  std::map<std::string, Attribute> a = {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 0}}};
  EXPECT_EQ(show(LayerCase("AveragePool", {floats({1, 1, 3}, {2, 4, 6})}, a).run()), "[1][1][3] 2 3 5");
  a["count_include_pad"] = int64_t{1};
  EXPECT_EQ(show(LayerCase("AveragePool", {floats({1, 1, 3}, {2, 4, 6})}, a).run()), "[1][1][3] 1 3 5");
  EXPECT_EQ(
      show(LayerCase("MaxPool", {floats({1, 1, 3}, {-2, -4, -6})}, {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 0}}})
               .run()),
      "[1][1][3] -2 -2 -4");
  std::map<std::string, Attribute> ceiling = {
      {"kernel_shape", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(show(LayerCase("AveragePool", {counting({1, 1, 5})}, ceiling).run()), "[1][1][3] 0.5 2.5 4");
  EXPECT_EQ(show(LayerCase("MaxPool", {counting({1, 1, 5})}, ceiling, 2).run(1)), "[1][1][3] 1 3 4");
}

TEST(Operators, SoftmaxTakesTheLastAxis) {
  EXPECT_EQ(show(LayerCase("Softmax", {floats({1, 2, 2}, {0, 0, 0, 0})}).run()), "[1][2][2] 0.5 0.5 0.5 0.5");
  EXPECT_EQ(show(LayerCase("Softmax", {floats({2}, {1000, 1000})}).run()), "[2] 0.5 0.5");
}

TEST(Operators, Reductions) {
  Tensor x = counting({2, 3});
  EXPECT_EQ(show(LayerCase("ReduceSum", {x, integers({1}, {-1})}).with_known({false, true}).run()), "[2][1] 3 12");
  EXPECT_EQ(show(LayerCase("ReduceMax", {x}, {{"axes", Ints{0}}, {"keepdims", int64_t{0}}}).at_version(13).run()),
            "[3] 3 4 5");
  EXPECT_EQ(show(LayerCase("ReduceMean", {x}, {{"keepdims", int64_t{0}}}).run()), "2.5");
  EXPECT_EQ(show(LayerCase("ReduceSum", {x}, {{"noop_with_empty_axes", int64_t{1}}}).run()), "[2][3] 0 1 2 3 4 5");
  EXPECT_EQ(show(LayerCase("ArgMax", {floats({4}, {1, 3, 3, 2})}, {{"keepdims", int64_t{0}}}).run()), "1");
  EXPECT_EQ(show(LayerCase("ArgMax", {floats({4}, {1, 3, 3, 2})}, {{"select_last_index", int64_t{1}}}).run()), "[1] 2");
  EXPECT_EQ(
      show(LayerCase("CumSum", {counting({4}), integers({}, {0})}, {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}})
               .with_known({false, true})
               .run()),
      "[4] 6 5 3 0");
}

// Behaviour that the standard leaves open, as in ir/operators/NUMERICS.md.
TEST(Operators, NotANumberIsTheExtreme) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const Tensor x = floats({5}, {1, nan, infinity, nan, -infinity});
  for (const char* name : {"ArgMax", "ArgMin"}) {
    EXPECT_EQ(show(LayerCase(name, {x}).run()), "[1] 1") << name;
    EXPECT_EQ(show(LayerCase(name, {x}, {{"select_last_index", int64_t{1}}}).run()), "[1] 3") << name;
    EXPECT_EQ(show(LayerCase(name, {floats({2}, {nan, 0})}).run()), "[1] 0") << name;
  }
  EXPECT_EQ(show(LayerCase("Hardmax", {x}, {{"axis", int64_t{0}}}).run()), "[5] 0 1 0 0 0");
  EXPECT_EQ(show(LayerCase("Hardmax", {floats({2}, {-infinity, -infinity})}).run()), "[2] 1 0");
}

TEST(Operators, TheSignOfMinusZeroIsZero) {
  const Tensor signs = LayerCase("Sign", {floats({2}, {-0.0, -0.5})}).run();
  EXPECT_FALSE(std::signbit(signs.float_at(0)));
  EXPECT_EQ(signs.float_at(1), -1);
}

TEST(Operators, Shapes) {
  Tensor x = counting({2, 3});
  EXPECT_EQ(show(LayerCase("Reshape", {x, integers({3}, {0, 1, -1})}).with_known({false, true}).run()),
            "[2][1][3] 0 1 2 3 4 5");
  EXPECT_EQ(show(LayerCase("Shape", {x}, {{"start", int64_t{-1}}}).run()), "[1] 3");
  EXPECT_EQ(show(LayerCase("Squeeze", {counting({1, 1})}).run()), "0");
  EXPECT_EQ(show(LayerCase("Unsqueeze", {floats({}, {7}), integers({2}, {0, 1})}).with_known({false, true}).run()),
            "[1][1] 7");
  EXPECT_EQ(show(LayerCase("Expand", {counting({2, 1}), integers({2}, {1, 2})}).with_known({false, true}).run()),
            "[2][2] 0 0 1 1");
  EXPECT_EQ(show(LayerCase("Range", {integers({}, {5}), integers({}, {0}), integers({}, {-2})})
                     .with_known({true, true, true})
                     .run()),
            "[3] 5 3 1");
}

TEST(Operators, Movement) {
  Tensor x = counting({2, 3});
  EXPECT_EQ(show(LayerCase("Transpose", {x}).run()), "[3][2] 0 3 1 4 2 5");
  EXPECT_EQ(show(LayerCase("Concat", {x, counting({2, 1})}, {{"axis", int64_t{-1}}}).run()), "[2][4] 0 1 2 0 3 4 5 1");
  EXPECT_EQ(show(LayerCase("Split", {x}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{2}}}, 2).run(1)), "[2][1] 2 5");
  auto sliced = [&](int64_t start, int64_t end, int64_t step) {
    return show(LayerCase("Slice", {counting({5}), integers({1}, {start}), integers({1}, {end}), integers({1}, {0}),
                                    integers({1}, {step})})
                    .with_known({false, true, true, true, true})
                    .run());
  };
  EXPECT_EQ(sliced(-1, INT64_MIN, -2), "[3] 4 2 0");
  EXPECT_EQ(sliced(1, INT64_MAX, 2), "[2] 1 3");
  EXPECT_EQ(sliced(3, 1, 1), "[0]");
  EXPECT_EQ(sliced(0, 5, INT64_MAX), "[1] 0");
  auto padded = [&](const std::string& mode, int64_t before, int64_t after) {
    return show(LayerCase("Pad", {counting({3}), integers({2}, {before, after})}, {{"mode", mode}})
                    .with_known({false, true})
                    .run());
  };
  EXPECT_EQ(padded("constant", 1, -1), "[3] 0 0 1");
  EXPECT_EQ(padded("reflect", 2, 1), "[6] 2 1 0 1 2 1");
  EXPECT_EQ(padded("reflect", 4, 0), "[7] 0 1 2 1 0 1 2");
  EXPECT_EQ(padded("edge", 1, 2), "[6] 0 0 1 2 2 2");
  EXPECT_EQ(padded("wrap", 1, 4), "[8] 2 0 1 2 0 1 2 0");
}

TEST(Operators, PositionsFromDataAreKeptInside) {
  Tensor x = counting({2, 3});
  EXPECT_EQ(show(LayerCase("Gather", {x, integers({3}, {-1, 7, -9})}, {{"axis", int64_t{1}}}).run()),
            "[2][3] 2 2 0 5 5 3");
  EXPECT_EQ(show(LayerCase("Gather", {x, integers({}, {-1})}).with_known({false, true}).run()), "[3] 3 4 5");
  EXPECT_EQ(show(LayerCase("GatherND", {x, integers({2, 2}, {0, 1, 9, -9})}).run()), "[2] 1 3");
  EXPECT_EQ(
      show(LayerCase("ScatterElements", {counting({4}), integers({3}, {1, -1, 9}), floats({3}, {10, 20, 30})}).run()),
      "[4] 0 10 2 20");
  EXPECT_EQ(show(LayerCase("ScatterND", {counting({4}), integers({2, 1}, {1, 1}), floats({2}, {10, 20})},
                           {{"reduction", std::string("add")}})
                     .run()),
            "[4] 0 31 2 3");
}

TEST(Operators, ResizeByNearestElementsAndWeights) {
  Tensor empty = floats({0}, {});
  auto resized = [&](std::map<std::string, Attribute> attributes, const Tensor& x, double scale) {
    return show(LayerCase("Resize", {x, empty, floats({1}, {scale})}, std::move(attributes))
                    .with_known({false, true, true})
                    .run());
  };
  EXPECT_EQ(
      resized({{"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}},
              counting({2}), 2),
      "[4] 0 0 1 1");
  EXPECT_EQ(resized({{"mode", std::string("linear")}}, counting({2}), 2), "[4] 0 0.25 0.75 1");
  EXPECT_EQ(resized({{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("align_corners")}},
                    counting({3}), 2),
            "[6] 0 0.4 0.8 1.2 1.6 2");
}

TEST(Operators, BatchNormalisationPerChannel) {
  EXPECT_EQ(show(LayerCase("BatchNormalization",
                           {floats({1, 2, 2}, {1, 3, 5, 9}), floats({2}, {1, 2}), floats({2}, {0, 1}),
                            floats({2}, {1, 5}), floats({2}, {4, 4})},
                           {{"epsilon", 0.0}})
                     .run()),
            "[1][2][2] 0 1 1 5");
}

TEST(Operators, BatchNormalisationInTrainingHasTheStatisticsOfTheBatch) {
  const LayerCase layer("BatchNormalization",
                        {floats({2, 2, 1}, {1, 3, 5, 9}), floats({2}, {1, 2}), floats({2}, {0, 1}), floats({2}, {1, 5}),
                         floats({2}, {4, 8})},
                        {{"epsilon", 0.0}, {"momentum", 0.5}, {"training_mode", int64_t{1}}}, 3);
  EXPECT_EQ(show(layer.run(0)), "[2][2][1] -1 -1 1 3");
  EXPECT_EQ(show(layer.run(1)), "[2] 2 5.5");
  EXPECT_EQ(show(layer.run(2)), "[2] 4 8.5");
  LayerCase inference = layer;
  inference.layer.attributes.erase("training_mode");
  EXPECT_EQ(inference.error(),
            "running statistics are asked for without training_mode (export the model for inference)");
}

TEST(Operators, PowersOfTwoAreRoundedAsAsked) {
  const auto cast = [](const char* mode, const std::vector<double>& x, int64_t saturate = 1) {
    const Tensor values = floats({static_cast<int64_t>(x.size())}, x);
    return show(
        LayerCase("Cast", {values},
                  {{"to", onnx_type(Scalar::f8e8m0)}, {"round_mode", std::string(mode)}, {"saturate", saturate}})
            .at_version(25)
            .run());
  };
  EXPECT_EQ(cast("up", {1, 1.1, 3, -3}), "[4] 1 2 4 4");
  EXPECT_EQ(cast("down", {1, 1.1, 3, -3}), "[4] 1 1 2 2");
  EXPECT_EQ(cast("nearest", {1.4, 1.5, 2.9, -3}), "[4] 1 2 2 4");
  EXPECT_EQ(cast("nearest", {0, 0x1.4p-127, 0x1.8p-127}), cast("up", {0, 0, 0x1p-126}));
  EXPECT_EQ(cast("nearest", {0x1.8p127}), cast("down", {0x1p127}));
  EXPECT_EQ(cast("nearest", {0x1.8p127}, 0), "[1] nan");
  EXPECT_EQ(cast("up", {0x1.1p127}, 0), "[1] nan");
}

TEST(Operators, SequencesOfTokensAreCounted) {
  const Tensor row = Tensor::of<int>(Scalar::i32, {2, 6}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
  const auto counted = [&](Attributes attributes) {
    attributes["ngram_counts"] = Ints{0, 4};
    attributes["ngram_indexes"] = Ints{0, 1, 2, 3, 4, 5, 6};
    attributes["pool_int64s"] = Ints{2, 3, 5, 4, 5, 6, 7, 8, 6, 7};
    return show(LayerCase("TfIdfVectorizer", {row}, std::move(attributes)).run());
  };
  const Attributes pairs = {{"min_gram_length", int64_t{2}}, {"max_gram_length", int64_t{2}}};
  EXPECT_EQ(counted(pairs), "[2][7] 0 0 0 0 0 0 0 0 0 0 0 1 0 1");
  Attributes apart = pairs;
  apart["max_skip_count"] = int64_t{5};
  EXPECT_EQ(counted(apart), "[2][7] 0 0 0 0 0 0 0 0 0 0 0 1 1 1");
  apart["min_gram_length"] = int64_t{1};
  EXPECT_EQ(counted(apart), "[2][7] 0 3 0 0 0 0 0 0 0 1 0 1 1 1");
  apart["mode"] = std::string("TFIDF");
  apart["weights"] = std::vector<double>{1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(counted(apart), "[2][7] 0 6 0 0 0 0 0 0 0 3 0 5 6 7");
  apart["mode"] = std::string("IDF");
  EXPECT_EQ(counted(apart), "[2][7] 0 2 0 0 0 0 0 0 0 3 0 5 6 7");
}

// ---- Random numbers ------------------------------------------------------------------------------------------------

double mean_of(const Tensor& x) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i)
    sum += is_float(x.scalar()) ? x.float_at(i) : static_cast<double>(x.integer_at(i));
  return sum / static_cast<double>(x.size());
}

TEST(RandomOperators, NumbersAreAFunctionOfSeedAndPlace) {
  const auto drawn = [](const char* name, double seed, Ints shape, int64_t type = 1) {
    return LayerCase(name, {}, {{"shape", shape}, {"seed", seed}, {"dtype", type}}).run();
  };
  for (const char* name : {"RandomUniform", "RandomNormal"}) {
    const Tensor x = drawn(name, 7, {40, 50});
    EXPECT_TRUE(std::ranges::equal(drawn(name, 7, {2000}).bytes(), x.bytes()));
    EXPECT_FALSE(std::ranges::equal(drawn(name, 8, {2000}).bytes(), x.bytes()));
    EXPECT_NEAR(mean_of(x), name == std::string("RandomUniform") ? 0.5 : 0, 0.06) << name;
  }
  const Tensor uniform = drawn("RandomUniform", 3, {1000});
  for (int64_t i = 0; i < uniform.size(); ++i) {
    EXPECT_GE(uniform.float_at(i), 0);
    EXPECT_LT(uniform.float_at(i), 1);
  }
  EXPECT_EQ(drawn("RandomUniform", 3, {0}).size(), 0);
  EXPECT_EQ(drawn("RandomNormal", 3, {2, 3}, 11).scalar(), Scalar::f64);
  EXPECT_EQ(drawn("RandomUniform", 3, {4}, 10).scalar(), Scalar::f16);
}

TEST(RandomOperators, ProbabilitiesAreThoseAskedFor) {
  const Tensor likely = floats({2000}, std::vector<double>(2000, 0.8));
  const Tensor bits = LayerCase("Bernoulli", {likely}, {{"seed", 1.0}, {"dtype", int64_t{9}}}).run();
  EXPECT_EQ(bits.scalar(), Scalar::boolean);
  EXPECT_NEAR(mean_of(bits), 0.8, 0.04);
}

TEST(RandomOperators, ClassesAreDrawnByTheLogarithmsOfTheirWeights) {
  const double none = -std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto drawn = [](const Tensor& x, int64_t count, double seed = 1, int64_t type = 6) {
    return LayerCase("Multinomial", {x}, {{"sample_size", count}, {"seed", seed}, {"dtype", type}}).run();
  };
  const auto counts = [](const Tensor& classes, int64_t row, size_t of) {
    std::vector<int> out(of);
    const int64_t samples = classes.shape()[1];
    for (int64_t i = 0; i < samples; ++i) ++out.at(static_cast<size_t>(classes.integer_at(row * samples + i)));
    return out;
  };
  // Weights need not sum to 1: both rows are multiples of 1/8, 1/2, 3/8.
  const std::vector<double> shares = {0.125, 0.5, 0.375};
  std::vector<double> rows;
  for (const double share : shares) rows.push_back(std::log(share));
  for (const double share : shares) rows.push_back(std::log(share) + 300);
  const Tensor classes = drawn(floats({2, 3}, rows), 4000);
  EXPECT_EQ(classes.scalar(), Scalar::i32);
  EXPECT_EQ(classes.shape(), (Ints{2, 4000}));
  for (const int64_t row : {0, 1}) {
    double squares = 0;  // chi-squared with two degrees of freedom: above 18 for one of 8000 seeds
    const std::vector<int> found = counts(classes, row, 3);
    for (size_t i = 0; i < 3; ++i) squares += std::pow(found[i] - 4000 * shares[i], 2) / (4000 * shares[i]);
    EXPECT_LT(squares, 18) << "row " << row;
  }
  // Rows are independent of each other.
  EXPECT_NE(counts(classes, 0, 3), counts(classes, 1, 3));
  EXPECT_TRUE(std::ranges::equal(drawn(floats({2, 3}, rows), 4000).bytes(), classes.bytes()));
  EXPECT_FALSE(std::ranges::equal(drawn(floats({2, 3}, rows), 4000, 2).bytes(), classes.bytes()));
  // With replacement, and never a class of weight 0.
  const Tensor only = drawn(floats({1, 4}, {none, 1, none, none}), 100);
  EXPECT_EQ(counts(only, 0, 4), (std::vector<int>{0, 100, 0, 0}));
  EXPECT_EQ(counts(drawn(floats({1, 1}, {-7}), 9), 0, 1)[0], 9);
  EXPECT_EQ(counts(drawn(floats({1, 3}, {-1e30, 0, 0}), 50), 0, 3)[0], 0);
  // Without positive weights: the first class.
  EXPECT_EQ(counts(drawn(floats({2, 3}, {none, none, none, 0, nan, 0}), 5), 0, 3)[0], 5);
  EXPECT_EQ(counts(drawn(floats({2, 3}, {none, none, none, 0, nan, 0}), 5), 1, 3)[0], 5);
  EXPECT_EQ(drawn(floats({0, 3}, {}), 4).shape(), (Ints{0, 4}));
  EXPECT_EQ(drawn(floats({1, 3}, {0, 0, 0}), 4, 1, 7).scalar(), Scalar::i64);
  EXPECT_NE(LayerCase("Multinomial", {floats({1, 0}, {})}, {}).error().find("has no classes"), std::string::npos);
}

TEST(RandomOperators, DropoutScalesWhatItKeeps) {
  const Tensor x = floats({1000}, std::vector<double>(1000, 3)), ratio = floats({}, {0.25});
  const Tensor yes = Tensor::of<int>(Scalar::boolean, {}, {1}), no = Tensor::of<int>(Scalar::boolean, {}, {0});
  const LayerCase training("Dropout", {x, ratio, yes}, {{"seed", int64_t{5}}}, 2);
  const Tensor y = training.run(0), mask = training.run(1);
  EXPECT_NEAR(mean_of(mask), 0.75, 0.05);
  for (int64_t i = 0; i < x.size(); ++i) EXPECT_EQ(y.float_at(i), mask.integer_at(i) != 0 ? 4 : 0);
  EXPECT_EQ(LayerCase("Dropout", {x, ratio, no}, {}, 2).run(0), x);
  EXPECT_EQ(LayerCase("Dropout", {x, floats({}, {0}), yes}, {}, 2).run(0), x);
  EXPECT_EQ(mean_of(LayerCase("Dropout", {x}, {}, 2).run(1)), 1);
}

// ---- Places, signals, other domains --------------------------------------------------------------------------------

TEST(Operators, TrianglesTakeAnyDiagonal) {
  const Tensor x = counting({3, 4}), none = floats({3, 4}, std::vector<double>(12, 0));
  for (const int64_t k :
       {INT64_MIN, int64_t{INT32_MIN} - 1, int64_t{-3}, int64_t{4}, int64_t{INT32_MAX} + 1, INT64_MAX}) {
    for (const bool upper : {false, true}) {
      for (const bool known : {false, true}) {
        const LayerCase layer =
            LayerCase("Trilu", {x, integers({}, {k})}, {{"upper", int64_t{upper}}}).with_known({false, known});
        EXPECT_EQ(layer.run(), upper == (k < 0) ? x : none) << k << " " << upper;
      }
    }
  }
  EXPECT_EQ(show(LayerCase("Trilu", {x, integers({}, {1})}).run()), "[3][4] 0 1 2 3 0 0 6 7 0 0 0 11");
}

TEST(Operators, TopKHasTheFirstOfEqualOnesFirst) {
  const Tensor k = integers({1}, {3});
  const auto top = [&](const Tensor& x, Attributes attributes, size_t output) {
    return show(LayerCase("TopK", {x, k}, std::move(attributes), 2).with_known({false, true}).run(output));
  };
  const Tensor x = floats({1, 5}, {2, 7, 7, -1, 2});
  EXPECT_EQ(top(x, {}, 0), "[1][3] 7 7 2");
  EXPECT_EQ(top(x, {}, 1), "[1][3] 1 2 0");
  EXPECT_EQ(top(x, {{"largest", int64_t{0}}}, 1), "[1][3] 3 0 4");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(top(floats({5}, {2, nan, 7, nan, 2}), {}, 1), "[3] 1 3 2");  // each position once
  EXPECT_EQ(LayerCase("TopK", {counting({2}), k}).with_known({false, true}).error(), "k is 3, axis 0 has 2 elements");
}

TEST(Operators, WindowsPutBackOverlap) {
  // Windows of 2 in a row of 3, which overlap in its middle.
  EXPECT_EQ(show(LayerCase("Col2Im", {counting({1, 2, 2}), integers({1}, {3}), integers({1}, {2})})
                     .with_known({false, true, true})
                     .run()),
            "[1][1][3] 0 3 3");
  EXPECT_EQ(show(LayerCase("MaxUnpool", {floats({1, 1, 2}, {5, 6}), integers({1, 1, 2}, {3, 0})},
                           {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}})
                     .run()),
            "[1][1][4] 6 0 0 5");
}

// Windows with stride 1 are sums of shifted images, other windows use lookups: both are compared with a plain loop.
TEST(Operators, WindowsPutBackAnywhere) {
  std::mt19937_64 random(5);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 30; ++round) {
    Ints image, block, strides, dilations, begin, end, windows;
    for (int i = 0; i < 2; ++i) {
      block.push_back(1 + below(3));
      strides.push_back(round % 2 == 0 ? 1 : 1 + below(3));
      dilations.push_back(1 + below(2));
      begin.push_back(below(3));
      end.push_back(below(3));
      image.push_back((block.back() - 1) * dilations.back() + 1 + below(4));
      windows.push_back(
          (image.back() + begin.back() + end.back() - (block.back() - 1) * dilations.back() - 1) / strides.back() + 1);
    }
    const int64_t taps = block[0] * block[1], places = windows[0] * windows[1];
    std::vector<double> x, expected(static_cast<size_t>(2 * image[0] * image[1]), 0);
    for (int64_t i = 0; i < 2 * taps * places; ++i) x.push_back(static_cast<double>(below(100)));
    for (int64_t i = 0; i < 2 * taps * places; ++i) {
      const int64_t place = i % places, tap = i / places % taps, channel = i / places / taps;
      const int64_t at[] = {place / windows[1] * strides[0] + tap / block[1] * dilations[0] - begin[0],
                            place % windows[1] * strides[1] + tap % block[1] * dilations[1] - begin[1]};
      if (at[0] < 0 || at[0] >= image[0] || at[1] < 0 || at[1] >= image[1]) continue;
      expected[static_cast<size_t>((channel * image[0] + at[0]) * image[1] + at[1])] += x[static_cast<size_t>(i)];
    }
    const Ints pads = {begin[0], begin[1], end[0], end[1]};
    EXPECT_EQ(LayerCase("Col2Im", {floats({1, 2 * taps, places}, x), integers({2}, image), integers({2}, block)},
                        {{"strides", strides}, {"dilations", dilations}, {"pads", pads}})
                  .with_known({false, true, true})
                  .run(),
              floats({1, 2, image[0], image[1]}, expected))
        << round;
  }
}

TEST(Operators, PlacesOfAGrid) {
  // A single image, which a body of the standard's own calls would refuse: its grid is moved by half an image to the
  // right.
  const Tensor moved = floats({1, 2, 3}, {1, 0, 0.5, 0, 1, 0});
  const auto grid = [&](int64_t aligned, const Tensor& theta, const Ints& size) {
    return LayerCase("AffineGrid", {theta, integers({static_cast<int64_t>(size.size())}, size)},
                     {{"align_corners", aligned}})
        .with_known({false, true});
  };
  EXPECT_EQ(show(grid(0, moved, {1, 1, 1, 2}).run()), "[1][1][2][2] 0 0 1 0");
  EXPECT_EQ(show(grid(1, moved, {1, 1, 2, 2}).run()), "[1][2][2][2] -0.5 -1 1.5 -1 -0.5 1 1.5 1");
  const Tensor depth = floats({1, 3, 4}, {1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 3});
  EXPECT_EQ(show(grid(1, depth, {1, 1, 1, 2, 2}).run()), "[1][1][2][2][3] -1 -2 2 1 -2 2 -1 2 2 1 2 2");
  EXPECT_EQ(grid(0, moved, {2, 1, 1, 2}).error(), "theta is [1][2][3], expected [2][2][3] for the size [2][1][1][2]");
}

TEST(Operators, SamplesBetweenElements) {
  const auto sampled = [](const char* padding, double place) {
    return show(LayerCase("GridSample", {counting({1, 1, 1, 3}), floats({1, 1, 1, 2}, {place, 0})},
                          {{"align_corners", int64_t{1}}, {"padding_mode", std::string(padding)}})
                    .run());
  };
  EXPECT_EQ(sampled("zeros", 0.5), "[1][1][1][1] 1.5");
  EXPECT_EQ(sampled("zeros", 1.5), "[1][1][1][1] 1");
  EXPECT_EQ(sampled("border", 9), "[1][1][1][1] 2");
  EXPECT_EQ(sampled("reflection", 1.5), "[1][1][1][1] 1.5");
  EXPECT_EQ(sampled("zeros", std::numeric_limits<double>::infinity()), "[1][1][1][1] 0");
}

// Compared with a plain loop: regions inside the array, across its borders, outside, and reversed; also negative
// values.
TEST(Operators, RegionsHaveTheLargestOfTheirParts) {
  std::mt19937_64 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 40; ++round) {
    const int n = 1 + below(3), channels = 1 + below(3), h = 1 + below(9), w = 1 + below(9), regions = 1 + below(4);
    const int tall = 1 + below(4), wide = 1 + below(4);
    const double scale = std::vector<double>{1, 0.5, 0.25}[static_cast<size_t>(below(3))];
    std::vector<double> x, corners, expected;
    for (int i = 0; i < n * channels * h * w; ++i) x.push_back(below(200) - 150);
    for (int r = 0; r < regions; ++r) {
      corners.push_back(below(n));
      for (int i = 0; i < 4; ++i) corners.push_back((below(2 * (h + w)) - 4) / (2 * scale));
    }
    for (int r = 0; r < regions; ++r) {
      const double* region = corners.data() + r * 5;
      const double left = std::round(region[1] * scale), top = std::round(region[2] * scale);
      const double width = std::max(std::round(region[3] * scale) - left + 1, 1.0);
      const double height = std::max(std::round(region[4] * scale) - top + 1, 1.0);
      for (int c = 0; c < channels; ++c) {
        for (int p = 0; p < tall * wide; ++p) {
          const auto limit = [](double begin, double part, int extent) {
            return static_cast<int>(std::clamp(begin + part, 0.0, static_cast<double>(extent)));
          };
          const int line = p / wide, column = p % wide;
          const int y0 = limit(top, std::floor(line * height / tall), h);
          const int y1 = limit(top, std::ceil((line + 1) * height / tall), h);
          const int x0 = limit(left, std::floor(column * width / wide), w);
          const int x1 = limit(left, std::ceil((column + 1) * width / wide), w);
          double most = -1e9;
          for (int y = y0; y < y1; ++y) {
            for (int i = x0; i < x1; ++i)
              most = std::max(most,
                              x[static_cast<size_t>(((static_cast<int>(region[0]) * channels + c) * h + y) * w + i)]);
          }
          expected.push_back(y1 <= y0 || x1 <= x0 ? 0 : most);
        }
      }
    }
    for (const Scalar scalar : {Scalar::f32, Scalar::f64, Scalar::f16}) {
      const LayerCase layer("MaxRoiPool",
                            {Tensor::of(scalar, {n, channels, h, w}, x), Tensor::of(scalar, {regions, 5}, corners)},
                            {{"pooled_shape", Ints{tall, wide}}, {"spatial_scale", scale}});
      EXPECT_EQ(layer.run(), Tensor::of(scalar, {regions, channels, tall, wide}, expected)) << round;
    }
  }
  const Tensor image = counting({1, 1, 2, 2}), region = floats({1, 5}, {0, 0, 0, 1, 1});
  EXPECT_EQ(LayerCase("MaxRoiPool", {image, region}, {{"pooled_shape", Ints{2}}}).error(),
            "pooled_shape is [2], expected a height and a width");
  EXPECT_NE(LayerCase("MaxRoiPool", {image, floats({1, 4}, {0, 0, 1, 1})}, {{"pooled_shape", Ints{2, 2}}}).error(), "");
  EXPECT_EQ(
      show(LayerCase("MaxRoiPool", {image, floats({1, 5}, {NAN, NAN, 0, INFINITY, 1})}, {{"pooled_shape", Ints{1, 1}}})
               .run())
          .substr(0, 12),
      "[1][1][1][1]");
}

// The number of samples depends on each region. Compared with a plain loop over samples: small and large regions,
// across borders, outside, reversed.
TEST(Operators, RegionsHaveAsManySamplesAsTheyAreLong) {
  std::mt19937_64 random(12);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 60; ++round) {
    const int channels = 1 + below(2), h = 1 + below(8), w = 1 + below(8), regions = 3, tall = 1 + below(4),
              wide = 1 + below(3);
    const bool most = round % 2 == 1, half = round % 4 < 2;
    const double scale = 0.5;
    std::vector<double> x, corners, expected;
    for (int i = 0; i < channels * h * w; ++i) x.push_back(below(200) - 120);
    for (int i = 0; i < regions * 4; ++i) corners.push_back((below(10 * (h + w)) - 3 * (h + w)) / 2.0 + 0.25);
    for (int r = 0; r < regions; ++r) {
      const double* region = corners.data() + r * 4;
      const auto begin = [&](int i) { return region[i] * scale - (half ? 0.5 : 0); };
      const auto length = [&](int i, int parts) {
        const double all = begin(i + 2) - begin(i);
        return (half ? all : std::max(all, 1.0)) / parts;
      };
      const int lines = static_cast<int>(std::ceil(length(1, tall))),
                columns = static_cast<int>(std::ceil(length(0, wide)));
      for (int part = 0; part < channels * tall * wide; ++part) {
        const int c = part / (tall * wide), line = part / wide % tall, column = part % wide;
        double total = 0, largest = -1e9;
        for (int i = 0; i < std::max(lines, 0); ++i) {
          for (int k = 0; k < std::max(columns, 0); ++k) {
            double y = begin(1) + (line + (i + 0.5) / lines) * length(1, tall);
            double at = begin(0) + (column + (k + 0.5) / columns) * length(0, wide);
            if (y < -1 || y > h || at < -1 || at > w) {
              largest = std::max(largest, 0.0);
              continue;
            }
            y = std::max(y, 0.0), at = std::max(at, 0.0);
            const int y0 = std::min(static_cast<int>(y), h - 1), x0 = std::min(static_cast<int>(at), w - 1);
            const double fy = y0 == h - 1 ? 0 : y - y0, fx = x0 == w - 1 ? 0 : at - x0;
            for (int corner = 0; corner < 4; ++corner) {
              const int yy = std::min(y0 + corner / 2, h - 1), xx = std::min(x0 + corner % 2, w - 1);
              const double value = (corner / 2 == 1 ? fy : 1 - fy) * (corner % 2 == 1 ? fx : 1 - fx) *
                                   x[static_cast<size_t>((c * h + yy) * w + xx)];
              total += value;
              largest = std::max(largest, value);
            }
          }
        }
        const bool none = lines < 1 || columns < 1;
        expected.push_back(none ? 0 : most ? largest : total / (lines * columns));
      }
    }
    const LayerCase layer("RoiAlign",
                          {Tensor::of(Scalar::f64, {1, channels, h, w}, x),
                           Tensor::of(Scalar::f64, {regions, 4}, corners), integers({regions}, {0, 0, 0})},
                          {{"output_height", int64_t{tall}},
                           {"output_width", int64_t{wide}},
                           {"spatial_scale", scale},
                           {"mode", std::string(most ? "max" : "avg")},
                           {"coordinate_transformation_mode", std::string(half ? "half_pixel" : "output_half_pixel")}});
    const Tensor found = layer.run();
    ASSERT_EQ(found.size(), std::ssize(expected));
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found.float_at(static_cast<int64_t>(i)), expected[i], 1e-9) << round << ", element " << i;
  }
}

TEST(Operators, TransformsComeBack) {
  const Tensor x = floats({1, 4, 1}, {1, 2, 3, 4});
  const Tensor spectrum = LayerCase("DFT", {x}, {{"onesided", int64_t{1}}}).run();
  EXPECT_EQ(show(spectrum), "[1][3][2] 10 0 -2 2 -2 0");
  EXPECT_EQ(show(LayerCase("DFT", {spectrum}, {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}}).run()),
            "[1][4][1] 1 2 3 4");
}

TEST(Operators, DeterminantsOfAnySize) {
  EXPECT_EQ(show(LayerCase("Det", {floats({2, 2}, {1, 2, 3, 4})}).run()), "-2");
  EXPECT_EQ(show(LayerCase("Det", {floats({3, 3}, {0, 2, 0, 3, 0, 0, 0, 0, 5})}).run()), "-30");
  EXPECT_EQ(show(LayerCase("Det", {counting({4, 4})}).run()), "0");
  // The matrices between the first one and the last one of 2x2 are materialised, since their consumers would recompute
  // them.
  auto steps = LayerCase("Det", {counting({6, 6})}).lower();
  ASSERT_TRUE(steps.ok()) << steps.errors()[0].text();
  std::set<Expr> kept;
  any_node((*steps)[0], [&](Expr e) {
    if (e->pattern == Pattern::materialise && e->memory == Memory::private_) kept.insert(e);
    return false;
  });
  EXPECT_EQ(kept.size(), 4U);
}

// A matrix with more rows than one kernel handles: a triangle of known diagonal whose rows change places.
TEST(Operators, DeterminantsOfManyRows) {
  for (const int64_t n : {33, 40}) {
    Tensor x(Scalar::f32, {2, n, n});
    double wanted[] = {1, 1};
    for (int64_t matrix = 0; matrix < 2; ++matrix) {
      for (int64_t i = 0; i < n; ++i) {
        // The last of the two has its first two rows exchanged.
        const int64_t line = matrix == 1 && i < 2 ? 1 - i : i;
        for (int64_t k = 0; k < n; ++k) {
          const double v = k < i ? 0 : k > i ? 0.125 * static_cast<double>((i * 7 + k) % 5 - 2) : i % 2 == 0 ? 2 : -0.5;
          x.set_float((matrix * n + line) * n + k, v);
          if (k == i) wanted[matrix] *= v;
        }
      }
    }
    wanted[1] = -wanted[1];
    auto steps = LayerCase("Det", {x}).lower();
    ASSERT_TRUE(steps.ok()) << steps.errors()[0].text();
    const auto found = evaluate((*steps)[0], {{"x0", x}});
    ASSERT_TRUE(found.ok()) << found.errors()[0].text();
    for (int64_t matrix = 0; matrix < 2; ++matrix)
      EXPECT_NEAR(found->float_at(matrix), wanted[matrix], 1e-4 * std::abs(wanted[matrix])) << n << " " << matrix;
  }
}

LayerCase in_domain(const char* domain, LayerCase layer) {
  layer.layer.domain = domain;
  return layer;
}

TEST(Operators, MissingValuesAreFilledInAndFeaturesJoined) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto learning = [](const char* name, std::vector<Tensor> inputs, Attributes attributes) {
    return in_domain("ai.onnx.ml", LayerCase(name, std::move(inputs), std::move(attributes)));
  };
  const Tensor x = floats({2, 2}, {1, nan, 7, 2});
  EXPECT_EQ(
      learning("Imputer", {x}, {{"imputed_value_floats", std::vector<double>{5}}, {"replaced_value_float", nan}}).run(),
      floats({2, 2}, {1, 5, 7, 2}));
  EXPECT_EQ(learning("Imputer", {floats({2, 2}, {1, 7, 7, 2})},
                     {{"imputed_value_floats", std::vector<double>{5, 6}}, {"replaced_value_float", 7.0}})
                .run(),
            floats({2, 2}, {1, 6, 5, 2}));
  EXPECT_EQ(learning("Imputer", {integers({3}, {-1, 2, -1})},
                     {{"imputed_value_int64s", Ints{9}}, {"replaced_value_int64", int64_t{-1}}})
                .run(),
            integers({3}, {9, 2, 9}));
  EXPECT_NE(learning("Imputer", {x}, {{"imputed_value_floats", std::vector<double>{1, 2, 3}}}).error(), "");
  const Tensor more = integers({2, 1}, {8, 9});
  EXPECT_EQ(
      learning("FeatureVectorizer", {floats({2, 2}, {1, 2, 3, 4}), more}, {{"inputdimensions", Ints{2, 1}}}).run(),
      floats({2, 3}, {1, 2, 8, 3, 4, 9}));
  EXPECT_NE(learning("FeatureVectorizer", {more}, {{"inputdimensions", Ints{2}}}).error(), "");
}

TEST(Operators, QuantisedSumsInOneScale) {
  const auto bytes = [](const std::vector<int>& v) {
    return Tensor::of(Scalar::u8, {static_cast<int64_t>(v.size())}, v);
  };
  const auto byte = [](int v) { return Tensor::of(Scalar::u8, {}, std::vector<int>{v}); };
  const auto scale = [](double v) { return floats({}, {v}); };
  LayerCase sum =
      in_domain("com.microsoft", LayerCase("QLinearAdd", {bytes({0, 9, 255}), scale(0.5), byte(1), bytes({4, 4, 250}),
                                                          scale(2), byte(3), scale(1), byte(2)}));
  EXPECT_EQ(show(sum.run()), "[3] 4 8 255");
  sum.layer.inputs[2] = "";  // no zero point
  EXPECT_EQ(show(sum.run()), "[3] 4 8 255");
  sum.layer.inputs[3] = "";
  EXPECT_EQ(sum.error(), "input 3 of QLinearAdd is left out, but needed");
}

// onnxruntime adds the zero point before rounding, here and in the average of windows, but not in the global average.
TEST(Operators, QuantisedAveragesHalfwayBetweenNumbers) {
  const auto byte = [](int v) { return Tensor::of(Scalar::u8, {}, std::vector<int>{v}); };
  const auto average = [&](const std::string& name, Attributes attributes, int zero) {
    const Tensor x = Tensor::of(Scalar::u8, {1, 1, 1, 2}, std::vector<int>{4, 7});
    return show(in_domain("com.microsoft", LayerCase(name, {x, floats({}, {1}), byte(0), floats({}, {1}), byte(zero)},
                                                     std::move(attributes)))
                    .run());
  };
  EXPECT_EQ(average("QLinearAveragePool", {{"kernel_shape", Ints{1, 2}}}, 0), "[1][1][1][1] 6");
  EXPECT_EQ(average("QLinearAveragePool", {{"kernel_shape", Ints{1, 2}}}, 1), "[1][1][1][1] 6") << "6.5 to even";
  EXPECT_EQ(average("QLinearGlobalAveragePool", {}, 1), "[1][1][1][1] 7") << "5.5 to even, and 1";
}

TEST(Operators, DistancesOfAllPairsOfRows) {
  const auto distances = [](const std::vector<double>& b, int64_t width, Attributes attributes) {
    const int64_t rows = std::ssize(b) / width;
    return in_domain("com.microsoft", LayerCase("CDist", {floats({2, 2}, {0, 0, 3, 4}), floats({rows, width}, b)},
                                                std::move(attributes)));
  };
  const std::vector<double> three = {0, 0, 3, 4, 6, 8};
  EXPECT_EQ(show(distances(three, 2, {}).run()), "[2][3] 0 25 100 25 0 25");
  EXPECT_EQ(show(distances(three, 2, {{"metric", "euclidean"}}).run()), "[2][3] 0 5 10 5 0 5");
  EXPECT_EQ(distances(three, 3, {}).error(), "A has rows of 2 numbers, B of 3");
}

TEST(Operators, TreesOfWhichBranchesLeadRoundAreRefused) {
  const auto forest = [](int64_t back) {
    return in_domain("ai.onnx.ml", LayerCase("TreeEnsembleRegressor", {floats({2, 1}, {1, 5})},
                                             {{"nodes_treeids", Ints{0, 0, 0}},
                                              {"nodes_nodeids", Ints{0, 1, 2}},
                                              {"nodes_featureids", Ints{0, 0, 0}},
                                              {"nodes_values", std::vector<double>{3, 0, 0}},
                                              {"nodes_modes", std::vector<std::string>{"BRANCH_LEQ", "LEAF", "LEAF"}},
                                              {"nodes_truenodeids", Ints{1, 0, 0}},
                                              {"nodes_falsenodeids", Ints{back, 0, 0}},
                                              {"target_treeids", Ints{0, 0}},
                                              {"target_nodeids", Ints{1, 2}},
                                              {"target_ids", Ints{0, 0}},
                                              {"target_weights", std::vector<double>{10, 20}}}));
  };
  EXPECT_EQ(show(forest(2).run()), "[2][1] 10 20");
  EXPECT_EQ(forest(0).error(), "the branches of a tree form a cycle");
  EXPECT_EQ(forest(7).error(), "tree 0 has no node 7");
}

// ---- Errors --------------------------------------------------------------------------------------------------------

TEST(OperatorErrors, NameTheTwoNumbers) {
  EXPECT_EQ(LayerCase("MatMul", {counting({2, 3}), counting({4, 2})}).error(),
            "inner dimensions differ: 3 of [2][3] and 4 of [4][2]");
  EXPECT_EQ(LayerCase("Add", {counting({2}), counting({3})}).error(),
            "[3] does not broadcast with [2]: 3 and 2 differ");
  EXPECT_EQ(LayerCase("Softmax", {counting({2})}, {{"axis", 1.5}}).error(), "attribute axis has to be an integer");
  EXPECT_EQ(LayerCase("Exp", {integers({1}, {1})}).error(), "Exp takes floats, found i64");
  EXPECT_EQ(LayerCase("Nothing", {}).error(),
            "operator Nothing of version 21 is not supported (hoist operators lists the supported ones)");
  EXPECT_EQ(LayerCase("Softmax", {counting({2})}).at_version(12).error(),
            "operator Softmax of version 12 is not supported (write it as version 13 defines it; only models are "
            "upgraded)");
  EXPECT_EQ(LayerCase("Reshape", {counting({2}), integers({1}, {2})}).error(),
            "input 1 (shape) has to be known at compile time, but x1 is computed from the model's inputs (make it an "
            "initialiser, or a function of shapes)");
  EXPECT_NE(LayerCase("Conv", {counting({1, 2, 3}), counting({1, 3, 2})}).error(), "");
  EXPECT_NE(LayerCase("Tile", {counting({2}), integers({1}, {INT64_MAX})}).with_known({false, true}).error(), "");
}

// Computes the values of a lowered layer and reports out-of-bounds accesses; skips large ones.
std::string evaluation_error(const LayerCase& layer, const std::vector<Expr>& results) {
  Bindings bindings;
  for (size_t i = 0; i < layer.inputs.size(); ++i) bindings[layer.layer.inputs[i]] = layer.inputs[i];
  for (Expr e : results) {
    if (e == nullptr || element_count(shape_of(e->type)) > 500) continue;
    // The interpreter recomputes materialised values for each consumer.
    const bool keeps = any_node(e, [](Expr n) { return n->pattern == Pattern::materialise; });
    auto value = keeps ? evaluate(e, bindings) : interpret(e, bindings);
    if (!value.ok()) return value.errors()[0].text();
  }
  return "";
}

// Invalid layers must be refused or lowered without a crash: every operator with random inputs, ranks, types,
// attributes and constants. Lowered layers must read no element outside their arrays.
TEST(OperatorErrors, NonsenseIsRefused) {
  std::mt19937_64 random(7);
  auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  const Ints numbers = {0, 1, 2, 3, -1, -2, 5, INT64_MAX, INT64_MIN, int64_t{1} << 33};
  auto number = [&] { return below(3) == 0 ? numbers[static_cast<size_t>(below(numbers.size()))] : below(4); };
  const std::vector<std::string> names = {"axis",
                                          "axes",
                                          "perm",
                                          "pads",
                                          "strides",
                                          "dilations",
                                          "kernel_shape",
                                          "group",
                                          "auto_pad",
                                          "ceil_mode",
                                          "keepdims",
                                          "to",
                                          "mode",
                                          "blocksize",
                                          "split",
                                          "num_outputs",
                                          "starts",
                                          "ends",
                                          "scales",
                                          "shape",
                                          "k",
                                          "equation",
                                          "reduction",
                                          "batch_dims",
                                          "output_shape",
                                          "output_padding",
                                          "size",
                                          "num_groups",
                                          "p",
                                          "value",
                                          "alpha",
                                          "transA",
                                          "transB",
                                          "direction",
                                          "coordinate_transformation_mode",
                                          "antialias",
                                          "batch_axis",
                                          "time_axis",
                                          "noop_with_empty_axes",
                                          "dtype",
                                          "start",
                                          "end",
                                          "epsilon",
                                          "count_include_pad",
                                          "block_size",
                                          "output_dtype",
                                          "precision",
                                          "saturate"};
  const std::vector<std::string> texts = {
      "SAME_UPPER",    "SAME_LOWER", "VALID",   "linear", "cubic",     "reflect", "wrap",    "edge",
      "CRD",           "add",        "max",     "LEFT",   "ij,jk->ik", "ii->i",   "...i->i", "tf_crop_and_resize",
      "align_corners", "none",       "nonsense"};
  int lowered = 0, refused = 0;
  for (const OperatorRow& row : operator_table()) {
    for (int round = 0; round < 150; ++round) {
      std::vector<Tensor> inputs;
      int64_t most = row.most_inputs < 0 ? std::max(row.least_inputs, 4) : row.most_inputs;
      int64_t count =
          below(10) == 0 ? below(6) : row.least_inputs + below(static_cast<uint64_t>(most - row.least_inputs) + 1);
      bool uniform = below(2) == 0;
      Ints shared;
      for (int64_t d = below(5); d > 0; --d) shared.push_back(below(5) == 0 ? below(2) : 1 + below(4));
      for (int64_t i = 0; i < count; ++i) {
        Ints shape = shared;
        if (!uniform || (i > 0 && below(3) == 0)) {
          shape.clear();
          for (int64_t d = below(5); d > 0; --d) shape.push_back(below(6) == 0 ? 0 : 1 + below(4));
        }
        const Scalar scalars[] = {Scalar::f32, Scalar::f32,     Scalar::f32, Scalar::i64,
                                  Scalar::i64, Scalar::boolean, Scalar::f16, Scalar::u8};
        Tensor t(below(2) == 0 ? (i == 0 ? Scalar::f32 : Scalar::i64) : scalars[below(8)], shape);
        for (int64_t k = 0; k < t.size(); ++k) {
          if (is_float(t.scalar()))
            t.set_float(k, static_cast<double>(number()));
          else
            t.set_integer(k, t.scalar() == Scalar::boolean ? below(2) : number());
        }
        inputs.push_back(std::move(t));
      }
      LayerCase layer(std::string(row.name), inputs, {}, static_cast<size_t>(1 + below(3)));
      layer.layer.domain = row.domain;
      layer.opset = row.since + below(16);
      for (int64_t a = below(7); a > 0; --a) {
        Ints list;
        for (int64_t k = below(7); k > 0; --k) list.push_back(number());
        const std::string& name = names[static_cast<size_t>(below(names.size()))];
        switch (below(5)) {
          case 0:
          case 1:
            layer.layer.attributes[name] = number();
            break;
          case 2:
            layer.layer.attributes[name] = list;
            break;
          case 3:
            layer.layer.attributes[name] = static_cast<double>(number());
            break;
          default:
            layer.layer.attributes[name] = texts[static_cast<size_t>(below(texts.size()))];
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        layer.known.push_back(below(3) != 0);
        if (i > 0 && below(8) == 0) layer.layer.inputs[static_cast<size_t>(i)] = "";
      }
      auto result = layer.lower();
      if (result.ok()) {
        ++lowered;
        EXPECT_EQ(result->size(), layer.layer.outputs.size());
        EXPECT_EQ(evaluation_error(layer, *result), "") << row.name;
        continue;
      }
      ++refused;
      EXPECT_FALSE(result.errors()[0].what.empty());
    }
  }
  EXPECT_GT(lowered, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(OperatorTable, IsSortedAndFindsByVersion) {
  auto rows = operator_table();
  for (size_t i = 1; i < rows.size(); ++i)
    EXPECT_LT(std::pair(rows[i - 1].domain, rows[i - 1].name), std::pair(rows[i].domain, rows[i].name));
  ASSERT_NE(find_operator("", "Relu", 21), nullptr);
  EXPECT_EQ(find_operator("ai.onnx", "Relu", 21), find_operator("", "Relu", 21));
  EXPECT_EQ(find_operator("", "Gelu", 19), nullptr);
  EXPECT_EQ(find_operator("com.example", "Relu", 1), nullptr);
  ASSERT_NE(find_operator("com.microsoft", "Gelu", 19), nullptr);  // another domain, and other versions
}

}  // namespace
}  // namespace hoist
