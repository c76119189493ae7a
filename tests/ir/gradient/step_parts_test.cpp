// A step of training in two programs: runs computed apart give the bits of the whole step.
#include "ir/gradient/training/step_parts.h"

#include <gmock/gmock.h>

#include "ir/program/states.h"
#include "tests/ir/gradient/program_gradients.h"

namespace hoist::gradients {
namespace step_parts_test {

using testing::HasSubstr;

constexpr char model[] =
    "input %x : [4][2][2][2]f32\nconstant %w : [2][2][1][1]f32 = {0.5, -1, 2, 0.25}\n"
    "constant %scale : [2]f32 = {1.5, -0.5}\nconstant %bias : [2]f32 = {0.25, 1}\n"
    "constant %mean : [2]f32 = {0.5, 0}\nconstant %variance : [2]f32 = {2, 1}\nconstant %ratio : f32 = {0.25}\n"
    "define %c : [4][2][2][2]f32 = Conv(%x, %w)\n"
    "define %n : [4][2][2][2]f32 = BatchNormalization(%c, %scale, %bias, %mean, %variance)\n"
    "define %d : [4][2][2][2]f32 = Dropout(%n, %ratio)\n"
    "define %p : [4][2][1][1]f32 = GlobalAveragePool(%d)\ndefine %y : [4][2]f32 = Flatten(%p; axis = 1)\noutput %y\n";

TrainingStep step_with(const std::string& gradients) {
  TrainingRequest request;
  request.value = "y";
  request.optimiser = *optimiser_named("adam");
  request.weights = {"w", "scale", "bias"};
  request.averages = {"mean", "variance"};
  request.clip = 0.5;
  request.accumulated = 2;
  request.gradients = find_gradient_format(gradients);
  auto made = training_step(program(model), request);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.errors()[0].text());
  return std::move(*made);
}

Bindings data_of(int run) {
  Tensor rate(Scalar::f32, {});
  rate.set_float(0, 0.125);
  return {{"x", seeded_tensor(Scalar::f32, {4, 2, 2, 2}, 5 + static_cast<uint64_t>(run), 0, -1, 1)},
          {"labels", Tensor::of<int64_t>(Scalar::i64, {4}, {0, 1, 1, run % 2})},
          {"learning_rate", rate}};
}

std::vector<Tensor> inputs_of(const Program& program, const Bindings& known) {
  std::vector<Tensor> out;
  for (size_t i = 0; i + program.states.size() < program.inputs.size(); ++i)
    out.push_back(known.at(program.inputs[i].first));
  return out;
}

TEST(StepParts, GiveTheBitsOfTheWholeStep) {
  for (const std::string format : {"", "i8"}) {
    const TrainingStep whole = step_with(format);
    const auto parts = split_step(whole);
    ASSERT_TRUE(parts.ok()) << parts.errors()[0].text();
    EXPECT_TRUE(parts->run.states.empty());
    const Program& update = parts->update.program;
    ASSERT_EQ(update.states.size(), whole.program.states.size());
    RunSequence here(whole.program), there(update);
    for (int step = 0; step < 3; ++step) {
      // Both runs begin with the weights before the step.
      const std::vector<Tensor> before = there.states();
      for (int run = 0; run < 2; ++run) {
        Bindings known = data_of(2 * step + run);
        ASSERT_TRUE(here.run(inputs_of(whole.program, known)).ok());
        for (size_t i = 0; i < before.size(); ++i) known[update.states[i].name] = before[i];
        known.at(whole.counter).set_integer(0, 2 * step + run);
        const Bindings values = values_of(parts->run, known);
        for (const auto& [value, input] : parts->given) known[input] = values.at(value);
        const auto changed = there.run(inputs_of(update, known));
        ASSERT_TRUE(changed.ok()) << changed.errors()[0].text();
      }
      for (size_t i = 0; i < before.size(); ++i)
        EXPECT_EQ(there.states()[i], here.states()[i]) << update.states[i].name << " after step " << step;
    }
  }
}

TEST(StepParts, SendGradientsInTheirFormat) {
  const auto parts = split_step(step_with("i4"));
  ASSERT_TRUE(parts.ok()) << parts.errors()[0].text();
  size_t integers = 0;
  for (const auto& [name, type] : value_types(parts->run)) {
    const bool is_output =
        std::find(parts->run.outputs.begin(), parts->run.outputs.end(), name) != parts->run.outputs.end();
    if (is_output && leaf_of(type)->scalar == Scalar::i8) ++integers;
  }
  EXPECT_EQ(integers, 3u) << "one for each weight";
}

TEST(StepParts, CannotFeedErrorsBack) {
  const auto parts = split_step(step_with("i8-feedback"));
  ASSERT_FALSE(parts.ok());
  EXPECT_THAT(parts.errors()[0].text(), HasSubstr("is a state of single runs, which cannot be shared"));
}

}  // namespace step_parts_test
}  // namespace hoist::gradients
