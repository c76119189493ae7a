// Tests dynamic control flow (If and Loop): compiled, run on a device and as native code, and compared with the
// interpreter on programs with statically known numbers.
#include <gmock/gmock.h>

#include "ir/program/program_builder.h"
#include "tests/tools/driver/control_fixture.h"

namespace hoist::control_test {

using testing::HasSubstr;

Tensor whole(int64_t value) { return Tensor::of(Scalar::i64, {}, std::vector<int64_t>{value}); }
Tensor truth(bool value) { return Tensor::of(Scalar::boolean, {}, std::vector<int>{value ? 1 : 0}); }

INSTANTIATE_TEST_SUITE_P(On, ControlTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Native" : "Device"; });

// A dynamic number of images with dynamic sizes: an iteration for each, whose result is appended to the previous
// results.
Program program_of_images() {
  const auto call = [](const std::string& operation, std::vector<std::string> inputs, const std::string& output,
                       Attributes attributes = {}) {
    return NamedCall{output, operation, "", std::move(attributes), std::move(inputs), {output}};
  };
  const auto numbers = [](std::vector<int64_t> all) {
    const auto n = static_cast<int64_t>(all.size());
    return Tensor::of(Scalar::i64, {n}, all);
  };
  ProgramBuilder builder("images", newest_version);
  builder.add_input({"x", Scalar::f32, {4, 3, 3}});
  builder.add_input({"keep", Scalar::boolean, {4}});
  builder.add_input({"sizes", Scalar::f32, {4}});
  builder.add_constant("nought", whole(0));
  builder.add_constant("first", numbers({0}));
  builder.add_constant("planes", numbers({1, 1}));
  builder.add_constant("low", Tensor::of(Scalar::f32, {}, std::vector<double>{1}));
  builder.add_constant("high", Tensor::of(Scalar::f32, {}, std::vector<double>{6}));
  builder.add_constant("none", Tensor(Scalar::f32, {0}));
  builder.add_call(call("Compress", {"x", "keep"}, "y", {{"axis", int64_t{0}}}));
  builder.add_call(call("Shape", {"y"}, "shape"));
  builder.add_call(call("Gather", {"shape", "nought"}, "n"));
  builder.add_call(call("Clip", {"sizes", "low", "high"}, "clipped"));
  NamedCall loop = call("Loop", {"n", "", "none"}, "z");
  NamedBody body;
  body.attribute = "body";
  body.inputs = {"i", "go", "s"};
  body.calls = {call("Gather", {"y", "i"}, "image"),
                call("Unsqueeze", {"image", "planes_of"}, "plane"),
                call("Gather", {"clipped", "i"}, "size"),
                call("Cast", {"size"}, "extent", {{"to", int64_t{7}}}),
                call("Unsqueeze", {"extent", "first"}, "list"),
                call("Concat", {"planes", "list", "list"}, "wanted", {{"axis", int64_t{0}}}),
                call("Resize", {"plane", "", "", "wanted"}, "resized", {{"mode", std::string("linear")}}),
                call("ReduceSum", {"resized"}, "sums", {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{0}}}),
                call("ReduceMax", {"sums"}, "largest", {{"keepdims", int64_t{0}}}),
                call("Unsqueeze", {"largest", "first"}, "row"),
                call("Concat", {"s", "row"}, "t", {{"axis", int64_t{0}}})};
  body.constants["planes_of"] = numbers({0, 1});
  body.outputs = {"go", "t"};
  loop.bodies = {body};
  builder.add_call(loop);
  builder.add_output("z");
  auto program = builder.finish();
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

TEST_P(ControlTest, ImagesThatDataCountAreResizedToWhatDataSay) {
  const Program program = program_of_images();
  compile(program);
  const Tensor x = drawn({4, 3, 3}, 1), sizes = Tensor::of(Scalar::f32, {4}, std::vector<double>{2.5, 6, 0, 99});
  for (const std::vector<int>& keep : {std::vector<int>{0, 0, 0, 0}, {1, 0, 1, 1}, {1, 1, 1, 1}}) {
    const std::vector<Tensor> inputs = {x, Tensor::of(Scalar::boolean, {4}, keep), sizes};
    expect_close(run(inputs), interpreted(program, inputs));
  }
  // Rows of ones sum to their length.
  const std::vector<Tensor> ones = {Tensor::of(Scalar::f32, {4, 3, 3}, std::vector<double>(36, 1)),
                                    Tensor::of(Scalar::boolean, {4}, std::vector<int>{0, 1, 1, 1}), sizes};
  expect_close(run(ones), {Tensor::of(Scalar::f32, {3}, std::vector<double>{2, 6, 1})});
  check_kernels();
}

// s = tanh(s w) + r, where r is computed from constant weights before the loop; the two states are swapped in each
// iteration.
std::string recurrence(const std::string& trips, const std::string& attributes) {
  return "program version 28\n"
         "input %x : [2][8]f32\ninput %n : i64\n"
         "constant %w : [8][8]f32 = {" +
         [] {
           std::string values;
           for (int i = 0; i < 64; ++i)
             values += std::string(i > 0 ? ", " : "") + std::to_string((i * 7 % 11 - 5) * 0.1);
           return values;
         }() +
         "}\n"
         "define %r : [2][8]f32 = Relu(%x) from \"relu\"\n"
         "define %l : ([2][8]f32, [2][8]f32) = Loop(" +
         trips + ", _, %x, %r, %w, %r; " + attributes +
         "captured = 2, results = 2,\n"
         "  body = { program input %i : i64 input %go : bool input %s : [2][8]f32 input %t : [2][8]f32\n"
         "    input %w : [8][8]f32 input %r : [2][8]f32\n"
         "    define %p : [2][8]f32 = MatMul(%s, %w) from \"product\"\n"
         "    define %h : [2][8]f32 = Tanh(%p) from \"tanh\"\n"
         "    define %next : [2][8]f32 = Add(%h, %r) from \"sum\"\n"
         "    output %go output %t output %next }) from \"loop\"\n"
         "define %u : [2][8]f32 = %l.0\ndefine %v : [2][8]f32 = %l.1\n"
         "define %y : [2][8]f32 = Neg(%v) from \"negate\"\n"
         "output %u\noutput %y\n";
}

TEST_P(ControlTest, LoopsRunAsOftenAsDataSay) {
  compile(parsed(recurrence("%n", "")));
  ASSERT_EQ(plan_.controls.size(), 1u);
  EXPECT_TRUE(plan_.controls[0].is_loop && plan_.controls[0].fails);
  const Tensor x = drawn({2, 8}, 1);
  for (const int64_t n : {0, 1, 2, 3, 7}) {
    SCOPED_TRACE(n);
    const auto expected = interpreted(parsed(recurrence("_", "M = " + std::to_string(n) + ", ")), {x, whole(n)});
    for (const bool separate : {false, true}) {
      separate_ = separate;
      expect_close(run({x, whole(n)}), expected);
    }
  }
  check_kernels();
}

// No iteration changes v, which only the first layer of an iteration reads, and nothing after the loop.
std::string with_unchanged_state(const std::string& trips, const std::string& attributes) {
  return "program version 28\n"
         "input %x : [8][8]f32\ninput %w : [256][8]f32\ninput %n : i64\n"
         "define %l : ([8][8]f32, [256][8]f32) = Loop(" +
         trips + ", _, %x, %w; " + attributes +
         "captured = 0, results = 2,\n"
         "  body = { program input %i : i64 input %go : bool input %s : [8][8]f32 input %v : [256][8]f32\n"
         "    define %p : [256][8]f32 = MatMul(%v, %s) from \"product\"\n"
         "    define %q : [256][8]f32 = Softmax(%p) from \"softmax\"\n"
         "    define %r : [1][8]f32 = ReduceMean(%q; axes = [0], keepdims = 1) from \"mean\"\n"
         "    define %next : [8][8]f32 = Sub(%s, %r) from \"difference\"\n"
         "    output %go output %next output %v }) from \"loop\"\n"
         "define %u : [8][8]f32 = %l.0\n"
         "define %y : [8][8]f32 = Neg(%u) from \"negate\"\n"
         "output %y\n";
}

TEST_P(ControlTest, StatesThatNoIterationChangesKeepTheirMemory) {
  compile(parsed(with_unchanged_state("%n", "")));
  const Tensor x = drawn({8, 8}, 1), w = drawn({256, 8}, 2);
  for (const int64_t n : {1, 3}) {
    SCOPED_TRACE(n);
    const auto expected =
        interpreted(parsed(with_unchanged_state("_", "M = " + std::to_string(n) + ", ")), {x, w, whole(n)});
    expect_close(run({x, w, whole(n)}), expected);
  }
}

TEST_P(ControlTest, WhatStaysTheSameIsComputedBeforeTheLoop) {
  compile(parsed(recurrence("%n", "")));
  // The layer before the loop runs once, the body's layers once per iteration.
  RunOptions how;
  auto runner = BundleRunner::open(bundle(), how);
  ASSERT_TRUE(runner.ok());
  ASSERT_TRUE(runner->run({drawn({2, 8}, 1), whole(5)}).ok());
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const std::vector<std::string>& layers = plan_.steps[i].layers;
    const bool inside =
        std::any_of(layers.begin(), layers.end(), [](const std::string& l) { return l == "loop/product"; });
    if (inside) {
      EXPECT_EQ(runner->step_runs(i), 5u);
    }
    if (layers.front() == "relu") {
      EXPECT_EQ(runner->step_runs(i), 1u);
    }
  }
}

// Doubles x until its sum is above the limit, at most 100 times, and returns every sum.
constexpr char until[] =
    "program version 28\ninput %x : [4]f32\ninput %limit : f32\ninput %go : bool\n"
    "define %l : ([4]f32, [100]f32, i64) = Loop(_, %go, %x, %limit; M = 100, captured = 1, results = 3,\n"
    "  body = { program input %i : i64 input %go : bool input %s : [4]f32 input %limit : f32\n"
    "    define %next : [4]f32 = Add(%s, %s) from \"double\"\n"
    "    define %sum : f32 = ReduceSum(%next; keepdims = 0) from \"sum\"\n"
    "    define %on : bool = Less(%sum, %limit) from \"compare\"\n"
    "    output %on output %next output %sum }) from \"loop\"\n"
    "define %last : [4]f32 = %l.0\ndefine %sums : [100]f32 = %l.1\ndefine %count : i64 = %l.2\n"
    "define %y : [100]f32 = Neg(%sums) from \"negate\"\n"
    "output %last\noutput %y\noutput %count\nextent 0 of %y is %count\n";

TEST_P(ControlTest, ConditionsEndLoopsAndCountTheirRows) {
  const Program program = parsed(until);
  compile(program);
  ASSERT_EQ(plan_.controls.size(), 1u);
  EXPECT_FALSE(plan_.controls[0].fails);
  const Tensor x = drawn({4}, 2, 0.5, 1);
  for (const double limit : {1.0, 50.0, 1e4, -1.0}) {
    for (const bool go : {true, false}) {
      SCOPED_TRACE(limit);
      const std::vector<Tensor> inputs = {x, Tensor::of(Scalar::f32, {}, std::vector<double>{limit}), truth(go)};
      expect_close(run(inputs), interpreted(program, inputs));
    }
  }
  check_kernels();
}

// Whatever condition its body gives.
TEST_P(ControlTest, LoopsThatNeverRunHaveNoRows) {
  for (const std::string never : {"M = 0", "cond = 0"}) {
    const Program program = parsed(
        "program version 28\ninput %x : [4]f32\ninput %limit : f32\n"
        "define %l : ([4]f32, [0]f32) = Loop(_, _, %x, %limit; captured = 1, results = 2, " +
        never +
        ",\n"
        "  body = { program input %i : i64 input %go : bool input %s : [4]f32 input %limit : f32\n"
        "    define %next : [4]f32 = Add(%s, %s) from \"double\"\n"
        "    define %sum : f32 = ReduceSum(%next; keepdims = 0) from \"sum\"\n"
        "    define %on : bool = Less(%sum, %limit) from \"compare\"\n"
        "    output %on output %next output %sum }) from \"loop\"\n"
        "define %last : [4]f32 = %l.0\ndefine %sums : [0]f32 = %l.1\n"
        "define %y : [4]f32 = Neg(%last) from \"negate\"\noutput %y\noutput %sums\n");
    compile(program);
    const std::vector<Tensor> inputs = {drawn({4}, 2), Tensor::of(Scalar::f32, {}, std::vector<double>{9})};
    expect_close(run(inputs), interpreted(program, inputs));
  }
}

TEST_P(ControlTest, LoopsWithoutAnEndFail) {
  // The largest integer means no limit, too.
  for (const char* trips : {"", "M = 9223372036854775807, "}) {
    std::string endless = until;
    endless.replace(endless.find("M = 100, "), 9, trips);
    const std::string old = "[100]f32";
    for (size_t at; (at = endless.find(old)) != std::string::npos;) endless.replace(at, old.size(), "[1024]f32");
    compile(parsed(endless));
    auto runner = BundleRunner::open(bundle(), {});
    ASSERT_TRUE(runner.ok());
    const Tensor x = Tensor(Scalar::f32, {4}), one = Tensor::of(Scalar::f32, {}, std::vector<double>{1});
    auto out = runner->run({x, one, truth(true)});
    ASSERT_FALSE(out.ok());
    EXPECT_THAT(out.errors()[0].text(), HasSubstr("does not end within 1024 iterations"));
  }
}

// A list with a dynamic length: its concatenated members, their number, and one of them.
Program program_of_lists(std::optional<int64_t> iterations) {
  const auto call = [](const std::string& operation, std::vector<std::string> inputs, const std::string& output,
                       Attributes attributes = {}) {
    return NamedCall{output, operation, "", std::move(attributes), std::move(inputs), {output}};
  };
  ProgramBuilder builder("lists", newest_version);
  builder.set_bounds({.loop_iterations = iterations});
  builder.add_input({"x", Scalar::f32, {2, 3}});
  builder.add_input({"limit", Scalar::f32, {}});
  builder.add_input({"place", Scalar::i64, {}});
  builder.add_constant("on", truth(true));
  builder.add_call(call("SequenceEmpty", {}, "empty"));
  NamedCall loop = call("Loop", {"", "on", "x", "empty"}, "last");
  loop.outputs.push_back("list");
  NamedBody body;
  body.attribute = "body";
  body.inputs = {"i", "go", "s", "before"};
  body.calls = {call("Add", {"s", "s"}, "next"), call("SequenceInsert", {"before", "next"}, "after"),
                call("ReduceSum", {"next"}, "sum", {{"keepdims", int64_t{0}}}), call("Less", {"sum", "limit"}, "more")};
  body.outputs = {"more", "next", "after"};
  loop.bodies = {body};
  builder.add_call(loop);
  builder.add_call(call("SequenceInsert", {"list", "x"}, "longer"));
  builder.add_call(call("ConcatFromSequence", {"list"}, "columns", {{"axis", int64_t{1}}}));
  builder.add_call(call("ConcatFromSequence", {"longer"}, "stacked", {{"axis", int64_t{1}}, {"new_axis", int64_t{1}}}));
  builder.add_call(call("SequenceLength", {"longer"}, "length"));
  builder.add_call(call("SequenceAt", {"longer", "place"}, "member"));
  for (const char* output : {"columns", "stacked", "length", "member"}) builder.add_output(output);
  auto program = builder.finish();
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return *program;
}

TEST_P(ControlTest, ListsGrowAsOftenAsDataSay) {
  const Program program = program_of_lists(20);
  compile(program);
  const std::vector<double> x = {1, 2, 3, 4, 5, 6};
  for (const auto& [limit, members] : {std::pair{1.0, 1}, {100.0, 3}, {1000.0, 6}}) {
    SCOPED_TRACE(limit);
    const std::vector<Tensor> inputs = {Tensor::of(Scalar::f32, {2, 3}, x),
                                        Tensor::of(Scalar::f32, {}, std::vector<double>{limit}), whole(-2)};
    std::vector<double> columns, stacked, last;
    for (int row = 0; row < 2; ++row) {
      for (int m = 0; m <= members; ++m) {
        for (int k = 0; k < 3; ++k) {
          const double value = x[static_cast<size_t>(3 * row + k)] * (m < members ? 1 << (m + 1) : 1);
          if (m < members) columns.push_back(value);
          stacked.push_back(value);
          if (m + 1 == members) last.push_back(value);
        }
      }
    }
    const std::vector<Tensor> found = run(inputs);
    ASSERT_GE(found.size(), 4u);
    expect_close({found.begin(), found.begin() + 4}, {Tensor::of(Scalar::f32, {2, 3 * members}, columns),
                                                      Tensor::of(Scalar::f32, {2, members + 1, 3}, stacked),
                                                      whole(members + 1), Tensor::of(Scalar::f32, {2, 3}, last)});
    expect_close(found, interpreted(program, inputs));
  }
  check_kernels();
  // The capacity of 20 members is exceeded.
  auto runner = BundleRunner::open(bundle(), {});
  ASSERT_TRUE(runner.ok());
  auto out = runner->run({Tensor(Scalar::f32, {2, 3}), Tensor::of(Scalar::f32, {}, std::vector<double>{1}), whole(0)});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.errors()[0].text(), HasSubstr("does not end within 20 iterations, the most that it is compiled for "
                                                "(--bound loop-iterations)"));
}

// A nested loop in a data-dependent branch, with as many iterations as the outer loop has completed.
std::string nested(const std::string& trips, const std::string& attributes) {
  return "program version 28\ninput %x : [4]f32\ninput %n : i64\n"
         "define %y : [4]f32 = Loop(" +
         trips + ", _, %x, %x; " + attributes +
         "captured = 1,\n"
         "  body = { program input %i : i64 input %go : bool input %s : [4]f32 input %x : [4]f32\n"
         "    constant %ten : f32 = {3}\n"
         "    define %m : f32 = ReduceMax(%s; keepdims = 0) from \"largest\"\n"
         "    define %big : bool = Greater(%m, %ten) from \"compare\"\n"
         "    define %c : [4]f32 = If(%big, %s, %i; then_branch = { program input %s : [4]f32 input %i : i64\n"
         "        constant %half : f32 = {0.5}\n"
         "        define %z : [4]f32 = Loop(%i, _, %s, %half; captured = 1,\n"
         "          body = { program input %j : i64 input %go : bool input %q : [4]f32 input %half : f32\n"
         "            define %next : [4]f32 = Mul(%q, %half) from \"halve\" output %go output %next })\n"
         "          from \"inner\"\n"
         "        output %z },\n"
         "      else_branch = { program input %s : [4]f32 input %i : i64\n"
         "        define %z : [4]f32 = Add(%s, %s) from \"double\" output %z }) from \"choice\"\n"
         "    define %next : [4]f32 = Add(%c, %x) from \"add\"\n"
         "    output %go output %next }) from \"outer\"\n"
         "output %y\n";
}

std::vector<double> nested_by_hand(std::vector<double> s, int64_t n) {
  const std::vector<double> x = s;
  for (int64_t i = 0; i < n; ++i) {
    const bool big = *std::max_element(s.begin(), s.end()) > 3;
    for (size_t k = 0; k < s.size(); ++k) s[k] = s[k] * (big ? std::pow(0.5, static_cast<double>(i)) : 2) + x[k];
  }
  return s;
}

TEST_P(ControlTest, LoopsStandInBranchesAndBranchesInLoops) {
  compile(parsed(nested("%n", "")));
  EXPECT_EQ(plan_.controls.size(), 3u);
  const std::vector<double> values = {0.5, 1, 0.25, 0.125};
  for (const int64_t n : {0, 1, 3, 4, 12}) {
    SCOPED_TRACE(n);
    const auto expected = Tensor::of(Scalar::f32, {4}, nested_by_hand(values, n));
    expect_close(run({Tensor::of(Scalar::f32, {4}, values), whole(n)}), {expected});
  }
  check_kernels();
}

// Two matmuls of 2 million multiplications, of which a condition selects one; and a value that is passed through.
constexpr char branches[] =
    "program version 28\ninput %x : [128][128]f32\ninput %c : [1]bool\n"
    "define %r : ([128][128]f32, [128][128]f32) = If(%c, %x; results = 2,\n"
    "  then_branch = { program input %x : [128][128]f32\n"
    "    define %p : [128][128]f32 = MatMul(%x, %x) from \"square\" output %p output %x },\n"
    "  else_branch = { program input %x : [128][128]f32 define %n : [128][128]f32 = Tanh(%x) from \"tanh\"\n"
    "    define %p : [128][128]f32 = MatMul(%n, %x) from \"other\" output %p output %n }) from \"choice\"\n"
    "define %a : [128][128]f32 = %r.0\ndefine %b : [128][128]f32 = %r.1\n"
    "define %y : [128][128]f32 = Add(%a, %b) from \"add\"\noutput %y\noutput %b\n";

TEST_P(ControlTest, OnlyTheChosenOneOfLargeBranchesRuns) {
  const Program program = parsed(branches);
  compile(program);
  ASSERT_EQ(plan_.controls.size(), 1u);
  auto runner = BundleRunner::open(bundle(), {});
  ASSERT_TRUE(runner.ok());
  for (const bool c : {true, false, true}) {
    const std::vector<Tensor> inputs = {drawn({128, 128}, 3, -0.2, 0.2),
                                        Tensor::of(Scalar::boolean, {1}, std::vector<int>{c ? 1 : 0})};
    auto out = runner->run(inputs);
    ASSERT_TRUE(out.ok()) << out.errors()[0].text();
    expect_close(*out, interpreted(program, inputs));
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const std::vector<std::string>& layers = plan_.steps[i].layers;
      if (std::count(layers.begin(), layers.end(), "choice/square") != 0) {
        EXPECT_EQ(runner->step_runs(i), c ? 1u : 0u);
      }
      if (std::count(layers.begin(), layers.end(), "choice/other") != 0) {
        EXPECT_EQ(runner->step_runs(i), c ? 0u : 1u);
      }
    }
  }
  check_kernels();
}

TEST_P(ControlTest, SmallBranchesAreComputedBoth) {
  Program small = parsed(
      "program version 28\ninput %x : [4]f32\ninput %c : bool\n"
      "define %y : [4]f32 = If(%c, %x; then_branch = { program input %x : [4]f32 output %x },\n"
      "  else_branch = { program input %x : [4]f32 define %n : [4]f32 = Neg(%x) output %n }) from \"choice\"\noutput "
      "%y\n");
  compile(small);
  EXPECT_TRUE(plan_.controls.empty() && plan_.items.empty());
}

}  // namespace hoist::control_test
