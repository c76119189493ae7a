// Tests the orders of dimensions of least cost, and orders of the user's steps.
#include "lowering/layout/orders.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "ir/text/program_text.h"
#include "lowering/pipeline/lower.h"
#include "lowering/pipeline/replay.h"
#include "tests/lowering/stored_run.h"

namespace hoist::orders_test {

using testing::ElementsAre;
using testing::HasSubstr;

Profile avx2() {
  Profile profile;
  profile.vector_width = 8;
  profile.vector_registers = 16;
  return profile;
}

// `constants` are inputs of the text that become constants.
Program program_of(const std::string& text, std::initializer_list<const char*> constants) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  for (const char* name : constants) {
    const auto input = std::find_if(program->inputs.begin(), program->inputs.end(),
                                    [&](const auto& candidate) { return candidate.first == name; });
    const std::vector<int64_t> shape = shape_of(input->second);
    program->inputs.erase(input);
    program->constants[name] = seeded_tensor(Scalar::f32, shape, 1, 0, -1, 1);
  }
  return std::move(*program);
}

Result<LoweredModel> lowered(const Program& program, const LowerOptions& options) {
  return lower_model(program, options, avx2());
}

DimensionOrder stored(const LoweredModel& model, const std::string& value) {
  return model.program.storage.at(value).permutation;
}

// The program in which layouts are chosen.
Program before_choice(Program program) {
  for (const Pass::Part part : {Pass::calls, Pass::terms}) {
    const auto done = run_passes(program, part, pass_options({}, avx2()));
    HOIST_CHECK(done.ok(), done.errors()[0].text());
  }
  return program;
}

// A block of an encoder: a decomposed normalisation, whose mean is a sum over rows, and an MLP with a residual sum.
constexpr char encoder[] =
    "program version 21\ninput %x : [1][32][48]f32\ninput %a : [48][96]f32\ninput %b : [96][48]f32\n"
    "define %h : [1][32][96]f32 = MatMul(%x, %a) from \"up\"\n"
    "define %r : [1][32][96]f32 = Relu(%h) from \"relu\"\n"
    "define %d : [1][32][48]f32 = MatMul(%r, %b) from \"down\"\n"
    "define %s : [1][32][48]f32 = Add(%d, %x) from \"add\"\n"
    "define %m : [1][32][1]f32 = ReduceMean(%s; axes = [-1]) from \"mean\"\n"
    "define %c : [1][32][48]f32 = Sub(%s, %m) from \"centre\"\n"
    "define %q : [1][32][48]f32 = Mul(%c, %c) from \"square\"\n"
    "define %v : [1][32][1]f32 = ReduceMean(%q; axes = [-1]) from \"variance\"\n"
    "define %n : [1][32][48]f32 = Div(%c, %v) from \"divide\"\n"
    "define %e : [1][32][96]f32 = MatMul(%n, %a) from \"up2\"\n"
    "define %f : [1][32][48]f32 = MatMul(%e, %b) from \"down2\"\n"
    "define %y : [1][32][48]f32 = Add(%f, %n) from \"add2\"\noutput %y\n";

// No value is stored across its rows, so products run along the columns of their packed weights.
TEST(Orders, ResidualStreamsOfAnEncoderAreStoredAsTheirProductsWriteThem) {
  const auto model = lowered(program_of(encoder, {"a", "b"}), LowerOptions());
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  for (const Definition& d : model->program.definitions) {
    const Storage& storage = model->program.storage.at(d.value);
    if (storage.permutation.size() != 3 || shape_of(storage.logical).back() == 1) continue;
    EXPECT_THAT(storage.permutation, ElementsAre(0, 1, 2)) << d.value;
  }
}

// The product after the softmax has vectors of rows, but the sums of a row are shared by its elements.
TEST(Orders, RowsThatShareFoldsStayRows) {
  const Program program = before_choice(program_of(
      "program version 21\ninput %q : [1][256][64]f32\ninput %k : [1][256][64]f32\ninput %v : [1][256][64]f32\n"
      "input %o : [256][256]f32\n"
      "define %g : [1][4][64][64]f32 = Reshape(%q; shape = [1, 4, 64, 64]) from \"heads of queries\"\n"
      "define %t : [1][4][64][64]f32 = Transpose(%g; perm = [0, 1, 3, 2]) from \"queries\"\n"
      "define %h : [1][4][64][64]f32 = Reshape(%k; shape = [1, 4, 64, 64]) from \"keys\"\n"
      "define %s : [1][4][64][64]f32 = MatMul(%t, %h) from \"scores\"\n"
      "define %p : [1][4][64][64]f32 = Softmax(%s; axis = -1) from \"softmax\"\n"
      "define %u : [1][4][64][64]f32 = Reshape(%v; shape = [1, 4, 64, 64]) from \"heads of values\"\n"
      "define %w : [1][4][64][64]f32 = Transpose(%u; perm = [0, 1, 3, 2]) from \"values\"\n"
      "define %c : [1][4][64][64]f32 = MatMul(%p, %w) from \"context\"\n"
      "define %b : [1][4][64][64]f32 = Transpose(%c; perm = [0, 1, 3, 2]) from \"back\"\n"
      "define %a : [1][256][64]f32 = Reshape(%b; shape = [1, 256, 64]) from \"together\"\n"
      "define %y : [1][256][64]f32 = MatMul(%o, %a) from \"projection\"\noutput %y\n",
      {"o"}));
  EXPECT_THAT(choose_orders(program, avx2()).values.at("p").order, ElementsAre(0, 1, 2, 3));
}

// A copy of an input in another order keeps it; a computed value that is transposed alone has the orders of any value,
// or the image before it would be stored by its rows (RDNet: a 1x1 convolution at 1 GFLOP/s instead of 112).
TEST(Orders, OnlyTransposedInputsKeepTheirOrder) {
  Program program =
      before_choice(program_of("program version 21\ninput %x : [2][16][8][9]f32\ninput %w : [9][9]f32\n"
                               "define %r : [2][16][8][9]f32 = Relu(%x) from \"relu\"\n"
                               "define %y : [2][16][8][9]f32 = MatMul(%r, %w) from \"y\"\noutput %r\noutput %y\n",
                               {}));
  for (const char* value : {"x", "r"}) {
    Definition copy;
    copy.value = copy.layers.emplace_back(std::string(value) + ".turned");
    copy.expression = transpose({0, 2, 3, 1}, parameter(value, program.inputs[0].second));
    program.definitions.push_back(std::move(copy));
  }
  const Orders orders = choose_orders(program, avx2());
  EXPECT_FALSE(orders.values.at("x.turned").second);
  EXPECT_TRUE(orders.values.at("r.turned").second);
}

TEST(Orders, CostAtMostAsMuchAsByTheRule) {
  const Program program = before_choice(program_of(encoder, {"a", "b"}));
  const Orders least = choose_orders(program, avx2());
  const Orders by_rule = costs_of_orders(program, avx2(), orders_by_rule(program, avx2()));
  EXPECT_LE(least.cost, by_rule.cost);
  EXPECT_LE(least.bound, least.cost);
  for (const auto& [value, chosen] : least.values) {
    const double alternative = chosen.second ? chosen.second->cost : chosen.cost;
    EXPECT_LE(chosen.cost, alternative * (1 + 1e-9)) << value;
  }
}

// A block of ConvNeXt: between two convolutions the channels are the last dimension, and the second product is
// transposed back and added.
TEST(Orders, ChannelsStayInnermostWhicheverDimensionTheyAre) {
  const auto model = lowered(
      program_of(
          "program version 21\ninput %x : [1][16][12][12]f32\ninput %k : [16][1][3][3]f32\ninput %a : [16][64]f32\n"
          "input %b : [64][16]f32\n"
          "define %p : [1][16][12][12]f32 = Conv(%x, %k; group = 16, pads = [1, 1, 1, 1]) from \"first\"\n"
          "define %c : [1][16][12][12]f32 = Conv(%p, %k; group = 16, pads = [1, 1, 1, 1]) from \"depthwise\"\n"
          "define %t : [1][12][12][16]f32 = Transpose(%c; perm = [0, 2, 3, 1]) from \"back\"\n"
          "define %h : [1][12][12][64]f32 = MatMul(%t, %a) from \"up\"\n"
          "define %d : [1][12][12][16]f32 = MatMul(%h, %b) from \"down\"\n"
          "define %u : [1][16][12][12]f32 = Transpose(%d; perm = [0, 3, 1, 2]) from \"forth\"\n"
          "define %s : [1][16][12][12]f32 = Add(%u, %p) from \"add\"\n"
          "define %y : [1][16][12][12]f32 = Conv(%s, %k; group = 16, pads = [1, 1, 1, 1]) from \"second\"\noutput %y\n",
          {"k", "a", "b"}),
      LowerOptions());
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  EXPECT_THAT(stored(*model, "c"), ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(stored(*model, "h"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(stored(*model, "s"), ElementsAre(0, 2, 3, 1));
}

// Two parts, and a product of their concatenation that reads it transposed.
TEST(Orders, PartsHaveTheOrderOfTheirConcatenation) {
  Program program = program_of(
      "program version 21\ninput %x : [32][48]f32\ninput %a : [48][48]f32\ninput %b : [64][16]f32\n"
      "define %p : [32][48]f32 = MatMul(%x, %a) from \"first\"\n"
      "define %q : [32][48]f32 = MatMul(%p, %a) from \"second\"\n"
      "define %all : [64][48]f32 = Concat(%p, %q; axis = 0) from \"all\"\n"
      "define %t : [48][64]f32 = Transpose(%all; perm = [1, 0]) from \"turned\"\n"
      "define %y : [48][16]f32 = MatMul(%t, %b) from \"last\"\noutput %y\n",
      {"a", "b"});
  ASSERT_TRUE(find_pass("inline-definitions")->run(program, {}).ok());
  const Orders orders = choose_orders(program, avx2());
  EXPECT_EQ(orders.values.at("p").order, orders.values.at("all").order);
  EXPECT_EQ(orders.values.at("q").order, orders.values.at("all").order);
}

// A product that two definitions read.
constexpr char products[] =
    "program version 21\ninput %x : [1][32][48]f32\ninput %a : [48][48]f32\n"
    "define %p : [1][32][48]f32 = MatMul(%x, %a) from \"first\"\n"
    "define %q : [1][32][48]f32 = MatMul(%p, %a) from \"second\"\n"
    "define %y : [1][32][48]f32 = Add(%q, %p) from \"add\"\noutput %y\n";

TEST(Orders, HaveAnAlternativeThatCostsMore) {
  const Orders orders = choose_orders(before_choice(program_of(products, {"a"})), avx2());
  const ChosenOrder& choice = orders.values.at("p");
  ASSERT_TRUE(choice.second);
  EXPECT_THAT(choice.order, ElementsAre(0, 1, 2));
  EXPECT_THAT(choice.second->order, ElementsAre(0, 2, 1));
  EXPECT_GT(choice.second->cost, 2 * choice.cost);
}

TEST(Orders, KeepEveryBitUnderStrict) {
  for (const char* text : {encoder, products}) {
    const Program program = text == encoder ? program_of(encoder, {"a", "b"}) : program_of(products, {"a"});
    LowerOptions options;
    options.strict = true;
    const auto cost = lowered(program, options);
    options.layouts = LayoutChoice::rule;
    const auto rule = lowered(program, options);
    ASSERT_TRUE(cost.ok() && rule.ok());
    const Bindings inputs = {{"x", seeded_tensor(Scalar::f32, {1, 32, 48}, 2, 0, -1, 1)}};
    EXPECT_TRUE(same_bits(outputs_of(*cost, inputs).at("y"), outputs_of(*rule, inputs).at("y")));
  }
}

Result<LoweredModel> pinned(const std::string& layer, const std::string& line) {
  LowerOptions options;
  auto script = parse_schedule_script(line, layer, "my.steps");
  HOIST_CHECK(script.ok(), script.errors()[0].text());
  options.steps = {*script};
  return lowered(program_of(products, {"a"}), options);
}

TEST(Orders, OfTheUserAreTakenAndReplayed) {
  const auto model = pinned("first", "stored 0 2 1\n");
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  EXPECT_THAT(stored(*model, "p"), ElementsAre(0, 2, 1));
  const Bindings inputs = {{"x", seeded_tensor(Scalar::f32, {1, 32, 48}, 2, 0, -1, 1)}};
  const auto plain = lowered(program_of(products, {"a"}), {});
  ASSERT_TRUE(plain.ok()) << plain.errors()[0].text();
  EXPECT_TRUE(close(outputs_of(*model, inputs).at("y"), outputs_of(*plain, inputs).at("y"), 1e-4));
  ReplayOptions options;
  options.profile = avx2();
  const auto text = parse_derivation(print_derivation(model->derivation));
  ASSERT_TRUE(text.ok()) << text.errors()[0].text();
  const auto replayed = replay(*text, options);
  ASSERT_TRUE(replayed.ok()) << replayed.errors()[0].text();
  EXPECT_THAT(replayed->program.storage.at("p").permutation, ElementsAre(0, 2, 1));
  ASSERT_EQ(replayed->program.definitions.size(), model->groups.size());
  for (size_t i = 0; i < model->groups.size(); ++i)
    EXPECT_EQ(replayed->program.definitions[i].expression, model->groups[i].low);
}

TEST(Orders, OfTheUserThatCannotBeAreRefused) {
  const auto fault = [](const std::string& layer, const std::string& line) {
    const auto model = pinned(layer, line);
    return model.ok() ? "no fault" : model.errors()[0].text();
  };
  EXPECT_THAT(fault("first", "stored 1 0\n"), HasSubstr("my.steps:1: the value has 3 dimensions, the order 2"));
  EXPECT_THAT(fault("add", "stored 0 2 1\n"), HasSubstr("my.steps:1: outputs of the model are stored as in ONNX"));
  EXPECT_THAT(fault("frist", "stored 0 2 1\n"), HasSubstr("no kernel computes this layer"));
  const auto refused = [](const std::string& line) {
    const auto script = parse_schedule_script(line, "first", "my.steps");
    return script.ok() ? "no fault" : script.errors()[0].text();
  };
  EXPECT_THAT(refused("stored 0 2\n"), HasSubstr("my.steps:1: \"0 2\" is not an order of dimensions"));
  EXPECT_THAT(refused("stored 0 1 x\n"), HasSubstr("is not an order of dimensions"));
  EXPECT_THAT(refused("stored\n"), HasSubstr("is not an order of dimensions"));
  EXPECT_THAT(refused("stored 0 1\nstored 1 0\n"), HasSubstr("my.steps:2: line 1 has an order already"));
}

// Rows of a normalisation are columns of its operand, which a convolution stores in NWC: the rows are read three
// times, so a transposed copy costs less.
TEST(Orders, RowsAcrossAnArrayAreReadFromACopy) {
  const Program program = program_of(
      "program version 21\ninput %x : [1][1][1289]f32\ninput %w : [512][1][10]f32\ninput %s : [512]f32\n"
      "define %c : [1][512][1280]f32 = Conv(%x, %w) from \"conv\"\n"
      "define %n : [1][512][1280]f32 = InstanceNormalization(%c, %s, %s) from \"norm\"\n"
      "define %y : [1][512][1280]f32 = Relu(%n) from \"relu\"\noutput %y\n",
      {"w", "s"});
  const Orders orders = choose_orders(before_choice(program), Profile());
  size_t copies = 0;
  for (const auto& [value, order] : orders.values) {
    for (const ChosenOrder::Copy& copy : order.copies) {
      EXPECT_EQ(copy.operand, "c");
      EXPECT_THAT(copy.order, ElementsAre(0, 1, 2));
      EXPECT_LT(copy.cost, copy.direct);
      ++copies;
    }
  }
  EXPECT_EQ(copies, 1u);
  const auto model = lower_model(program, LowerOptions(), Profile());
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  EXPECT_THAT(stored(*model, "c"), ElementsAre(0, 2, 1));
  EXPECT_THAT(stored(*model, "c.copy"), ElementsAre(0, 1, 2));
  ReplayOptions options;
  const auto text = parse_derivation(print_derivation(model->derivation));
  ASSERT_TRUE(text.ok()) << text.errors()[0].text();
  const auto replayed = replay(*text, options);
  ASSERT_TRUE(replayed.ok()) << replayed.errors()[0].text();
  EXPECT_THAT(replayed->program.storage.at("c.copy").permutation, ElementsAre(0, 1, 2));
}

// The windows of Winograd's form run over an image that a view rearranges from rows of tokens, so the channels of the
// image are not dimension 1 of the rows.
TEST(Orders, RowsThatBecomeAnImageStayRows) {
  const Program program = program_of(
      "program version 21\ninput %x : [1][4][196][64]f32\ninput %a : [64][64]f32\ninput %w : [64][64][3][3]f32\n"
      "define %t : [1][4][196][64]f32 = MatMul(%x, %a) from \"tokens\"\n"
      "define %s : [1][2][2][14][14][64]f32 = Reshape(%t; shape = [1, 2, 2, 14, 14, 64]) from \"split\"\n"
      "define %p : [1][64][2][14][2][14]f32 = Transpose(%s; perm = [0, 5, 1, 3, 2, 4]) from \"turn\"\n"
      "define %i : [1][64][28][28]f32 = Reshape(%p; shape = [1, 64, 28, 28]) from \"image\"\n"
      "define %c : [1][64][28][28]f32 = Conv(%i, %w; pads = [1, 1, 1, 1]) from \"conv\"\n"
      "define %y : [1][64][28][28]f32 = Relu(%c) from \"relu\"\noutput %y\n",
      {"a", "w"});
  const Program before = before_choice(program);
  ASSERT_TRUE(std::any_of(before.definitions.begin(), before.definitions.end(), transforms_windows));
  EXPECT_THAT(choose_orders(before, avx2()).values.at("t").order, ElementsAre(0, 1, 2, 3));
}

}  // namespace hoist::orders_test
