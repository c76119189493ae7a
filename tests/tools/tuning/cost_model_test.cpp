// Tests the learned cost model of kernels: its features, its training, and its quality measures.
#include "tools/tuning/model/cost_model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "ir/base/temporary_folder.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/pipeline/lower.h"

namespace hoist::tuning {
namespace cost_model_test {

using testing::DoubleNear;
using testing::HasSubstr;

Expr term_of(const std::string& text) {
  auto term = parse(text);
  EXPECT_TRUE(term.ok()) << text << ": " << term.errors()[0].text();
  return *term;
}

float feature_of(Expr term, std::string_view name, const Profile& profile = {}) {
  const auto names = kernel_feature_names();
  const auto at = std::find(names.begin(), names.end(), name);
  EXPECT_NE(at, names.end()) << name;
  return kernel_numbers(term, profile).features[static_cast<size_t>(at - names.begin())];
}

// A matmul without tiles, rows by columns with this number of terms each.
std::string product_text(int64_t rows, int64_t columns, int64_t terms, int64_t width) {
  const auto number = [](int64_t n) { return std::to_string(n); };
  return "%a : [" + number(rows) + "][" + number(terms) + "]f32 |> map group(0) (\\row. %b : [" + number(columns) +
         "][" + number(terms) + "]f32 |> split " + number(width) +
         " |> map group(1) (map vec (\\column. zip(row, column) |> fold (\\s (x, y). fma(x, y, s)) 0f32)) |> join)";
}

TEST(CostModel, FeaturesCountWhatLoopsRepeat) {
  const Expr term = term_of(product_text(16, 64, 32, 8));
  EXPECT_FLOAT_EQ(feature_of(term, "cheap operations"), std::log2(1.0F + 16 * 64 * 32));
  EXPECT_FLOAT_EQ(feature_of(term, "fold steps"), std::log2(1.0F + 16 * 64 * 32));
  EXPECT_FLOAT_EQ(feature_of(term, "folded"), std::log2(1.0F + 32));
  EXPECT_FLOAT_EQ(feature_of(term, "groups"), std::log2(1.0F + 16 * 8)) << "of both dimensions, one inside the other";
  EXPECT_FLOAT_EQ(feature_of(term, "lanes"), std::log2(1.0F + 8));
  EXPECT_FLOAT_EQ(feature_of(term, "bytes of the largest"), std::log2(1.0F + 64 * 32 * 4));
  EXPECT_FLOAT_EQ(feature_of(term, "bytes of the second"), std::log2(1.0F + 16 * 32 * 4));
  EXPECT_FLOAT_EQ(feature_of(term, "bytes of the result"), std::log2(1.0F + 16 * 64 * 4));
  EXPECT_FLOAT_EQ(feature_of(term, "divisions"), 0);
  EXPECT_FLOAT_EQ(feature_of(term_of("%x : [10]f32 |> map (\\v. exp(1 / v))"), "divisions"), std::log2(11.0F));
  EXPECT_FLOAT_EQ(feature_of(term_of("%x : [10]f32 |> map (\\v. exp(1 / v))"), "functions"), std::log2(11.0F));
  EXPECT_FLOAT_EQ(feature_of(term_of("%x : [10]i32 |> map (\\v. v + 1)"), "integer operations"), std::log2(11.0F));
}

TEST(CostModel, FeaturesTellVariantsAndDevicesApart) {
  EXPECT_NE(kernel_numbers(term_of(product_text(16, 64, 32, 8)), {}).features,
            kernel_numbers(term_of(product_text(16, 64, 32, 16)), {}).features);
  Profile other;
  other.compute_units = 64;
  EXPECT_NE(kernel_numbers(term_of(product_text(16, 64, 32, 8)), {}).features,
            kernel_numbers(term_of(product_text(16, 64, 32, 8)), other).features);
}

// A model machine whose vectors help up to their width, with a cost per group.
std::vector<KernelTime> made_up_times() {
  std::vector<KernelTime> times;
  for (int64_t rows = 4; rows <= 256; rows *= 2)
    for (int64_t terms = 8; terms <= 512; terms *= 2)
      for (const int64_t width : {1, 2, 4, 8, 16}) {
        KernelTime time;
        time.model = "network" + std::to_string(rows % 7);
        time.kernel = "product" + std::to_string(rows * terms);
        time.device = "made up";
        time.term = term_of(product_text(rows, 64, terms, width));
        const double vectors = static_cast<double>(rows * 64 / width);
        time.seconds = vectors * (static_cast<double>(terms) + 50) * 1e-9;
        times.push_back(std::move(time));
      }
  return times;
}

TEST(CostModel, PredictsKernelsThatItHasNotSeen) {
  const auto times = made_up_times();
  const auto predicted = held_out_predictions(times, 3);
  const CostModelQuality quality = quality_of(times, predicted);
  EXPECT_EQ(quality.kernels, times.size());
  EXPECT_LT(quality.outside, times.size() / 3);
  EXPECT_LT(quality.mean_error, 0.25);
  EXPECT_GT(quality.rank_correlation, 0.95);
  EXPECT_GT(quality.pairs, 100);
  EXPECT_GT(quality.ordered_pairs, 0.9);
}

TEST(CostModel, ErrsAsLittleAsPossibleInTheMean) {
  // Some kernels take twice as long for a reason outside the features; a prediction of the shorter time has a relative
  // error of at most 0.5.
  std::vector<KernelTime> times = made_up_times();
  const size_t count = times.size();
  for (size_t i = 0; i < count; ++i) {
    times.push_back(times[i]);
    times.back().seconds *= 4;
  }
  const CostModel model = CostModel::fit(times);
  double ratios = 0;
  for (size_t i = 0; i < count; ++i) ratios += std::log(*model.seconds(times[i].term, {}) / times[i].seconds);
  EXPECT_LT(std::exp(ratios / static_cast<double>(count)), 1.6) << "the middle of the logarithms is 2";
}

TEST(CostModel, PricesAreLearnedFromSums) {
  // A hundred matmuls are few for trees; the machine takes 3 ns per work-group and 2 ns per vector operation.
  std::vector<KernelTime> times = made_up_times();
  const auto names = kernel_amount_names();
  const auto place = [&](std::string_view name) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  for (KernelTime& time : times) {
    const std::vector<double> amounts = kernel_numbers(time.term, {}).amounts;
    ASSERT_LT(std::max(place("groups"), place("cheap operations by lanes")), amounts.size());
    time.seconds = 3e-9 * amounts[place("groups")] + 2e-9 * amounts[place("cheap operations by lanes")];
  }
  const CostModelQuality quality = quality_of(times, held_out_predictions(times, 3));
  EXPECT_LT(quality.mean_error, 0.05);
  EXPECT_LT(quality.outside, times.size() / 3);
}

TEST(CostModel, FeaturesTellWhatNeighboursRead) {
  const Expr rows = term_of("%x : [8][64]f32 |> map group(0) (map vec (\\v. v + 1))");
  EXPECT_FLOAT_EQ(feature_of(rows, "adjacent to the next"), 1);
  EXPECT_FLOAT_EQ(feature_of(rows, "strides of the next"), 0);
  const Expr columns = term_of("%x : [64][8]f32 |> transpose |> map group(0) (map vec (\\v. v + 1))");
  EXPECT_FLOAT_EQ(feature_of(columns, "adjacent to the next"), 0);
  EXPECT_FLOAT_EQ(feature_of(columns, "strides of the next"), 1);
  const Expr product = term_of(product_text(16, 64, 32, 8));
  EXPECT_FLOAT_EQ(feature_of(product, "elements read"), std::log2(1.0F + 64));
  EXPECT_FLOAT_EQ(feature_of(product, "reused by the next"), 0.5F) << "the row of the left operand";
  EXPECT_FLOAT_EQ(feature_of(product, "steps of the innermost fold"), std::log2(1.0F + 32));
}

TEST(CostModel, SaysNothingOfWhatIsUnlikeAllItKnows) {
  const CostModel model = CostModel::fit(made_up_times());
  EXPECT_TRUE(model.seconds(term_of(product_text(32, 64, 48, 8)), {}));
  EXPECT_FALSE(model.seconds(term_of(product_text(4096, 64, 512, 8)), {})) << "larger than all";
  EXPECT_FALSE(model.seconds(term_of("%x : [1024][64]f32 |> map group(0) (map vec exp)"), {})) << "a function";
  const std::string two_layers = "let kept = " + product_text(16, 64, 32, 8) + " |> materialise local in\nkept |> join";
  EXPECT_FALSE(model.seconds(term_of(two_layers), {})) << "a launch of several layers";
  Profile gpu;
  gpu.gpu = true;
  EXPECT_FALSE(model.seconds(term_of(product_text(32, 64, 48, 8)), gpu)) << "another device";
}

TEST(CostModel, IsKeptAsText) {
  const CostModel model = CostModel::fit(made_up_times());
  const auto loaded = CostModel::load(model.save(), "here");
  ASSERT_TRUE(loaded.ok());
  const Expr term = term_of(product_text(32, 64, 48, 8));
  EXPECT_EQ(loaded->seconds(term, {}), model.seconds(term, {}));
  for (const std::string text : {"", "{}", "[]", R"({"features": [], "learned_from": [], "prices": [], "trees": []})"})
    EXPECT_FALSE(CostModel::load(text, "here").ok()) << text;
  for (const char* name : {"joined elements", "fold steps"}) {  // the first is an amount as well
    std::string other = model.save();
    other.replace(other.find(name), 4, "other");
    EXPECT_FALSE(CostModel::load(other, "here").ok()) << "names of another version";
  }
  std::string damaged = model.save();
  damaged.replace(damaged.find("\"trees\""), 0, "\"trees\": [\"99<1 2 3\"], \"other\": 1, ");
  damaged.erase(damaged.rfind("\"trees\""));
  EXPECT_FALSE(CostModel::load(damaged + "\"x\": 1}", "here").ok()) << "a feature that there is not";
}

TEST(CostModel, ThoseThatComeWithHoistKnowTheDevicesThatTheyLearnedFrom) {
  auto program = parse_program(
      "program %product version 21\ninput %left : [16][64]f32\ninput %right : [64][32]f32\n"
      "define %product : [16][32]f32 = MatMul(%left, %right) from \"product\"\noutput %product\n");
  ASSERT_TRUE(program.ok());
  Profile wide;
  wide.dot_instructions = true;
  const auto lowered = lower_model(std::move(*program), {}, wide);
  ASSERT_TRUE(lowered.ok());
  const Expr term = lowered->kernels.back().expression;
  const CostModel& model = model_for(CostModel::shipped(), {{term}}, wide, {.native = true});
  EXPECT_THAT(model.learned_from(), testing::Each(testing::Not(HasSubstr("NVIDIA"))));
  const auto native = model.seconds(term, wide, {.native = true}), driver = model.seconds(term, wide);
  ASSERT_TRUE(native && driver);
  for (const double seconds : {*native, *driver}) {
    EXPECT_GT(seconds, 1e-7);
    EXPECT_LT(seconds, 1e-3);
  }
  Profile gpu;
  gpu.gpu = true;
  for (const CostModel& each : CostModel::shipped()) EXPECT_FALSE(each.seconds(term, gpu)) << "a CPU's kernel";
  EXPECT_LT(model.launch_seconds(true), model.launch_seconds(false));
}

TEST(CostModel, TheOneThatKnowsTheMostAnswersForAll) {
  std::vector<KernelTime> slow = made_up_times(), few = made_up_times();
  for (KernelTime& time : slow) time.seconds *= 8;
  few.resize(few.size() / 4);
  const std::vector<CostModel> models = {CostModel::fit(few), CostModel::fit(slow), CostModel::fit(made_up_times())};
  std::vector<Expr> kernels;
  for (const KernelTime& time : slow) kernels.push_back(time.term);
  EXPECT_EQ(&model_for(models, kernels, {}, {}), &models[1]) << "the first of those that know all";
  kernels.resize(few.size());
  EXPECT_EQ(&model_for(models, kernels, {}, {}), &models[0]);
}

TEST(CostModel, NativeCodeIsNotADrivers) {
  std::vector<KernelTime> times = made_up_times();
  const size_t count = times.size();
  for (size_t i = 0; i < count; ++i) {
    times[i].launch = 2e-6;
    times.push_back(times[i]);
    times.back().circumstances.native = true;
    times.back().seconds /= 4;
    times.back().launch = 1e-7;
  }
  const CostModel model = CostModel::fit(times);
  const Expr term = term_of(product_text(32, 64, 64, 8));
  EXPECT_LT(*model.seconds(term, {}, {.native = true}), *model.seconds(term, {}) / 2);
  EXPECT_FLOAT_EQ(static_cast<float>(model.launch_seconds(true)), 1e-7F);
  EXPECT_FLOAT_EQ(static_cast<float>(model.launch_seconds(false)), 2e-6F);
}

TEST(CostModel, QualityIsCounted) {
  std::vector<KernelTime> times;
  for (const double seconds : {1.0, 2.0, 4.0, 8.0, 3.0}) {
    KernelTime& time = times.emplace_back();
    time.kernel = "k";
    time.seconds = seconds;
  }
  times.back().kernel = "other";
  const CostModelQuality quality = quality_of(times, {1.5, 1.0, 4.0, std::nullopt, 3.0});
  EXPECT_EQ(quality.kernels, 5);
  EXPECT_EQ(quality.outside, 1);
  EXPECT_THAT(quality.mean_error, DoubleNear((0.5 + 0.5 + 0 + 0) / 4, 1e-12));
  EXPECT_EQ(quality.pairs, 3) << "1, 2 and 4 of one kernel";
  EXPECT_THAT(quality.ordered_pairs, DoubleNear(2.0 / 3, 1e-12)) << "1 and 2 are the wrong way round";
  EXPECT_THAT(quality.rank_correlation, DoubleNear(0.8, 1e-12)) << "ranks 0 1 3 2 and 1 0 3 2";
}

TEST(CostModel, RecordsAreReadLineByLine) {
  const auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const auto read = [&](const std::string& text) {
    const auto file = folder->path() / "records.jsonl";
    std::ofstream(file) << text;
    return read_kernel_times(file);
  };
  const std::string good =
      R"({"model": "m", "kernel": "k", "device": "d", "driver": "1", "target": "znver4", "launch": 0, "profile": "name = d\nvector_width = 8\n",)"
      R"( "expression": "%x : [4]f32 |> map abs", "seconds": 1e-6, "reference": 2e-5})";
  const auto times = read(good + "\n" + good + "\n");
  ASSERT_TRUE(times.ok());
  ASSERT_EQ(times->size(), 2);
  EXPECT_EQ(times->front().profile.vector_width, 8);
  EXPECT_EQ(times->front().seconds, 1e-6);
  EXPECT_TRUE(times->front().circumstances.native);
  std::string contended = good;
  contended.replace(contended.find("2e-5"), 4, "8e-5");
  const auto compared = read(contended + "\n" + good);
  ASSERT_TRUE(compared.ok());
  EXPECT_DOUBLE_EQ(compared->front().circumstances.contention, 4) << "others had three quarters of the machine";
  EXPECT_EQ(compared->back().circumstances.contention, 1);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"[4]f32", "[n]f32"},
                                 {"map abs", "map nothing"},
                                 {"1e-6", "\"soon\""},
                                 {"\"kernel\"", "\"colonel\""},
                                 {"vector_width = 8", "vector_width = 7"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    const auto refused = read(good + "\n" + bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_THAT(refused.errors()[0].text(), HasSubstr("line 2"));
  }
  EXPECT_FALSE(read_kernel_times(folder->path() / "none.jsonl").ok());
}

}  // namespace cost_model_test
}  // namespace hoist::tuning
