// The meaning of operators of old versions: small graphs of an opset give the results that the text of that version
// states. The cases of tools/compare/versions.py are random graphs of the same kind.
#include "ir/operators/versions.h"

#include <gmock/gmock.h>
#include <onnx/defs/parser.h>

#include <limits>

#include "ir/operators/operators.h"
#include "ir/program/program_values.h"
#include "tests/frontend/model_builder.h"
#include "tests/frontend/text_models.h"

namespace hoist {
namespace {

using testing::HasSubstr;
using testing::Pointwise;

constexpr double infinite = std::numeric_limits<double>::infinity();

struct Meaning {
  int opset;
  const char* graph;
  std::vector<std::vector<double>> inputs;
  std::vector<double> expected;
};

// clang-format off
const Meaning meanings[] = {
    // Before version 7 the right operand is aligned with the dimensions from the axis on, or with the last ones.
    {6, "g (float[1,3,1,2] x, float[3] b) => (float[1,3,1,2] y) { y = Add <broadcast = 1, axis = 1> (x, b) }",
     {{0}, {1, 2, 3}}, {1, 1, 2, 2, 3, 3}},
    {6, "g (float[1,3,2,2] x, float[2] b) => (float[1,3,2,2] y) { y = Sub <broadcast = 1, axis = -1> (x, b) }",
     {{0}, {1, 2}}, {-1, -2, -1, -2, -1, -2, -1, -2, -1, -2, -1, -2}},
    {6, "g (float[2,1,2] x, float[2,1] b) => (float[2,1,2] y) { y = Mul <broadcast = 1, axis = -3> (x, b) }",
     {{1}, {3, 4}}, {3, 3, 4, 4}},
    {1, "g (float[2,2] x, float[2] b) => (float[2,2] y) { y = Div <broadcast = 1, axis = 0, consumed_inputs = [0, 0]> (x, b) }",
     {{4}, {1, 2}}, {4, 4, 2, 2}},
    {1, "g (bool[2,2] x, bool[2] b) => (bool[2,2] y) { y = And <broadcast = 1, axis = 0> (x, b) }", {{1}, {1, 0}}, {1, 1, 0, 0}},
    {1, "g (float[2,2] x, float[2] b) => (bool[2,2] y) { y = Greater <broadcast = 1, axis = 0> (x, b) }", {{1}, {0, 2}}, {1, 1, 0, 0}},
    {1, "g (float[2,2] x, float[2] b) => (float[2,2] y) { y = Pow <broadcast = 1, axis = 0> (x, b) }", {{3}, {1, 2}}, {3, 3, 9, 9}},
    {6, "g (float[1,2,1,2] x, float[2] s) => (float[1,2,1,2] y) { y = PRelu (x, s) }", {{-1}, {2, 3}}, {-2, -2, -3, -3}},
    {6, "g (float[1,2] a, float[2,2] b, float[2] c) => (float[1,2] y) { y = Gemm <broadcast = 1> (a, b, c) }",
     {{1}, {1}, {5, 6}}, {7, 8}},
    // Coordinates from the corner, the nearest element at or before them.
    {1, "g (float[1,1,1,2] x) => (float[1,1,1,4] y) { y = Upsample <height_scale = 1.0, width_scale = 2.0> (x) }", {{1, 2}}, {1, 1, 2, 2}},
    {7, "g (float[1,1,2] x) => (float[1,1,4] y) { y = Upsample <mode = \"linear\", scales = [1.0, 1.0, 2.0]> (x) }", {{1, 2}}, {1, 1.5, 2, 2}},
    {9, "g (float[1,1,3] x) => (float[1,1,4] y) <float[3] s = {1, 1, 1.5}> { y = Upsample (x, s) }", {{1, 2, 3}}, {1, 1, 2, 3}},
    {10, "g (float[1,1,2] x) => (float[1,1,4] y) <float[3] s = {1, 1, 2}> { y = Resize <mode = \"linear\"> (x, s) }", {{1, 2}}, {1, 1.5, 2, 2}},
    {10, "g (float[1,1,4] x) => (float[1,1,2] y) <float[3] s = {1, 1, 0.5}> { y = Resize (x, s) }", {{1, 2, 3, 4}}, {1, 3}},
    // The nearest element at or after them where an axis shrinks.
    {10, "g (float[1,1,2,4] x) => (float[1,1,1,2] y) <float[4] s = {1, 1, 0.6, 0.6}> { y = Resize (x, s) }", {{1, 2, 3, 4}}, {1, 3}},
    {10, "g (float[1,2,4] x) => (float[1,3,3] y) <float[3] s = {1, 1.5, 0.75}> { y = Resize (x, s) }",
     {{1, 2, 3, 4, 5, 6, 7, 8}}, {1, 3, 4, 1, 3, 4, 5, 7, 8}},
    {11, "g (float[1,1,2] x) => (float[1,1,3] y) <float[0] r = {}, float[3] s = {1, 1, 1.5}> "
         "{ y = Resize <coordinate_transformation_mode = \"tf_half_pixel_for_nn\", nearest_mode = \"floor\"> (x, r, s) }", {{1, 2}}, {1, 2, 2}},
    {19, "g (float[1,1,5] x) => (float[1,1,2] y) <float[3] s = {1, 1, 0.5}> "
         "{ y = Resize <coordinate_transformation_mode = \"half_pixel_symmetric\", nearest_mode = \"floor\"> (x, , s) }", {{1, 2, 3, 4, 5}}, {2, 4}},
    // Integers are converted once, after the last axis: 0.75 and 2.25 of the first axis are not integers yet.
    {11, "g (uint8[1,1,2,2] x) => (uint8[1,1,4,4] y) <float[0] r = {}, float[4] s = {1, 1, 2, 2}> { y = Resize <mode = \"linear\"> (x, r, s) }",
     {{0, 3, 3, 6}}, {0, 0, 2, 3, 0, 1, 3, 3, 2, 3, 4, 5, 3, 3, 5, 6}},
    // Rows are everything from the axis on, which is 1 by default.
    {11, "g (float[1,2,2] x) => (float[1,2,2] y) { y = Softmax (x) }", {{0}}, {0.25, 0.25, 0.25, 0.25}},
    {11, "g (float[1,2,2] x) => (float[1,2,2] y) { y = Hardmax (x) }", {{1, 2, 4, 3}}, {0, 0, 1, 0}},
    {11, "g (float[2,2] x) => (float[2,2] y) { y = Hardmax <axis = -2> (x) }", {{1, 2, 4, 3}}, {0, 0, 1, 0}},
    {1, "g (float[1,2,2] x) => (float[1,2,2] y) { y = LogSoftmax <axis = 0> (x) }", {{0}}, {-1.3863, -1.3863, -1.3863, -1.3863}},
    {13, "g (float[1,2,2] x) => (float[1,2,2] y) { y = Hardmax (x) }", {{1, 2, 4, 3}}, {0, 1, 1, 0}},
    // Bounds and values as attributes have the operand's type.
    {6, "g (float16[3] x) => (float16[3] y) { y = Clip <min = 0.0, max = 6.0> (x) }", {{-1, 3, 9}}, {0, 3, 6}},
    {6, "g (float[2] x) => (float[2] y) { y = Clip <min = 0.0> (x) }", {{infinite, -1}}, {std::numeric_limits<float>::max(), 0}},
    {1, "g (float[2] x) => (float[2] y) { y = Clip <max = 1.0> (x) }", {{-infinite, 3}}, {-infinite, 1}},
    {2, "g (float16[1] x) => (float16[3] y) { y = Pad <pads = [1, 1], value = 2.0> (x) }", {{5}}, {2, 5, 2}},
    {1, "g (double[1] x) => (double[2] y) { y = Pad <paddings = [0, 1], value = 0.5> (x) }", {{5}}, {5, 0.5}},
    // First versions: types by name, other defaults, other operands.
    {5, "g (float[2] x) => (int32[2] y) { y = Cast <to = \"INT32\"> (x) }", {{1.5, -2.5}}, {1, -2}},
    {1, "g (float[1,2] a, float[1,1] b) => (float[1,3] y) { y = Concat (a, b) }", {{1}, {2}}, {1, 1, 2}},
    {5, "g (float[1] x) => (float[1] y) { y = Selu <consumed_inputs = [0]> (x) }", {{1}}, {1.0507}},
    {5, "g (float[2] x) => (float[4] y) <float t = {2}, float a = {0}> { y = Tile (x, t, a) }", {{1, 2}}, {1, 2, 1, 2}},
    {9, "g (float[3] x) => (float[2] v, int64[2] i) { v, i = TopK <k = 2> (x) }", {{1, 3, 2}}, {3, 2, 1, 2}},
    {1, "g (float[1,1,2] x) => (float[1,1,1] y) { y = GlobalLpPool <p = 1.5> (x) }", {{1, 4}}, {std::pow(9.0, 2 / 3.0)}},
    {1, "g (float[1,1,3] x) => (float[1,1,2] y) { y = LpPool <p = 0.5, kernel_shape = [2]> (x) }", {{1, 4, 9}}, {9, 25}},
    {10, "g (float[2] x, int64[2] i, float[2] u) => (float[2] y) { y = Scatter (x, i, u) }", {{0}, {1, 0}, {5, 6}}, {6, 5}},
    {7, "g (float[2] x) => (float[2] y, float[2] m) { y, m = Dropout (x) }", {{3}}, {3, 3, 1, 1}},
    {6, "g (float[2] x) => (float[2] y) { y = Dropout <is_test = 1, ratio = 0.9> (x) }", {{3}}, {3, 3}},
    {17, "g (float[1,2,1,1] x) => (float[1,2,1,2] y) { y = DFT (x) }", {{1, 2}}, {3, 0, -1, 0}},
    {2, "g (float[4] x) => (float[2] a, float[2] b) { a, b = Split (x) }", {{1, 2, 3, 4}}, {1, 2, 3, 4}},
    {1, "g (float[3] x) => (float[1] a, float[2] b) <float[2] s = {1, 2}> { a, b = Split <axis = 0> (x, s) }", {{1, 2, 3}}, {1, 2, 3}},
    // Statistics: parameters of each position, and training with statistics as results.
    {7, "g (float[1,1,2] x, float[1,2] s, float[1,2] b, float[1,2] m, float[1,2] v) => (float[1,1,2] y) "
        "{ y = BatchNormalization <spatial = 0, epsilon = 0.0> (x, s, b, m, v) }", {{3}, {1, 2}, {0, 10}, {1, 2}, {4, 1}}, {1, 12}},
    {9, "g (float[2,1] x, float[1] s, float[1] b, float[1] m, float[1] v) => (float[2,1] y, float[1] rm, float[1] rv, float[1] sm, float[1] sv) "
        "{ y, rm, rv, sm, sv = BatchNormalization <momentum = 0.5, epsilon = 0.0> (x, s, b, m, v) }",
     {{1, 3}, {1}, {0}, {0}, {3}}, {-1, 1, 1, 2, 2, 1}},
    {18, "g (float[1,4,1] x, float[2] s, float[2] b) => (float[1,4,1] y) { y = GroupNormalization <num_groups = 2, epsilon = 0.0> (x, s, b) }",
     {{0, 2, 0, 2}, {1, 2}, {0, 5}}, {-1, 1, 3, 7}},
    {21, "g (float[1,4,1] x, float[4] s, float[4] b) => (float[1,4,1] y) { y = GroupNormalization <num_groups = 2, epsilon = 0.0> (x, s, b) }",
     {{0, 2, 0, 2}, {1, 2, 3, 4}, {0}}, {-1, 2, -3, 4}},
    {8, "g (float[2,1] s, float[2,2,1] x) => (float[2,1] t, float[2,2,1] o) "
        "{ t, o = Scan <num_scan_inputs = 1, body = b (float[1] a, float[1] e) => (float[1] n, float[1] r) { n = Add (a, e) r = Identity (n) }> (, s, x) }",
     {{0, 10}, {1, 2, 3, 4}}, {3, 17, 1, 3, 13, 17}},
    // An operator that onnxruntime had before the standard, with parameters that extend over rows.
    {15, "g (float[1,2] x, float[2] s) => (float[1,2] y) { y = LayerNormalization <epsilon = 0.0> (x, s) }", {{1, 3}, {1, 2}}, {-1, 2}},
    {17, "g (float[2,1,2] x, float[2,1,2] s) => (float[2,1,2] y) { y = LayerNormalization <epsilon = 0.0> (x, s) }",
     {{1, 3}, {1, 2, 3, 4}}, {-1, 2, -3, 4}},
    // Scale and bias are applied before the only rounding to f16, as in onnxruntime.
    {17, "g (float16[1,3] x, float16[3] s, float16[3] b) => (float16[1,3] y) { y = LayerNormalization <epsilon = 0.0> (x, s, b) }",
     {{1, 2, 4}, {11}, {0.3}}, {-11.4609375, -2.640625, 15}},
    {23, "g (float16[1,2] x, float16[2] s) => (float16[1,2] y) { y = RMSNormalization <epsilon = 0.0> (x, s) }",
     {{1, 3}, {19}}, {8.5, 25.484375}},
    // Means that fit in f16 although their sums do not.
    {13, "g (float16[1,1,4] x) => (float16[1,1,1] y) { y = GlobalAveragePool (x) }", {{60000, 30000}}, {45000}},
    {13, "g (float16[4] x) => (float16[1] y) { y = ReduceMean (x) }", {{60000, 30000}}, {45000}},
    {13, "g (float16[1,1,4] x) => (float16[1,1,2] y) { y = AveragePool <kernel_shape = [2], strides = [2]> (x) }", {{60000, 30000}}, {45000, 45000}},
    {13, "g (float16[4] x) => (float16[1] y) { y = ReduceLogSum (x) }", {{60000}}, {12.388}},
    {13, "g (float16[1] x, float16[1] z) => (float16[1] y) { y = Mean (x, z) }", {{60000}, {30000}}, {45000}},
    {28, "g (float[5] x, float[5] d) => (float[5] y) { y = Mod (x, d) }",
     {{5.5, -5.5, 5.5, 1, infinite}, {2, 2, -2, -infinite, 1}}, {1.5, 0.5, -0.5, -infinite, std::nan("")}},
    // Integers with attributes that are not integers.
    {9, "g (int32[5] x) => (int32[5] y) { y = Shrink <bias = 1.5, lambd = 1.5> (x) }", {{-3, -2, 1, 2, 3}}, {-1, 0, 0, 0, 1}},
    // Values too large for a type with infinity are infinite if saturation is off.
    {19, "g (float[4] x) => (float[4] y) { q = Cast <to = 19, saturate = 0> (x) y = Cast <to = 1> (q) }",
     {{57344, 65536, -1e6, infinite}}, {57344, infinite, -infinite, infinite}},
    {19, "g (float[2] x) => (float[2] y) { q = Cast <to = 19> (x) y = Cast <to = 1> (q) }", {{1e6, -infinite}}, {57344, -57344}},
    {19, "g (float[1] x) => (float[1] y) { q = Cast <to = 17, saturate = 0> (x) y = Cast <to = 1> (q) }", {{1e6}}, {std::nan("")}},
};
// clang-format on

TEST(Versions, MeanWhatTheirTextSays) {
  for (const Meaning& m : meanings) {
    const auto program = read_graph(m.opset, m.graph);
    ASSERT_TRUE(program.ok()) << m.opset << " " << m.graph << "\n" << messages(program);
    EXPECT_EQ(program->version, 28);
    EXPECT_THAT(results_of(*program, m.inputs), Pointwise(IsNear(), m.expected)) << m.opset << " " << m.graph;
  }
}

TEST(Versions, AreOfBodiesToo) {
  const auto program = read_graph(9, R"(g (bool c, float[1,2,2] x) => (float[1,2,2] y) {
    y = If (c) <then_branch = t () => (float[1,2,2] a) { a = Softmax (x) },
                else_branch = e () => (float[1,2,2] b) { b = Clip <max = 1.0> (x) }> })");
  ASSERT_TRUE(program.ok()) << messages(program);
  EXPECT_EQ(program->version, 28);
  EXPECT_THAT(results_of(*program, {{1}, {3}}), Pointwise(IsNear(), {0.25, 0.25, 0.25, 0.25}));
  EXPECT_THAT(results_of(*program, {{0}, {3}}), Pointwise(IsNear(), {1.0, 1.0, 1.0, 1.0}));
}

TEST(Versions, AreOfFunctionsOfAnotherOpset) {
  for (const auto& [model, function] : {std::pair(21, 11), std::pair(11, 21)}) {
    const std::string text =
        "g (float[1,2,2] x) => (float[1,2,2] y, float[1,2,2] z) { y = own.rows (x) z = Softmax (x) }\n"
        "<domain: \"own\", opset_import: [\"\" : " +
        std::to_string(function) + "]> rows (x) => (y) { y = Softmax (x) }";
    const auto program = read_graph(model, text, ", \"own\" : 1");
    ASSERT_TRUE(program.ok()) << messages(program);
    const std::vector<double> all(4, 0.25), rows(4, 0.5);
    std::vector<double> expected = function < 13 ? all : rows;
    const std::vector<double>& others = model < 13 ? all : rows;
    expected.insert(expected.end(), others.begin(), others.end());
    EXPECT_THAT(results_of(*program, {{0}}), Pointwise(IsNear(), expected)) << model;
  }
}

// Operators have a single definition, so a program text of an older version is refused.
TEST(Versions, DefinitionsBeginBehindTheLastOldMeaning) {
  for (const OperatorRow& row : operator_table()) {
    if (row.domain.empty()) {
      EXPECT_GT(row.since, last_old_version(row.name)) << row.name;
    }
  }
  EXPECT_EQ(last_old_version("Softmax"), 12);
  for (const char* old : {"Scatter", "Upsample"}) {
    EXPECT_EQ(find_operator("", old, newest_version), nullptr);
    EXPECT_NE(find_operator("", successor_of(old), newest_version), nullptr);
  }
}

TEST(Versions, SayWhatTheyLack) {
  EXPECT_THAT(messages(read_graph(5, "g (float[2] x) => (float[2] y) { y = Cast <to = \"QUARTER\"> (x) }")),
              HasSubstr("to is 'QUARTER', which is not a type"));
  EXPECT_THAT(messages(read_graph(5, "g (float[2] x, float t, float a) => (float[4] y) { y = Tile (x, t, a) }")),
              HasSubstr("tiles has to be known at compile time"));
  EXPECT_THAT(messages(read_graph(
                  6, "g (float[2,2] x, float[2,2] b) => (float[2,2] y) { y = Add <broadcast = 1, axis = 1> (x, b) }")),
              HasSubstr("axis 1 leaves no place for 2 dimensions among 2"));
}

}  // namespace
}  // namespace hoist
