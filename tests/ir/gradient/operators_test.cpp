// Adjoints of operators by their definitions, against central differences in f64: every operator of the table that
// takes random arrays without attributes, and families with random attributes and shapes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/ir/gradient/central_differences.h"

namespace hoist::gradients {
namespace operators_test {

using Shape = std::vector<int64_t>;

class RandomCalls {
 public:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t from(int64_t low, int64_t high) { return low + below(high - low + 1); }
  Shape shape(int64_t rank, int64_t low, int64_t high) {
    Shape out;
    for (int64_t i = 0; i < rank; ++i) out.push_back(from(low, high));
    return out;
  }

 private:
  std::mt19937_64 random_{5};
};

std::string array(const std::string& name, const Shape& shape) {
  std::string out = "%" + name + " : ";
  for (const int64_t n : shape) out += fmt::format("[{}]", n);
  return out + "f64";
}

std::string list(const Shape& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

void expect_text(const std::string& text, double low = -2, double high = 2) {
  const auto parsed = parse(text);
  ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.errors()[0].text();
  const Expr e = *parsed;
  expect_adjoints(e, random_bindings(e, 17, low, high), text);
}

// The strides, dilations, pads and extents of windows over an image.
struct Windows {
  Shape kernel, strides, dilations, pads, spatial;

  Windows(RandomCalls& random, int64_t rank, bool transposed = false) {
    Shape ends;
    for (int64_t i = 0; i < rank; ++i) {
      kernel.push_back(random.from(1, 3));
      strides.push_back(random.from(1, 3));
      dilations.push_back(random.from(1, 2));
      const int64_t span = (kernel.back() - 1) * dilations.back() + 1;
      pads.push_back(random.below(std::min<int64_t>(span, 3)));
      ends.push_back(random.below(std::min<int64_t>(span, 3)));
      spatial.push_back(transposed ? random.from(2, 3) : random.from(span, span + 3));
    }
    pads.insert(pads.end(), ends.begin(), ends.end());
  }
  std::string attributes() const {
    return fmt::format("strides = {}, dilations = {}, pads = {}", list(strides), list(dilations), list(pads));
  }
};

Shape joined(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(OperatorGradients, OfConvolutions) {
  RandomCalls random;
  for (int instance = 0; instance < 24; ++instance) {
    const Windows w(random, random.from(1, 2));
    const int64_t groups = random.from(1, 2), channels = groups * random.from(1, 2),
                  filters = groups * random.from(1, 2);
    expect_text(fmt::format(
        "Conv({}, {}, {}; {}, group = {})", array("x", joined({random.from(1, 2), channels}, w.spatial)),
        array("w", joined({filters, channels / groups}, w.kernel)), array("b", {filters}), w.attributes(), groups));
  }
}

TEST(OperatorGradients, OfTransposedConvolutions) {
  RandomCalls random;
  for (int instance = 0; instance < 12; ++instance) {
    Windows w(random, random.from(1, 2), true);
    for (int64_t& pad : w.pads) pad = 0;
    const int64_t groups = random.from(1, 2), channels = groups * random.from(1, 2);
    expect_text(fmt::format("ConvTranspose({}, {}; {}, group = {})",
                            array("x", joined({random.from(1, 2), channels}, w.spatial)),
                            array("w", joined({channels, random.from(1, 2)}, w.kernel)), w.attributes(), groups));
  }
}

TEST(OperatorGradients, OfPoolings) {
  RandomCalls random;
  for (const char* name : {"MaxPool", "AveragePool", "LpPool"}) {
    for (int instance = 0; instance < 8; ++instance) {
      Windows w(random, random.from(1, 2));
      const int64_t include = random.below(2);
      expect_text(fmt::format(
          "{}({}; kernel_shape = {}, {}{})", name, array("x", joined({1, 2}, w.spatial)), list(w.kernel),
          w.attributes(), name == std::string("AveragePool") ? fmt::format(", count_include_pad = {}", include) : ""));
    }
  }
  for (const char* name : {"GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"})
    expect_text(fmt::format("{}({})", name, array("x", {2, 2, 3, 2})));
}

TEST(OperatorGradients, OfProducts) {
  RandomCalls random;
  for (int instance = 0; instance < 12; ++instance) {
    const int64_t m = random.from(1, 3), k = random.from(1, 3), n = random.from(1, 3);
    Shape a = random.below(5) == 0 ? Shape{k} : Shape{m, k}, b = random.below(5) == 0 ? Shape{k} : Shape{k, n};
    if (random.below(2) == 0 && a.size() == 2) a.insert(a.begin(), random.below(2) == 0 ? 1 : 2);
    if (random.below(2) == 0 && b.size() == 2) b.insert(b.begin(), 2);
    expect_text(fmt::format("MatMul({}, {})", array("a", a), array("b", b)));
    const int64_t left = random.below(2), right = random.below(2);
    expect_text(fmt::format("Gemm({}, {}, {}; alpha = 0.5, beta = {}.0, transA = {}, transB = {})",
                            array("a", left != 0 ? Shape{k, m} : Shape{m, k}),
                            array("b", right != 0 ? Shape{n, k} : Shape{k, n}),
                            array("c", random.below(2) == 0 ? Shape{n} : Shape{m, 1}), random.from(1, 2), left, right));
  }
  expect_text("Einsum(%a : [2][3]f64, %b : [3][2]f64; equation = \"ij,jk->ik\")");
}

TEST(OperatorGradients, OfReductionsAndNormalisations) {
  RandomCalls random;
  for (const char* name : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                           "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"}) {
    const bool positive = name == std::string("ReduceLogSum");
    for (const Shape& axes : {Shape{0}, Shape{1}, Shape{0, 2}, Shape{-1}})
      expect_text(fmt::format("{}({}; axes = {}, keepdims = {})", name, array("x", random.shape(3, 1, 3)), list(axes),
                              random.below(2)),
                  positive ? 0.2 : -2);
  }
  for (const char* name : {"Softmax", "LogSoftmax", "LpNormalization"}) {
    for (const int64_t axis : {0, 1, -1})
      expect_text(fmt::format("{}({}; axis = {})", name, array("x", random.shape(2, 2, 4)), axis), 0.3);
  }
  for (const auto& [exclusive, reverse] : {std::pair{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
    for (const char* name : {"CumSum", "CumProd"})
      expect_text(fmt::format("{}({}; axis = [{}], exclusive = {}, reverse = {})", name, array("x", {2, 3}),
                              random.below(2), exclusive, reverse));
  }
  expect_text("LayerNormalization(%x : [2][3][4]f64, %s : [4]f64, %b : [4]f64; axis = -1)");
  expect_text("LayerNormalization(%x : [2][3][4]f64, %s : [3][4]f64; axis = 1)");
  expect_text("RMSNormalization(%x : [2][3][4]f64, %s : [4]f64)");
  expect_text("InstanceNormalization(%x : [2][2][5]f64, %s : [2]f64, %b : [2]f64)");
  expect_text("GroupNormalization(%x : [2][4][3]f64, %s : [4]f64, %b : [4]f64; num_groups = 2)");
  expect_text("BatchNormalization(%x : [2][3][4]f64, %s : [3]f64, %b : [3]f64, %m : [3]f64, %v : [3]f64)", 0.2);
  expect_text("LRN(%x : [2][4][3]f64; size = 3)");
}

TEST(OperatorGradients, OfMovements) {
  for (const char* text : {
           "Transpose(%x : [2][3][4]f64; perm = [1, 2, 0])",
           "Reshape(%x : [2][6]f64; shape = [3, 4])",
           "Concat(%x : [2][3]f64, %y : [2][2]f64; axis = 1)",
           "Slice(%x : [5][6]f64; starts = [1, 5], ends = [4, 0], axes = [0, 1], steps = [1, -2])",
           "Pad(%x : [3][4]f64, %c : f64; pads = [1, 0, 2, 1])",
           "Pad(%x : [3][4]f64; pads = [1, 2, 2, 1], mode = \"reflect\")",
           "Pad(%x : [3][4]f64; pads = [1, 2, 2, 1], mode = \"edge\")",
           "Pad(%x : [3][4]f64; pads = [1, 2, 2, 1], mode = \"wrap\")",
           "Expand(%x : [3][1]f64; shape = [2, 3, 4])",
           "Tile(%x : [2][3]f64; repeats = [2, 2])",
           "Squeeze(%x : [1][3]f64; axes = [0])",
           "Unsqueeze(%x : [3]f64; axes = [0])",
           "Flatten(%x : [2][3][2]f64; axis = 1)",
           "Identity(%x : [3]f64)",
           "Gather(%x : [3][4]f64, %at : [2][2]i64; axis = 0)",
           "Gather(%x : [3][4]f64, %at : [5]i64; axis = 1)",
           "GatherElements(%x : [3][4]f64, %at : [2][4]i64; axis = 0)",
           "GatherND(%x : [3][3]f64, %at : [4][2]i64)",
           "ScatterElements(%x : [3][4]f64, %at : [2][4]i64, %u : [2][4]f64; axis = 0)",
           "ScatterElements(%x : [3][4]f64, %at : [2][4]i64, %u : [2][4]f64; axis = 0, reduction = \"add\")",
           "ScatterND(%x : [4][3]f64, %at : [2][1]i64, %u : [2][3]f64)",
           "Where(%c : [3]bool, %x : [2][3]f64, %y : [3]f64)",
           "Trilu(%x : [3][4]f64; upper = 0)",
           "DepthToSpace(%x : [1][8][2][3]f64; blocksize = 2)",
           "SpaceToDepth(%x : [1][2][4][2]f64; blocksize = 2)",
           "Cast(%x : [3]f64; to = 11)",
           "Resize(%x : [1][1][3][3]f64; scales = [1.0, 1.0, 2.0, 2.0], mode = \"nearest\")",
           "Resize(%x : [1][1][3][3]f64; sizes = [1, 1, 5, 4], mode = \"linear\")",
           "Clip(%x : [5]f64, %low : f64, %high : f64)",
       })
    expect_text(text);
}

TEST(OperatorGradients, OfRecurrentLayers) {
  expect_text("RNN(%x : [3][1][2]f64, %w : [1][2][2]f64, %r : [1][2][2]f64, %b : [1][4]f64; hidden_size = 2)");
  expect_text("GRU(%x : [3][1][2]f64, %w : [1][6][2]f64, %r : [1][6][2]f64, %b : [1][12]f64; hidden_size = 2)");
  expect_text("LSTM(%x : [3][1][2]f64, %w : [1][8][2]f64, %r : [1][8][2]f64, %b : [1][16]f64; hidden_size = 2)");
}

// Every row of the table, with arrays of a random shape as operands and without attributes.
TEST(OperatorGradients, OfEveryOperatorThatTakesArrays) {
  RandomCalls random;
  std::set<std::string> without;
  int tested = 0;
  for (const OperatorRow& row : operator_table()) {
    for (int instance = 0; instance < 6; ++instance) {
      OperatorCall call{std::string(row.domain), std::string(row.name), newest_version, 1, {}, {}};
      Spec spec;
      spec.pattern = Pattern::operator_call;
      const Shape first = random.shape(random.from(1, 3), 1, 3);
      for (int64_t i = 0; i < std::max(row.least_inputs, 1); ++i) {
        call.operands.push_back(i);
        Shape shape = first;
        if (i > 0 && random.below(2) == 0) shape.erase(shape.begin());
        spec.children.push_back(
            parameter(fmt::format("x{}", i), array_type({shape.begin(), shape.end()}, scalar_type(Scalar::f64))));
      }
      spec.operation = std::make_shared<const OperatorCall>(call);
      const auto made = make(spec);
      if (!made.ok() || leaf_of((*made)->type) != scalar_type(Scalar::f64)) continue;
      const Expr e = without_operator_calls(*made);
      std::set<std::string> faults;
      adjoints_of(e, seed_of(e), parameters_of(e), faults);
      if (!faults.empty()) {
        without.insert(full_name(call));
        break;
      }
      ++tested;
      expect_adjoints(e, random_bindings(e, static_cast<uint64_t>(instance), row.low, row.high), full_name(call));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(tested, 300);
  EXPECT_EQ(fmt::format("{}", fmt::join(without, " ")), "");
}

}  // namespace operators_test
}  // namespace hoist::gradients
