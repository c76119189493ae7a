// Compares loops over arrays with dynamic shapes with the same loops over arrays of that length; loops with a known
// number of iterations are unrolled.
#include <gmock/gmock.h>

#include "tests/lowering/operators/dynamic_calls.h"

namespace hoist::dynamic_loops_test {

using testing::HasSubstr;

NamedBody body_of(std::vector<std::string> inputs, std::vector<NamedCall> calls, std::vector<std::string> outputs) {
  NamedBody body;
  body.attribute = "body";
  body.inputs = {"i", "go"};
  body.inputs.insert(body.inputs.end(), inputs.begin(), inputs.end());
  body.calls = std::move(calls);
  body.outputs = std::move(outputs);
  return body;
}

// As many iterations as y has elements along its first dimension.
std::vector<NamedCall> loop_over_y(std::vector<std::string> states, NamedBody body,
                                   std::vector<std::string> outputs = {"z"}) {
  std::vector<std::string> inputs = {"n", ""};
  inputs.insert(inputs.end(), states.begin(), states.end());
  NamedCall loop = call_named("Loop", inputs, outputs);
  loop.bodies = {std::move(body)};
  return {call_named("Shape", {"y"}, {"shape"}), call_named("Gather", {"shape", "nought"}, {"n"}), loop};
}

const std::map<std::string, Tensor>& numbers() {
  static const std::map<std::string, Tensor> all = {{"nought", integers({}, {0})},
                                                    {"first", integers({1}, {0})},
                                                    {"second", integers({1}, {1})},
                                                    {"no rows", Tensor(Scalar::f32, {0, 3})},
                                                    {"no columns", Tensor(Scalar::f32, {3, 0})},
                                                    {"nothing", Tensor(Scalar::f32, {0})},
                                                    {"row", floats({1, 3}, {7, 8, 9})},
                                                    {"five", floats({1}, {5})},
                                                    {"most", floats({}, {60})},
                                                    {"ten", integers({}, {10})}};
  return all;
}

void compare_loops(const Tensor& x, std::vector<NamedCall> calls, int64_t least = 0, std::vector<Tensor> more = {},
                   std::vector<std::string> outputs = {"z"}) {
  compare({x, 0, std::move(calls), std::move(outputs), std::move(more), numbers(), least, false});
}

const NamedCall element = call_named("Gather", {"y", "i"}, {"e"});

TEST(DynamicLoops, WhatEachIterationAddsIsARow) {
  const NamedCall row = call_named("Unsqueeze", {"e", "first"}, {"r"});
  const auto joined = [](std::vector<std::string> parts, int64_t axis) {
    return call_named("Concat", std::move(parts), {"t"}, {{"axis", axis}});
  };
  const Tensor x = mixed_numbers({4, 3});
  compare_loops(x, loop_over_y({"no rows"}, body_of({"s"}, {element, row, joined({"s", "r"}, 0)}, {"go", "t"})));
  compare_loops(x, loop_over_y({"row"}, body_of({"s"}, {element, row, joined({"s", "r", "r"}, 0)}, {"go", "t"})));
  compare_loops(x, loop_over_y({"no columns"}, body_of({"s"},
                                                       {element, call_named("Unsqueeze", {"e", "second"}, {"r"}),
                                                        joined({"s", "r", "r"}, -1)},
                                                       {"go", "t"})));
  // An empty accumulator may have another rank.
  compare_loops(x,
                loop_over_y({"nothing"}, body_of({"s"},
                                                 {element, row, call_named("Cast", {"s"}, {"c"}, {{"to", int64_t{1}}}),
                                                  joined({"c", "r"}, 0), call_named("Identity", {"t"}, {"u"})},
                                                 {"go", "u"})),
                1);  // the case without iterations is left out: its result has another dimension
}

TEST(DynamicLoops, RowsAreAsManyAsIterations) {
  compare_loops(mixed_numbers({4, 3}), loop_over_y({}, body_of({}, {element}, {"go", "e"})), 1);
}

// Sums over bags as exporters write them: the iteration number determines the slice, so everything is known.
TEST(DynamicLoops, KnownIterationsCutOutByTheirNumber) {
  const Tensor x = mixed_numbers({15, 2});
  NamedCall loop = call_named("Loop", {"n", "on"}, {"z"});
  loop.bodies = {body_of(
      {},
      {call_named("Gather", {"bounds", "i"}, {"from"}), call_named("Gather", {"ends", "i"}, {"to"}),
       call_named("Unsqueeze", {"from", "first"}, {"starts"}), call_named("Unsqueeze", {"to", "first"}, {"stops"}),
       call_named("Slice", {"x0", "starts", "stops", "first"}, {"bag"}),
       call_named("ReduceSum", {"bag"}, {"sum"}, {{"axes", List{0}}, {"keepdims", int64_t{0}}})},
      {"go", "sum"})};
  const Program program = program_of_calls(
      {x},
      {call_named("Shape", {"x0"}, {"shape"}), call_named("Gather", {"shape", "nought"}, {"rows"}),
       call_named("Unsqueeze", {"rows", "first"}, {"last"}),
       call_named("Concat", {"begins", "last"}, {"bounds"}, {{"axis", int64_t{0}}}),
       call_named("Slice", {"bounds", "second", "last", "first"}, {"ends"}), call_named("Shape", {"ends"}, {"count"}),
       call_named("Gather", {"count", "nought"}, {"n"}), loop},
      {"z"},
      {{"nought", integers({}, {0})},
       {"first", integers({1}, {0})},
       {"second", integers({1}, {1})},
       {"begins", integers({3}, {0, 5, 10})},
       {"on", Tensor::of(Scalar::boolean, {}, std::vector<int>{1})}});
  EXPECT_TRUE(program.extents.empty());
  const auto found = interpreted_outputs(program, {x});
  const Program direct =
      program_of_calls({x},
                       {call_named("Reshape", {"x0"}, {"bags"}, {{"shape", List{3, 5, 2}}}),
                        call_named("ReduceSum", {"bags"}, {"z"}, {{"axes", List{1}}, {"keepdims", int64_t{0}}})},
                       {"z"}, {});
  EXPECT_TRUE(same_bits(found[0], interpreted_outputs(direct, {x})[0])) << show(found[0]);
}

TEST(DynamicLoops, StatesGrowWhileTheyAreRead) {
  const std::vector<NamedCall> calls = {element, call_named("ReduceSum", {"s"}, {"sum"}, {{"keepdims", int64_t{1}}}),
                                        call_named("Add", {"sum", "e"}, {"a"}),
                                        call_named("Concat", {"s", "a"}, {"t"}, {{"axis", int64_t{0}}})};
  compare_loops(mixed_numbers({5, 1}), loop_over_y({"five"}, body_of({"s"}, calls, {"go", "t"})));
}

TEST(DynamicLoops, StatesShrink) {
  const std::vector<NamedCall> calls = {call_named("Cast", {"i"}, {"f"}, {{"to", int64_t{1}}}),
                                        call_named("Greater", {"s", "f"}, {"c"}),
                                        call_named("Compress", {"s", "c"}, {"t"})};
  compare_loops(mixed_numbers({6}), loop_over_y({"y"}, body_of({"s"}, calls, {"go", "t"}), {"w"}), 0, {}, {"w"});
}

// The number of iterations is dynamic, for operands and results.
TEST(DynamicLoops, BodiesReadWhatCountsAndGiveIt) {
  NamedCall loop = call_named("Loop", {"x2", "", "y"}, {"z", "rows"});
  loop.bodies = {body_of(
      {"s"},
      {call_named("Cast", {"i"}, {"f"}, {{"to", int64_t{1}}}), call_named("Mul", {"y", "f"}, {"r"}),
       call_named("ReduceSum", {"y"}, {"sum"}, {{"keepdims", int64_t{0}}}), call_named("Add", {"s", "sum"}, {"t"})},
      {"go", "t", "r"})};
  for (const int64_t trips : {1, 3})
    compare_loops(mixed_numbers({5}), {loop}, 0, {integers({}, {trips})}, {"z", "rows"});
}

TEST(DynamicLoops, ConditionsEndThem) {
  NamedCall loop = call_named("Loop", {"ten", "", "y"}, {"z"});
  loop.bodies = {body_of({"s"},
                         {call_named("Add", {"s", "s"}, {"t"}), call_named("Abs", {"t"}, {"size"}),
                          call_named("ReduceMax", {"size"}, {"largest"}, {{"keepdims", int64_t{0}}}),
                          call_named("Less", {"largest", "most"}, {"on"})},
                         {"on", "t"})};
  compare_loops(floats({3}, {3, -1, 2}), {loop}, 1);
}

// The carried value that ends the loop and all values that the loop reads are known, so every result becomes a
// constant.
TEST(DynamicLoops, KnownStatesEndThem) {
  const Tensor x = floats({1}, {100});
  NamedCall loop = call_named("Loop", {"ten", "", "five"}, {"z", "rows"});
  loop.bodies = {body_of({"s"},
                         {call_named("Cast", {"s"}, {"b"}, {{"to", int64_t{9}}}),
                          call_named("Reshape", {"b"}, {"on"}, {{"shape", List{}}}),
                          call_named("Add", {"s", "less"}, {"t"}), call_named("Identity", {"s"}, {"row"})},
                         {"on", "t", "row"})};
  const auto found =
      outputs_of_calls({x}, {loop, call_named("Add", {"z", "x0"}, {"w"})}, {"w", "rows"},
                       {{"ten", integers({}, {10})}, {"five", floats({1}, {5})}, {"less", floats({1}, {-1})}});
  EXPECT_EQ(show(found[0]), "[1] 99");
  EXPECT_EQ(show(found[1]), "[6][1] 5 4 3 2 1 0");
}

TEST(DynamicLoops, HaveRoomForWhatTheyMayAdd) {
  NamedCall loop = call_named("Loop", {"x0", "", "start"}, {"z"});
  loop.bodies = {body_of({"s"},
                         {call_named("ReduceSum", {"s"}, {"sum"}, {{"keepdims", int64_t{1}}}),
                          call_named("Concat", {"s", "s"}, {"t"}, {{"axis", int64_t{0}}})},
                         {"go", "t"})};
  ProgramBuilder builder = builder_of({integers({}, {3})}, {}, {{"start", floats({1}, {1})}});
  builder.add_call(loop);
  builder.add_output("z");
  const auto program = builder.finish();
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.errors()[0].text(), HasSubstr("dimension 0 of carried value 0 grows faster with each iteration"));
}

}  // namespace hoist::dynamic_loops_test
