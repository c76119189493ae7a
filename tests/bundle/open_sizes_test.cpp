// Tests sizes that a run chooses, with a native kernel that is part of this program.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <vector>

#include "backends/runtime/hoist_runtime.h"
#include "tests/bundle/format_fixture.h"
#include "tests/bundle/run_fixture.h"

namespace hoist::open_sizes_test {

using testing::HasSubstr;

// As Halide's halide_buffer_t begins.
struct Buffer {
  uint64_t device;
  const void* device_interface;
  float* host;
};

int32_t last_size = 0;

int triple(void** arguments) {
  const int32_t first = *static_cast<int32_t*>(arguments[0]), count = *static_cast<int32_t*>(arguments[1]);
  last_size = *static_cast<int32_t*>(arguments[2]);
  const auto* x = static_cast<const Buffer*>(arguments[3]);
  const auto* y = static_cast<const Buffer*>(arguments[4]);
  for (int32_t i = 4 * first; i < 4 * (first + count); ++i) y->host[i] = 3 * x->host[i];
  return 0;
}

const std::array<hoist_linked_kernel, 2> kernels = {{{"x86-64-v3", "triple", triple}, {nullptr, nullptr, nullptr}}};

class OpenSizes : public RunTest {
 protected:
  void SetUp() override {
    if (hoist_runs_target("x86-64-v3") == 0) GTEST_SKIP() << "not such a processor";
    hoist_options options = {};
    options.linked_kernels = kernels.data();
    ASSERT_EQ(hoist_open(written(open_plan()).c_str(), &options, &bundle_), HOIST_OK) << hoist_error_message(bundle_);
  }
  void TearDown() override { hoist_close(bundle_); }

  std::vector<int64_t> output_shape(hoist_bundle* bundle) {
    hoist_array array;
    EXPECT_EQ(hoist_output(bundle, 0, &array), HOIST_OK);
    return {array.shape, array.shape + array.rank};
  }
  hoist_status choose_shape(const std::vector<int64_t>& shape) {
    return hoist_choose_input_shape(bundle_, 0, shape.data(), shape.size());
  }
  // The output for these rows, after a choice of their number.
  std::vector<float> run(const std::vector<float>& x) {
    EXPECT_EQ(hoist_set_input(bundle_, 0, x.data(), 4 * x.size()), HOIST_OK) << hoist_error_message(bundle_);
    EXPECT_EQ(hoist_run(bundle_), HOIST_OK) << hoist_error_message(bundle_);
    std::vector<float> y(x.size());
    EXPECT_EQ(hoist_get_output(bundle_, 0, y.data(), 4 * y.size()), HOIST_OK) << hoist_error_message(bundle_);
    return y;
  }
  static std::vector<float> rows(int64_t n) {
    std::vector<float> out;
    for (int64_t i = 0; i < 4 * n; ++i) out.push_back(static_cast<float>(i) + 0.5F);
    return out;
  }

  hoist_bundle* bundle_ = nullptr;
};

TEST_F(OpenSizes, FollowTheShapeOfAnInputAndTheirNames) {
  hoist_open_size size;
  ASSERT_EQ(hoist_open_size_count(bundle_), 1U);
  ASSERT_EQ(hoist_describe_open_size(bundle_, 0, &size), HOIST_OK);
  EXPECT_STREQ(size.name, "n");
  EXPECT_EQ((std::vector<int64_t>{size.least, size.most, size.now}), (std::vector<int64_t>{1, 8, 8}));
  EXPECT_EQ(output_shape(bundle_), (std::vector<int64_t>{8, 4}));
  for (const int64_t n : {3, 8, 1, 7}) {
    ASSERT_EQ(n == 7 ? hoist_choose_size(bundle_, "n", n) : choose_shape({n, 4}), HOIST_OK)
        << hoist_error_message(bundle_);
    EXPECT_EQ(output_shape(bundle_), (std::vector<int64_t>{n, 4}));
    const std::vector<float> x = rows(n), y = run(x);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], 3 * x[i]) << i << " of " << n;
    EXPECT_EQ(last_size, n);
  }
}

TEST_F(OpenSizes, OthersAreRefusedAndChangeNothing) {
  ASSERT_EQ(choose_shape({5, 4}), HOIST_OK);
  const auto message = [&](hoist_status found, hoist_status expected) {
    EXPECT_EQ(found, expected);
    EXPECT_EQ(output_shape(bundle_), (std::vector<int64_t>{5, 4}));
    return std::string(hoist_error_message(bundle_));
  };
  EXPECT_THAT(message(choose_shape({9, 4}), HOIST_BAD_SIZE), HasSubstr("n=9: the bundle takes 1 to 8"));
  EXPECT_THAT(message(hoist_choose_size(bundle_, "n", 0), HOIST_BAD_SIZE), HasSubstr("n=0: the bundle takes 1 to 8"));
  EXPECT_THAT(message(choose_shape({3, 5}), HOIST_BAD_SIZE),
              HasSubstr("input x: extent 1 is 5, and the bundle takes 4 there"));
  EXPECT_THAT(message(choose_shape({3}), HOIST_BAD_SIZE), HasSubstr("not compiled for [3]"));
  EXPECT_THAT(message(hoist_choose_size(bundle_, "m", 2), HOIST_BAD_ARGUMENT),
              HasSubstr("no size is called m (there are: n)"));
  const std::vector<float> x = rows(5);
  EXPECT_EQ(run(x).back(), 3 * x.back());
}

TEST_F(OpenSizes, AChoiceUnsetsInputsOfOtherShapes) {
  run(rows(8));
  ASSERT_EQ(choose_shape({2, 4}), HOIST_OK);
  EXPECT_EQ(hoist_run(bundle_), HOIST_BAD_ARGUMENT);
  EXPECT_THAT(hoist_error_message(bundle_), HasSubstr("input x has not been set"));
  std::vector<float> y(8);
  EXPECT_EQ(hoist_get_output(bundle_, 0, y.data(), 4 * y.size()), HOIST_BAD_ARGUMENT);
  // Memory of the handle is for the largest size, whenever it is requested.
  void* memory = nullptr;
  ASSERT_EQ(hoist_input_memory(bundle_, 0, &memory), HOIST_OK);
  ASSERT_EQ(choose_shape({8, 4}), HOIST_OK);
  const std::vector<float> x = rows(8);
  std::copy(x.begin(), x.end(), static_cast<float*>(memory));
  ASSERT_EQ(hoist_run(bundle_), HOIST_OK) << hoist_error_message(bundle_);
  y.resize(32);
  ASSERT_EQ(hoist_get_output(bundle_, 0, y.data(), 4 * y.size()), HOIST_OK);
  EXPECT_EQ(y.back(), 3 * x.back());
}

TEST_F(OpenSizes, SessionsBeginWithThoseOfTheBundle) {
  ASSERT_EQ(choose_shape({3, 4}), HOIST_OK);
  hoist_bundle* session = nullptr;
  ASSERT_EQ(hoist_open_session(bundle_, 0, &session), HOIST_OK) << hoist_error_message(session);
  EXPECT_EQ(output_shape(session), (std::vector<int64_t>{3, 4}));
  ASSERT_EQ(choose_shape({6, 4}), HOIST_OK);
  EXPECT_EQ(output_shape(session), (std::vector<int64_t>{3, 4}));
  hoist_close(session);
  EXPECT_EQ(hoist_verify(bundle_, nullptr, nullptr), HOIST_OK) << hoist_error_message(bundle_);
}

TEST_F(FormatTest, OpenSizesAreWrittenAndRead) {
  ASSERT_TRUE(write_bundle(open_plan(), bundle_, {true}).ok());
  auto info = read_bundle(bundle_);
  ASSERT_TRUE(info.ok()) << info.errors().front().text();
  EXPECT_EQ(info->plan.open_sizes, open_plan().open_sizes);
  ASSERT_EQ(info->plan.open_numbers.size(), 4U);
  EXPECT_EQ(info->plan.open_numbers[3].value.size(), 3U);
  EXPECT_EQ(encode_plan(info->plan, {}), encode_plan(open_plan(), {}));
}

TEST_F(FormatTest, OpenSizesThatContradictThePlanAreRefused) {
  ASSERT_TRUE(write_bundle(open_plan(), bundle_, {true}).ok());
  const auto refusal = [&](const std::function<void(Plan&)>& change) { return complaint_of(open_plan(), change); };
  EXPECT_EQ(refusal([](Plan&) {}), "");
  EXPECT_THAT(refusal([](Plan& plan) { plan.open_sizes[0].least = 0; }), HasSubstr("the range of a size is invalid"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.open_sizes[0].least = 9; }), HasSubstr("the range of a size is invalid"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.open_sizes.push_back(plan.open_sizes[0]); }),
              HasSubstr("two sizes have the same name"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.open_sizes[0].most = 7; }),
              HasSubstr("a number differs from its value for the largest sizes"));
  const char* const broken = "a number differs from its value for the largest sizes";
  for (const std::vector<PlanNumber::Operation>& value : std::vector<std::vector<PlanNumber::Operation>>{
           {}, {{2, 0}}, {{1, 1}}, {{1, 0}, {1, 0}}, {{1, 0}, {0, 0}, {4, 0}}, {{1, 0}, {0, INT64_MAX}, {3, 0}}}) {
    EXPECT_THAT(refusal([&](Plan& plan) { plan.open_numbers[0].value = value; }), HasSubstr(broken));
  }
  EXPECT_THAT(refusal([](Plan& plan) { plan.open_numbers[0].value.assign(40, {1, 0}); }), HasSubstr(broken));
  EXPECT_THAT(refusal([](Plan& plan) { plan.open_numbers[0].value[0].kind = 8; }),
              HasSubstr("an unknown operation on sizes"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.open_numbers[0].owner = 2; }),
              HasSubstr("a number belongs to a missing array or kernel"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.open_numbers[0].dimension = 2; }),
              HasSubstr("a number belongs to a missing dimension"));
  EXPECT_THAT(refusal([](Plan& plan) { plan.targets.clear(); }), HasSubstr("open sizes need native kernels"));
}

}  // namespace hoist::open_sizes_test
