// Tests every choice that a search may make, of each kind: the changed model has the same values on a device, and its
// derivation replays. Speed is not tested.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/bundle/bundle.h"
#include "ir/base/temporary_folder.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/replay.h"
#include "tools/driver/compile.h"
#include "tools/driver/self_check.h"
#include "tools/tuning/variants.h"

namespace hoist::choices_test {

using testing::UnorderedElementsAre;
using tuning::ChoiceKind;
using tuning::Subject;

constexpr char model_text[] = R"(program %choices version 21
input %image : [1][8][12][12]f32
input %filters : [16][8][3][3]f32
input %long : [4][2080]f32
input %row : [1][32]f32
input %first : [32][32]f32
input %second : [32][16]f32
define %convolved : [1][16][12][12]f32 = Conv(%image, %filters; pads = [1, 1, 1, 1]) from "convolution"
define %planes : [1][16][12][12]f32 = Relu(%convolved) from "relu"
define %sums : [4][1]f32 = ReduceSum(%long; axes = [1]) from "sums"
define %hidden : [1][32]f32 = MatMul(%row, %first) from "hidden"
define %classes : [1][16]f32 = MatMul(%hidden, %second) from "classes"
output %planes
output %sums
output %classes
)";

class Choices : public testing::Test {
 protected:
  void SetUp() override {
    auto program = parse_program(model_text);
    ASSERT_TRUE(program.ok()) << program.errors()[0].text();
    tuned_.options.profile.vector_width = 8;
    tuned_.options.lower.fusion = LaunchFusion::none;  // leaves the number of layers per kernel to the search
    ASSERT_TRUE(run_passes(*program, Pass::calls, pass_options(tuned_.options.lower, tuned_.options.profile)).ok());
    tuned_.program = std::move(*program);
    auto folder = TemporaryFolder::make();
    ASSERT_TRUE(folder.ok());
    folder_.emplace(std::move(*folder));
  }

  std::vector<Subject> subjects(ChoiceKind kind) const {
    auto found = tuning::subjects_of(tuned_, kind, {}, 3);
    EXPECT_TRUE(found.ok()) << found.errors()[0].text();
    return found.ok() ? *found : std::vector<Subject>();
  }

  // The terms of the kernels with this choice, after their check.
  std::vector<Expr> checked(const Subject& subject, const KnobValues& knobs) const {
    LowerOptions lower = tuned_.options.lower;
    lower.records = [&](const TuningTask& task) { return task == subject.task ? knobs : KnobValues(); };
    auto lowered = lower_program(tuned_.program, lower, tuned_.options.profile);
    EXPECT_TRUE(lowered.ok()) << lowered.errors()[0].text();
    if (!lowered.ok()) return {};
    std::vector<Expr> terms;
    for (const LoweredGroup& group : lowered->groups) terms.push_back(group.low);
    ReplayOptions replaying;
    replaying.profile = tuned_.options.profile;
    auto replayed = replay(lowered->derivation, replaying);
    EXPECT_TRUE(replayed.ok()) << replayed.errors()[0].text();
    const std::vector<LoweredGroup> groups = lowered->groups;
    CompileOptions options;
    options.lower = lower;
    auto plan = make_plan(std::move(*lowered), options, tuned_.options.profile);
    EXPECT_TRUE(plan.ok()) << plan.errors()[0].text();
    if (!plan.ok()) return {};
    const auto bundle = folder_->path() / "choices.hoist";
    auto written = write_bundle(*plan, bundle, {.force = true});
    EXPECT_TRUE(written.ok()) << written.errors()[0].text();
    auto check = self_check(bundle, *plan, groups);
    EXPECT_TRUE(check.ok()) << check.errors()[0].text();
    if (!check.ok()) return {};
    EXPECT_FALSE(check->mismatch) << check->mismatch->comparison.message << check->mismatch->origin;
    return terms;
  }

  tuning::TunedProgram tuned_;
  std::optional<TemporaryFolder> folder_;
};

TEST_F(Choices, AreWhatTheModelHas) {
  const auto layers = [&](ChoiceKind kind) {
    std::vector<std::string> out;
    for (const Subject& subject : subjects(kind)) {
      EXPECT_EQ(subject.kind, kind);
      for (const Knob& knob : subject.space.knobs) {
        if (knob.name != "explored") out.push_back(knob.name + " of " + subject.layers.front());
      }
    }
    return out;
  };
  EXPECT_THAT(layers(ChoiceKind::convolutions), UnorderedElementsAre("im2col of convolution"));
  EXPECT_THAT(layers(ChoiceKind::reductions), UnorderedElementsAre("blocks of sums"));
  EXPECT_THAT(layers(ChoiceKind::launches), UnorderedElementsAre("layers_before of classes"));
  EXPECT_THAT(layers(ChoiceKind::layouts),
              UnorderedElementsAre("input_channels_last of convolution", "output_channels_last of convolution"));
}

TEST_F(Choices, MakeOtherModelsThatAreRight) {
  for (const ChoiceKind kind : tuning::all_choices) {
    if (kind == ChoiceKind::tiles) continue;  // the tests of tiles cover them
    for (const Subject& subject : subjects(kind)) {
      SCOPED_TRACE(std::string(tuning::name_of(kind)) + " of " + subject.layers.front());
      std::set<std::vector<Expr>> models;
      const std::vector<Point> points = every_point(subject.space);
      ASSERT_GE(points.size(), 2u);
      for (size_t i = 0; i < points.size(); i += std::max<size_t>(1, points.size() / 4))
        models.insert(checked(subject, values_of(subject.space, points[i])));
      EXPECT_GE(models.size(), 2u);
    }
  }
}

// A record is untrusted: values outside the space mean no choice, or the nearest one.
TEST_F(Choices, OfNumbersThatNoSpaceHasAreRightToo) {
  for (const ChoiceKind kind : tuning::all_choices) {
    if (kind == ChoiceKind::tiles) continue;
    for (const Subject& subject : subjects(kind)) {
      for (const int64_t value : {std::numeric_limits<int64_t>::min(), int64_t{-1}, int64_t{3}, int64_t{1} << 62}) {
        KnobValues knobs;
        for (const Knob& knob : subject.space.knobs) {
          if (knob.name != "explored") knobs[knob.name] = value;
        }
        SCOPED_TRACE(std::string(tuning::name_of(kind)) + " " + std::to_string(value));
        checked(subject, knobs);
      }
    }
  }
}

}  // namespace hoist::choices_test
