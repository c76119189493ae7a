// Tests the files of a bundle: they are deterministic, are read back as written, and every changed byte of a hashed
// file is detected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "backends/bundle/bundle.h"
#include "backends/bundle/bundle_text.h"
#include "backends/bundle/plan_format.h"
#include "backends/opencl/bundle_runner.h"
#include "backends/runtime/hoist_runtime.h"
#include "backends/runtime/plan/plan_file.h"
#include "ir/target/profile.h"
#include "tests/bundle/format_fixture.h"

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
    EXPECT_THAT(complaint(), HasSubstr("plan.bin states " + std::to_string(content.size())));
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
