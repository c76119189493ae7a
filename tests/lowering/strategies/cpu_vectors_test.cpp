// Tests the number of lanes of CPU vectors in kernels over elements and rows.
#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/lower.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"

namespace hoist::cpu_vectors_test {

using testing::HasSubstr;

LoweredModel lowered_layer(const std::string& from, const std::string& to, const std::string& call,
                           int64_t vector_width) {
  auto program = parse_program("program version 21\ninput %x : " + from + "\ndefine %y : " + to + " = " + call +
                               " from \"layer\"\noutput %y\n");
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  Profile profile;
  profile.vector_width = vector_width;
  auto model = lower_model(std::move(*program), {}, profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  return std::move(*model);
}

LoweredModel lowered(const std::string& from, const std::string& to, const std::string& call, int64_t vector_width) {
  return lowered_layer("[6][48]" + from, "[6][48]" + to, call, vector_width);
}

std::string low_of(const LoweredModel& model) { return print(model.groups.back().low); }

// Values whose sums, minima and maxima are exact in any order.
Tensor integers_only(const std::vector<int64_t>& shape) {
  Tensor x(Scalar::f32, shape);
  for (int64_t i = 0; i < x.size(); ++i) x.set_float(i, static_cast<double>((i * 37) % 101) - 50);
  return x;
}

TEST(CpuVectors, RowsShorterThanAVectorReachBack) {
  for (const auto& [columns, loop] :
       {std::pair{14, "tile 8 >> map seq (map vec"}, std::pair{7, "tile 4 >> map seq (map vec"},
        std::pair{12, "split 4 >> map seq (map vec"}, std::pair{3, "map seq (\\a. a)"}}) {
    const std::string type = "[6][" + std::to_string(columns) + "]f32";
    const LoweredModel model = lowered_layer(type, type, "Add(%x, %x)", 16);
    EXPECT_THAT(low_of(model), HasSubstr(loop));
    const Tensor x = integers_only({6, columns}), y = outputs_of(model, {{"x", x}}).at("y");
    for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(y.float_at(i), 2 * x.float_at(i)) << columns << " at " << i;
  }
}

// Blocks of all rows, or of a divisor of their number; lanes that divide the columns.
TEST(CpuVectors, BlocksOfATranspositionCutNothingOff) {
  struct Case {
    int64_t rows, columns;
    const char *block, *lanes;
  };
  for (const Case& c : {Case{28, 28, "split 28", "split 4"}, Case{7, 32, "split 7", "split 16"},
                        Case{112, 24, "split 28", "split 8"}, Case{41, 16, "split 16", "split 16"}}) {
    const std::string rows = std::to_string(c.rows), columns = std::to_string(c.columns);
    const LoweredModel model =
        lowered_layer("[3][" + columns + "][" + rows + "]f32", "[3][" + rows + "][" + columns + "]f32",
                      "Transpose(%x; perm = [0, 2, 1])", 16);
    EXPECT_THAT(low_of(model), testing::AllOf(HasSubstr(c.block), HasSubstr(c.lanes)));
    const Tensor x = integers_only({3, c.columns, c.rows}), y = outputs_of(model, {{"x", x}}).at("y");
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t plane = i / (c.rows * c.columns), row = i / c.columns % c.rows, column = i % c.columns;
      ASSERT_EQ(y.float_at(i), x.float_at((plane * c.columns + column) * c.rows + row)) << rows << " x " << columns;
    }
  }
}

// 16 adjacent results become 8, then 4, then one, without a loop; a row shorter than a vector has shorter vectors.
TEST(CpuVectors, PartialResultsAreCombinedByHalves) {
  const auto sums = [](int64_t columns) {
    return lowered_layer("[6][" + std::to_string(columns) + "]f32", "[6]f32", "ReduceMax(%x; axes = [1], keepdims = 0)",
                         16);
  };
  EXPECT_THAT(low_of(sums(64)), HasSubstr("|> split 8\n"));
  EXPECT_THAT(low_of(sums(64)), HasSubstr("|> split 4\n"));
  EXPECT_THAT(low_of(sums(64)), HasSubstr("fold unroll max f32#ff800000 b)"));
  EXPECT_THAT(low_of(lowered_layer("[6][10]f32", "[6][10]f32", "Softmax(%x; axis = 1)", 16)), HasSubstr("slice 0 8"));
  for (const int64_t columns : {10, 64, 100}) {
    const Tensor x = integers_only({6, columns}), y = outputs_of(sums(columns), {{"x", x}}).at("y");
    for (int64_t row = 0; row < 6; ++row) {
      double most = x.float_at(row * columns);
      for (int64_t i = 0; i < columns; ++i) most = std::max(most, x.float_at(row * columns + i));
      ASSERT_EQ(y.float_at(row), most) << columns;
    }
  }
}

// The block sums of a long softmax read the exponentials through a let.
TEST(CpuVectors, RowsThatALetNamesLieInMemory) {
  const LoweredModel model = lowered_layer("[1][40000]f32", "[1][40000]f32", "Softmax(%x; axis = 1)", 16);
  const auto sums_in_vectors = [](const LoweredGroup& group) {
    const std::string low = print(group.low);
    return low.find("map vec (fold unroll (+) 0f32)") != std::string::npos && low.find("exp") == std::string::npos;
  };
  EXPECT_TRUE(std::any_of(model.groups.begin(), model.groups.end(), sums_in_vectors));
}

// Depthwise windows with stride two read a polyphase input if the rows of results have eight lanes, for any register
// width.
TEST(CpuVectors, RowsOfEightLanesAreReadInPhases) {
  const auto in_phases = [](int64_t side, int64_t vector_width) {
    NamedModel model;
    model.opset = 21;
    model.inputs = {{"x", Scalar::f32, {1, 16, side, side}}};
    model.constants["w"] = integers_only({16, 1, 3, 3});
    const Attributes attributes = {
        {"group", int64_t{16}}, {"strides", std::vector<int64_t>{2, 2}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}};
    model.layers = {{"conv", "Conv", "", attributes, {"x", "w"}, {"y"}}};
    model.outputs = {{"y", Scalar::f32, {}}};
    Profile profile;
    profile.vector_width = vector_width;
    const auto lowered = lower_model(model, {}, profile);
    HOIST_CHECK(lowered.ok(), lowered.errors()[0].text());
    const std::vector<ProgramStep>& steps = lowered->derivation.steps;
    return std::any_of(steps.begin(), steps.end(), [](const ProgramStep& s) { return s.rule == "polyphase-planes"; });
  };
  EXPECT_TRUE(in_phases(28, 8));
  EXPECT_TRUE(in_phases(28, 16));
  EXPECT_FALSE(in_phases(14, 8));
  EXPECT_FALSE(in_phases(14, 16));
}

// Each drawn number needs its own sum over its row, in its lane; the maximum of the row is found in vectors, unless the
// lanes are rows.
TEST(CpuVectors, FoldsOfElementsAreNoVectorsInsideOfVectors) {
  const auto partial_results = [](const std::string& from, const std::string& to) {
    const std::string call = "Multinomial(%x; dtype = 7, sample_size = ", samples = to.substr(to.size() - 5, 1);
    const LoweredModel model = lowered_layer(from, to, call + samples + ", seed = 3.0)", 8);
    const std::string low = low_of(model), kept = "materialise private";
    EXPECT_THAT(low, HasSubstr("map vec"));
    int found = 0;
    for (size_t at = low.find(kept); at != std::string::npos; at = low.find(kept, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(partial_results("[1][10]f32", "[1][5]i64"), 1);
  EXPECT_EQ(partial_results("[16][10]f32", "[16][3]i64"), 0);
}

TEST(CpuVectors, NarrowIntegersFillARegister) {
  struct Case {
    std::string from, to, call;
    int64_t vector_width, lanes;
  };
  for (const Case& c : {Case{"u8", "u8", "Add(%x, %x)", 8, 16}, Case{"i16", "i16", "Add(%x, %x)", 8, 16},
                        Case{"bool", "bool", "Not(%x)", 4, 16}, Case{"i16", "i16", "Add(%x, %x)", 4, 8},
                        Case{"u8", "u8", "Add(%x, %x)", 16, 16}, Case{"i32", "i32", "Add(%x, %x)", 8, 8},
                        // Computed as f32, with vectors for the wider of two types.
                        Case{"f16", "f16", "Add(%x, %x)", 8, 8}, Case{"u8", "f32", "Cast(%x; to = 1)", 8, 8}}) {
    const LoweredModel model = lowered(c.from, c.to, c.call, c.vector_width);
    EXPECT_THAT(print(model.groups[0].low), HasSubstr("split " + std::to_string(c.lanes) + " >> map seq (map vec"))
        << c.from << " " << c.call;
    Tensor x(*scalar_named(c.from), {6, 48});
    for (int64_t i = 0; i < x.size(); ++i) {
      if (is_float(x.scalar()))
        x.set_float(i, static_cast<double>(i % 7));
      else
        x.set_integer(i, i % (c.from == "bool" ? 2 : 100));
    }
    const Tensor y = outputs_of(model, {{"x", x}}).at("y");
    for (int64_t i = 0; i < x.size(); ++i) {
      const double given = is_float(x.scalar()) ? x.float_at(i) : static_cast<double>(x.integer_at(i));
      const double found = is_float(y.scalar()) ? y.float_at(i) : static_cast<double>(y.integer_at(i));
      const double wanted = c.call.starts_with("Add") ? 2 * given : c.call.starts_with("Not") ? 1 - given : given;
      ASSERT_EQ(found, wanted) << c.from << " " << c.call << " at " << i;
    }
  }
}

}  // namespace hoist::cpu_vectors_test
