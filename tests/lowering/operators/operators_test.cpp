// Tests operators by hand: small cases with results that can be checked by eye. The ONNX project's own cases run in
// tests/conformance.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "ir/program/onnx_type.h"
#include "ir/properties/properties.h"
#include "ir/text/text.h"
#include "tests/lowering/operators/operators_layer.h"

namespace hoist::operators_test {

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
            "running statistics are requested without training_mode (export the model for inference)");
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
  // The matrices after the first one and before the last one (2x2) are materialised, since their consumers would
  // recompute them.
  auto steps = LayerCase("Det", {counting({6, 6})}).lower();
  ASSERT_TRUE(steps.ok()) << steps.errors()[0].text();
  std::set<Expr> kept;
  any_node((*steps)[0], [&](Expr e) {
    if (e->pattern == Pattern::materialise && e->memory == Memory::private_) kept.insert(e);
    return false;
  });
  EXPECT_EQ(kept.size(), 4U);
}

// A matrix with more rows than one kernel handles: a triangular matrix of known diagonal with exchanged rows.
TEST(Operators, DeterminantsOfManyRows) {
  const auto nodes = [](int64_t n) { return tree_size((*LayerCase("Det", {counting({n, n})}).lower())[0]); };
  EXPECT_LE(nodes(16), nodes(40)) << "as many kernels as rows, not one term of all steps";
  for (const int64_t n : {9, 33, 40}) {
    Tensor x(Scalar::f32, {2, n, n});
    double wanted[] = {1, 1};
    for (int64_t matrix = 0; matrix < 2; ++matrix) {
      for (int64_t i = 0; i < n; ++i) {
        // The second matrix has its first two rows exchanged.
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
  EXPECT_EQ(sum.error(), "input 3 of QLinearAdd is missing");
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

}  // namespace hoist::operators_test
