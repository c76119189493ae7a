// Tests bundles for several sizes: their files, the choice of a specialisation, and untrusted files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "backends/bundle/bundle.h"
#include "backends/bundle/plan_format.h"
#include "backends/opencl/bundle_runner.h"
#include "backends/runtime/hoist_runtime.h"
#include "backends/runtime/hoist_runtime.hpp"
#include "backends/runtime/plan/plan_file.h"
#include "tests/bundle/small_plan.h"

namespace hoist {
namespace {

using testing::HasSubstr;

class SpecialisationsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const int64_t batch : {1, 3}) {
      for (const int64_t length : {4, 7}) plans_.push_back(sized_plan(batch, length));
    }
    std::vector<SizedPlan> sized;
    std::vector<Plan> written = plans_;  // loses its constants
    for (Plan& plan : written) {
      const std::vector<int64_t>& shape = plan.arrays[0].shape;
      sized.push_back({{{"batch", shape[0]}, {"length", shape[1]}}, &plan});
    }
    const auto result = write_bundle(sized, bundle_);
    ASSERT_TRUE(result.ok()) << result.errors().front().text();
    options_.cache_folder = cache_.c_str();
  }

  std::string complaint() {
    char message[1024] = "";
    hoist_verify_files(bundle_.c_str(), nullptr, nullptr, message, sizeof message);
    return message;
  }
  void reseal(const std::string& name, const std::string& content) { write_sealed(bundle_ / name, content); }

  TestFolder folder_;
  std::vector<Plan> plans_;
  std::filesystem::path bundle_ = folder_ / "sized.hoist";
  std::string cache_ = (folder_ / "cache").string();
  hoist_options options_ = {};
};

TEST_F(SpecialisationsTest, WeightsOfTheSameBytesAreThereOnce) {
  // The weight 3, then 10 * i for one sample (0) and for three samples.
  EXPECT_EQ(std::filesystem::file_size(bundle_ / "weights.bin"), 192u);
  for (size_t i = 0; i < plans_.size(); ++i) {
    auto info = read_bundle(bundle_, true, i);
    ASSERT_TRUE(info.ok()) << info.errors().front().text();
    ASSERT_EQ(info->sizes.size(), 4u);
    const std::vector<std::pair<std::string, int64_t>> sizes = {{"batch", plans_[i].arrays[0].shape[0]},
                                                                {"length", plans_[i].arrays[0].shape[1]}};
    EXPECT_EQ(info->sizes[i], sizes);
    EXPECT_EQ(info->plan.arrays[0].shape, plans_[i].arrays[0].shape);
    EXPECT_EQ(info->plan.arrays[2].constant, plans_[i].arrays[2].constant);
    EXPECT_EQ(info->plan.arrays[3].constant, plans_[i].arrays[3].constant);
  }
  EXPECT_FALSE(read_bundle(bundle_, false, 4).ok());
  EXPECT_THAT(read_text(bundle_ / "manifest.json"), HasSubstr("\"folder\": \"specialisation-2\""));
}

TEST_F(SpecialisationsTest, OnePlanIsWrittenAsEver) {
  Plan plan = sized_plan(3, 4);
  ASSERT_TRUE(write_bundle(plan, folder_ / "a.hoist").ok());
  ASSERT_TRUE(write_bundle(std::vector<SizedPlan>{{{}, &plan}}, folder_ / "b.hoist").ok());
  EXPECT_EQ(read_text(folder_ / "a.hoist" / "plan.bin"), read_text(folder_ / "b.hoist" / "plan.bin"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.hoist" / "specialisation-1"));
}

TEST_F(SpecialisationsTest, SizesAndShapesChoose) {
  hoist_bundle* bundle = nullptr;
  ASSERT_EQ(hoist_open(bundle_.c_str(), &options_, &bundle), HOIST_OK) << hoist_error_message(bundle);
  ASSERT_EQ(hoist_specialisation_count(bundle), 4u);
  hoist_specialisation one;
  ASSERT_EQ(hoist_describe_specialisation(bundle, 2, &one), HOIST_OK);
  ASSERT_EQ(one.size_count, 2u);
  EXPECT_STREQ(one.names[1], "length");
  EXPECT_EQ(one.sizes[0], 3);
  EXPECT_EQ(hoist_describe_specialisation(bundle, 4, &one), HOIST_BAD_ARGUMENT);
  const auto shape = [&] {
    hoist_array array;
    EXPECT_EQ(hoist_output(bundle, 0, &array), HOIST_OK);
    return std::vector<int64_t>(array.shape, array.shape + array.rank);
  };
  // A run gives the result of the chosen sizes, whatever the order of choices.
  const auto check = [&](int64_t batch, int64_t length) {
    ASSERT_EQ(shape(), (std::vector<int64_t>{batch, length}));
    std::vector<float> x(static_cast<size_t>(batch * length)), y(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    ASSERT_EQ(hoist_set_input(bundle, 0, x.data(), x.size() * 4), HOIST_OK);
    ASSERT_EQ(hoist_run(bundle), HOIST_OK) << hoist_error_message(bundle);
    ASSERT_EQ(hoist_get_output(bundle, 0, y.data(), y.size() * 4), HOIST_OK);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t row = i / size_t(length);
      EXPECT_EQ(y[i], 3 * x[i] + 10 * static_cast<float>(row));
    }
  };
  check(1, 4);
  EXPECT_EQ(hoist_choose_size(bundle, "batch", 3), HOIST_OK);
  check(3, 4);
  EXPECT_EQ(hoist_choose_size(bundle, "length", 7), HOIST_OK);
  check(3, 7);
  const int64_t wanted[] = {1, 7};
  EXPECT_EQ(hoist_choose_input_shape(bundle, 0, wanted, 2), HOIST_OK);
  check(1, 7);
  EXPECT_EQ(hoist_specialisation_in_use(bundle), 1u);
  EXPECT_EQ(hoist_choose(bundle, 0), HOIST_OK);
  check(1, 4);
  // Inputs belong to the specialisation and keep their values.
  EXPECT_EQ(hoist_choose(bundle, 2), HOIST_OK);
  EXPECT_EQ(hoist_run(bundle), HOIST_OK);

  // An unknown size is named in the error and changes nothing.
  EXPECT_EQ(hoist_choose_size(bundle, "batch", 2), HOIST_BAD_SIZE);
  EXPECT_STREQ(hoist_status_name(HOIST_BAD_SIZE), "bad size");
  EXPECT_THAT(hoist_error_message(bundle), HasSubstr("batch=2: the bundle is not compiled for it (there are: 1, 3)"));
  EXPECT_EQ(hoist_choose_size(bundle, "width", 2), HOIST_BAD_ARGUMENT);
  EXPECT_THAT(hoist_error_message(bundle), HasSubstr("(there are: batch, length)"));
  const int64_t other[] = {3, 5, 1};
  EXPECT_EQ(hoist_choose_input_shape(bundle, 0, other, 2), HOIST_BAD_SIZE);
  EXPECT_THAT(hoist_error_message(bundle),
              HasSubstr("input x: the bundle is not compiled for [3,5] (there are: [1,4] [1,7] [3,4] [3,7])"));
  EXPECT_EQ(hoist_choose_input_shape(bundle, 0, other, 3), HOIST_BAD_SIZE);
  EXPECT_EQ(hoist_choose_input_shape(bundle, 1, other, 2), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_choose(bundle, 4), HOIST_BAD_ARGUMENT);
  check(3, 4);

  size_t plans = 0;
  const auto count = [](void* user, const hoist_finding* finding) {
    EXPECT_EQ(finding->passed, 1) << finding->message;
    *static_cast<size_t*>(user) += std::strncmp(finding->subject, "kernel scale_", 13) == 0 ? 1 : 0;
  };
  EXPECT_EQ(hoist_verify(bundle, count, &plans), HOIST_OK) << hoist_error_message(bundle);
  EXPECT_EQ(plans, 4u);
  check(3, 4);  // the previous one
  hoist_close(bundle);
}

TEST_F(SpecialisationsTest, ABundleForOneSetOfSizesHasNothingToChoose) {
  ASSERT_TRUE(write_bundle(sized_plan(3, 4), bundle_, {true}).ok());
  Bundle bundle(bundle_.string(), options_);
  ASSERT_EQ(bundle.specialisations().size(), 1u);
  EXPECT_TRUE(bundle.specialisations()[0].empty());
  bundle.choose_input_shape("x", {3, 4});
  for (const auto& wrong : {std::vector<int64_t>{4, 4}, {3}, {}}) {
    try {
      bundle.choose_input_shape("x", wrong);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), HOIST_BAD_SIZE);
      EXPECT_THAT(error.what(), HasSubstr("(there are: [3,4])"));
    }
  }
  EXPECT_THROW(bundle.choose_size("batch", 3), Error);
}

TEST_F(SpecialisationsTest, TheWrapperChooses) {
  Bundle bundle(bundle_.string(), options_);
  ASSERT_EQ(bundle.specialisations().size(), 4u);
  EXPECT_EQ(bundle.specialisations()[3], (hoist::Sizes{{"batch", 3}, {"length", 7}}));
  bundle.choose_size("batch", 3);
  for (float& x : bundle.input<float>("x")) x = 1;
  bundle.run();
  EXPECT_EQ(bundle.output<float>("y").size(), 12u);
  EXPECT_EQ(bundle.output<float>("y")[11], 23);
}

TEST_F(SpecialisationsTest, HostilePlansWithRightHashesAreSafe) {
  EXPECT_EQ(complaint(), "");
  const std::string plan = read_text(bundle_ / "plan.bin");
  const size_t names = plan.find("batch", plan.size() - 400) - 8;
  ASSERT_LT(names, plan.size());
  size_t refused = 0;
  for (size_t i = names; i + 8 < plan.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x03, 0x7f, 0xff}) {
      std::string changed = plan;
      if (changed[i] == static_cast<char>(value)) continue;
      changed[i] = static_cast<char>(value);
      reseal("plan.bin", changed);
      refused += complaint().empty() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, plan.size() - names);
  const auto said = [&](const std::string& from, const std::string& to) {
    std::string changed = plan;
    const size_t at = changed.rfind(from);
    EXPECT_NE(at, std::string::npos);
    changed.replace(at, from.size(), to);
    reseal("plan.bin", changed);
    return complaint();
  };
  EXPECT_THAT(said("specialisation-3", "specialisation/3"),
              HasSubstr("the folder name of a specialisation is invalid"));
  EXPECT_THAT(said("specialisation-3", "../cialisation-3"),
              HasSubstr("the folder name of a specialisation is invalid"));
  EXPECT_THAT(said("specialisation-3", "specialisation-2"), HasSubstr("the same folder"));
  EXPECT_THAT(said("specialisation-3", "specialisation-4"), HasSubstr("plan.bin lists no file"));
  EXPECT_THAT(said("specialisation-1", std::string("specialisation-") + '\0'), HasSubstr("text"));
}

// The plan of another specialisation is read only with a valid hash, so these are cases that a malicious writer of both
// files can produce.
TEST_F(SpecialisationsTest, APlanForOtherSizesHasTheListedInputs) {
  const auto said = [&](const Plan& other, const ListedSpecialisations& inner) {
    const std::string bytes = encode_plan(other, {}, 192, inner);
    hoist_plan root = {}, plan = {};
    hoist_error error = {};
    EXPECT_EQ(hoist_plan_read(bundle_.c_str(), &root, &error), HOIST_OK);
    write_text(bundle_ / "specialisation-2" / "plan.bin", bytes);
    for (size_t i = 0; i < root.file_count; ++i) {
      if (std::string(root.files[i].path) != "specialisation-2/plan.bin") continue;
      root.files[i].bytes = bytes.size();
      root.files[i].hash = hoist_hash(bytes.data(), bytes.size());
    }
    std::string out;
    if (hoist_plan_read_specialisation(&root, 2, &plan, &error) != HOIST_OK)
      out = error.message;
    else
      hoist_plan_free(&plan);
    hoist_plan_free(&root);
    return out;
  };
  EXPECT_EQ(said(plans_[2], {}), "");
  EXPECT_THAT(said(plans_[3], {}), HasSubstr("has inputs of other shapes than the bundle states"));
  Plan renamed = plans_[2];
  renamed.arrays[0].name = "z";
  EXPECT_THAT(said(renamed, {}), HasSubstr("has other inputs"));
  Plan without = plans_[2];
  without.inputs.clear();
  EXPECT_THAT(said(without, {}), HasSubstr("another number of inputs"));
  const ListedSpecialisations nested = {{"batch"}, {{"", {3}, {{3, 4}}}, {"specialisation-1", {1}, {{1, 4}}}}};
  EXPECT_THAT(said(plans_[2], nested), HasSubstr("has specialisations of its own"));
  write_text(bundle_ / "specialisation-2" / "plan.bin", "nothing");
  RunOptions how;
  how.cache_folder = cache_;
  auto runner = BundleRunner::open(bundle_, how);
  ASSERT_TRUE(runner.ok()) << runner.errors().front().text();
  auto chosen = runner->choose(2);
  ASSERT_FALSE(chosen.ok());
  EXPECT_THAT(chosen.errors().front().text(), HasSubstr("specialisation-2/plan.bin"));
  EXPECT_TRUE(runner->choose(1).ok());
}

}  // namespace
}  // namespace hoist
