// Tests definitions of operators as text: every text of the table is read, an operator that one row of text adds
// behaves like any other, and a refused head reports the numbers that disagree.
#include "ir/operators/definitions/operator_text.h"

#include <gmock/gmock.h>

#include <cmath>

#include "ir/evaluate/evaluate.h"
#include "ir/properties/properties.h"
#include "ir/text/text.h"

namespace hoist::operator_text_test {

using operators::ScopedOperators;
using testing::HasSubstr;

// The first fault of a file of operators.
std::string faults(const std::string& text) {
  const RowFile file{"folder/mine.op", text};
  auto rows = operators::read_operators(std::span(&file, 1));
  if (!rows.ok()) return rows.errors()[0].text();
  for (OperatorRow& row : *rows) {
    if (const auto done = row.source->complete(row); !done.ok()) return done.errors()[0].text();
  }
  return "";
}

OperatorRow row_of(const std::string& text) {
  const RowFile file{"folder/mine.op", text};
  OperatorRow row = operators::read_operators(std::span(&file, 1))->at(0);
  EXPECT_TRUE(row.source->complete(row).ok()) << text;
  return row;
}

std::string refusal(const std::string& call) {
  auto made = parse(call);
  return made.ok() ? "" : made.errors()[0].what;
}

TEST(OperatorText, EveryRowHasATextThatCanBeReadOrAFunction) {
  for (const OperatorRow& row : operator_table()) {
    EXPECT_NE(row.source == nullptr, row.lower == nullptr) << row.name;
    EXPECT_NE(row.source == nullptr, row.meaning.empty()) << row.name;
  }
  const auto checked = check_own_operators();
  EXPECT_TRUE(checked.ok()) << checked.errors()[0].text();
}

// Operators change without a build if a developer names the folder of the sources.
TEST(OperatorText, IsReadFromTheFolderOfTheSources) {
  setenv("HOIST_RULES_FOLDER", HOIST_SOURCE_DIR, 1);
  const auto checked = check_own_operators();
  setenv("HOIST_RULES_FOLDER", HOIST_SOURCE_DIR "/models", 1);
  const auto missing = check_own_operators();
  unsetenv("HOIST_RULES_FOLDER");
  EXPECT_TRUE(checked.ok()) << checked.errors()[0].text();
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.errors()[0].text(), HasSubstr("cannot be read"));
}

TEST(OperatorText, FaultsHavePlaces) {
  const std::string end = ") = x\n";
  EXPECT_EQ(faults("operator A since 1 (x : floats) = x\n"), "");
  EXPECT_THAT(faults("operator A since 1 (x : floats) = each x. max(x,\n"), HasSubstr("folder/mine.op:1:"));
  EXPECT_THAT(faults("let a = max(x,\noperator A since 1\n  (x : floats)\n  -- no comma\n  = each x. $a )\n"),
              HasSubstr("folder/mine.op:5:16: A: "));
  EXPECT_THAT(faults("operator A since 1 (x : floats;\n    alpha 1.0)\n  = x\n"),
              HasSubstr("folder/mine.op:2:11: A: "));
  EXPECT_THAT(faults("operator A since 1 (x : floats) x\n"), HasSubstr("folder/mine.op:1:33: A: "));
  EXPECT_THAT(faults("operator A since 1 (x : floats; to? : type | 1" + end), HasSubstr("1:46: A: expected 0"));
  EXPECT_THAT(faults("operator A (x" + end), HasSubstr("1:10: expected operator NAME since VERSION"));
  EXPECT_THAT(faults("operators A since 1 (x" + end), HasSubstr("1:1: expected operator NAME since VERSION"));
  EXPECT_THAT(faults("operator A since 1 samples 1 (x" + end), HasSubstr("1:10: expected operator NAME since"));
  EXPECT_THAT(faults("operator A since 1 (x" + end + "operator A since 2 (x" + end),
              HasSubstr("2:10: A: the operator is defined twice"));
}

TEST(OperatorText, SectionsAndFamilies) {
  const RowFile file{"mine.op",
                     "section mine\n  domain my.own\n"
                     "operator Reduce$kind since 3 samples 0.5 to 1 (x : floats; axes? at 1) = x\n"
                     "  for kind in Sum, Max\n"};
  const auto rows = operators::read_operators(std::span(&file, 1));
  ASSERT_TRUE(rows.ok()) << rows.errors()[0].text();
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ(rows->at(1).name, "ReduceMax");
  EXPECT_EQ(rows->at(1).domain, "my.own");
  EXPECT_EQ(rows->at(1).since, 3);
  EXPECT_EQ(rows->at(1).low, 0.5);
  OperatorRow row = rows->at(1);
  EXPECT_TRUE(row.source->complete(row).ok());
  EXPECT_EQ(row.shape_inputs, "1 axes");
}

TEST(OperatorText, TheHeadSaysWhatACallMayHave) {
  const OperatorRow clip = row_of("operator A since 1 (x : numbers, low?, high?) = x\n");
  EXPECT_EQ(clip.least_inputs, 1);
  EXPECT_EQ(clip.most_inputs, 3);
  EXPECT_EQ(clip.takes, Takes::numbers);
  EXPECT_EQ(row_of("operator A since 1 (x... : floats) = x\n").most_inputs, -1);
  const OperatorRow reduction = row_of("operator A since 1 (x : floats; axes? at 1, keepdims = 1) = x\n");
  EXPECT_EQ(reduction.least_inputs, 1);
  EXPECT_EQ(reduction.most_inputs, 2);
  EXPECT_EQ(row_of("operator A since 1 (x : floats; axis at 1, reverse = 0) = x\n").least_inputs, 2);
}

// Passes use properties that are derived from the definition, so the added operator is fused, tabulated between 8-bit
// values, and has the format of its input.
TEST(OperatorText, AnAddedOperatorHasItsProperties) {
  const ScopedOperators added(
      "operator Ramp since 1 (x : floats; slope = 0.5) = each x. select(x < 0, slope * x, x)\n"
      "operator Mass since 1 (x : floats; axis = 0) = over axis 0 sum x\n");
  const Type type = array_type({Nat(2), Nat(3)}, scalar_type(Scalar::f32));
  const Expr x = parameter("x", type);
  auto ramp = operator_call({"", "Ramp", newest_version, 1, {}, {}}, {x});
  auto mass = operator_call({"", "Mass", newest_version, 1, {}, {}}, {x});
  ASSERT_TRUE(ramp.ok() && mass.ok());
  const Expr curve = *inline_call(**ramp), total = *inline_call(**mass);
  EXPECT_TRUE(elementwise_in(curve, "x").has_value());
  EXPECT_EQ(carries_scale(curve, {{"x", 1}}), 1u);
  EXPECT_FALSE(elementwise_in(total, "x").has_value());
  EXPECT_TRUE(folds(total));
}

// Refusals name the term's definitions; a list of axes is processed one row at a time.
TEST(OperatorText, AcrossAxesTheFunctionKnowsWhereItIs) {
  const ScopedOperators added(
      "operator Ends since 1 (x : anything; counts)\n"
      "  refuse length(counts) != wanted: \"counts has {length(counts)} values, not {wanted}\"\n"
      "  = across (range(0, wanted)) (\\row[n] i. (slice first count step step row\n"
      "    where first = select(step > 0, n - count, n - 1); count = at(counts, i);\n"
      "    step = select(i == 0, 1, -1))) x where wanted = rank(x)\n");
  auto call = parse("Ends(%x : [3][4]f32; counts = [2, 3])");
  ASSERT_TRUE(call.ok()) << call.errors()[0].text();
  auto definition = inline_call(**call);
  ASSERT_TRUE(definition.ok());
  EXPECT_EQ(*definition, *parse("%x : [3][4]f32 |> slice 1 2 |> map (slice 3 3 step -1)"));
  EXPECT_EQ(refusal("Ends(%x : [3][4]f32; counts = [2])"), "counts has 1 values, not 2");
  EXPECT_NE(refusal("Ends(%x : [3][4]f32; counts = [2, 9])"), "");
}

TEST(OperatorText, ATypeOfZeroMayBeAsIfLeftOut) {
  const ScopedOperators added(
      "operator As since 1 (x : anything; to? : type | 0) = each x. convert(T, x) where T = select(given(to), to, "
      "f16)\n"
      "operator Must since 1 (x : anything; to? : type) = each x. convert(to, x)\n");
  EXPECT_EQ(text((*parse("As(%x : [2]f32; to = 0)"))->type), "[2]f16");
  EXPECT_EQ(text((*parse("As(%x : [2]f32; to = 11)"))->type), "[2]f64");
  EXPECT_EQ(refusal("Must(%x : [2]f32; to = 0)"), "attribute to: element type 0 of ONNX is not supported");
}

// Rows against columns, with an element of a third array at the result's position: operands without a batch dimension,
// or with batch size 1, are captured by the function.
TEST(OperatorText, ProductsAreOfRowsAndColumns) {
  const ScopedOperators added(
      "operator Farthest since 1 (a : numbers, b, c)\n"
      "  = products (\\row column v. zip(row, column)\n"
      "    |> map (\\(p, q). abs(p - q)) |> reduce max lowest |> (+ v)) a b c\n");
  auto call = parse("Farthest(%a : [5][2][3]f32, %b : [3][4]f32, %c : [2][1]f32)");
  ASSERT_TRUE(call.ok()) << call.errors()[0].text();
  auto wanted = parse(
      "%a : [5][2][3]f32 |> map (\\m. zip(m, %c : [2][1]f32) |> map (\\(row, c). transpose (%b : [3][4]f32) |> map "
      "(\\column. "
      "zip(row, column) |> map (\\(p, q). abs(p - q)) |> reduce max f32#ff800000 |> (+ index 0i32 c))))");
  ASSERT_TRUE(wanted.ok()) << wanted.errors()[0].text();
  EXPECT_EQ(print(*inline_call(**call)), print(*wanted));
  EXPECT_EQ(refusal("Farthest(%a : [2][3]f32, %b : [4][2]f32, %c : f32)"),
            "inner dimensions differ: 3 of [2][3] and 4 of [4][2]");
  EXPECT_EQ(refusal("Farthest(%a : [5][2][3]f32, %b : [4][3][2]f32, %c : f32)"),
            "batch dimensions differ: 5 of [5][2][3] and 4 of [4][3][2]");
  EXPECT_EQ(refusal("Farthest(%a : [2][3]f32, %b : [3][4]f32, %c : [3]f32)"),
            "[3] does not broadcast to the product [2][4]");
}

TEST(OperatorText, ProductsSayWhatDisagrees) {
  EXPECT_EQ(refusal("Conv(%x : [1][3][8]f32, %w : [4][2][3]f32)"),
            "the input has 3 channels, the weights [4][2][3] require 2");
  EXPECT_EQ(refusal("Conv(%x : [1][3][8]f32, %w : [4][3][3]f32, %b : [5]f32)"), "the bias is [5], expected [4]");
  EXPECT_EQ(refusal("Conv(%x : [1][3][8]f32, %w : [4][3][3]f32; kernel_shape = [2])"),
            "kernel_shape [2] disagrees with the weights [4][3][3]");
  EXPECT_EQ(refusal("Conv(%x : [1][3][8]f32, %w : [4][3][9]f32)"),
            "a window of 9 elements does not fit into 8 in spatial dimension 0");
  EXPECT_EQ(refusal("Conv(%x : [1][4][8]f32, %w : [4][2][3]f32; group = 3)"),
            "3 groups do not divide 4 channels and 4 filters");
  EXPECT_EQ(refusal("Gemm(%a : [2][3]f32, %b : [4][2]f32)"), "inner dimensions differ: 3 of [2][3] and 4 of [4][2]");
  EXPECT_EQ(refusal("Gemm(%a : [2][3]i32, %b : [3][2]i32; alpha = 0.5)"), "factor 0.5 on integers is not supported");
  EXPECT_EQ(refusal("MatMulInteger(%a : [2][3]u8, %b : [3][2]u8, %z : i8)"), "input 0 is u8, its zero point i8");
  EXPECT_EQ(refusal("Slice(%x : [4]f32; starts = [0], ends = [2], steps = [0])"), "a step is 0 among [0]");
  EXPECT_EQ(refusal("Pad(%x : [4]f32; pads = [-3, -2])"), "negative pads take 5 of 4 elements");
}

// Transposed convolutions with an empty result, and pads that remove more than there is, are refused.
TEST(OperatorText, ATransposedConvolutionWithoutAResultIsRefused) {
  EXPECT_EQ(refusal("ConvTranspose(%x : [1][1][1]f32, %w : [1][1][1]f32; pads = [1, 0])"),
            "a window of 1 elements does not fit into 0");
  EXPECT_EQ(refusal("ConvTranspose(%x : [1][1][1]f32, %w : [1][1][1]f32; pads = [10, -10])"),
            "negative pads take 10 of 1 elements");
}

// The only window of a pool may extend beyond the input if extents are rounded up.
TEST(OperatorText, TheOnlyWindowMayReachBeyondTheInput) {
  auto pool =
      parse("AveragePool(%x : [1][1][2]f32; kernel_shape = [2], dilations = [2], strides = [2], ceil_mode = 1)");
  ASSERT_TRUE(pool.ok()) << pool.errors()[0].text();
  auto value = interpret(*pool, {{"x", Tensor::of(Scalar::f32, {1, 1, 2}, std::vector<double>{3, 5})}});
  ASSERT_TRUE(value.ok()) << value.errors()[0].text();
  ASSERT_EQ(value->shape(), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(value->float_at(0), 3);
  EXPECT_NE(refusal("AveragePool(%x : [1][1][2]f32; kernel_shape = [2], dilations = [2], strides = [2])"), "");
  EXPECT_NE(refusal("AveragePool(%x : [1][1][2]f32; kernel_shape = [2], dilations = [2], ceil_mode = 1)"), "");
}

double value_at_zero(const std::string& call, const Bindings& inputs) {
  auto made = parse(call);
  HOIST_CHECK(made.ok(), made.errors()[0].text());
  auto value = interpret(*made, inputs);
  HOIST_CHECK(value.ok(), value.errors()[0].text());
  return value->float_at(0);
}

TEST(OperatorText, SmallResultsOfSoftplusKeepTheirDigits) {
  for (const double x : {-40.0, -20.0, -8.0, -0.5, 0.0, 3.0, 90.0}) {
    const double found =
        value_at_zero("Softplus(%x : [1]f32)", {{"x", Tensor::of(Scalar::f32, {1}, std::vector<double>{x})}});
    const double exact = std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    EXPECT_NEAR(found, exact, 3e-7 * exact) << x;
  }
}

// A formula of several operations on 16-bit floats is computed in f32 and rounded once.
TEST(OperatorText, ShortFloatsAreRoundedOnce) {
  const auto half = [](std::vector<double> numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    return Tensor::of(Scalar::f16, {count}, numbers);
  };
  const auto rounded = [&](double x) { return half({x}).float_at(0); };
  // 1 + exp(-8) is 1 in f16.
  EXPECT_EQ(value_at_zero("Softplus(%x : [1]f16)", {{"x", half({-8})}}), rounded(std::log1p(std::exp(-8.0))));
  // The product of the first two is infinite in f16.
  EXPECT_EQ(value_at_zero("ReduceProd(%x : [3]f16)", {{"x", half({300, 300, 0})}}), 0);
  EXPECT_EQ(value_at_zero("ReduceL2(%x : [2]f16)", {{"x", half({300, 400})}}), 500);
  // A single operation needs no wider type, and a comparison none at all.
  EXPECT_EQ(print(*inline_call(**parse("Add(%x : [2]f16, %y : [2]f16)"))),
            print(*parse("zip(%x : [2]f16, %y : [2]f16) |> map (\\(a, b). a + b)")));
  EXPECT_EQ(print(*inline_call(**parse("Relu(%x : [2]f16)"))), print(*parse("%x : [2]f16 |> map (\\a. max(a, 0))")));
}

}  // namespace hoist::operator_text_test
