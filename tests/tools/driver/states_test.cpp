// Tests states of compiled programs: sequences of runs on a device and as native code, compared with the interpreter.
#include "ir/program/states.h"

#include <gtest/gtest.h>

#include "tests/tools/driver/control_fixture.h"

namespace hoist::states_test {

std::string numbers(int64_t count) {
  std::string values;
  for (int64_t i = 0; i < count; ++i)
    values += std::string(i > 0 ? ", " : "") + std::to_string(static_cast<double>(i * 7 % 13 - 6) * 0.1);
  return values;
}

class StatesTest : public ControlTest {
 protected:
  // Runs two sequences; the second one begins with a reset.
  void expect_sequence(const Program& program, const std::vector<int64_t>& shape, int runs) {
    auto bundle = open();
    ASSERT_TRUE(bundle.ok()) << bundle.errors()[0].text();
    ASSERT_EQ(bundle->states().size(), program.states.size());
    RunSequence expected(program);
    for (uint64_t round = 0; round < 2; ++round) {
      for (int run = 0; run < runs; ++run) {
        const Tensor x = drawn(shape, 100 * round + static_cast<uint64_t>(run));
        const auto found = bundle->run({x}), wanted = expected.run({x});
        ASSERT_TRUE(found.ok()) << found.errors()[0].text();
        ASSERT_TRUE(wanted.ok()) << wanted.errors()[0].text();
        expect_close(*found, *wanted);
        std::vector<Tensor> states;
        for (size_t i = 0; i < program.states.size(); ++i) {
          auto state = bundle->state(i);
          ASSERT_TRUE(state.ok());
          states.push_back(std::move(*state));
        }
        expect_close(states, expected.states());
      }
      expected.reset();
      ASSERT_TRUE(bundle->reset_states().ok());
    }
  }
};

TEST_P(StatesTest, AGatedUnitRemembers) {
  const Program program = parsed(
      "program version 22\ninput %x : [1][1][4]f32\nstate %h : [1][1][8]f32 = %start\n"
      "constant %start : [1][1][8]f32 = {" +
      numbers(8) +
      "}\n"
      "constant %w : [1][24][4]f32 = {" +
      numbers(96) + "}\nconstant %r : [1][24][8]f32 = {" + numbers(192) +
      "}\ndefine %g : ([1][1][1][8]f32, [1][1][8]f32) = GRU(%x, %w, %r, _, _, %h; hidden_size = 8, results = 2)\n"
      "define %y : [1][1][1][8]f32 = %g.0\ndefine %hn : [1][1][8]f32 = %g.1\noutput %y\nnext %h is %hn\n");
  compile(program);
  expect_sequence(program, {1, 1, 4}, 5);
  check_kernels();
}

// A loop that the runtime executes reads and writes states, too.
TEST_P(StatesTest, LongSequencesContinueTheirs) {
  const Program program = parsed(
      "program version 22\ninput %x : [1100][1][3]f32\nstate %h : [1][1][2]f32 = zeros\n"
      "state %c : [1][1][2]f32 = zeros\nconstant %w : [1][8][3]f32 = {" +
      numbers(24) + "}\nconstant %r : [1][8][2]f32 = {" + numbers(16) +
      "}\ndefine %l : ([1100][1][1][2]f32, [1][1][2]f32, [1][1][2]f32) =\n"
      "  LSTM(%x, %w, %r, _, _, %h, %c; hidden_size = 2, results = 3)\n"
      "define %y : [1100][1][1][2]f32 = %l.0\ndefine %hn : [1][1][2]f32 = %l.1\n"
      "define %cn : [1][1][2]f32 = %l.2\noutput %y\nnext %h is %hn\nnext %c is %cn\n");
  compile(program);
  EXPECT_EQ(plan_.controls.size(), 1u);
  expect_sequence(program, {1100, 1, 3}, 3);
}

// A state whose next value is an output too, one that takes another's place, and integers: exact on every device.
TEST_P(StatesTest, DelaysAndCountersAreExact) {
  const Program program = parsed(
      "program version 22\ninput %x : [16]f32\nstate %d1 : [16]f32 = zeros\nstate %d2 : [16]f32 = zeros\n"
      "state %n : [3]i64 = %first\nstate %sum : [16]f32 = zeros\nconstant %first : [3]i64 = {5, 6, 7}\n"
      "constant %one : [3]i64 = {1, 1, 1}\n"
      "define %e1 : [16]f32 = Identity(%x)\ndefine %e2 : [16]f32 = Identity(%d1)\n"
      "define %m : [3]i64 = Add(%n, %one)\ndefine %s : [16]f32 = Add(%sum, %d2)\n"
      "output %s\noutput %m\nnext %d1 is %e1\nnext %d2 is %e2\nnext %n is %m\nnext %sum is %s\n");
  compile(program);
  EXPECT_GT(plan_.model_check.size(), 8u) << "two outputs and four states in three runs";
  EXPECT_TRUE(plan_.model_tolerance.exact);
  auto bundle = open();
  ASSERT_TRUE(bundle.ok()) << bundle.errors()[0].text();
  RunSequence expected(program);
  for (uint64_t run = 0; run < 6; ++run) {
    const Tensor x = drawn({16}, run);
    const auto found = bundle->run({x}), wanted = expected.run({x});
    ASSERT_TRUE(found.ok() && wanted.ok());
    EXPECT_EQ(*found, *wanted) << run;
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(*bundle->state(i), expected.states()[i]) << run << " " << i;
  }
  const auto findings = bundle->verify();
  ASSERT_TRUE(findings.ok()) << findings.errors()[0].text();
  size_t of_third_run = 0;
  for (const Finding& finding : *findings) {
    EXPECT_TRUE(finding.passed) << finding.subject << ": " << finding.message;
    of_third_run += finding.subject.find("of run 3") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(of_third_run, 3u);
}

INSTANTIATE_TEST_SUITE_P(Devices, StatesTest, testing::Bool());

}  // namespace hoist::states_test
