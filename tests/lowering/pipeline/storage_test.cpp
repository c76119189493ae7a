// Tests the storage and the loops that layers of small models are lowered to, and the memory of arrays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/base/seeded.h"
#include "ir/properties/properties.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/layout/memory.h"
#include "tests/lowering/pipeline/random_models.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"

namespace hoist::storage_test {

// A sum of squares is not a contraction with weights, so normalised rows are not an image whose layout becomes NHWC.
TEST(Storage, NormalisedRowsStayRows) {
  auto program = parse_program(
      "program version 21\ninput %x : [1][6][8]f32\nconstant %s : [8]f32 = {1, 2, 3, 4, 5, 6, 7, 8}\n"
      "constant %w : [8][1]f32 = {1, 2, 3, 4, 5, 6, 7, 8}\n"
      "define %n : [1][6][8]f32 = LayerNormalization(%x, %s) from \"n\"\ndefine %y : [1][6][1]f32 = MatMul(%n, %w) "
      "from \"y\"\noutput %y\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  auto model = lower_model(std::move(*program), options_for(0, false), profile_for(0));
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  EXPECT_EQ(model->program.storage.at("n").permutation, (std::vector<int64_t>{0, 1, 2}));
}

// A layer with NCHW arrays, on a CPU with 16 registers of 8 lanes.
LoweredModel lowered_layer(const std::string& inputs, const std::string& output, int64_t launch = 0) {
  auto program = parse_program("program version 21\n" + inputs + "define %y : " + output + " from \"y\"\noutput %y\n");
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  Bindings values;
  for (const auto& [name, type] : program->inputs)
    values[name] = seeded_tensor(leaf_of(type)->scalar, shape_of(type), 1, static_cast<uint32_t>(values.size()), -1, 1);
  Profile profile;
  profile.vector_width = 8;
  profile.vector_registers = 16;
  profile.launch = launch;
  auto model = lower_model(std::move(*program), LowerOptions(), profile);
  HOIST_CHECK(model.ok(), model.errors()[0].text());
  for (const auto& [name, wanted] : outputs_of(*model, values, false))
    EXPECT_TRUE(close(outputs_of(*model, values).at(name), wanted, 1e-4)) << name;
  for (const LoweredGroup& g : model->groups) expect_derived(g);
  return *model;
}

Tile tile_of_y(const LoweredModel& model) { return *tile_of(find_definition(model.program, "y")->tile, Profile()); }

TEST(Storage, RowsOfSmallImagesRunThroughTheirLines) {
  const LoweredModel alone =
      lowered_layer("input %x : [2][16][7][7]f32\ninput %w : [32][16][1][1]f32\n", "[2][32][7][7]f32 = Conv(%x, %w)");
  EXPECT_EQ(tile_of_y(alone).cpu().loop_order, CpuTile::through_lines);
  EXPECT_EQ(tile_of_y(alone).rows_collapsed, 1);
  // In three dimensions, and with windows of a bordered copy, whose rows are not contiguous.
  const LoweredModel windows = lowered_layer("input %x : [1][3][2][3][3]f32\ninput %w : [16][3][2][2][2]f32\n",
                                             "[1][16][3][4][4]f32 = Conv(%x, %w; pads = [1, 1, 1, 1, 1, 1])");
  EXPECT_NE(tile_of_y(windows).cpu().loop_order, CpuTile::through_lines);
  const LoweredModel narrow = lowered_layer("input %x : [1][3][2][7][3]f32\ninput %w : [16][3][1][1][2]f32\n",
                                            "[1][16][2][7][3]f32 = Conv(%x, %w; pads = [0, 0, 0, 0, 0, 1])");
  EXPECT_EQ(tile_of_y(narrow).cpu().loop_order, CpuTile::through_lines);
  EXPECT_EQ(tile_of_y(narrow).rows_collapsed, 2);
}

std::string constant_text(const std::string& name, const std::string& shape, int64_t size) {
  std::string out = "constant %" + name + " : " + shape + "f32 = {0";
  for (int64_t i = 1; i < size; ++i) out += ", " + std::to_string(i % 7 - 3);
  return out + "}\n";
}

// The heads of a row are columns of one matrix: rows of tiles are rows of the product, not heads.
TEST(Storage, ColumnsThatAViewDividesAreTiledTogether) {
  struct Case {
    std::string inputs;
    int64_t columns;
    std::string product, view, term;
    int64_t columns_collapsed;
    size_t kernels = 1;
  };
  const Case cases[] = {
      {"input %x : [6][16]f32\n", 24, "[6][24]", "Reshape(%m; shape = [6, 3, 8])", "[6][3][8]f32 = Relu(%v)", 1},
      {"input %x : [5][16]f32\ninput %b : [2][4]f32\n", 24, "[5][24]", "Reshape(%m; shape = [5, 3, 2, 4])",
       "[5][3][2][4]f32 = Add(%v, %b)", 2},
      {"input %x : [2][7][16]f32\n", 10, "[2][7][10]", "Reshape(%m; shape = [2, 7, 2, 5])",
       "[2][7][2][5]f32 = Relu(%v)", 1},
      // More dimensions than the rules collapse.
      {"input %x : [2][16]f32\n", 64, "[2][64]", "Reshape(%m; shape = [2, 2, 2, 2, 2, 2, 2])",
       "[2][2][2][2][2][2][2]f32 = Relu(%v)", 0, 2},
      // Rows are divided, or joined to columns.
      {"input %x : [6][16]f32\n", 24, "[6][24]", "Reshape(%m; shape = [2, 3, 24])", "[2][3][24]f32 = Relu(%v)", 0},
      {"input %x : [6][16]f32\n", 24, "[6][24]", "Reshape(%m; shape = [3, 48])", "[3][48]f32 = Relu(%v)", 0},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.term);
    const std::string weights = constant_text("w", "[16][" + std::to_string(each.columns) + "]", 16 * each.columns);
    const std::string viewed = each.term.substr(0, each.term.find(" "));
    const LoweredModel model = lowered_layer(each.inputs + weights + "define %m : " + each.product +
                                                 "f32 = MatMul(%x, %w) from \"m\"\ndefine %v : " + viewed + " = " +
                                                 each.view + " from \"v\"\n",
                                             each.term);
    EXPECT_EQ(model.groups.size(), each.kernels);
    EXPECT_EQ(tile_of_y(model).columns_collapsed, each.columns_collapsed);
  }
}

// The parts of a concatenation have no padding, so the last tile of 20 channels overlaps the one before it by four. A
// panel of weights would end inside its vectors.
TEST(Storage, WeightsOfShiftedTilesHaveNoPanels) {
  const LoweredModel model =
      lowered_layer("input %x : [1][16][12][12]f32\n" + constant_text("w", "[20][16][1][1]", 20 * 16) +
                        "define %a : [1][20][12][12]f32 = Conv(%x, %w) from \"a\"\n"
                        "define %b : [1][16][12][12]f32 = Relu(%x) from \"b\"\n",
                    "[1][36][12][12]f32 = Concat(%a, %b; axis = 1)");
  EXPECT_EQ(tile_of(find_definition(model.program, "a")->tile, Profile())->cpu().shifted, 1);
  EXPECT_EQ(model.program.storage.at("w").panel, 0);
}

TEST(Storage, PlanesStayAsTheyLieWhereTurningThemCostsMore) {
  const auto is_turned = [](const LoweredModel& model) { return tile_of_y(model).channels_last; };
  const LoweredModel few =
      lowered_layer("input %x : [2][4][6][16]f32\ninput %w : [6][4][1][1]f32\n", "[2][6][6][16]f32 = Conv(%x, %w)");
  EXPECT_EQ(tile_of_y(few).cpu().loop_order, CpuTile::planes_inside);
  EXPECT_TRUE(is_turned(
      lowered_layer("input %x : [1][40][6][16]f32\ninput %w : [6][40][1][1]f32\n", "[1][6][6][16]f32 = Conv(%x, %w)")))
      << "a tile's lines of 40 planes do not stay in the cache";
  EXPECT_TRUE(is_turned(lowered_layer("input %x : [1][4][12][32]f32\ninput %w : [6][4][1][1]f32\n",
                                      "[1][6][6][16]f32 = Conv(%x, %w; strides = [2, 2])")))
      << "every second element of a row";
  const std::string image = "input %x : [1][3][6][16]f32\n", pads = " = Conv(%x, %w; pads = [1, 1, 1, 1])";
  EXPECT_FALSE(is_turned(lowered_layer(image + "input %w : [8][3][3][3]f32\n", "[1][8][6][16]f32" + pads)));
  EXPECT_TRUE(is_turned(lowered_layer(image + "input %w : [40][3][3][3]f32\n", "[1][40][6][16]f32" + pads)))
      << "several vectors of filters";
  EXPECT_FALSE(is_turned(lowered_layer("input %x : [1][24][5][7]f32\ninput %w : [24][3][3][3]f32\n",
                                       "[1][24][5][7]f32 = Conv(%x, %w; pads = [1, 1, 1, 1], group = 8)")))
      << "groups of three filters";
  const std::string filters = "input %w : [16][1][3][3]f32\n";
  EXPECT_FALSE(is_turned(lowered_layer("input %x : [1][16][7][7]f32\n" + filters,
                                       "[1][16][7][7]f32 = Conv(%x, %w; pads = [1, 1, 1, 1], group = 16)")));
  EXPECT_TRUE(
      is_turned(lowered_layer("input %x : [1][16][14][14]f32\n" + filters,
                              "[1][16][7][7]f32 = Conv(%x, %w; pads = [1, 1, 1, 1], group = 16, strides = [2, 2])")));
}

// The dimension order of the input's copy, or empty if there is no copy.
std::vector<int64_t> copy(const LoweredModel& model) {
  const auto found = model.program.storage.find("x.bordered");
  return found == model.program.storage.end() ? std::vector<int64_t>() : found->second.permutation;
}

TEST(Storage, PoolsWhoseWindowsOverlapReadATurnedInput) {
  const auto pool = [](const std::string& x, const std::string& y, const std::string& stride) {
    return copy(lowered_layer("input %x : " + x + "f32\n", y + "f32 = MaxPool(%x; kernel_shape = [3, 3], strides = [" +
                                                               stride + ", " + stride + "])"));
  };
  EXPECT_EQ(pool("[1][32][6][6]", "[1][32][2][2]", "2"), (std::vector<int64_t>{0, 2, 3, 1}));
  EXPECT_EQ(pool("[1][32][6][6]", "[1][32][2][2]", "3"), std::vector<int64_t>()) << "each element is read once";
  EXPECT_EQ(pool("[1][3][6][6]", "[1][3][2][2]", "2"), std::vector<int64_t>()) << "channels are not a vector";
  EXPECT_EQ(pool("[1][32][41][41]", "[1][32][20][20]", "2"), std::vector<int64_t>()) << "rows are";
}

TEST(Storage, InputsAreTurnedWhereTheirLinesDoNotStayInTheCache) {
  const std::vector<int64_t> plain = {0, 1, 2, 3}, channels_last = {0, 2, 3, 1};
  EXPECT_EQ(copy(lowered_layer("input %x : [1][300][2][3]f32\ninput %w : [128][300][1][1]f32\n",
                               "[1][128][2][3]f32 = Conv(%x, %w)")),
            channels_last);
  EXPECT_EQ(copy(lowered_layer("input %x : [1][100][2][3]f32\ninput %w : [128][100][1][1]f32\n",
                               "[1][128][2][3]f32 = Conv(%x, %w)")),
            std::vector<int64_t>());
  // With a border: channel planes of 16x16 and of 15x16 elements.
  const auto bordered = [&](int64_t rows) {
    const std::string r = std::to_string(rows);
    return copy(lowered_layer("input %x : [1][40][" + r + "][14]f32\ninput %w : [128][40][1][3]f32\n",
                              "[1][128][" + r + "][14]f32 = Conv(%x, %w; pads = [0, 1, 0, 1])"));
  };
  EXPECT_EQ(bordered(16), channels_last);
  EXPECT_EQ(bordered(15), plain);
}

// Vectors of output channels load adjacent filters, and each layer that reads them in another order has its own copy.
TEST(Storage, FiltersOfTheModelsInputsAreCopiedInTheOrderOfReads) {
  const LoweredModel model =
      lowered_layer("input %x : [1][8][6][6]f32\ninput %w : [16][8][3][3]f32\n", "[1][16][4][4]f32 = Conv(%x, %w)");
  ASSERT_EQ(model.program.storage.count("w.filters"), 1u);
  EXPECT_EQ(model.program.storage.at("w.filters").permutation, (std::vector<int64_t>{2, 3, 1, 0}));
  const LoweredModel planes = lowered_layer("input %x : [1][8][6][16]f32\ninput %w : [8][1][3][3]f32\n",
                                            "[1][8][4][14]f32 = Conv(%x, %w; group = 8)");
  EXPECT_EQ(planes.program.storage.count("w.filters"), 0u);
}

// The phases of a strided convolution's gradient select taps of filters that are a model's input.
TEST(Storage, SelectedFiltersAreStoredInTheOrderOfReads) {
  const LoweredModel model = lowered_layer(
      "input %x : [1][16][6][6]f32\ninput %w : [16][32][3][3]f32\n"
      "define %t : [16][32][2][2]f32 = Slice(%w; axes = [2, 3], ends = [3, 3], starts = [0, 0], steps = [2, 2]) from "
      "\"t\"\n",
      "[1][32][7][7]f32 = ConvTranspose(%x, %t)");
  ASSERT_EQ(model.program.storage.count("t"), 1u);
  EXPECT_EQ(model.program.storage.at("t").permutation, (std::vector<int64_t>{0, 2, 3, 1}));
}

// The value between two products keeps its rows: reading it across them costs more than the gradient's sum gains.
TEST(Storage, ProductsOfTransposedInputsKeepTheirRows) {
  auto program = parse_program(
      "program version 21\ninput %x : [64][512]f32\ninput %v : [512][512]f32\ninput %w : [512][512]f32\n"
      "define %a : [64][512]f32 = Gemm(%x, %v; transB = 1) from \"a\"\ndefine %r : [64][512]f32 = Relu(%a) from \"r\"\n"
      "define %b : [64][512]f32 = Gemm(%r, %w; transB = 1) from \"b\"\n"
      "define %y : [512][512]f32 = Gemm(%b, %r; transA = 1) from \"y\"\noutput %y\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  Profile profile;
  profile.vector_width = 16;
  profile.vector_registers = 32;
  const auto model = lower_model(std::move(*program), LowerOptions(), profile);
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  for (const std::string value : {"r", "b"})
    EXPECT_EQ(model->program.storage.at(value).permutation, (std::vector<int64_t>{0, 1})) << value;
  const Definition* product = find_definition(model->program, "b");
  ASSERT_EQ(product->weights.size(), 1u);
  EXPECT_NE(product->weights[0].value, "w");
}

// A tile then reads adjacent lines, as of weights that are known.
TEST(Storage, TransposedMatricesAreCopiedInPanels) {
  const LoweredModel model =
      lowered_layer("input %x : [32][24]f32\ninput %w : [64][24]f32\n", "[32][64]f32 = Gemm(%x, %w; transB = 1)");
  const Definition* product = find_definition(model.program, "y");
  ASSERT_EQ(product->weights.size(), 1u);
  ASSERT_NE(product->weights[0].value, "w");
  EXPECT_EQ(model.program.storage.at(product->weights[0].value).panel, tile_of_y(model).columns);
}

TEST(Storage, AveragePoolsReadInputsWithABorder) {
  const LoweredModel model = lowered_layer(
      "input %x : [1][5][7][7]f32\n", "[1][5][7][7]f32 = AveragePool(%x; kernel_shape = [3, 3], pads = [1, 1, 1, 1])");
  ASSERT_EQ(model.program.storage.count("x.bordered"), 1u);
  EXPECT_EQ(model.program.storage.at("x.bordered").border, uint8_t{0});
}

// The shape of the kernel's array in private memory, or empty.
std::vector<int64_t> kept_shape(const LoweredModel& model) {
  std::vector<int64_t> shape;
  for (const LoweredGroup& group : model.groups) {
    any_node(group.low, [&](Expr e) {
      if (e->pattern == Pattern::materialise && e->memory == Memory::private_ && sizes_of(e->type).size() == 3)
        shape = shape_of(e->type);
      return false;
    });
  }
  return shape;
}

TEST(Storage, WindowsInStepsReadPhasesOfRows) {
  const auto kept = [](int64_t columns, const std::string& results, const std::string& attributes) {
    const LoweredModel model =
        lowered_layer("input %x : [2][4][9][" + std::to_string(columns) + "]f32\ninput %w : [4][1][3][3]f32\n",
                      "[2][4]" + results + "f32 = Conv(%x, %w; group = 4, " + attributes + ")");
    EXPECT_EQ(model.kernels.size(), 1u) << attributes;
    return kept_shape(model);
  };
  // The even and odd columns of 32 with padding of two before and one after, in vectors of eight, with rows of padding
  // above and below. Columns after the last windows are not read.
  EXPECT_EQ(kept(32, "[5][17]", "strides = [2, 2], pads = [1, 2, 1, 1]"), (std::vector<int64_t>{11, 2, 24}));
  EXPECT_EQ(kept(30, "[5][15]", "strides = [2, 2], pads = [1, 1, 1, 1]"), (std::vector<int64_t>{11, 2, 16}));
  EXPECT_EQ(kept(31, "[5][16]", "strides = [2, 2], pads = [1, 1, 1, 1]"), (std::vector<int64_t>{11, 2, 24}));
  EXPECT_EQ(kept(16, "[5][8]", "strides = [2, 2], pads = [1, 0, 1, 1]"), (std::vector<int64_t>{11, 2, 16}));
  EXPECT_EQ(kept(30, "[3][11]", "strides = [3, 3], pads = [1, 2, 1, 3]"), (std::vector<int64_t>{10, 3, 16}));
  EXPECT_EQ(kept(32, "[4][16]", "strides = [2, 2], pads = [1, 2, 1, 2], dilations = [2, 2]"),
            (std::vector<int64_t>{11, 2, 24}));
  // Rows shorter than a vector, overlapping windows, no need for a copy, and channel planes larger than the cache.
  for (const auto& [columns, results, attributes] :
       {std::tuple{14, "[5][7]", "strides = [2, 2], pads = [1, 1, 1, 1]"},
        std::tuple{32, "[9][32]", "pads = [1, 1, 1, 1]"}, std::tuple{32, "[4][15]", "strides = [2, 2]"},
        std::tuple{8192, "[5][4096]", "strides = [2, 2], pads = [1, 1, 1, 1]"}}) {
    const LoweredModel model =
        lowered_layer("input %x : [2][4][9][" + std::to_string(columns) + "]f32\ninput %w : [4][1][3][3]f32\n",
                      "[2][4]" + std::string(results) + "f32 = Conv(%x, %w; group = 4, " + attributes + ")");
    EXPECT_EQ(kept_shape(model), std::vector<int64_t>()) << columns << " columns, " << attributes;
  }
}

// Each result reads its whole channel plane, so several filters would copy it repeatedly.
TEST(Storage, PlanesOfSeveralFiltersAreNotKept) {
  EXPECT_EQ(kept_shape(lowered_layer("input %x : [2][4][9][32]f32\ninput %w : [8][1][3][3]f32\n",
                                     "[2][8][5][16]f32 = Conv(%x, %w; group = 4, strides = [2, 2], "
                                     "pads = [1, 1, 1, 1])")),
            std::vector<int64_t>());
}

// Arrays between layers are NHWC.
TEST(Storage, PlanesBetweenLayersAreNotKept) {
  const std::string depthwise = "[1][8][16][16]f32 = Conv(%x, %w; group = 8, strides = [2, 2], pads = [2, 2, 2, 2])";
  const std::string inputs = "input %x : [1][8][32][32]f32\ninput %w : [8][1][5][5]f32\n";
  EXPECT_EQ(kept_shape(lowered_layer(inputs, depthwise)), (std::vector<int64_t>{35, 2, 24}));
  EXPECT_EQ(kept_shape(lowered_layer(inputs + "input %v : [4][8][1][1]f32\ndefine %s : " + depthwise + " from \"s\"\n",
                                     "[1][4][16][16]f32 = Conv(%s, %v)")),
            std::vector<int64_t>());
  EXPECT_EQ(
      kept_shape(lowered_layer("input %a : [1][4][32][32]f32\ninput %v : [8][4][1][1]f32\ninput %w : [8][1][5][5]f32\n"
                               "define %x : [1][8][32][32]f32 = Conv(%a, %v) from \"x\"\n",
                               depthwise)),
      std::vector<int64_t>());
}

TEST(Storage, RowsOfAllMatricesAreThoseOfOneProduct) {
  const LoweredModel one =
      lowered_layer("input %x : [8][1][32]f32\ninput %w : [32][48]f32\n", "[8][1][48]f32 = MatMul(%x, %w)");
  EXPECT_EQ(tile_of_y(one).cpu().loop_order, CpuTile::through_lines);
  EXPECT_EQ(tile_of_y(one).rows_collapsed, 1);
  const LoweredModel two =
      lowered_layer("input %x : [2][3][1][32]f32\ninput %w : [32][48]f32\n", "[2][3][1][48]f32 = MatMul(%x, %w)");
  EXPECT_EQ(tile_of_y(two).rows_collapsed, 2);
  EXPECT_NE(lowered_layer("input %x : [8][1][32]f32\ninput %w : [8][32][48]f32\n", "[8][1][48]f32 = MatMul(%x, %w)")
                .program.definitions.back()
                .tile["loop_order"],
            CpuTile::through_lines)
      << "a right matrix for each";
}

TEST(Storage, SumsThatAreReadAtPositionsAreKept) {
  const auto stages = [](int64_t launch) {
    return lowered_layer("input %x : [1][3][8][12]f32\n",
                         "[1][3][16][24]f32 = Resize(%x; mode = \"linear\", scales = [1.0, 1.0, 2.0, 2.0])", launch)
        .program.storage.count("y.stage1");
  };
  EXPECT_EQ(stages(10), 1u);
  EXPECT_EQ(stages(1000), 0u) << "a launch takes longer";
}

std::string softmax_of(const std::string& shape) {
  return print(lowered_layer("input %x : " + shape + "f32\n", shape + "f32 = Softmax(%x; axis = -1)").groups[0].low);
}

TEST(Storage, ShortRowsOfASoftmaxAreComputedInPairs) {
  const auto in_pairs = testing::HasSubstr("map unroll (split 8 >> map seq (map vec");
  EXPECT_THAT(softmax_of("[3][4][32]"), in_pairs);
  EXPECT_THAT(softmax_of("[4][32]"), in_pairs);
  EXPECT_THAT(softmax_of("[3][32]"), testing::Not(in_pairs));
  EXPECT_THAT(softmax_of("[4][256]"), testing::Not(in_pairs)) << "rows that pages hold few of";
}

TEST(Storage, ShortRowsShareAWorkGroup) {
  EXPECT_THAT(softmax_of("[4420][2]"), testing::HasSubstr("split 221"));
  EXPECT_THAT(softmax_of("[40][600]"), testing::HasSubstr("\n|> map group(0) (split 8 >> map seq"));
}

TEST(Storage, RowsThatFillNoVectorAreLanesOfOne) {
  const auto across = testing::HasSubstr("map seq (tile 8 >> map seq (map vec");
  EXPECT_THAT(softmax_of("[4420][2]"), across);
  EXPECT_THAT(softmax_of("[2][4420][3]"), across);
  EXPECT_THAT(softmax_of("[4420][4]"), testing::Not(across)) << "half a vector";
  EXPECT_THAT(softmax_of("[7][2]"), testing::Not(across)) << "too few rows";
}

bool overlap(int64_t a, int64_t a_size, int64_t b, int64_t b_size) { return a < b + b_size && b < a + a_size; }

TEST(Memory, ArraysOfOverlappingLifeNeverOverlap) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Lifetime> arrays(1 + random() % 12);
    int64_t sum = 0;
    for (Lifetime& a : arrays) {
      a.bytes = static_cast<int64_t>(random() % 5 == 0 ? random() % 4 : random() % 20000);
      a.first = static_cast<int>(random() % 10);
      a.last = a.first + static_cast<int>(random() % 5);
      sum += (a.bytes + 4095) / 4096 * 4096;
    }
    bool reuse = round % 4 != 0;
    int64_t total = place_arrays(arrays, 4096, reuse);
    ASSERT_LE(total, sum);
    for (size_t i = 0; i < arrays.size(); ++i) {
      const Lifetime& a = arrays[i];
      ASSERT_EQ(a.offset % 4096, 0);
      ASSERT_GE(a.offset, 0);
      ASSERT_LE(a.offset + a.bytes, total);
      for (size_t j = 0; j < i; ++j) {
        const Lifetime& b = arrays[j];
        bool together = a.first <= b.last && b.first <= a.last;
        if (!together && reuse) continue;
        ASSERT_FALSE(a.bytes > 0 && b.bytes > 0 && overlap(a.offset, a.bytes, b.offset, b.bytes)) << "round " << round;
      }
    }
  }
}

// Live ranges come from the plan's steps, independently of the pass.
TEST(Memory, PlansKeepWhatIsStillRead) {
  size_t shared = 0;
  for_random_graphs([&](const RandomGraph& random, const Bindings&, uint64_t seed) {
    LoweredModel model = lowered(random, seed, false);
    std::map<int, std::pair<size_t, size_t>> life;
    for (size_t i = 0; i < model.steps.size(); ++i) {
      for (int a : model.steps[i].arguments) {
        if (model.arrays[static_cast<size_t>(a)].place == Place::arena)
          life.emplace(a, std::make_pair(i, i)).first->second.second = i;
      }
    }
    for (const auto& [a, life_a] : life) {
      for (const auto& [b, life_b] : life) {
        if (b >= a) break;
        const PlanArray &x = model.arrays[static_cast<size_t>(a)], &y = model.arrays[static_cast<size_t>(b)];
        bool same_bytes = overlap(x.offset, byte_size(x.scalar, x.shape), y.offset, byte_size(y.scalar, y.shape));
        bool together = life_a.first <= life_b.second && life_b.first <= life_a.second;
        ASSERT_FALSE(same_bytes && together) << x.name << " and " << y.name;
        shared += same_bytes ? 1 : 0;
      }
    }
  });
  EXPECT_GT(shared, 0U);
}

}  // namespace hoist::storage_test
