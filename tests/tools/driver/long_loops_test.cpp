// Tests loops with so many iterations that they are not unrolled: loops, recurrent layers, scans and suppressions.
#include <gtest/gtest.h>

#include "tests/tools/driver/control_fixture.h"

namespace hoist::long_loops_test {

// 2,000 iterations exceed the limit of unrolling.
TEST_P(ControlTest, LongLoopsAreNotUnrolled) {
  const Program program = parsed(
      "program version 28\ninput %x : [4]f32\n"
      "define %l : ([4]f32, [2000][4]f32) = Loop(_, _, %x; M = 2000, results = 2,\n"
      "  body = { program input %i : i64 input %go : bool input %s : [4]f32 constant %f : f32 = {0.99}\n"
      "    define %k : f32 = Cast(%i; to = 1) from \"number\"\n"
      "    define %m : [4]f32 = Mul(%s, %f) from \"scale\"\n    define %c : [4]f32 = Sin(%m) from \"sine\"\n"
      "    define %a : [4]f32 = Add(%c, %k) from \"add\"\n    define %next : [4]f32 = Cos(%a) from \"cosine\"\n"
      "    output %go output %next output %s }) from \"loop\"\n"
      "define %y : [4]f32 = %l.0\ndefine %rows : [2000][4]f32 = %l.1\noutput %y\noutput %rows\n");
  compile(program);
  ASSERT_EQ(plan_.controls.size(), 1u);
  EXPECT_LT(plan_.steps.size(), 8u);
  const std::vector<Tensor> inputs = {drawn({4}, 5)};
  const std::vector<Tensor> found = run(inputs), expected = interpreted(program, inputs);
  for (int64_t i = 0; i < 40; ++i) EXPECT_NEAR(found[1].float_at(i), expected[1].float_at(i), 1e-3);
  EXPECT_EQ(found[1].shape(), expected[1].shape());
}

std::string numbers(int64_t count) {
  std::string values;
  for (int64_t i = 0; i < count; ++i)
    values += std::string(i > 0 ? ", " : "") + std::to_string(static_cast<double>(i * 7 % 11 - 5) * 0.1);
  return values;
}

// The same for recurrent layers, in both directions.
TEST_P(ControlTest, LongSequencesAreNotUnrolled) {
  const Program program =
      parsed("program version 22\ninput %x : [1100][2][3]f32\nconstant %w : [2][8][3]f32 = {" + numbers(48) +
             "}\nconstant %r : [2][8][2]f32 = {" + numbers(32) +
             "}\ndefine %l : ([1100][2][2][2]f32, [2][2][2]f32, [2][2][2]f32) = LSTM(%x, %w, %r; hidden_size = 2,\n"
             "  direction = \"bidirectional\", results = 3) from \"cell\"\n"
             "define %y : [1100][2][2][2]f32 = %l.0\ndefine %c : [2][2][2]f32 = %l.2\noutput %y\noutput %c\n");
  compile(program);
  EXPECT_EQ(plan_.controls.size(), 2u);
  EXPECT_LT(plan_.steps.size(), 40u);
  const std::vector<Tensor> inputs = {drawn({1100, 2, 3}, 6)};
  expect_close(run(inputs), interpreted(program, inputs));
  check_kernels();
}

TEST_P(ControlTest, LongScansAreNotUnrolled) {
  const Program program = parsed(
      "program version 22\ninput %s : [4]f32\ninput %x : [1100][4]f32\ninput %w : [4][4]f32\n"
      "define %l : ([4]f32, [4][1100]f32) = Scan(%s, %x, %w; num_scan_inputs = 1, captured = 1, results = 2,\n"
      "  scan_input_directions = [1], scan_output_axes = [1],\n"
      "  body = { program input %s : [4]f32 input %e : [4]f32 input %w : [4][4]f32\n"
      "    define %p : [4]f32 = MatMul(%s, %w) from \"product\"\n"
      "    define %a : [4]f32 = Add(%p, %e) from \"add\"\n    define %n : [4]f32 = Tanh(%a) from \"tanh\"\n"
      "    output %n output %a }) from \"scan\"\n"
      "define %y : [4]f32 = %l.0\ndefine %rows : [4][1100]f32 = %l.1\noutput %y\noutput %rows\n");
  compile(program);
  ASSERT_EQ(plan_.controls.size(), 1u);
  EXPECT_LT(plan_.steps.size(), 8u);
  const std::vector<Tensor> inputs = {drawn({4}, 9), drawn({1100, 4}, 10), drawn({4, 4}, 11, -0.4, 0.4)};
  expect_close(run(inputs), interpreted(program, inputs));
  check_kernels();
}

// A Scan along the second dimension, whose sequences run in one loop in parallel.
TEST_P(ControlTest, LongScansOfABatchAreNotUnrolled) {
  const auto scan = [](int64_t steps) {
    std::string text =
        "program version 22\ninput %s : [2][4]f32\ninput %x : [2][N][4]f32\n"
        "define %l : ([2][4]f32, [2][N][4]f32) = Scan(%s, %x; num_scan_inputs = 1, results = 2,\n"
        "  scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [1],\n"
        "  body = { program version 22 input %s : [2][4]f32 input %e : [2][4]f32\n"
        "    define %a : [2][4]f32 = Add(%s, %e) from \"add\"\n    define %n : [2][4]f32 = Tanh(%a) from \"tanh\"\n"
        "    output %n output %a }) from \"scan\"\n"
        "define %y : [2][4]f32 = %l.0\ndefine %rows : [2][N][4]f32 = %l.1\noutput %y\noutput %rows\n";
    for (size_t at; (at = text.find("[N]")) != std::string::npos;)
      text.replace(at, 3, "[" + std::to_string(steps) + "]");
    return parsed(text);
  };
  const Program program = scan(1100);
  compile(program);
  ASSERT_EQ(plan_.controls.size(), 1u);
  EXPECT_LT(plan_.steps.size(), 16u);
  const std::vector<Tensor> inputs = {drawn({2, 4}, 9), drawn({2, 1100, 4}, 10)};
  expect_close(run(inputs), interpreted(program, inputs));
  check_kernels();
}

// The user sets the limit of unrolling at compilation, and the derivation records it.
TEST_P(ControlTest, LoopsStayLoopsFromAsManyStepsOnAsIsSaid) {
  const Program program =
      parsed("program version 22\ninput %x : [6][2][3]f32\nconstant %w : [1][8][3]f32 = {" + numbers(24) +
             "}\nconstant %r : [1][8][2]f32 = {" + numbers(16) +
             "}\ndefine %l : ([6][1][2][2]f32, [1][2][2]f32) = LSTM(%x, %w, %r; hidden_size = 2, results = 2)"
             " from \"cell\"\n"
             "define %c : [1][2][2]f32 = %l.1\n"
             "define %z : [1][2][2]f32 = Loop(_, _, %c; M = 7, body = { program input %i : i64 input %go : bool\n"
             "  input %s : [1][2][2]f32 define %n : [1][2][2]f32 = Sin(%s) output %go output %n }) from \"again\"\n"
             "output %z\n");
  const std::vector<Tensor> inputs = {drawn({6, 2, 3}, 6)};
  for (const auto& [steps, loops] : {std::pair{5, 2u}, {6, 1u}, {7, 0u}}) {
    SCOPED_TRACE(steps);
    options_.lower.unrolled_steps = steps;
    compile(program);
    EXPECT_EQ(plan_.controls.size(), loops);
    expect_close(run(inputs), interpreted(program, inputs));
    check_kernels();
  }
}

// Both loops exceed the limit of unrolling.
TEST_P(ControlTest, LongLoopsStandInLongLoops) {
  options_.lower.unrolled_steps = 4;
  const Program program = parsed(
      "program version 22\ninput %x : [3]f32\ninput %seq : [9][3]f32\n"
      "define %l : ([3]f32, [7][3]f32) = Loop(_, _, %x, %seq; M = 7, captured = 1, results = 2,\n"
      "  body = { program input %i : i64 input %go : bool input %s : [3]f32 input %q : [9][3]f32\n"
      "    define %in : ([3]f32, [9][3]f32) = Scan(%s, %q; num_scan_inputs = 1, results = 2,\n"
      "      body = { program input %t : [3]f32 input %e : [3]f32\n"
      "        define %a : [3]f32 = Add(%t, %e) from \"add\"\n        define %n : [3]f32 = Tanh(%a) from \"tanh\"\n"
      "        output %n output %a }) from \"inner\"\n"
      "    define %last : [3]f32 = %in.0\n    define %rows : [9][3]f32 = %in.1\n"
      "    define %sum : [3]f32 = ReduceSum(%rows; axes = [0], keepdims = 0) from \"sum\"\n"
      "    output %go output %last output %sum }) from \"outer\"\n"
      "define %y : [3]f32 = %l.0\ndefine %sums : [7][3]f32 = %l.1\noutput %y\noutput %sums\n");
  compile(program);
  EXPECT_EQ(plan_.controls.size(), 2u);
  const std::vector<Tensor> inputs = {drawn({3}, 3), drawn({9, 3}, 4)};
  expect_close(run(inputs), interpreted(program, inputs));
  check_kernels();
}

// Boxes are selected one at a time: 1,100 of them.
TEST_P(ControlTest, ManyBoxesAreTaken) {
  const Program program = parsed(
      "program version 22\ninput %b : [1][1100][4]f32\ninput %s : [1][1][1100]f32\nconstant %o : f32 = {0.9}\n"
      "define %l : ([1100][3]i64, i64) = NonMaxSuppression(%b, %s, _, %o; max_output_boxes_per_class = [2000],\n"
      "  results = 2) from \"suppression\"\n"
      "define %y : [1100][3]i64 = %l.0\ndefine %n : i64 = %l.1\noutput %y\noutput %n\nextent 0 of %y is %n\n");
  compile(program);
  EXPECT_EQ(plan_.controls.size(), 0u);  // a step changes each box's state in place, so one kernel executes all steps
  std::vector<double> corners, scores;
  std::vector<int64_t> wanted(3300);
  for (int64_t i = 0; i < 1100; ++i) {  // no boxes overlap, and all scores differ
    const auto y = static_cast<double>(2 * i);
    corners.insert(corners.end(), {y, 0, y + 1, 1});
    const int64_t rank = i * 7 % 1100;
    scores.push_back(-static_cast<double>(rank));
    wanted[static_cast<size_t>(3 * rank + 2)] = i;
  }
  const std::vector<Tensor> found =
      run({Tensor::of(Scalar::f32, {1, 1100, 4}, corners), Tensor::of(Scalar::f32, {1, 1, 1100}, scores)});
  EXPECT_EQ(found[0], Tensor::of(Scalar::i64, {1100, 3}, wanted));
}

}  // namespace hoist::long_loops_test
