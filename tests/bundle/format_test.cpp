// Tests the files of a bundle: they are deterministic, are read back as written, and every changed byte of a hashed
// file is detected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>

#include "backends/bundle/bundle.h"
#include "backends/bundle/bundle_text.h"
#include "backends/bundle/plan_format.h"
#include "backends/opencl/bundle_runner.h"
#include "backends/runtime/hoist_runtime.h"
#include "backends/runtime/plan/plan_file.h"
#include "ir/target/profile.h"
#include "tests/bundle/small_plan.h"

namespace hoist {
namespace {

using testing::HasSubstr;

const std::vector<std::string> hashed_files = {"weights.bin",
                                               "kernels.cl",
                                               "expressions.lift",
                                               "derivation.lift",
                                               "check.bin",
                                               "manifest.json",
                                               "runtime/hoist_runtime.h",
                                               "runtime/hoist_runtime.hpp",
                                               "runtime/hoist_runtime.c"};

class FormatTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto result = write_bundle(small_plan(), bundle_);
    ASSERT_TRUE(result.ok()) << result.errors().front().text();
  }
  /// The runtime's error message, or "" if it accepts the files.
  std::string complaint() {
    char message[1024] = "";
    const hoist_status status = hoist_verify_files(bundle_.c_str(), nullptr, nullptr, message, sizeof message);
    EXPECT_EQ(status == HOIST_OK, message[0] == 0);
    EXPECT_TRUE(status == HOIST_OK || status == HOIST_BAD_BUNDLE) << hoist_status_name(status);
    return message;
  }
  // The message for the changed plan.
  std::string complaint_of(Plan plan, const std::function<void(Plan&)>& change) {
    change(plan);
    write_text(bundle_ / "plan.bin", encode_plan(plan, {}));
    return complaint();
  }
  void reseal(const std::string& name, const std::string& content) { write_sealed(bundle_ / name, content); }
  /// The number of plans that the runtime refuses, among those with one byte of `plan` replaced by one of `values`.
  size_t refused_of(const std::string& plan, std::initializer_list<int> values) {
    size_t refused = 0;
    for (size_t i = 24; i + 8 < plan.size(); ++i) {
      for (const int value : values) {
        std::string changed = plan;
        if (changed[i] == static_cast<char>(value)) continue;
        changed[i] = static_cast<char>(value);
        reseal("plan.bin", changed);
        refused += complaint().empty() ? 0 : 1;
      }
    }
    return refused;
  }
  TestFolder folder_;
  std::filesystem::path bundle_ = folder_ / "a.hoist";
};

TEST_F(FormatTest, SamePlanSameBytes) {
  ASSERT_TRUE(write_bundle(small_plan(), folder_ / "b.hoist").ok());
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(bundle_)) {
    if (!entry.is_regular_file()) continue;
    const auto path = std::filesystem::relative(entry.path(), bundle_);
    EXPECT_EQ(read_text(entry.path()), read_text(folder_ / "b.hoist" / path)) << path;
    ++files;
  }
  EXPECT_EQ(files, hashed_files.size() + 4);  // plus plan.bin, example.c, Makefile, CMakeLists.txt
}

TEST_F(FormatTest, ReadsBackWhatWasWritten) {
  auto info = read_bundle(bundle_, true);
  ASSERT_TRUE(info.ok()) << info.errors().front().text();
  const Plan expected = small_plan();
  const Plan& plan = info->plan;
  EXPECT_EQ(plan.model_name, expected.model_name);
  EXPECT_EQ(plan.model_hash, expected.model_hash);
  EXPECT_EQ(plan.profile, expected.profile);
  EXPECT_EQ(plan.options, expected.options);
  EXPECT_EQ(plan.preamble, expected.preamble);
  EXPECT_EQ(plan.build_options, expected.build_options);
  EXPECT_EQ(plan.arena_bytes, expected.arena_bytes);
  EXPECT_EQ(plan.inputs, expected.inputs);
  EXPECT_EQ(plan.outputs, expected.outputs);
  EXPECT_EQ(plan.input_domains[0].high, 1);
  ASSERT_EQ(plan.arrays.size(), expected.arrays.size());
  for (size_t i = 0; i < plan.arrays.size(); ++i) {
    EXPECT_EQ(plan.arrays[i].name, expected.arrays[i].name);
    EXPECT_EQ(plan.arrays[i].scalar, expected.arrays[i].scalar);
    EXPECT_EQ(plan.arrays[i].shape, expected.arrays[i].shape);
    EXPECT_EQ(plan.arrays[i].place, expected.arrays[i].place);
    EXPECT_EQ(plan.arrays[i].offset, expected.arrays[i].offset);
    EXPECT_TRUE(std::ranges::equal(plan.arrays[i].constant.bytes(), expected.arrays[i].constant.bytes()));
  }
  ASSERT_EQ(plan.kernels.size(), expected.kernels.size());
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const PlanKernel &a = plan.kernels[i], &b = expected.kernels[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.layers, b.layers);
    EXPECT_EQ(a.source, b.source);
    EXPECT_EQ(a.expression, b.expression);
    EXPECT_EQ(a.global, b.global);
    EXPECT_EQ(a.local, b.local);
    EXPECT_EQ(a.local_bytes, b.local_bytes);
    EXPECT_EQ(a.operations, b.operations);
    EXPECT_EQ(a.check_seed, b.check_seed);
    EXPECT_EQ(a.check_positions, b.check_positions);
    EXPECT_EQ(a.check_values, b.check_values);
    EXPECT_EQ(a.extremes.one_in, b.extremes.one_in);
    EXPECT_EQ(a.extremes.which, b.extremes.which);
    EXPECT_EQ(a.extreme_values, b.extreme_values);
    EXPECT_EQ(a.parameters.size(), b.parameters.size());
    EXPECT_EQ(a.parameters[0].low, b.parameters[0].low);
    EXPECT_EQ(a.parameters[0].regions, b.parameters[0].regions);
    EXPECT_EQ(a.parameters.back().regions, b.parameters.back().regions);
  }
  ASSERT_EQ(plan.steps.size(), 3u);
  EXPECT_EQ(plan.steps[0].arguments, expected.steps[0].arguments);
  EXPECT_EQ(plan.steps[0].layers, expected.steps[0].layers);
  EXPECT_EQ(plan.derivation, expected.derivation);
  ASSERT_EQ(plan.layers.size(), expected.layers.size());
  EXPECT_EQ(plan.layers[3].absence, "");
  EXPECT_EQ(plan.layers[4].name, "Shape_0");
  EXPECT_EQ(plan.layers[4].operation, "Shape");
  EXPECT_EQ(plan.layers[4].absence, "evaluated at compile time");
  EXPECT_EQ(plan.model_check[0].values, expected.model_check[0].values);
  EXPECT_EQ(plan.model_tolerance.relative, expected.model_tolerance.relative);
}

TEST_F(FormatTest, PeopleCanReadIt) {
  const std::string kernels = read_text(bundle_ / "kernels.cl");
  EXPECT_THAT(kernels, HasSubstr("// kernel shift_x: Mul_0, Add \"1\"__/\n__attribute__"));
  EXPECT_THAT(read_text(bundle_ / "expressions.lift"), HasSubstr("-- kernel border: Pad_0\np0 |> pad2d 1 1 0\n"));
  const std::string manifest = read_text(bundle_ / "manifest.json");
  EXPECT_THAT(manifest, HasSubstr("\"hash\": \"0123456789abcdef\""));
  EXPECT_THAT(read_text(bundle_ / "derivation.lift"), HasSubstr("\nsteps\nmap-fusion at %x\n"));
}

TEST_F(FormatTest, EveryByteOfThePlanCounts) {
  const std::string plan = read_text(bundle_ / "plan.bin");
  ASSERT_EQ(complaint(), "");
  for (size_t i = 0; i < plan.size(); ++i) {
    std::string changed = plan;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    write_text(bundle_ / "plan.bin", changed);
    ASSERT_NE(complaint(), "") << "byte " << i;
  }
  for (size_t length = 0; length < plan.size(); ++length) {
    write_text(bundle_ / "plan.bin", plan.substr(0, length));
    ASSERT_NE(complaint(), "") << length << " bytes";
  }
  write_text(bundle_ / "plan.bin", plan + "x");
  EXPECT_NE(complaint(), "");
}

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

TEST_F(FormatTest, StepsOnTheHostAndStringsAreReadBack) {
  ASSERT_TRUE(write_bundle(text_plan(), bundle_, {true}).ok());
  const auto info = read_bundle(bundle_, true);
  ASSERT_TRUE(info.ok()) << info.errors().front().text();
  EXPECT_EQ(info->plan.kernels[0].host, "string_concat");
  EXPECT_EQ(info->plan.kernels[1].host, "");
  EXPECT_EQ(info->plan.strings, text_plan().strings);
  EXPECT_THAT(info->manifest, HasSubstr("\"host\": \"string_concat\""));
  const std::string plan = read_text(bundle_ / "plan.bin");
  EXPECT_GT(refused_of(plan, {0x00, 0x01, 0x17, 0x7f, 0xff}), plan.size());
  std::string unknown = plan;
  unknown.replace(unknown.find("string_concat"), 13, "string_shouts");
  reseal("plan.bin", unknown);
  EXPECT_THAT(complaint(), HasSubstr("a host op that this runtime does not have"));
  unknown = plan;
  unknown.replace(unknown.find("string_concat"), 13, std::string("string_lower\0", 13));
  reseal("plan.bin", unknown);
  EXPECT_NE(complaint(), "");
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
  EXPECT_THAT(said(outputs, 4), HasSubstr("more outputs than there are"));
  EXPECT_THAT(said(output, 2), HasSubstr("an extent of a dimension beyond the output's rank"));
  EXPECT_THAT(said(dimension, 2), HasSubstr("an extent of a dimension beyond the output's rank"));
  EXPECT_THAT(said(count, 3), HasSubstr("an extent of a missing output"));
  EXPECT_THAT(said(count, 1), HasSubstr("an extent of a missing output"));
  for (size_t at = outputs; at + 8 < plan.size(); ++at) {
    for (const int value : {1, 2, 3, 0x7f, 0xff}) said(at, value);
  }
}

TEST_F(FormatTest, EveryHashedFileCounts) {
  for (const std::string& file : hashed_files) {
    const std::string content = read_text(bundle_ / file);
    ASSERT_FALSE(content.empty()) << file;
    for (size_t i = 0; i < content.size(); i += 1 + content.size() / 40) {
      std::string changed = content;
      changed[i] = static_cast<char>(changed[i] ^ 0x10);
      write_text(bundle_ / file, changed);
      ASSERT_THAT(complaint(), HasSubstr(file)) << "byte " << i;
    }
    write_text(bundle_ / file, content.substr(0, content.size() - 1));
    EXPECT_THAT(complaint(), HasSubstr("plan.bin says " + std::to_string(content.size())));
    std::filesystem::remove(bundle_ / file);
    EXPECT_THAT(complaint(), HasSubstr("No such file"));
    EXPECT_FALSE(read_bundle(bundle_).ok());
    write_text(bundle_ / file, content);
    EXPECT_EQ(complaint(), "");
  }
}

TEST_F(FormatTest, ExampleAndMakefileAreTheUsers) {
  write_text(bundle_ / "example.c", "int main(void) { return 0; }\n");
  std::filesystem::remove(bundle_ / "Makefile");
  EXPECT_EQ(complaint(), "");
}

TEST_F(FormatTest, SaysWhatItIsMadeFor) {
  hoist_plan plan = {};
  hoist_error error = {};
  for (const bool gpu : {false, true}) {
    Plan written = small_plan();
    Profile profile;
    profile.name = gpu ? "a GPU" : "a CPU";
    profile.gpu = gpu;
    written.profile = print(profile);
    write_text(bundle_ / "plan.bin", encode_plan(written, {}));
    ASSERT_EQ(hoist_plan_read(bundle_.c_str(), &plan, &error), HOIST_OK) << error.message;
    EXPECT_EQ(plan.made_for.name, profile.name);
    EXPECT_EQ(plan.made_for.is_cpu, gpu ? 0 : 1);
    hoist_plan_free(&plan);
  }
  // After the header: the model's name with its length and a zero, its hash, and the name of the target description.
  std::string bytes = read_text(bundle_ / "plan.bin");
  const size_t kind = 24 + 4 + std::string("small").size() + 1 + 8 + 4 + std::string("a GPU").size() + 1;
  ASSERT_EQ(bytes.at(kind), 0);
  bytes[kind] = 2;
  reseal("plan.bin", bytes);
  EXPECT_THAT(complaint(), HasSubstr("an unknown kind of device"));
}

TEST_F(FormatTest, AnotherVersionIsRefusedByName) {
  const std::string newer = "format version " + std::to_string(HOIST_FORMAT_VERSION + 1) + " is newer than " +
                            std::to_string(HOIST_FORMAT_VERSION);
  std::string plan = read_text(bundle_ / "plan.bin");
  plan[8] = HOIST_FORMAT_VERSION + 1;
  reseal("plan.bin", plan);
  EXPECT_THAT(complaint(), HasSubstr(newer));
  RunOptions options;
  options.use_cache = false;
  const auto runner = BundleRunner::open(bundle_, options);
  ASSERT_FALSE(runner.ok());
  EXPECT_THAT(runner.errors().front().text(), HasSubstr(newer));
  plan[8] = HOIST_FORMAT_VERSION - 1;
  reseal("plan.bin", plan);
  EXPECT_THAT(complaint(), HasSubstr("is older than"));
  EXPECT_THAT(complaint(), HasSubstr("hoist compile MODEL.onnx -o BUNDLE --force"));
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
  // No elements, but extents for which strides would overflow.
  EXPECT_THAT(refusal(Scalar::f32, {0, power(32), power(32)}), HasSubstr(message));
  // The largest accepted size exceeds the memory of every device.
  write_text(bundle_ / "plan.bin", plan_of_shape(Scalar::f64, {power(45)}));
  EXPECT_EQ(complaint(), "");
}

TEST_F(FormatTest, ControlsAreReadBackAndNamedByTheManifest) {
  const Plan expected = controlled_plan();
  ASSERT_TRUE(write_bundle(expected, folder_ / "c.hoist").ok());
  auto info = read_bundle(folder_ / "c.hoist", true);
  ASSERT_TRUE(info.ok()) << info.errors().front().text();
  const Plan& plan = info->plan;
  ASSERT_EQ(plan.controls.size(), 2u);
  EXPECT_EQ(plan.controls[0].trips, 3);
  EXPECT_EQ(plan.controls[0].condition, -1);
  EXPECT_EQ(plan.controls[0].most, 4);
  EXPECT_TRUE(plan.controls[0].is_loop && plan.controls[0].fails);
  ASSERT_EQ(plan.controls[0].after.size(), 2u);
  EXPECT_TRUE(plan.controls[0].after[0].is_row);
  EXPECT_EQ(plan.controls[1].otherwise[0].to, 7);
  ASSERT_EQ(plan.items.size(), expected.items.size());
  EXPECT_EQ(plan.items[5].kind, PlanItem::Kind::otherwise);
  EXPECT_EQ(encode_plan(plan, {}), encode_plan(expected, {}));
  EXPECT_THAT(info->manifest, HasSubstr("\"kind\": \"branch\""));
  EXPECT_THAT(info->manifest, HasSubstr("\"trips\": \"n\""));
}

TEST_F(FormatTest, LaunchesAreReadBackAndNamedByTheManifest) {
  Plan expected = joined_plan();
  expected.is_serial = true;
  ASSERT_TRUE(write_bundle(expected, folder_ / "c.hoist").ok());
  auto info = read_bundle(folder_ / "c.hoist", true);
  ASSERT_TRUE(info.ok()) << info.errors().front().text();
  ASSERT_EQ(info->plan.launches.size(), 1u);
  EXPECT_EQ(info->plan.launches[0].name, "three");
  EXPECT_EQ(info->plan.launches[0].first, 0);
  EXPECT_EQ(info->plan.launches[0].count, 3);
  EXPECT_TRUE(info->plan.is_serial);
  EXPECT_EQ(encode_plan(info->plan, {}), encode_plan(expected, {}));
  EXPECT_THAT(info->manifest, HasSubstr("\"first_step\": 0"));
  EXPECT_THAT(read_text(folder_ / "c.hoist/kernels.cl"),
              HasSubstr("void three(\n    __global void *a0,\n    __global void *a1,\n    __global void *a2,\n"
                        "    volatile __global int *words, int items, int begin, int end)\n"));
  EXPECT_THAT(read_text(folder_ / "c.hoist/kernels.cl"),
              HasSubstr("HOIST_STEP(0, hoist_group_increment(group, 0, 0, a0, a1))\n"));
  EXPECT_THAT(read_text(folder_ / "c.hoist/kernels.cl"), HasSubstr("hoist_groups_three[3] = {4, "));
}

// Work-items have contiguous groups each, so the divided dimension varies slowest.
TEST(LaunchText, GroupsAreNumberedByTheDividedDimension) {
  Plan plan = joined_plan();
  const auto call_of_first_step = [&](size_t divided) {
    plan.kernels[0].global = {8, 3, 2};
    plan.kernels[0].local = {2, 1, 1};
    plan.kernels[0].divided = divided;
    const std::string text = kernels_text(plan).text;
    const size_t begin = text.find("HOIST_STEP(0, ");
    return text.substr(begin, text.find(", a0", begin) - begin);
  };
  EXPECT_EQ(call_of_first_step(0), "HOIST_STEP(0, hoist_group_increment(group / 6, group % 3, group / 3 % 2");
  EXPECT_EQ(call_of_first_step(1), "HOIST_STEP(0, hoist_group_increment(group % 4, group / 8, group / 4 % 2");
  EXPECT_EQ(call_of_first_step(2), "HOIST_STEP(0, hoist_group_increment(group % 4, group / 4 % 3, group / 12");
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
  const char* const parts = "a branch has parts of a loop";
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

TEST_F(FormatTest, OpeningChecksWhatItReads) {
  RunOptions options;
  options.use_cache = false;
  for (const char* file : {"weights.bin", "kernels.cl"}) {
    const std::string content = read_text(bundle_ / file);
    std::string changed = content;
    changed[3] = static_cast<char>(changed[3] ^ 1);
    write_text(bundle_ / file, changed);
    const auto runner = BundleRunner::open(bundle_, options);
    ASSERT_FALSE(runner.ok());
    EXPECT_THAT(runner.errors().front().text(), HasSubstr(std::string(file) + ": hash"));
    write_text(bundle_ / file, content);
  }
  const auto missing = BundleRunner::open(folder_ / "nothing.hoist", options);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.errors().front().text(), HasSubstr("plan.bin: No such file"));
}

TEST_F(FormatTest, APipeInPlaceOfAFileDoesNotHang) {
  std::filesystem::remove(bundle_ / "plan.bin");
  ASSERT_EQ(::mkfifo((bundle_ / "plan.bin").c_str(), 0600), 0);
  EXPECT_THAT(complaint(), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace hoist
