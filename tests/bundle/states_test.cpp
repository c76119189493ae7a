// Tests values that live between runs, on the first OpenCL device: sequences, reset, save and load, sessions, and plans
// whose states are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <thread>

#include "backends/runtime/hoist_runtime.hpp"
#include "tests/bundle/format_fixture.h"
#include "tests/bundle/run_fixture.h"

namespace hoist {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

constexpr size_t size = 64;

// The sequence of sums_plan for inputs that are all `x`.
struct Expected {
  Floats s = Floats(size), c = Floats(size, 0.0f);
  Expected() { std::iota(s.begin(), s.end(), 1.0f); }
  void run(float x) {
    for (size_t i = 0; i < size; ++i) {
      s[i] += x;
      c[i] += s[i];
    }
  }
};

void run(Bundle& bundle, float x) {
  const Floats values(size, x);
  bundle.set_input<float>("x", values);
  bundle.run();
}

void expect_states(const Bundle& bundle, const Expected& expected) {
  EXPECT_EQ(bundle.state<float>("s"), expected.s);
  EXPECT_EQ(bundle.state<float>("c"), expected.c);
}

std::string message_of(const std::function<void()>& call, hoist_status status) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
  return "no error";
}

class StatesTest : public RunTest {
 protected:
  Bundle open(const Plan& plan = sums_plan(), const std::string& name = "a.hoist", int separate_buffers = 0) {
    cache_ = (folder_ / "cache").string();
    hoist_options options = {};
    options.cache_folder = cache_.c_str();
    options.separate_buffers = separate_buffers;
    return Bundle(written(plan, name).string(), options);
  }
  std::string cache_;
};

TEST_F(StatesTest, RunsAreASequence) {
  for (const bool fused : {false, true}) {
    for (const int separate : {0, 0xFF}) {
      const std::string name = "a" + std::to_string(fused) + std::to_string(separate) + ".hoist";
      Bundle bundle = open(sums_plan(fused), name, separate);
      ASSERT_EQ(bundle.inputs().size(), 1u);
      ASSERT_EQ(bundle.outputs().size(), 1u);
      ASSERT_EQ(bundle.states().size(), 2u);
      EXPECT_EQ(bundle.states()[1].name, "c");
      const View<const float> y = bundle.output<float>("y");
      for (int round = 0; round < 2; ++round, bundle.reset_states()) {
        Expected expected;
        expect_states(bundle, expected);
        for (const float x : {1.0f, -3.0f, 0.5f, 7.0f}) {
          run(bundle, x);
          expected.run(x);
          expect_states(bundle, expected);
          EXPECT_EQ(Floats(y.begin(), y.end()), expected.c);
        }
      }
    }
  }
}

TEST_F(StatesTest, OnlyAWholeRunChangesThem) {
  Bundle bundle = open();
  Expected expected;
  EXPECT_EQ(message_of([&] { bundle.run(); }, HOIST_BAD_ARGUMENT), "input x has not been set");
  expect_states(bundle, expected);
  run(bundle, 2);
  expected.run(2);
  std::vector<double> seconds(2);
  ASSERT_EQ(hoist_profile(bundle.handle(), seconds.data()), HOIST_OK);
  ASSERT_EQ(hoist_run_steps(bundle.handle(), 0, 2), HOIST_OK);
  expect_states(bundle, expected);
  bundle.set_state<float>("s", Floats(size, 5.0f));
  expected.s.assign(size, 5.0f);
  run(bundle, 2);
  expected.run(2);
  expect_states(bundle, expected);
  EXPECT_THAT(message_of([&] { (void)bundle.state<float>("x"); }, HOIST_BAD_ARGUMENT),
              HasSubstr("no state is called x"));
  EXPECT_THAT(message_of([&] { (void)bundle.state<double>("s"); }, HOIST_BAD_ARGUMENT), HasSubstr("s holds f32"));
  float one = 0;
  EXPECT_EQ(hoist_set_state(bundle.handle(), 0, &one, sizeof one), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_get_state(bundle.handle(), 2, &one, sizeof one), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_set_input(bundle.handle(), 1, &one, sizeof one), HOIST_BAD_ARGUMENT) << "a state is no input";
}

TEST_F(StatesTest, AreSavedAndLoaded) {
  Bundle bundle = open(), other = open(sums_plan(true), "b.hoist");
  const std::string file = (folder_ / "states").string();
  Expected expected;
  for (const float x : {1.0f, 2.0f}) run(bundle, x), expected.run(x);
  bundle.save_states(file);
  run(bundle, 3);
  bundle.load_states(file);
  expect_states(bundle, expected);
  other.load_states(file);  // another bundle of the model
  for (Bundle* each : {&bundle, &other}) run(*each, 4);
  expected.run(4);
  expect_states(bundle, expected);
  expect_states(other, expected);
  bundle.save_states(file);  // replaces the file
  other.reset_states();
  other.load_states(file);
  expect_states(other, expected);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path())) ++files;
  EXPECT_EQ(files, 4u) << "two bundles, the cache and the file";
}

TEST_F(StatesTest, FilesThatAreNotTheirsAreRefused) {
  Bundle bundle = open();
  const std::string file = (folder_ / "states").string();
  Expected expected;
  run(bundle, 1);
  bundle.save_states(file);
  expected.run(1);
  const std::string good = read_text(file);
  const auto refusal = [&](const std::string& content, hoist_status status) {
    write_text(file, content);
    const std::string message = message_of([&] { bundle.load_states(file); }, status);
    expect_states(bundle, expected);
    return message;
  };
  EXPECT_THAT(refusal("", HOIST_BAD_BUNDLE), HasSubstr("is no file of saved states"));
  EXPECT_THAT(refusal(std::string(100, 'x'), HOIST_BAD_BUNDLE), HasSubstr("is no file of saved states"));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_NE(refusal(changed, HOIST_BAD_BUNDLE), "no error") << i;
  }
  for (const size_t length : {size_t{10}, size_t{40}, good.size() / 2, good.size() - 1})
    EXPECT_NE(refusal(good.substr(0, length), HOIST_BAD_BUNDLE), "no error") << length;
  // With a right hash any change gives a message or other values, and never a crash.
  for (size_t i = 24; i + 8 < good.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7f, 0xff}) {
      std::string content = good;
      content[i] = static_cast<char>(value);
      write_sealed(file, content);
      (void)hoist_load_states(bundle.handle(), file.c_str());
    }
  }
  write_text(file, good);
  bundle.load_states(file);
  const auto sealed = [&](const std::function<void(Plan&)>& change) {
    Plan plan = sums_plan();
    change(plan);
    Bundle changed = open(plan, "changed.hoist");
    const std::string another = (folder_ / "another").string();
    changed.save_states(another);
    std::filesystem::remove_all(folder_ / "changed.hoist");
    return refusal(read_text(another), HOIST_BAD_ARGUMENT);
  };
  EXPECT_THAT(sealed([](Plan& plan) { plan.model_hash = 1; }), HasSubstr("holds states of another model than sums"));
  EXPECT_THAT(sealed([](Plan& plan) { plan.arrays[2].name = "d"; }), HasSubstr("holds state d in the place of c"));
  EXPECT_THAT(sealed([](Plan& plan) {
                plan.states.pop_back();
                plan.inputs = {0, 2, 1};
                plan.outputs = {5, 4, 3};
              }),
              HasSubstr("holds 1 states, and the bundle has 2"));
  EXPECT_THAT(message_of([&] { bundle.load_states((folder_ / "absent").string()); }, HOIST_BAD_BUNDLE),
              HasSubstr("No such file"));
  EXPECT_THAT(message_of([&] { bundle.save_states((folder_ / "absent" / "states").string()); }, HOIST_BAD_ARGUMENT),
              HasSubstr("cannot be written"));
  Bundle without = open(chain_plan(2), "chain.hoist");
  EXPECT_THAT(message_of([&] { without.save_states(file); }, HOIST_BAD_ARGUMENT), HasSubstr("has no state"));
}

TEST_F(StatesTest, SessionsHaveTheirOwn) {
  auto first = std::make_unique<Bundle>(open());
  run(*first, 1);
  Bundle second = first->session(), third = second.session(1);
  Expected of_first, of_second, of_third;
  of_first.run(1);
  expect_states(second, of_second);
  for (const float x : {1.0f, 2.0f, 3.0f}) {
    run(*first, x), of_first.run(x);
    run(second, -x), of_second.run(-x);
    run(third, 10 * x), of_third.run(10 * x);
  }
  expect_states(*first, of_first);
  expect_states(second, of_second);
  expect_states(third, of_third);
  EXPECT_EQ(std::string(hoist_cache_outcome(second.handle())), "shared with another session");
  first.reset();  // the others keep weights and kernels
  run(second, 5), of_second.run(5);
  expect_states(second, of_second);
  second.reset_states();
  expect_states(second, Expected());
  std::vector<std::thread> threads;
  std::vector<Bundle> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(third.session());
  for (size_t i = 0; i < sessions.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) run(sessions[i], static_cast<float>(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < sessions.size(); ++i) {
    Expected expected;
    for (int k = 0; k < 50; ++k) expected.run(static_cast<float>(i));
    expect_states(sessions[i], expected);
  }
}

TEST_F(StatesTest, SessionsBesideNothingAreRefused) {
  hoist_bundle *closed = nullptr, *session = nullptr;
  ASSERT_EQ(hoist_open((folder_ / "absent").c_str(), nullptr, &closed), HOIST_BAD_BUNDLE);
  EXPECT_EQ(hoist_open_session(closed, 0, &session), HOIST_BAD_ARGUMENT);
  EXPECT_THAT(hoist_error_message(session), HasSubstr("is not open"));
  hoist_close(session);
  hoist_close(closed);
  Bundle bundle = open();
  EXPECT_THAT(message_of([&] { (void)bundle.session(-1); }, HOIST_BAD_ARGUMENT), HasSubstr("-1 threads"));
  Plan other = sums_plan();
  other.model_hash = 7;
  ASSERT_TRUE(write_bundle(other, folder_ / "a.hoist", {true}).ok());
  EXPECT_THAT(message_of([&] { (void)bundle.session(); }, HOIST_BAD_BUNDLE), HasSubstr("another bundle is there now"));
}

TEST_F(StatesTest, SessionsChooseSizesOfTheirOwn) {
  Plan small = sized_plan(1, 4), large = sized_plan(2, 4);
  std::vector<SizedPlan> plans = {{{{"batch", 1}}, &small}, {{{"batch", 2}}, &large}};
  ASSERT_TRUE(write_bundle(plans, folder_ / "sizes.hoist").ok());
  auto bundle = std::make_unique<Bundle>((folder_ / "sizes.hoist").string());
  bundle->choose_size("batch", 2);
  Bundle session = bundle->session();
  EXPECT_EQ(session.inputs()[0].shape, (std::vector<std::int64_t>{2, 4}));
  bundle.reset();
  for (const int64_t batch : {2, 1, 2}) {
    session.choose_size("batch", batch);
    session.set_input<float>("x", Floats(static_cast<size_t>(4 * batch), 1.0f));
    session.run();
    EXPECT_EQ(session.output<float>("y")[0], 3.0f);
    EXPECT_EQ(session.output<float>("y")[static_cast<size_t>(4 * (batch - 1))], batch == 2 ? 13.0f : 3.0f);
  }
}

TEST_F(StatesTest, TheSelfCheckRunsSequences) {
  for (const bool fused : {false, true}) {
    Bundle bundle = open(sums_plan(fused), fused ? "fused.hoist" : "a.hoist");
    run(bundle, 1);
    std::vector<std::string> subjects;
    EXPECT_TRUE(bundle.verify([&](const hoist_finding& finding) {
      EXPECT_TRUE(finding.passed) << finding.subject << ": " << finding.message;
      subjects.push_back(finding.subject);
    }));
    EXPECT_EQ(subjects.back(), "states");
    expect_states(bundle, Expected());
  }
  // Expected values of the second run that are wrong.
  Plan wrong = sums_plan();
  wrong.check_seed = 3;
  wrong.model_check = {{1, {5}, std::vector<std::byte>(4), 1}};
  Bundle bundle = open(wrong, "wrong.hoist");
  std::string failed;
  EXPECT_FALSE(bundle.verify([&](const hoist_finding& finding) {
    if (!finding.passed) failed = finding.subject;
  }));
  EXPECT_EQ(failed, "output t of run 2");
}

TEST_F(FormatTest, StatesFitThePlan) {
  const Plan plan = sums_plan();
  EXPECT_EQ(complaint_of(plan, [](Plan&) {}), "");
  const auto wrong = [&](const std::function<void(Plan&)>& change) { return complaint_of(plan, change); };
  EXPECT_THAT(wrong([](Plan& p) { p.states[0].read = 2; }), HasSubstr("not the input of its place"));
  EXPECT_THAT(wrong([](Plan& p) { p.states[0].written = 0; }), HasSubstr("next value of a state lies in an invalid"));
  EXPECT_THAT(wrong([](Plan& p) { p.states[0].initial = 4; }),
              HasSubstr("initial value of a state lies in an invalid"));
  EXPECT_THAT(wrong([](Plan& p) { p.outputs = {5, 3, 4, 5}; }), HasSubstr("not in their order"));
  EXPECT_THAT(wrong([](Plan& p) { p.outputs = {2, 4, 3, 5}; }), HasSubstr("not in their order"));
  EXPECT_THAT(wrong([](Plan& p) {
                p.arrays[2].shape = {8, 8};
              }),
              HasSubstr("next value of a state lies in an invalid"));
  reseal("plan.bin", encode_plan(plan, {}));
  EXPECT_GT(refused_of(encode_plan(plan, {}), {0x00, 0x01, 0x7f, 0xff}), 100u);
}

TEST_F(FormatTest, StatesComeBackFromTheBundle) {
  ASSERT_TRUE(write_bundle(sums_plan(), bundle_, {true}).ok());
  const auto info = read_bundle(bundle_);
  ASSERT_TRUE(info.ok()) << info.errors()[0].text();
  ASSERT_EQ(info->plan.states.size(), 2u);
  EXPECT_EQ(info->plan.states[0].initial, 3);
  EXPECT_EQ(info->plan.states[1].initial, -1);
  EXPECT_EQ(info->plan.model_inputs(), 1u);
  EXPECT_EQ(info->plan.model_outputs(), 1u);
  EXPECT_THAT(info->manifest, HasSubstr("\"read\": \"s\",\n      \"written\": \"t\",\n      \"initial\": \"start\"\n"));
}

}  // namespace
}  // namespace hoist
