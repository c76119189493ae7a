// Tests the predicted time of a model: sums of steps, measured steps before predicted ones, and the text.
#include "tools/inspection/prediction.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/driver/compile.h"
#include "tools/driver/opened_bundle.h"

namespace hoist::prediction_test {

using testing::HasSubstr;

const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_residual.onnx";
const std::string rates =
    "rate_threads = 2\nrate_multiply_adds = 128000\nrate_byte_products = 500000\nrate_comparisons = 60000\n"
    "rate_divisions = 8000\nrate_transcendentals = 4000\nrate_integers = 50000\nrate_conversions = 40000\n"
    "rate_first_cache = 200000\nrate_second_caches = 80000\nrate_memory = 20000\nrate_step = 400\nrate_barrier = 0\n";

class PredictionTest : public InTemporaryFolder {
 public:
  // Compiles natively for a description with these rates.
  Ran compiled(const std::string& name, const std::vector<std::string>& more = {}) {
    const std::string file = in("mine.target");
    const Profile profile = *parse_profile(read_bundle(plain())->plan.profile, "");
    EXPECT_TRUE(write_file(file, print(profile) + "rate_target = x86-64-v3\n" + rates).ok());
    std::vector<std::string> words = {"compile", model, "-o", in(name), "--target", file, "--force", "--no-check"};
    words.insert(words.end(), more.begin(), more.end());
    return run_hoist(words);
  }
  std::string plain() {
    if (!std::filesystem::exists(in("plain.hoist")))
      run_hoist({"compile", model, "-o", in("plain.hoist"), "--target", "native:x86-64-v3", "--no-check"});
    return in("plain.hoist");
  }
};

TEST_F(PredictionTest, ADescriptionWithRatesPredictsAndDecidesNothing) {
  const Ran ran = compiled("a.hoist", {"--json", in("a.json")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("predicted: "));
  EXPECT_THAT(ran.out, HasSubstr("(7 of 10 networks within 20 %)"));
  const Plan with = read_bundle(in("a.hoist"))->plan, without = read_bundle(plain())->plan;
  ASSERT_EQ(with.kernels.size(), without.kernels.size());
  for (size_t i = 0; i < with.kernels.size(); ++i) EXPECT_EQ(with.kernels[i].expression, without.kernels[i].expression);
  EXPECT_EQ(run_shell("diff -r '" + in("a.hoist") + "/native' '" + plain() + "/native'").code, 0);
  const auto json = nlohmann::json::parse(*read_file(in("a.json")));
  double parts = 0, steps = 0;
  for (const auto& [name, ms] : json["predicted"]["parts_ms"].items()) parts += ms.get<double>();
  for (const auto& ms : json["predicted"]["steps_ms"]) steps += ms.get<double>();
  EXPECT_NEAR(json["predicted"]["ms"], parts, 1e-9);
  EXPECT_NEAR(json["predicted"]["ms"], steps, 1e-9);
  const Ran shown = run_hoist({"inspect", in("a.hoist")});
  EXPECT_THAT(shown.out, HasSubstr("predicted: "));
  EXPECT_EQ(run_hoist({"inspect", plain()}).out.find("predicted"), std::string::npos);
  EXPECT_THAT(run_hoist({"explain", model, "--choices", "--target", in("mine.target")}).out, HasSubstr("on one core)"));
}

TEST_F(PredictionTest, MeasuredStepsReplacePredictedOnes) {
  ASSERT_EQ(compiled("a.hoist").code, 0);
  const BundleInfo info = *read_bundle(in("a.hoist"));
  const Profile profile = *parse_profile(info.plan.profile, "");
  std::vector<double> seconds(info.plan.steps.size(), 1e-6);
  const auto times = kernel_times(info.plan, seconds, 1);
  EXPECT_EQ(times.size(), info.plan.kernels.size());
  for (const auto& [task, time] : times) EXPECT_NEAR(time, 1e-6, 1e-12);
  const Prediction all = prediction_of(info.plan, profile, times);
  EXPECT_NEAR(all.seconds, 1e-6 * static_cast<double>(seconds.size()), 1e-12);
  EXPECT_EQ(all.measured, info.plan.steps.size());
  EXPECT_THAT(text_of(all), HasSubstr("all steps measured, 8 of 10 networks within 15 %"));
  const Prediction some = prediction_of(info.plan, profile, {*times.begin()});
  EXPECT_GT(some.measured, 0u);
  EXPECT_LT(some.measured, info.plan.steps.size());
  EXPECT_THAT(text_of(some), HasSubstr("steps measured, 7 of 10"));
  // Without rates, only measured steps have times.
  EXPECT_TRUE(prediction_of(info.plan, Profile(), times).is_known);
  EXPECT_EQ(text_of(prediction_of(info.plan, Profile(), {*times.begin()})), "");
  EXPECT_TRUE(kernel_times(info.plan, {}, 1).empty());
  // Times of an OpenCL driver lack the launches.
  Plan driver = info.plan;
  driver.targets.clear();
  for (const auto& [task, time] : kernel_times(driver, seconds, 2e-6 * static_cast<double>(seconds.size())))
    EXPECT_NEAR(time, 2e-6, 1e-12);
}

TEST_F(PredictionTest, ABundleThatWasBenchedPredictsThatTime) {
  ASSERT_EQ(compiled("a.hoist").code, 0);
  const std::string file = in("a.tuning");
  const Ran ran = run_hoist({"bench", in("a.hoist"), "--seconds", "0.2", "--tuning", file, "--json", in("b.json")});
  if (ran.code == 4) GTEST_SKIP() << ran.err;
  ASSERT_EQ(ran.code, 0) << ran.err;
  double measured = 0;
  const auto benched = nlohmann::json::parse(*read_file(in("b.json")));
  for (const auto& kernel : benched["kernels"]) measured += kernel["lower_quartile_ms"].get<double>();
  ASSERT_EQ(compiled("b.hoist", {"--tuning", file, "--json", in("c.json")}).code, 0);
  const auto compiled_again = nlohmann::json::parse(*read_file(in("c.json")))["predicted"];
  EXPECT_NEAR(compiled_again["ms"], measured, measured * 1e-6);
  EXPECT_EQ(compiled_again["within_percent"], 15);
  EXPECT_THAT(run_hoist({"inspect", plain(), "--tuning", file}).out, HasSubstr("all steps measured"));
}

TEST_F(PredictionTest, WrongDescriptionsAreRefused) {
  ASSERT_EQ(compiled("a.hoist").code, 0);
  const std::string text = *read_file(in("mine.target"));
  const auto refused = [&](const std::string& written, const std::string& option) {
    EXPECT_TRUE(write_file(in("bad.target"), written).ok());
    const Ran ran = run_hoist({"compile", model, "-o", in("c.hoist"), option, in("bad.target")});
    EXPECT_NE(ran.code, 0);
    EXPECT_FALSE(std::filesystem::exists(in("c.hoist")));
    return ran.err;
  };
  const size_t line = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  EXPECT_THAT(refused(text + "rate_memory = 0\n", "--target"),
              HasSubstr(fmt::format("bad.target:{}: rate_memory is a number", line)));
  EXPECT_THAT(refused(text + "vector_width = 16\n", "--target"), HasSubstr("differs from the description of"));
  EXPECT_THAT(refused(text + "rate_target = pdp-11\n", "--target"), HasSubstr("pdp-11"));
  EXPECT_THAT(refused(text, "--profile"), HasSubstr("give it to --target"));
  EXPECT_THAT(refused("", "--target"), HasSubstr("is empty"));
  EXPECT_EQ(run_hoist({"devices", "--target", "native"}).code, 2);
}

}  // namespace hoist::prediction_test
