// Tests bundles that are timed in other processes, searches whose candidates crash the process, and untrusted answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "backends/bundle/bundle.h"
#include "backends/opencl/device.h"
#include "tests/tools/program.h"
#include "tools/base/child_program.h"
#include "tools/tuning/timing_jobs.h"
#include "tools/tuning/tuned_model.h"
#include "tools/tuning/variants.h"

namespace hoist::timed_bundles_test {

using testing::HasSubstr;
using tuning::Assignment;
using tuning::BundleTimes;
using tuning::Subject;
using tuning::TimingAnswer;
using tuning::TimingQuestion;
using tuning::TunedProgram;

const auto never = [] { return false; };

TunedProgram tuned_model(const std::string& name, const std::vector<std::string>& targets) {
  ModelOptions options;
  options.with_notes = false;
  options.targets = targets;
  auto program = read_program(std::string(HOIST_SOURCE_DIR) + "/models/" + name, options);
  HOIST_CHECK(program.ok(), "the model is not read");
  auto tuned = tuning::tuned_program(std::move(*program), options);
  HOIST_CHECK(tuned.ok(), tuned.ok() ? "" : tuned.errors().front().text());
  return std::move(*tuned);
}

class TimedBundles : public InTemporaryFolder {
 protected:
  void SetUp() override {
    InTemporaryFolder::SetUp();
    set_this_program({HOIST_PROGRAM});
  }

  // A bundle of two OpenCL kernels, each with this statement first.
  std::filesystem::path bundle(const std::string& name, const std::string& statement) {
    const TunedProgram tuned = tuned_model("digits_fully_connected.onnx", {});
    auto lowered = lower_program(tuned.program, tuned.options.lower, tuned.options.profile);
    EXPECT_TRUE(lowered.ok());
    CompileOptions options;
    options.check_model = false;
    auto plan = make_plan(std::move(*lowered), options, tuned.options.profile);
    EXPECT_TRUE(plan.ok());
    for (PlanKernel& kernel : plan->kernels) {
      const size_t body = kernel.source.find('{');
      EXPECT_NE(body, std::string::npos);
      kernel.source.insert(body + 1, statement);
    }
    EXPECT_TRUE(write_bundle(*plan, in(name)).ok());
    return in(name);
  }

  static queue::TimingPlace place(double seconds) {
    auto device = find_device("");
    EXPECT_TRUE(device.ok());
    return {device->name, std::to_string(device->index), 0, seconds};
  }
};

TEST_F(TimedBundles, AreTimedInAProcessOfTheirOwn) {
  auto times = queue::times_in_processes(place(120));
  ASSERT_TRUE(times.ok());
  TimingQuestion question{{bundle("a", ""), bundle("b", "")}, {3, 5, 0.1}};
  question.runs = true;
  const TimingAnswer answer = (*times)({question}, never).front();
  ASSERT_TRUE(answer.ok()) << answer.errors().front().text();
  ASSERT_EQ(answer->size(), 2u);
  for (const BundleTimes& each : *answer) {
    EXPECT_EQ(each.failed, "");
    EXPECT_TRUE(each.differing.empty());
    EXPECT_FALSE(each.steps.empty());
    for (const double seconds : each.steps) EXPECT_GT(seconds, 0);
    EXPECT_GT(each.run, 0);
  }
  // A kernel with a wrong result, and a damaged bundle.
  question.bundles = {bundle("c", ""), bundle("wrong", " result[0] = 7; return;"), bundle("damaged", "")};
  std::filesystem::resize_file(question.bundles.back() / "plan.bin", 100);
  const TimingAnswer wrong = (*times)({question}, never).front();
  ASSERT_TRUE(wrong.ok()) << wrong.errors().front().text();
  EXPECT_TRUE((*wrong)[0].differing.empty());
  EXPECT_FALSE((*wrong)[1].differing.empty());
  EXPECT_THAT((*wrong)[2].failed, HasSubstr("plan.bin"));
  EXPECT_FALSE((*times)({question}, [] { return true; }).front().ok());
}

TEST_F(TimedBundles, ThatEndTheirProcessOrNeverEndEndNothingElse) {
#ifdef __SANITIZE_ADDRESS__  // it would turn the signal into a report and an exit code
  const char* options = std::getenv("ASAN_OPTIONS");
  ::setenv("ASAN_OPTIONS", ((options != nullptr ? options : "") + std::string(":handle_segv=0")).c_str(), 1);
#endif
  auto times = queue::times_in_processes(place(8));
  ASSERT_TRUE(times.ok());
  const auto right = bundle("right", "");
  const TimingQuestion crashes{{right, bundle("crashes", " *(volatile __global int*)16 = 1;")}, {3, 5, 0.1}},
      never_ends{{right, bundle("never_ends", " volatile int one = 1; while (one) {}")}, {3, 5, 0.1}};
  const std::vector<TimingAnswer> answers = (*times)({crashes, never_ends, {{right}, {3, 5, 0.1}}}, never);
  ASSERT_EQ(answers.size(), 3u);
  ASSERT_FALSE(answers[0].ok());
  EXPECT_THAT(answers[0].errors().front().text(), HasSubstr("was ended by signal"));
  ASSERT_FALSE(answers[1].ok());
  EXPECT_THAT(answers[1].errors().front().text(), HasSubstr("took longer than 8 s and was stopped"));
  EXPECT_TRUE(answers[2].ok());
}

TEST_F(TimedBundles, AnswersOfStrangersAreRead) {
  TimingQuestion question{{"a"}};
  const std::vector<BundleTimes> times = {{"", {{"k", "differs"}}, {0.25, 1}, 2}};
  auto back = tuning::parse_times(tuning::to_json(times), question);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->front().steps, times[0].steps);
  EXPECT_EQ(back->front().differing, times[0].differing);
  EXPECT_EQ(back->front().run, 2);
  for (const char* text : {"1", "{}", R"({"bundles":[]})", R"({"bundles":[1]})",
                           R"({"bundles":[{"failed":"","differing":{},"steps":[-1],"run":0}]})",
                           R"({"bundles":[{"failed":"","differing":{},"steps":["x"],"run":0}]})",
                           R"({"bundles":[{"failed":"","differing":{"k":1},"steps":[],"run":0}]})",
                           R"({"bundles":[{"failed":1,"differing":{},"steps":[],"run":0}]})"})
    EXPECT_FALSE(tuning::parse_times(nlohmann::json::parse(text), question).ok()) << text;
  auto turns = tuning::parse_turns(tuning::to_json(tuning::Turns{7, 9, 0.5}));
  ASSERT_TRUE(turns.ok());
  EXPECT_EQ(turns->least, 7);
  EXPECT_EQ(turns->most, 9);
  EXPECT_EQ(turns->seconds, 0.5);
  EXPECT_FALSE(tuning::parse_turns(nlohmann::json::parse(R"({"least":1,"most":1e9,"milliseconds":1})")).ok());
}

// Bundles with kernels of these terms give no answer, as if they had crashed the process.
class VariantsThatFail : public testing::Test {
 protected:
  void SetUp() override {
    tuned_.emplace(tuned_model("digits_residual.onnx", {"x86-64-v3"}));
    auto found = tuning::subjects_of(*tuned_, tuning::ChoiceKind::tiles, {});
    ASSERT_TRUE(found.ok());
    subjects_ = std::move(*found);
    ASSERT_GE(subjects_.size(), 2u);
    tuned_->time_bundles = [this](const std::vector<TimingQuestion>& questions, const auto&) {
      std::vector<TimingAnswer> out;
      for (const TimingQuestion& question : questions) out.push_back(answer(question));
      return out;
    };
  }

  TimingAnswer answer(const TimingQuestion& question) {
    ++asked_;
    const Diagnostic gone{"", "its process was ended by signal 11", "", ErrorKind::device};
    if (lost_after_ >= 0 && asked_ > lost_after_) return gone;
    std::vector<BundleTimes> out;
    for (const auto& folder : question.bundles) {
      auto read = read_bundle(folder);
      HOIST_CHECK(read.ok(), "a bundle is not read");
      BundleTimes times;
      for (const PlanStep& step : read->plan.steps) {
        const PlanKernel& kernel = read->plan.kernels[static_cast<size_t>(step.kernel)];
        if (fatal_.contains(kernel.expression)) return gone;
        times.steps.push_back(1);
      }
      out.push_back(std::move(times));
    }
    return out;
  }

  // Some other knobs of the subject, and the terms of their kernels.
  KnobValues other_knobs(size_t subject, size_t number) const {
    std::vector<KnobValues> all;
    for (const Point& point : every_point(subjects_[subject].space)) {
      KnobValues values = values_of(subjects_[subject].space, point);
      if (values != subjects_[subject].usual) all.push_back(std::move(values));
    }
    return all.at(number * (all.size() - 1));
  }
  void make_fatal(size_t subject, const KnobValues& knobs) {
    auto lowered = tuning::lower_variant(*tuned_, subjects_, {}, {{subject, knobs}});
    ASSERT_TRUE(lowered.ok());
    auto plan = make_plan(std::move(lowered->model), {}, tuned_->options.profile);
    ASSERT_TRUE(plan.ok());
    for (const size_t step : lowered->steps)
      fatal_.insert(plan->kernels[static_cast<size_t>(plan->steps[step].kernel)].expression);
  }

  std::optional<TunedProgram> tuned_;
  std::vector<Subject> subjects_;
  std::set<std::string> fatal_;
  int asked_ = 0, lost_after_ = -1;
};

TEST_F(VariantsThatFail, AreFoundAmongTheOthers) {
  const KnobValues good = other_knobs(0, 0), bad = other_knobs(1, 1), better = other_knobs(0, 1);
  make_fatal(1, bad);
  tuning::VariantTimer timer(*tuned_, subjects_, {});
  const Assignment usual = {{0, subjects_[0].usual}, {1, subjects_[1].usual}};
  auto found = timer.time({{usual, {{0, better}}, {{0, good}, {1, bad}}}, {usual, {{0, good}}}}, {}, never);
  ASSERT_TRUE(found.ok()) << found.errors().front().text();
  const auto& times = found->front();
  ASSERT_EQ(times.size(), 3u);
  for (const size_t subject : {0u, 1u}) EXPECT_TRUE(std::isfinite(times[0].at(subject)));
  EXPECT_TRUE(std::isfinite(times[1].at(0)));
  EXPECT_TRUE(std::isfinite(times[2].at(0)));  // its variant shared the group with the failing one
  EXPECT_TRUE(std::isinf(times[2].at(1)));
  EXPECT_TRUE(std::isfinite((*found)[1][1].at(0)));  // a group without the failing variant
}

TEST_F(VariantsThatFail, WithADeviceThatIsLostAreNotToBlame) {
  tuning::VariantTimer timer(*tuned_, subjects_, {});
  const Assignment usual = {{0, subjects_[0].usual}};
  ASSERT_TRUE(timer.time({{usual, {{0, other_knobs(0, 0)}}}}, {}, never).ok());
  lost_after_ = asked_;
  auto found = timer.time({{usual, {{0, other_knobs(0, 1)}}}}, {}, never);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.errors().front().text(), HasSubstr("signal 11"));
  // Lost only after the candidate was timed alone, so it may be valid too.
  lost_after_ = asked_ + 2;
  make_fatal(0, other_knobs(0, 1));
  EXPECT_FALSE(timer.time({{usual, {{0, other_knobs(0, 0)}}, {{0, other_knobs(0, 1)}}}}, {}, never).ok());
}

}  // namespace hoist::timed_bundles_test
