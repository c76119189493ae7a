// Tests plans whose parts contradict each other: the runtime refuses such untrusted input with a message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/bundle/plan_format.h"
#include "backends/opencl/bundle_runner.h"
#include "backends/runtime/plan/plan_file.h"
#include "tests/bundle/format_fixture.h"

namespace hoist {
namespace {

using testing::HasSubstr;

// With a corrected hash, the contents must still be consistent: any change gives a message or a valid plan, and never a
// crash (sanitizer builds run this test too).
TEST_F(FormatTest, HostilePlansWithRightHashesAreSafe) {
  const std::string plan = read_text(bundle_ / "plan.bin"), check = read_text(bundle_ / "check.bin");
  EXPECT_GT(refused_of(plan, {0x00, 0x01, 0x7f, 0xff}), plan.size());
  reseal("plan.bin", plan);
  EXPECT_EQ(complaint(), "");
  // The same for check.bin; its hash in the plan is corrected too.
  for (size_t i = 24; i + 8 < check.size(); ++i) {
    std::string changed = check;
    changed[i] = static_cast<char>(changed[i] ^ 0xff);
    reseal("check.bin", changed);
    const std::string sealed = read_text(bundle_ / "check.bin");
    hoist_plan read = {};
    hoist_error error = {};
    ASSERT_EQ(hoist_plan_read(bundle_.c_str(), &read, &error), HOIST_OK);
    for (size_t f = 0; f < read.file_count; ++f) {
      if (std::string(read.files[f].path) != "check.bin") continue;
      read.files[f].hash = hoist_hash(sealed.data(), sealed.size());
    }
    hoist_checks checks = {};
    if (hoist_checks_read(&read, &checks, &error) == HOIST_OK) {
      hoist_pool_free(&checks.pool);
    } else {
      EXPECT_EQ(error.status, HOIST_BAD_BUNDLE);
    }
    hoist_plan_free(&read);
  }
}

// Extents are the last section of the plan before the strings and the specialisations, which are absent here (three
// counts): the number of the model's outputs, the number of extents, and three integers per extent.
TEST_F(FormatTest, ExtentsAreOfDimensionsThatThereAre) {
  ASSERT_TRUE(write_bundle(counted_plan(), bundle_, {true}).ok());
  auto info = read_bundle(bundle_);
  ASSERT_TRUE(info.ok()) << info.errors().front().text();
  EXPECT_EQ(info->plan.outputs, counted_plan().outputs);
  ASSERT_EQ(info->plan.extents.size(), 1u);
  EXPECT_EQ(info->plan.extents[0].dimension, 1);
  EXPECT_EQ(info->plan.model_outputs(), 2u);
  EXPECT_THAT(info->manifest, HasSubstr("\"count\": \"y.extent\""));
  const std::string plan = read_text(bundle_ / "plan.bin");
  const size_t outputs = plan.size() - 40, output = plan.size() - 32, dimension = plan.size() - 28,
               count = plan.size() - 24;
  const auto said = [&](size_t at, int value) {
    std::string changed = plan;
    changed[at] = static_cast<char>(value);
    reseal("plan.bin", changed);
    return complaint();
  };
  EXPECT_EQ(said(output, 0), "");
  EXPECT_THAT(said(outputs, 4), HasSubstr("more outputs than the plan"));
  EXPECT_THAT(said(output, 2), HasSubstr("an extent of a dimension beyond the output's rank"));
  EXPECT_THAT(said(dimension, 2), HasSubstr("an extent of a dimension beyond the output's rank"));
  EXPECT_THAT(said(count, 3), HasSubstr("an extent of a missing output"));
  EXPECT_THAT(said(count, 1), HasSubstr("an extent of a missing output"));
  for (size_t at = outputs; at + 8 < plan.size(); ++at) {
    for (const int value : {1, 2, 3, 0x7f, 0xff}) said(at, value);
  }
}

// The second step reads the first half of an array and writes the second half.
Plan halves_plan() {
  Plan plan = chain_plan(1);
  plan.kernels[0].parameters[0].regions = {{{64}, {0}, {32}}};
  plan.kernels[0].parameters[1].regions = {{{64}, {32}, {32}}};
  plan.steps.push_back({0, {"in_place"}, {1, 1}});
  return plan;
}

TEST_F(FormatTest, AStepReadsOtherElementsThanItWrites) {
  const auto refusal = [&](const Plan& plan) {
    write_text(bundle_ / "plan.bin", encode_plan(plan, {}));
    return complaint();
  };
  const char* const message = "a step writes elements that it also reads";
  Plan plan = halves_plan();
  EXPECT_EQ(refusal(plan), "");
  plan.kernels[0].parameters[0].regions = {{{64}, {0}, {16}}, {{64}, {31}, {2}}};
  EXPECT_THAT(refusal(plan), HasSubstr(message));
  plan.kernels[0].parameters[0].regions = {};
  EXPECT_THAT(refusal(plan), HasSubstr(message));
  plan = halves_plan();
  plan.kernels[0].parameters[1].regions = {{{64}, {33}, {32}}};
  EXPECT_THAT(refusal(plan), HasSubstr("a region reaches beyond its array"));
}

TEST_F(FormatTest, ArraysOfAStepDoNotShareMemory) {
  Plan plan = chain_plan(3);
  plan.arrays[3].offset = 64;
  write_text(bundle_ / "plan.bin", encode_plan(plan, {}));
  EXPECT_THAT(complaint(), HasSubstr("shares memory"));
}

// A plan with arrays of this shape and type, but without their values.
std::string plan_of_shape(Scalar scalar, const std::vector<int64_t>& shape) {
  Plan plan = chain_plan(1);
  for (size_t i = 0; i < 2; ++i) {
    plan.arrays[i].scalar = plan.kernels[0].parameters[i].scalar = scalar;
    plan.arrays[i].shape = plan.kernels[0].parameters[i].shape = shape;
  }
  return encode_plan(plan, {});
}

TEST_F(FormatTest, NoProductOfExtentsWrapsAround) {
  const auto refusal = [&](Scalar scalar, const std::vector<int64_t>& shape) {
    write_text(bundle_ / "plan.bin", plan_of_shape(scalar, shape));
    return complaint();
  };
  const auto power = [](int exponent) { return int64_t{1} << exponent; };
  const char* const message = "an array is too large";
  EXPECT_EQ(refusal(Scalar::f32, {64}), "");
  EXPECT_EQ(refusal(Scalar::f32, {8, 8}), "");
  // Sizes in bits that are 0 or small modulo 2^64.
  EXPECT_THAT(refusal(Scalar::f64, {power(58)}), HasSubstr(message));
  EXPECT_THAT(refusal(Scalar::f64, {power(29), power(29)}), HasSubstr(message));
  EXPECT_THAT(refusal(Scalar::i16, {power(60)}), HasSubstr(message));
  EXPECT_THAT(refusal(Scalar::i4, {power(62)}), HasSubstr(message));
  EXPECT_THAT(refusal(Scalar::f64, {power(45) + 1}), HasSubstr(message));
  EXPECT_THAT(refusal(Scalar::f32, {-1}), HasSubstr(message));
  EXPECT_THAT(refusal(Scalar::f32, {64, power(32), power(32)}), HasSubstr(message));
  // An empty array whose strides would overflow.
  EXPECT_THAT(refusal(Scalar::f32, {0, power(32), power(32)}), HasSubstr(message));
  // The largest accepted size exceeds the memory of every device.
  write_text(bundle_ / "plan.bin", plan_of_shape(Scalar::f64, {power(45)}));
  EXPECT_EQ(complaint(), "");
}

TEST_F(FormatTest, LaunchesOfStrangersAreRefused) {
  const auto refusal = [&](const auto& change) { return complaint_of(joined_plan(), change); };
  EXPECT_EQ(refusal([](Plan&) {}), "");
  const char* const steps = "a launch without steps, with steps of another launch, or with missing steps";
  EXPECT_THAT(refusal([](Plan& plan) { plan.launches[0].count = 0; }), HasSubstr(steps));
  EXPECT_THAT(refusal([](Plan& plan) { plan.launches[0].count = 5; }), HasSubstr(steps));
  EXPECT_THAT(refusal([](Plan& plan) { plan.launches[0].first = -1; }), HasSubstr(steps));
  EXPECT_THAT(refusal([](Plan& plan) { plan.launches.push_back({"again", 2, 2}); }), HasSubstr(steps));
  const char* const groups = "a launch of kernels whose groups have several work-items";
  EXPECT_THAT(refusal([](Plan& plan) { plan.kernels[0].local = {2, 1, 1}; }), HasSubstr(groups));
  EXPECT_THAT(refusal([](Plan& plan) { plan.kernels[0].local_bytes = 64; }), HasSubstr(groups));
  EXPECT_THAT(refusal([](Plan& plan) {
                const int steps = HOIST_MOST_LAUNCH_ARGUMENTS / 2 + 1;
                plan.steps.resize(static_cast<size_t>(steps), plan.steps[1]);
                plan.launches[0].count = steps;
              }),
              HasSubstr("too many arguments"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.launches[0].name = "thr ee"; }), HasSubstr("is not an identifier"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.targets = {"x86-64-v3"}; }), HasSubstr("fused launches in native code"));
  const auto across = [&](const std::vector<PlanLaunch>& launches) {
    return complaint_of(controlled_plan(), [&](Plan& plan) { plan.launches = launches; });
  };
  EXPECT_EQ(across({{"one", 0, 1}, {"other", 1, 1}}), "");
  EXPECT_THAT(across({{"both", 0, 2}}), HasSubstr("a control begins or ends within a launch"));
}

TEST_F(FormatTest, ControlsOfStrangersAreRefused) {
  const auto refusal = [&](const auto& change) { return complaint_of(controlled_plan(), change); };
  using Kind = PlanItem::Kind;
  EXPECT_EQ(refusal([](Plan&) {}), "");
  const char* const numbers = "a control reads or writes a number of another type";
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].trips = 0; }), HasSubstr(numbers));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[1].condition = 3; }), HasSubstr(numbers));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].next = 5; }), HasSubstr(numbers));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].trips = 99; }), HasSubstr("names a missing array"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[1].condition = -1; }), HasSubstr("names a missing array"));
  const char* const written = "a control writes an input or a weight";
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].count = 3; }), HasSubstr(written));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].number = 3; }), HasSubstr(written));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[1].after[0].to = 0; }), HasSubstr(written));
  const char* const fits = "a control copies an array into one of another type or size";
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].before[0].from = 3; }), HasSubstr(fits));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].after[0].is_row = false; }), HasSubstr(fits));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].before[0].is_row = true; }), HasSubstr(fits));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].most = 5; }), HasSubstr(fits));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].most = int64_t{1} << 40; }), HasSubstr("too many iterations"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].after[1].to = 2; }), HasSubstr("onto itself"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].after[1].from = 77; }), HasSubstr("names a missing"));
  EXPECT_THAT(refusal([](Plan& plan) {
                plan.arrays[8].offset = 0;
                plan.controls[0].after[1] = {2, 8};
              }),
              HasSubstr("onto itself"));
  const char* const parts = "a branch has fields of a loop";
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[1].most = 1; }), HasSubstr(parts));
  EXPECT_THAT(refusal([](Plan& plan) { plan.controls[0].otherwise = {{0, 7}}; }), HasSubstr(parts));
  const char* const item = "an item that no run executes";
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_NE(refusal([&](Plan& plan) { plan.items.erase(plan.items.begin() + static_cast<std::ptrdiff_t>(i)); }), "");
    EXPECT_NE(refusal([&](Plan& plan) { plan.items.insert(plan.items.begin(), plan.items[i]); }), "");
    EXPECT_THAT(refusal([&](Plan& plan) { plan.items[i].index = 7; }), HasSubstr(item));
  }
  EXPECT_THAT(refusal([](Plan& plan) { plan.items[0].kind = static_cast<Kind>(9); }), HasSubstr(item));
  EXPECT_THAT(refusal([](Plan& plan) { std::swap(plan.items[2], plan.items[3]); }), HasSubstr(item));
  EXPECT_THAT(refusal([](Plan& plan) { plan.items[2].kind = Kind::otherwise; }), HasSubstr(item));
  EXPECT_THAT(refusal([](Plan& plan) { plan.items.pop_back(); }), HasSubstr("not every step and control"));
}

TEST_F(FormatTest, LaunchSizesFitWhatIsWritten) {
  const auto refusal = [&](const std::function<void(Plan&)>& change) {
    Plan plan = chain_plan(1);
    change(plan);
    write_text(bundle_ / "plan.bin", encode_plan(plan, {}));
    return complaint();
  };
  const char* const message = "more groups than elements to write";
  EXPECT_EQ(refusal([](Plan& plan) { plan.kernels[0].global = {64, 1, 1}; }), "");
  EXPECT_THAT(refusal([](Plan& plan) { plan.kernels[0].global = {65, 1, 1}; }), HasSubstr(message));
  EXPECT_THAT(refusal([](Plan& plan) { plan.kernels[0].global = {8, 8, 2}; }), HasSubstr(message));
  EXPECT_EQ(refusal([](Plan& plan) {
              plan.kernels[0].global = {128, 1, 1};
              plan.kernels[0].local = {2, 1, 1};
            }),
            "");
  EXPECT_THAT(refusal([](Plan& plan) { plan.kernels.push_back(small_plan().kernels[0]); }),
              HasSubstr("a kernel belongs to no step"));
}

// Otherwise the host might grant the allocation first and end the program at the first access.
TEST_F(FormatTest, ABundleThatNoDeviceHoldsIsRefusedBeforeItIsTried) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{int64_t{1} << 45}, {0}, {64}}) {
    Plan plan = chain_plan(1);
    plan.arrays[0].shape = plan.kernels[0].parameters[0].shape = shape;
    plan.arrays[1].shape = plan.kernels[0].parameters[1].shape = shape;
    plan.kernels[0].global = {1, 1, 1};
    std::vector<HashedFile> files;
    for (const char* name : {"weights.bin", "kernels.cl"}) {
      const std::string content = std::string(name) == "weights.bin" ? "" : plan.kernels[0].source;
      write_text(bundle_ / name, content);
      files.push_back({name, content.size(), hoist_hash(content.data(), content.size())});
    }
    write_text(bundle_ / "plan.bin", encode_plan(plan, files));
    RunOptions options;
    options.use_cache = false;
    const auto runner = BundleRunner::open(bundle_, options);
    if (shape[0] <= 64) {
      EXPECT_TRUE(runner.ok()) << runner.errors().front().text();
    } else {
      ASSERT_FALSE(runner.ok());
      EXPECT_THAT(runner.errors().front().text(), HasSubstr("x: needs 140737488355328 bytes"));
    }
  }
}

TEST_F(FormatTest, GroupsAreThoseOfTheSource) {
  Plan plan = chain_plan(1);
  plan.kernels[0].local = {2, 1, 1};
  ASSERT_TRUE(write_bundle(plan, folder_ / "c.hoist").ok());
  RunOptions options;
  options.use_cache = false;
  const auto runner = BundleRunner::open(folder_ / "c.hoist", options);
  ASSERT_FALSE(runner.ok());
  EXPECT_THAT(runner.errors().front().text(), HasSubstr("groups of 1 x 1 x 1 work-items in kernels.cl, 2 x 1 x 1"));
}

}  // namespace
}  // namespace hoist
