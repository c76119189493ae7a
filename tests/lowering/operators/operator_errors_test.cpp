// Tests errors of operators: their messages, layers that make no sense, and the order of the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/properties/properties.h"
#include "tests/lowering/operators/operators_layer.h"

namespace hoist::operator_errors_test {

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

}  // namespace hoist::operator_errors_test
