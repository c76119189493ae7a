// Tests the forms of terms that strategies rely on.
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/lowering/operators/operators_layer.h"

namespace hoist::operator_forms_test {

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
  // One pad applies to all images; each image has windows of its own.
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

}  // namespace hoist::operator_forms_test
