// Tests that layers which run for a few samples at a time give the values of the whole batch, bit for bit, and which
// layers do.
#include "lowering/loops/micro_batches.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>

#include "ir/program/program_values.h"
#include "ir/text/program_text.h"
#include "tests/lowering/stored_run.h"

namespace hoist::micro_batches_test {

using testing::Not;
using testing::SizeIs;

Program program_of(const std::string& text) {
  auto parsed = parse_program(text);
  HOIST_CHECK(parsed.ok(), parsed.errors()[0].text());
  return *parsed;
}

// A device whose caches hold one sample of these programs.
Profile small_caches() {
  Profile out;
  out.second_caches = 16384;
  return out;
}

Program divided(Program program) {
  auto done = micro_batches(program, small_caches());
  HOIST_CHECK(done.ok(), "the pass fails");
  return program;
}

Tensor drawn(Type type) {
  Tensor out(leaf_of(type)->scalar, shape_of(type));
  for (int64_t i = 0; i < out.size(); ++i) out.set_float(i, static_cast<double>(i * 37 % 101) / 16 - 3);
  return out;
}

// Executes the loops as the runtime does: every iteration writes its row.
Bindings values_with_loops(const Program& program, Bindings inputs) {
  for (const auto& [name, type] : program.inputs) inputs.emplace(name, Tensor(leaf_of(type)->scalar, shape_of(type)));
  for (size_t round = 0; round < program.controls.size(); ++round) {
    for (const Control& loop : program.controls) {
      for (int64_t i = 0; i < loop.most; ++i) {
        inputs[loop.number] = Tensor::of(Scalar::i64, {}, std::vector<int64_t>{i});
        const auto values = program_values(program, inputs);
        HOIST_CHECK(values.ok(), values.errors()[0].text());
        for (const Control::Rows& rows : loop.rows) {
          const Tensor& row = values->at(rows.row);
          std::memcpy(inputs[rows.result].data() + static_cast<size_t>(i) * row.bytes().size(), row.data(),
                      row.bytes().size());
        }
      }
    }
  }
  auto values = program_values(program, inputs);
  HOIST_CHECK(values.ok(), values.errors()[0].text());
  return *values;
}

// The program after the pass, once its outputs are compared with the outputs of the whole batch.
Program compared(const std::string& text) {
  const Program whole = program_of(text);
  Bindings inputs;
  for (const auto& [name, type] : whole.inputs) inputs[name] = drawn(type);
  const auto expected = program_values(whole, inputs);
  HOIST_CHECK(expected.ok(), expected.errors()[0].text());
  Program parts = divided(whole);
  const Bindings values = values_with_loops(parts, inputs);
  for (const std::string& output : whole.outputs)
    EXPECT_TRUE(same_bits(values.at(output), expected->at(output))) << output;
  return parts;
}

// Four layers of windows in a sample.
std::string pools() {
  std::string out, before = "x";
  for (const char* name : {"a1", "a2", "a3", "b"}) {
    out += fmt::format(
        "define %{} : [6][4][16][16]f32 = AveragePool(%{}; kernel_shape = [5, 5], pads = [2, 2, 2, 2]) from \"{}\"\n",
        name, before, name);
    before = name;
  }
  return out;
}

TEST(MicroBatches, LayersOfOneSampleRunInALoop) {
  const Program parts = compared("program %p version 21\ninput %x : [6][4][16][16]f32\n" + pools() + "output %b\n");
  ASSERT_THAT(parts.controls, SizeIs(1));
  EXPECT_EQ(text(find_type(parts, "a1")), "[2][4][16][16]f32");
}

TEST(MicroBatches, WhatMixesSamplesStaysOutside) {
  const Program parts =
      compared("program %p version 21\ninput %x : [6][4][16][16]f32\n" + pools() +
               "define %m : [1][4][16][16]f32 = ReduceMean(%b; axes = [0]) from \"m\"\n"
               "define %c : [6][4][16][16]f32 = Sub(%b, %m) from \"c\"\n"
               "define %d : [6][4][16][16]f32 = MaxPool(%c; kernel_shape = [3, 3], pads = [1, 1, 1, 1]) from \"d\"\n"
               "output %d\noutput %b\n");
  EXPECT_THAT(parts.controls, Not(SizeIs(0)));
  EXPECT_EQ(text(find_type(parts, "m")), "[1][4][16][16]f32");
}

TEST(MicroBatches, ABatchMayBeAnyDimensionOfValuesInside) {
  const Program parts = compared(
      "program %p version 21\ninput %x : [6][4][16][16]f32\n" + pools() +
      "define %r : [6][4][256]f32 = Reshape(%b; shape = [6, 4, 256]) from \"r\"\n"
      "define %t : [256][6][4]f32 = Transpose(%r; perm = [2, 0, 1]) from \"t\"\n"
      "define %\"s.results\" : ([128][6][4]f32, [128][6][4]f32) = Split(%t; axis = 0, split = [128, 128], results "
      "= 2) from \"s\"\n"
      "define %s : [128][6][4]f32 = %\"s.results\".0 from \"s\"\n"
      "define %u : [128][6][4]f32 = %\"s.results\".1 from \"s\"\n"
      "define %v : [128][6][4]f32 = Mul(%s, %u) from \"v\"\n"
      "define %w : [6][4][128]f32 = Transpose(%v; perm = [1, 2, 0]) from \"w\"\n"
      "define %y : [6][4]f32 = ReduceMax(%w; axes = [2], keepdims = 0) from \"y\"\noutput %y\n");
  ASSERT_THAT(parts.controls, SizeIs(1));
  EXPECT_EQ(text(find_type(parts, "v")), "[128][2][4]f32");
}

TEST(MicroBatches, ConstantsThatRepeatAValueAreDivided) {
  std::string token = "{1, 2, 3, 4";
  for (int i = 1; i < 6; ++i) token += ", 1, 2, 3, 4";
  const std::string before = "program %p version 21\ninput %x : [6][4][16][16]f32\nconstant %k : [6][4][1]f32 = ",
                    after = "\n" + pools() +
                            "define %r : [6][4][256]f32 = Reshape(%b; shape = [6, -1, 256]) from \"r\"\n"
                            "define %e : [6][4][257]f32 = Concat(%k, %r; axis = 2) from \"e\"\n"
                            "define %y : [6][4]f32 = ReduceMax(%e; axes = [2], keepdims = 0) from \"y\"\noutput %y\n";
  EXPECT_EQ(text(find_type(compared(before + token + "}" + after), "e")), "[2][4][257]f32");
  const std::string other = "{9, 2, 3, 4" + token.substr(11) + "}";
  EXPECT_EQ(text(find_type(compared(before + other + after), "e")), "[6][4][257]f32");
}

TEST(MicroBatches, SmallBatchesAndSingleSamplesStayWhole) {
  EXPECT_THAT(compared("program %p version 21\ninput %x : [6][2][4][4]f32\n"
                       "define %a : [6][2][4][4]f32 = MaxPool(%x; kernel_shape = [3, 3], pads = [1, 1, 1, 1]) from "
                       "\"a\"\noutput %a\n")
                  .controls,
              SizeIs(0));
  EXPECT_THAT(compared("program %p version 21\ninput %x : [1][4][64][64]f32\n"
                       "define %a : [1][4][64][64]f32 = MaxPool(%x; kernel_shape = [3, 3], pads = [1, 1, 1, 1]) from "
                       "\"a\"\noutput %a\n")
                  .controls,
              SizeIs(0));
}

}  // namespace hoist::micro_batches_test
