// Tests that passes keep states: a program with states is lowered through its text, and runs as a sequence.
#include "ir/program/states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/base/seeded.h"
#include "ir/program/program_derivation.h"
#include "ir/text/program_text.h"
#include "lowering/pipeline/passes.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"

namespace hoist::lowered_states_test {

// A layer with memory: h' = tanh(x w + h u), y = relu(h'). The second state is the last input, and its next value a
// copy that passes drop elsewhere; the third is a constant after the first run.
constexpr char text[] =
    "program %memory version 21\n"
    "input %x : [1][8]f32\n"
    "state %h : [1][16]f32 = %start\n"
    "state %last : [1][8]f32 = zeros\n"
    "state %known : [2]f32 = zeros\n"
    "constant %w : [8][16]f32 = #w\n"
    "constant %u : [16][16]f32 = #u\n"
    "constant %start : [1][16]f32 = #start\n"
    "constant %two : [2]f32 = {2, 2}\n"
    "define %a : [1][16]f32 = MatMul(%x, %w) from \"a\"\n"
    "define %b : [1][16]f32 = MatMul(%h, %u) from \"b\"\n"
    "define %s : [1][16]f32 = Add(%a, %b) from \"s\"\n"
    "define %hn : [1][16]f32 = Tanh(%s) from \"tanh\"\n"
    "define %y : [1][16]f32 = Relu(%hn) from \"relu\"\n"
    "define %z : [1][8]f32 = Add(%x, %last) from \"z\"\n"
    "define %copy : [1][8]f32 = Identity(%x) from \"copy\"\n"
    "define %four : [2]f32 = Add(%two, %two) from \"four\"\n"
    "output %y\n"
    "output %z\n"
    "next %h is %hn\n"
    "next %last is %copy\n"
    "next %known is %four\n";

Tensor seeded(const std::vector<int64_t>& shape, uint64_t seed) {
  return seeded_tensor(Scalar::f32, shape, seed, 0, -1, 1);
}

Program memory() {
  const std::map<std::string, Tensor> values = {
      {"w", seeded({8, 16}, 1)}, {"u", seeded({16, 16}, 2)}, {"start", seeded({1, 16}, 3)}};
  std::string with_hashes = text;
  for (const auto& [name, value] : values) {
    const std::string mark = "= #" + name + "\n";
    with_hashes.replace(with_hashes.find(mark), mark.size(), "= #" + constant_hash(value) + "\n");
  }
  auto program =
      parse_program(with_hashes, [&](const std::string& name, const std::string&) { return values.at(name); });
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

TEST(LoweredStates, PassesContinueFromText) {
  for (const bool strict : {false, true}) {
    PassOptions options;
    options.strict = strict;
    Program straight = memory();
    begin_derivation(straight);
    Program from_text = straight;
    for (const Pass& pass : passes()) {
      if (pass.part == Pass::plan || !pass.is_run(options)) continue;
      ASSERT_TRUE(pass.run(straight, options).ok()) << pass.name;
      ASSERT_TRUE(pass.run(from_text, options).ok()) << pass.name;
      EXPECT_EQ(straight.states, memory().states) << pass.name;
      auto read = through_text(from_text);
      ASSERT_TRUE(read.ok()) << pass.name << ": " << read.errors()[0].text();
      from_text = std::move(*read);
      ASSERT_TRUE(same_program(from_text, straight)) << pass.name << "\n" << print_program(straight);
    }
  }
}

TEST(LoweredStates, KernelsComputeTheSequence) {
  const Program program = memory();
  const auto model = lower_through_text(program, {}, {});
  ASSERT_TRUE(model.ok()) << model.errors()[0].text();
  ASSERT_EQ(model->states.size(), 3U);
  const auto name = [&](int array) { return model->arrays[static_cast<size_t>(array)].name; };
  EXPECT_EQ(name(model->states[0].read), "h");
  EXPECT_EQ(name(model->states[0].written), "hn");
  EXPECT_EQ(name(model->states[0].initial), "start");
  EXPECT_EQ(model->states[1].initial, -1);
  EXPECT_EQ(model->arrays[static_cast<size_t>(model->states[2].written)].place, Place::weights);
  RunSequence sequence(program);
  for (uint64_t run = 0; run < 3; ++run) {
    Bindings inputs = {{"x", seeded({1, 8}, 10 + run)}};
    for (size_t i = 0; i < program.states.size(); ++i) inputs[program.states[i].name] = sequence.states()[i];
    const Bindings found = outputs_of(*model, inputs);
    const auto wanted = sequence.run({inputs.at("x")});
    ASSERT_TRUE(wanted.ok());
    EXPECT_TRUE(close(found.at("y"), (*wanted)[0], 1e-5));
    EXPECT_TRUE(close(found.at("z"), (*wanted)[1], 0));
    EXPECT_TRUE(close(found.at("hn"), sequence.states()[0], 1e-5));
    EXPECT_TRUE(close(found.at("copy"), sequence.states()[1], 0));
  }
}

}  // namespace hoist::lowered_states_test
