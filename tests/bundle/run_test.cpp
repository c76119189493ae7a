// Tests a bundle from writing to running, on the first OpenCL device.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "backends/opencl/device.h"
#include "backends/runtime/hoist_runtime.h"
#include "ir/base/seeded.h"
#include "ir/base/strings.h"
#include "tests/bundle/run_fixture.h"

namespace hoist {
namespace {

using testing::HasSubstr;

TEST_F(RunTest, ComputesWhatThePlanSays) {
  auto runner = BundleRunner::open(written(small_plan()), options());
  ASSERT_OK(runner);
  EXPECT_EQ(runner->model_name(), "small");
  for (const uint64_t seed : {1, 2, 3}) {
    auto outputs = runner->run({input(seed)});
    ASSERT_OK(outputs);
    ASSERT_EQ(outputs->size(), 3u);
    EXPECT_EQ((*outputs)[0], small_plan_result(input(seed)));
    EXPECT_EQ((*outputs)[1], input(seed));                      // an output that is an input
    EXPECT_EQ((*outputs)[2], small_plan().arrays[2].constant);  // and one that is a constant
  }
}

// The array of an output with a dynamic shape has the capacity of the bound.
TEST_F(RunTest, OutputsAreAsLongAsTheRunMadeThem) {
  for (const bool separate : {false, true}) {
    RunOptions how = options();
    how.separate_buffers = separate;
    auto runner = BundleRunner::open(written(counted_plan(), separate ? "apart.hoist" : "a.hoist"), how);
    ASSERT_OK(runner);
    ASSERT_EQ(runner->outputs().size(), 2u);  // the actual length is not an output of the model
    EXPECT_EQ(runner->outputs()[0].shape, (std::vector<int64_t>{2, 4}));
    for (const int64_t count : {3, 0, 4, 1}) {
      const Tensor x = Tensor::of(Scalar::f32, {2, 4}, std::vector<double>{double(count), 1, 2, 3, 4, 5, 6, 7});
      auto outputs = runner->run({x});
      ASSERT_OK(outputs);
      ASSERT_EQ((*outputs)[0].shape(), (std::vector<int64_t>{2, count}));
      for (int64_t i = 0; i < 2 * count; ++i)
        EXPECT_EQ((*outputs)[0].float_at(i), 2 * x.float_at(i / count * 4 + i % count));
      EXPECT_EQ((*outputs)[1], x);
    }
  }
}

std::vector<std::string> texts_of(const Tensor& tensor) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < tensor.size(); ++i) out.push_back(string_at(tensor, i));
  return out;
}

TEST_F(RunTest, TheHostPerformsStepsBetweenKernels) {
  for (const bool separate : {false, true}) {
    RunOptions how = options();
    how.separate_buffers = separate;
    auto runner = BundleRunner::open(written(text_plan(), separate ? "apart.hoist" : "a.hoist"), how);
    ASSERT_OK(runner);
    EXPECT_TRUE(runner->steps()[0].on_host);
    EXPECT_FALSE(runner->steps()[1].on_host);
    for (int round = 0; round < 3; ++round) {
      const std::string first = std::string(static_cast<size_t>(round * 1000), 'x') + std::to_string(round);
      const auto x = tensor_of_strings({3}, {first, "", std::string("a\0b", 3)});
      ASSERT_OK(x);
      auto outputs = runner->run({*x});
      ASSERT_OK(outputs);
      EXPECT_EQ(texts_of((*outputs)[0]), (std::vector<std::string>{std::string("a\0b?", 4), "", first + "!"}));
      EXPECT_EQ(texts_of((*outputs)[1]), (std::vector<std::string>{"!", "", "?"}));
      ASSERT_OK(runner->run());  // inputs stay set
      const auto again = runner->output(0);
      ASSERT_OK(again);
      EXPECT_EQ(*again, (*outputs)[0]);
    }
    const auto seconds = runner->profile();
    ASSERT_OK(seconds);
    ASSERT_OK(runner->run_steps(0, 1));
    ASSERT_OK(runner->run_steps(1, 1));  // the results of earlier steps are still there
    const auto findings = runner->verify();
    ASSERT_OK(findings);
    for (const Finding& finding : *findings) EXPECT_TRUE(finding.passed) << finding.subject << ": " << finding.message;
  }
}

// Arrays that only host ops use stay on the host, and a caller can read them as usual.
TEST_F(RunTest, StepsOnTheHostHandEachOtherTheirResults) {
  Plan plan = text_plan();
  plan.arena_bytes = 2 * 4096;
  plan.arrays.push_back({"joined twice", Scalar::string, {3}, Place::arena, 4096, {}});
  plan.arrays.push_back({"ends", Scalar::string, {3}, Place::output, 0, {}});
  // Arrays: x, joined, joined twice, ends; then the kernel, and a host op that reads the kernel's result.
  plan.arrays.push_back({"last", Scalar::string, {3}, Place::output, 0, {}});
  plan.steps = {{0, {"join"}, {0, 1, 2}},
                {0, {"join"}, {2, 1, 4}},
                {0, {"join"}, {4, 1, 5}},
                {1, {"reverse"}, {4, 3}},
                {0, {"join"}, {3, 1, 6}}};
  plan.outputs = {3, 1, 5, 6};
  for (const bool separate : {false, true}) {
    RunOptions how = options();
    how.separate_buffers = separate;
    auto runner = BundleRunner::open(written(plan, separate ? "apart.hoist" : "a.hoist"), how);
    ASSERT_OK(runner);
    for (const char* given : {"a", "bcd", ""}) {
      const std::string first = given;
      const auto x = tensor_of_strings({3}, {first, "", "x"});
      ASSERT_OK(x);
      const auto outputs = runner->run({*x});
      ASSERT_OK(outputs);
      EXPECT_EQ(texts_of((*outputs)[0]), (std::vector<std::string>{"x??", "", first + "!!"}));
      EXPECT_EQ(texts_of((*outputs)[1]), (std::vector<std::string>{"!", "", "?"}));
      EXPECT_EQ(texts_of((*outputs)[2]), (std::vector<std::string>{first + "!!!", "", "x???"}));
      EXPECT_EQ(texts_of((*outputs)[3]), (std::vector<std::string>{"x?\?!", "", first + "!!?"}));
      const auto between = runner->read_array(2);
      ASSERT_OK(between);
      EXPECT_EQ(texts_of(*between), (std::vector<std::string>{first + "!", "", "x?"}));
    }
    ASSERT_OK(runner->profile());
    for (size_t i = 0; i < plan.steps.size(); ++i) ASSERT_OK(runner->run_steps(i, 1));
    const auto last = runner->output(3);
    ASSERT_OK(last);
    EXPECT_EQ(texts_of(*last), (std::vector<std::string>{"x?\?!", "", "!!?"}));
  }
}

TEST_F(RunTest, StringsGoTheirOwnWays) {
  const std::string folder = written(text_plan()), cache = options().cache_folder;
  hoist_options how = {};
  how.cache_folder = cache.c_str();
  hoist_bundle* bundle = nullptr;
  ASSERT_EQ(hoist_open(folder.c_str(), &how, &bundle), HOIST_OK) << hoist_error_message(bundle);
  uint64_t words[3] = {};
  void* memory = nullptr;
  const void* result = nullptr;
  const hoist_string three[] = {{"a", 1}, {"b", 1}, {"c", 1}};
  hoist_string made[3];
  EXPECT_EQ(hoist_set_input(bundle, 0, words, sizeof words), HOIST_BAD_ARGUMENT);
  EXPECT_THAT(hoist_error_message(bundle), HasSubstr("hoist_set_input_strings"));
  EXPECT_EQ(hoist_input_memory(bundle, 0, &memory), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_output_memory(bundle, 0, &result), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_set_input_strings(bundle, 0, three, 2), HOIST_BAD_ARGUMENT);
  EXPECT_THAT(hoist_error_message(bundle), HasSubstr("2 strings given, and the array has 3"));
  EXPECT_EQ(hoist_set_input_strings(bundle, 1, three, 3), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_get_output_strings(bundle, 0, made, 3), HOIST_BAD_ARGUMENT);  // before any run
  EXPECT_EQ(hoist_run(bundle), HOIST_BAD_ARGUMENT);                             // before any input is set
  ASSERT_EQ(hoist_set_input_strings(bundle, 0, three, 3), HOIST_OK);
  ASSERT_EQ(hoist_run(bundle), HOIST_OK) << hoist_error_message(bundle);
  EXPECT_EQ(hoist_get_output(bundle, 0, words, sizeof words), HOIST_BAD_ARGUMENT);
  ASSERT_EQ(hoist_get_output_strings(bundle, 0, made, 3), HOIST_OK);
  EXPECT_STREQ(made[0].data, "c?");
  EXPECT_EQ(made[1].length, 1u);
  EXPECT_STREQ(made[2].data, "a!");
  // Seeded strings are drawn from the plan's strings and the empty one: x in "x!".
  std::set<std::string> drawn;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ASSERT_EQ(hoist_seed_inputs(bundle, seed), HOIST_OK);
    ASSERT_EQ(hoist_run(bundle), HOIST_OK) << hoist_error_message(bundle);
    ASSERT_EQ(hoist_get_output_strings(bundle, 0, made, 3), HOIST_OK);
    drawn.insert(made[2].data);
  }
  EXPECT_THAT(drawn, testing::UnorderedElementsAre("!", "!!", "?!"));
  hoist_close(bundle);
}

// A kernel may write an invalid string handle.
TEST_F(RunTest, AWordOfNoStringIsAnError) {
  Plan plan = text_plan();
  const std::string whole = "p0[2 - get_group_id(0)]";
  plan.kernels[1].source.replace(plan.kernels[1].source.find(whole), whole.size(), "77");
  auto runner = BundleRunner::open(written(plan), options());
  ASSERT_OK(runner);
  const auto x = tensor_of_strings({3}, {"a", "b", "c"});
  ASSERT_OK(x);
  const auto outputs = runner->run({*x});
  ASSERT_FALSE(outputs.ok());
  EXPECT_THAT(outputs.errors().front().text(), HasSubstr("element 0 holds no string"));
}

TEST_F(RunTest, MoreElementsThanThereIsRoomForAreAnError) {
  const std::string folder = written(counted_plan()), cache = options().cache_folder;
  hoist_options how = {};
  how.cache_folder = cache.c_str();
  hoist_bundle* bundle = nullptr;
  ASSERT_EQ(hoist_open(folder.c_str(), &how, &bundle), HOIST_OK) << hoist_error_message(bundle);
  EXPECT_EQ(hoist_output_count(bundle), 2u);
  EXPECT_EQ(hoist_output_index(bundle, "y.extent"), -1);
  hoist_array array;
  EXPECT_EQ(hoist_output(bundle, 2, &array), HOIST_BAD_ARGUMENT);
  int64_t shape[2] = {-1, -1}, number = 0;
  EXPECT_EQ(hoist_get_output(bundle, 2, &number, sizeof number), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_output_shape(bundle, 0, shape, 2), HOIST_BAD_ARGUMENT);  // before any run
  EXPECT_THAT(hoist_error_message(bundle), HasSubstr("has not run yet"));
  const auto run = [&](float first) {
    const float x[8] = {first};
    EXPECT_EQ(hoist_set_input(bundle, 0, x, sizeof x), HOIST_OK);
    EXPECT_EQ(hoist_run(bundle), HOIST_OK) << hoist_error_message(bundle);
    return hoist_output_shape(bundle, 0, shape, 2);
  };
  EXPECT_EQ(run(2), HOIST_OK);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[1], 2);
  EXPECT_EQ(hoist_output_shape(bundle, 0, shape, 1), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_output_shape(bundle, 1, shape, 2), HOIST_OK);
  EXPECT_EQ(shape[1], 4);
  for (const float wrong : {5.0F, -1.0F, 1e12F}) {
    EXPECT_EQ(run(wrong), HOIST_BAD_EXTENT);
    EXPECT_THAT(hoist_error_message(bundle), HasSubstr("along dimension 1, and its capacity is 4"));
  }
  hoist_close(bundle);
}

// A bundle for another kind of device opens and reports the difference. Another name of the same kind does not count.
TEST_F(RunTest, SaysWhetherTheDeviceIsOfTheKindThatItIsMadeFor) {
  const auto device = find_device("");
  ASSERT_OK(device);
  for (const bool fits : {true, false}) {
    Profile profile = profile_of(*device);
    profile.name = "of another machine";
    if (!fits) profile.gpu = !profile.gpu;
    // If only one kind of device is available, it is the default for the other kind's bundles too.
    const auto devices = list_devices();
    ASSERT_OK(devices);
    const bool is_here = std::any_of(devices->begin(), devices->end(),
                                     [&](const Device& d) { return profile_of(d).gpu == profile.gpu; });
    Plan plan = small_plan();
    plan.profile = print(profile);
    auto runner = BundleRunner::open(written(plan, fits ? "fits.hoist" : "strange.hoist"), options());
    ASSERT_OK(runner);
    EXPECT_EQ(runner->profile_name(), "of another machine");
    EXPECT_EQ(runner->profile_is_cpu(), !profile.gpu);
    EXPECT_EQ(runner->fits_profile(), is_here);
    EXPECT_EQ((*devices)[static_cast<size_t>(runner->device_index())].name, runner->device_name());
  }
}

TEST_F(RunTest, ABufferForEachArrayGivesTheSame) {
  RunOptions separate = options();
  separate.separate_buffers = true;
  auto runner = BundleRunner::open(written(small_plan()), separate);
  ASSERT_OK(runner);
  auto outputs = runner->run({input(4)});
  ASSERT_OK(outputs);
  EXPECT_EQ((*outputs)[0], small_plan_result(input(4)));
}

TEST_F(RunTest, OneThreadGivesTheSame) {
  RunOptions one = options();
  one.threads = 1;
  auto runner = BundleRunner::open(written(small_plan()), one);
  ASSERT_OK(runner);
  EXPECT_EQ(runner->threads(), 1);
  auto outputs = runner->run({input(5)});
  ASSERT_OK(outputs);
  EXPECT_EQ((*outputs)[0], small_plan_result(input(5)));
}

TEST_F(RunTest, MemoryOfTheHandleIsReadAndWritten) {
  for (const int separate : {0, 255}) {  // in place if the device supports it, transferred if forced
    const std::string folder = written(small_plan(), fmt::format("{}.hoist", separate)), cache = options().cache_folder;
    hoist_options how = {};
    how.separate_buffers = separate;
    how.cache_folder = cache.c_str();
    hoist_bundle* bundle = nullptr;
    ASSERT_EQ(hoist_open(folder.c_str(), &how, &bundle), HOIST_OK) << hoist_error_message(bundle);
    void* x = nullptr;
    const void *result = nullptr, *repeated = nullptr;
    ASSERT_EQ(hoist_input_memory(bundle, 0, &x), HOIST_OK);
    ASSERT_EQ(hoist_output_memory(bundle, 0, &result), HOIST_OK);
    ASSERT_EQ(hoist_output_memory(bundle, 1, &repeated), HOIST_OK);
    for (const uint64_t seed : {1, 2, 3}) {
      const Tensor given = input(seed), expected = small_plan_result(given);
      std::memcpy(x, given.data(), given.bytes().size());
      ASSERT_EQ(hoist_run(bundle), HOIST_OK) << hoist_error_message(bundle);
      EXPECT_EQ(std::memcmp(result, expected.data(), expected.bytes().size()), 0);
      EXPECT_EQ(std::memcmp(repeated, given.data(), given.bytes().size()), 0);
      Tensor copied(expected.scalar(), expected.shape());
      ASSERT_EQ(hoist_get_output(bundle, 0, copied.data(), copied.bytes().size()), HOIST_OK);
      EXPECT_EQ(copied, expected);
    }
    void* none = &bundle;
    EXPECT_EQ(hoist_input_memory(bundle, 7, &none), HOIST_BAD_ARGUMENT);
    EXPECT_EQ(none, nullptr);
    hoist_close(bundle);
  }
}

TEST_F(RunTest, StepsCanBeRunAndReadOneByOne) {
  auto runner = BundleRunner::open(written(small_plan()), options());
  ASSERT_OK(runner);
  ASSERT_OK(runner->set_input("x", input(6)));
  ASSERT_OK(runner->run_steps(0, 1));
  auto shifted = runner->read_array(3);
  ASSERT_OK(shifted);
  const Plan plan = small_plan();
  for (int64_t i = 0; i < 14 * 14; ++i) {
    const float scaled = 2.0f * static_cast<float>(input(6).float_at(i));
    EXPECT_EQ(static_cast<float>(shifted->float_at(i)),
              scaled + static_cast<float>(plan.arrays[1].constant.float_at(i % 14)));
  }
  auto before = runner->read_array(5);
  ASSERT_OK(before);
  EXPECT_EQ(before->float_at(0), 0);  // the later steps have not run
  ASSERT_OK(runner->run_steps(1, 2));
  auto after = runner->output(0);
  ASSERT_OK(after);
  EXPECT_EQ(*after, small_plan_result(input(6)));
  EXPECT_FALSE(runner->run_steps(2, 2).ok());
}

Tensor numbers(float add) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5f * static_cast<float>(i) + add;
  return Tensor::of(Scalar::f32, {64}, values);
}

// A run uses the fused launch; run_steps for fewer steps runs only parts of it.
TEST_F(RunTest, OneLaunchPerformsSeveralSteps) {
  Plan plan = joined_plan();
  // The kernel adds ten, while the function that fused launches call adds one.
  std::string& source = plan.kernels[0].source;
  const size_t call = source.find("hoist_group_increment(get_group_id(0)");
  source.replace(call, source.find(';', call) - call,
                 "vstore16(vload16(get_group_id(0), p0) + 10.0f, get_group_id(0), result)");
  auto runner = BundleRunner::open(written(plan), options());
  ASSERT_OK(runner);
  ASSERT_OK(runner->set_input("x", numbers(0)));
  ASSERT_OK(runner->run());
  EXPECT_EQ(*runner->output(0), numbers(1 + 1 + 1 + 10));
  ASSERT_OK(runner->run_steps(0, 3));
  ASSERT_OK(runner->run_steps(3, 1));
  EXPECT_EQ(*runner->output(0), numbers(1 + 1 + 1 + 10));
  ASSERT_OK(runner->run_steps(0, 2));
  EXPECT_EQ(*runner->read_array(3), numbers(1 + 1));
  ASSERT_OK(runner->run_steps(2, 2));
  EXPECT_EQ(*runner->output(0), numbers(1 + 1 + 1 + 10));
  auto times = runner->profile();
  ASSERT_OK(times);
  EXPECT_EQ(times->size(), 4u);
}

Tensor whole(int64_t value) { return Tensor::of(Scalar::i64, {}, std::vector<int64_t>{value}); }
Tensor truth(bool value) { return Tensor::of(Scalar::boolean, {}, std::vector<int>{value ? 1 : 0}); }

// With one launch per step, and with a fused launch in the loop and one in the branch.
TEST_F(RunTest, DataDecideWhichStepsRunAndHowOften) {
  const Tensor x = seeded_tensor(Scalar::f32, {64}, 1, 0, -1, 1);
  for (const bool separate : {false, true}) {
    RunOptions how = options();
    how.separate_buffers = separate;
    Plan plan = controlled_plan();
    if (separate) {
      plan.kernels[0].source = joined_plan().kernels[0].source;
      plan.launches = {{"in_loop", 0, 1}, {"in_branch", 1, 1}};
    }
    auto runner = BundleRunner::open(written(plan, separate ? "a.hoist" : "b.hoist"), how);
    ASSERT_OK(runner);
    for (const int64_t n : {3, 0, 4, 1, -7}) {
      for (const bool c : {true, false}) {
        auto out = runner->run({x, whole(n), truth(c)});
        ASSERT_OK(out);
        const int64_t times = std::max<int64_t>(n, 0);
        float sum = static_cast<float>(x.float_at(5));
        ASSERT_EQ((*out)[1].shape(), (std::vector<int64_t>{times, 64}));
        for (int64_t i = 0; i < times; ++i) EXPECT_EQ((*out)[1].float_at(i * 64 + 5), sum += 1);
        EXPECT_EQ((*out)[0].float_at(5), sum);
        EXPECT_EQ((*out)[2].float_at(5), c ? sum + 1 : static_cast<float>(x.float_at(5)));
        EXPECT_EQ(runner->step_runs(0), static_cast<uint64_t>(times));
        EXPECT_EQ(runner->step_runs(1), c ? 1u : 0u);
      }
    }
    auto endless = runner->run({x, whole(5), truth(true)});
    ASSERT_FALSE(endless.ok());
    EXPECT_THAT(endless.errors().front().text(), HasSubstr("loop loop: does not end within 4 iterations"));
    ASSERT_OK(runner->run({x, whole(2), truth(true)}));  // the next run starts afresh
  }
}

TEST_F(RunTest, StepsOfALoopCanBeReadBehindTheFirstIteration) {
  auto runner = BundleRunner::open(written(controlled_plan()), options());
  ASSERT_OK(runner);
  const Tensor x = seeded_tensor(Scalar::f32, {64}, 2, 0, -1, 1);
  ASSERT_OK(runner->set_input(0, x));
  ASSERT_OK(runner->set_input(1, whole(3)));
  ASSERT_OK(runner->set_input(2, truth(false)));
  ASSERT_OK(runner->run_steps(0, 1));
  EXPECT_EQ(runner->step_runs(0), 1u);
  EXPECT_EQ(runner->read_array(1)->float_at(0), x.float_at(0));
  EXPECT_EQ(runner->read_array(2)->float_at(0), static_cast<float>(x.float_at(0)) + 1);
  ASSERT_OK(runner->run_steps(1, 1));
  EXPECT_EQ(runner->step_runs(0), 3u);
  EXPECT_EQ(runner->step_runs(1), 0u);
  auto seconds = runner->profile();
  ASSERT_OK(seconds);
  EXPECT_GT((*seconds)[0], 0);
  EXPECT_EQ((*seconds)[1], 0);
}

TEST_F(RunTest, EveryStepHasATime) {
  auto runner = BundleRunner::open(written(small_plan()), options());
  ASSERT_OK(runner);
  ASSERT_OK(runner->set_input(0, input(1)));
  auto seconds = runner->profile();
  ASSERT_OK(seconds);
  ASSERT_EQ(seconds->size(), 3u);
  for (const double s : *seconds) EXPECT_GT(s, 0);
  EXPECT_EQ(*runner->output(0), small_plan_result(input(1)));
  EXPECT_EQ(runner->steps()[0].kernel, "shift_x");
  EXPECT_EQ(runner->steps()[0].layers[0], "Mul_0");
  EXPECT_EQ(runner->steps()[2].operations, 9 * 14 * 14);
}

TEST_F(RunTest, WrongInputsAreNamed) {
  auto runner = BundleRunner::open(written(small_plan()), options());
  ASSERT_OK(runner);
  auto unset = runner->run();
  ASSERT_FALSE(unset.ok());
  EXPECT_THAT(unset.errors().front().text(), HasSubstr("input x has not been set"));
  auto shape = runner->set_input("x", Tensor(Scalar::f32, {14, 14}));
  ASSERT_FALSE(shape.ok());
  EXPECT_THAT(shape.errors().front().text(), HasSubstr("[1][14][14]f32, given [14][14]f32"));
  auto name = runner->set_input("z", input(1));
  ASSERT_FALSE(name.ok());
  EXPECT_THAT(name.errors().front().text(), HasSubstr("no input is called z (there are: x)"));
}

TEST_F(RunTest, UnknownDevicesAreNamed) {
  RunOptions wrong = options();
  wrong.device = "no such device";
  auto runner = BundleRunner::open(written(small_plan()), wrong);
  ASSERT_FALSE(runner.ok());
  EXPECT_THAT(runner.errors().front().text(), HasSubstr("no device is called no such device (there are: 0 "));
  wrong.device = "99";
  EXPECT_FALSE(BundleRunner::open(folder_ / "a.hoist", wrong).ok());
}

// A whole run of six kernels with transfers; the limit allows for a busy machine.
TEST_F(RunTest, LaunchesAreCheap) {
  auto runner = BundleRunner::open(written(chain_plan(6)), options());
  ASSERT_OK(runner);
  const Tensor x = seeded_tensor(Scalar::f32, {64}, 1, 0, -1, 1);
  std::vector<double> microseconds;
  for (int i = 0; i < 500; ++i) {
    const auto start = std::chrono::steady_clock::now();
    auto outputs = runner->run({x});
    microseconds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    ASSERT_OK(outputs);
    ASSERT_FLOAT_EQ(static_cast<float>((*outputs)[0].float_at(5)), static_cast<float>(x.float_at(5)) + 6);
  }
  std::sort(microseconds.begin(), microseconds.end());
  RecordProperty("median_microseconds", std::to_string(microseconds[250]));
  std::printf("six kernels: fastest %.1f us, lower quartile %.1f us, median %.1f us on %s\n", microseconds[0],
              microseconds[125], microseconds[250], runner->device_name().c_str());
  EXPECT_LT(microseconds[0], 20000);
}

}  // namespace
}  // namespace hoist
