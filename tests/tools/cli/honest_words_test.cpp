// Tests statements of the program: the choice among equally fast points, the certainty of a met budget, equal numbers
// from all commands, and unusual devices and numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "ir/base/temporary_folder.h"
#include "tests/frontend/model_builder.h"
#include "tests/tools/data/npz_file.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist::honest_words_test {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const fs::path models = fs::path(HOIST_SOURCE_DIR) / "models";
const std::string model = (models / "digits_fully_connected.onnx").string();
const std::string calibration = (models / "digits_fully_connected_calibration.npz").string();
const std::string test_data = (models / "digits_fully_connected_test.npz").string();

json json_of(const fs::path& path) { return json::parse(std::ifstream(path)); }

// One study for all tests, in native code if this processor has a target.
class HonestWords : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto made = TemporaryFolder::make();
    ASSERT_TRUE(made.ok());
    folder_ = new TemporaryFolder(std::move(*made));
    const Ran native = run_hoist({"compile", model, "-o", in("native.hoist"), "--no-check", "--target", "native"});
    if (native.err.find("no target is for this processor") == std::string::npos) target_ = {"--target", "native"};
    const Ran ran = run_hoist(
        on_target({"compile", model, "-o", in("first.hoist"), "--budget", "sqnr=20dB", "--record", in("record.json"),
                   "--calibrate", calibration, "--verify-data", test_data, "--no-check", "--json", in("first.json")}));
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string in(const std::string& name) { return (folder_->path() / name).string(); }
  static std::vector<std::string> on_target(std::vector<std::string> words) {
    words.insert(words.end(), target_.begin(), target_.end());
    return words;
  }
  // The rules of the bundle for another budget with this record.
  static json rules_under(const json& record, const std::string& budget) {
    std::ofstream(in("changed.json")) << record;
    const Ran ran = run_hoist(on_target({"compile", model, "-o", in("changed.hoist"), "--force", "--no-check",
                                         "--budget", budget, "--record", in("changed.json")}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return json_of(in("changed.hoist/manifest.json"))["certificate"]["rules"];
  }

  static TemporaryFolder* folder_;
  static std::vector<std::string> target_;
};
TemporaryFolder* HonestWords::folder_ = nullptr;
std::vector<std::string> HonestWords::target_;

json rules_of(const json& point) {
  json out = json::object();
  for (const json& each : point["assignment"]) out[each["site"].get<std::string>()] = each["rule"];
  return out;
}

TEST_F(HonestWords, OfPointsThatAreEquallyFastTheMoreAccurateIsChosen) {
  json record = json_of(in("record.json"));
  json *rough = nullptr, *fine = nullptr;
  for (json& point : record["points"]) {
    point["time"] = {1e-3, 0.99e-3, 1.01e-3};
    if (point["name"] == "uniform w8a8-signed") rough = &point;
    if (point["name"] == "uniform f16") fine = &point;
  }
  ASSERT_TRUE(rough != nullptr && fine != nullptr);
  ASSERT_LT((*fine)["error"], (*rough)["error"]);
  ASSERT_GT((*rough)["sqnr"], 19);
  (*rough)["time"] = {261e-6, 255e-6, 267e-6};
  (*fine)["time"] = {268e-6, 262e-6, 274e-6};
  EXPECT_EQ(rules_under(record, "sqnr=19dB"), rules_of(*fine));
  (*fine)["time"] = {290e-6, 285e-6, 295e-6};  // known to be slower
  EXPECT_EQ(rules_under(record, "sqnr=19dB"), rules_of(*rough));
}

TEST_F(HonestWords, AMetBudgetSaysHowSureThatIs) {
  fs::copy_file(in("record.json"), in("sure.json"));
  const auto chosen = [&](const std::string& budget) {
    const Ran ran = run_hoist(on_target({"compile", model, "-o", in("sure.hoist"), "--force", "--no-check", "--budget",
                                         budget, "--record", in("sure.json"), "--json", in("answer.json")}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    const std::string words = json_of(in("answer.json"))["budget"]["confidence"];
    EXPECT_THAT(ran.out, HasSubstr("budget " + budget + " " + words + "\n"));
    // The study's page has the same statement on the same choice.
    const Ran page = run_hoist(on_target({"report", model, "--record", in("sure.json"), "--budget", budget, "-o",
                                          in("page.html"), "--json", in("page.json")}));
    EXPECT_EQ(page.code, 0) << page.err;
    EXPECT_EQ(json_of(in("page.json"))["confidence"], words);
    return words;
  };
  // 500 samples cannot prove half a percentage point; the stated number of samples could.
  const std::string few = chosen("top1=0.5%");
  std::smatch parts;
  ASSERT_TRUE(std::regex_match(few, parts,
                               std::regex(R"(met on 500 samples; 95 % bound: ([0-9.]+) points of top-1 lost; )"
                                          R"(about ([0-9,]+) such samples would show top1=0\.5%)")))
      << few;
  EXPECT_GT(std::stod(parts[1]), 0.5);
  EXPECT_GT(std::stod(std::regex_replace(parts[2].str(), std::regex(","), "")), 500);
  const std::string enough = chosen("top1=5%");
  EXPECT_TRUE(std::regex_match(enough, std::regex(R"(met on 500 samples; 95 % bound: [0-9.]+ points of top-1 lost)")))
      << enough;
}

// Two commands give the same number for the same quantity.
TEST_F(HonestWords, NumbersOfTheSameThingAgree) {
  const auto answer = [&](std::vector<std::string> words) {
    const std::string command = words[0];
    words.insert(words.end(), {"--json", in("answer.json")});
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 0) << command << ": " << ran.err;
    return json_of(in("answer.json"));
  };
  const std::string bundle = in("plain.hoist");
  const json checked = answer({"check", model}), compiled = answer({"compile", model, "-o", bundle}),
             of_model = answer({"inspect", model}), of_bundle = answer({"inspect", bundle});
  for (const char* key : {"layer_count", "kernel_count", "operations", "multiplications", "weight_bytes", "value_bytes",
                          "inputs", "outputs"}) {
    EXPECT_EQ(compiled[key], checked[key]) << key;
    EXPECT_EQ(compiled[key], of_model[key]) << key;
    EXPECT_EQ(compiled[key], of_bundle[key]) << key;
  }
  const json manifest = json_of(fs::path(bundle) / "manifest.json");
  EXPECT_EQ(compiled["check"]["kernels"], manifest["kernels"].size());
  EXPECT_EQ(compiled["weight_bytes"], fs::file_size(fs::path(bundle) / "weights.bin"));
  // The report times exactly the kernels that inspect counts.
  const json study = answer(on_target(
                 {"report", model, "--record", in("record.json"), "--budget", "sqnr=20dB", "-o", in("agree.html")})),
             reference = answer(on_target({"compile", model, "-o", in("agree.hoist"), "--no-check"}));
  int64_t operations = 0;
  for (const json& kernel : study["kernels"]["reference"]) operations += kernel["operations"].get<int64_t>();
  EXPECT_EQ(operations, reference["operations"]);
  // For a choice: the study, the answer of compile, and the manifest of the bundle.
  for (const json& point : study["points"]) {
    if (!point["chosen"].get<bool>()) continue;
    EXPECT_EQ(point["assignment"], json_of(in("first.hoist/manifest.json"))["certificate"]["rules"]);
  }
  EXPECT_EQ(study["confidence"], json_of(in("first.json"))["budget"]["confidence"]);
  // For a layer: the measurements of sensitivity equal the study's.
  const json found = answer(on_target({"sensitivity", model, "--calibrate", calibration}));
  EXPECT_THAT(run_hoist(on_target({"sensitivity", model, "--calibrate", calibration})).out, Not(HasSubstr("inf dB")));
  EXPECT_EQ(found["sites"].size(), study["sites"].size());
  size_t compared = 0;
  for (const json& site : found["sites"]) {
    for (const json& other : study["sites"]) {
      if (site["key"] != other["key"]) continue;
      EXPECT_EQ(site["sensitivity"], other["sensitivity"]) << site["key"];
      ASSERT_EQ(site["candidates"].size(), other["candidates"].size());
      for (size_t i = 0; i < site["candidates"].size(); ++i, ++compared) {
        EXPECT_EQ(site["candidates"][i]["rule"], other["candidates"][i]["rule"]);
        EXPECT_EQ(site["candidates"][i]["local_error"], other["candidates"][i]["local_error"])
            << site["key"] << " " << site["candidates"][i]["rule"];
      }
    }
  }
  EXPECT_GT(compared, 20u);
}

TEST_F(HonestWords, AnotherDeviceThanTheBundlesIsSaid) {
  const std::string here = in("here.profile");
  Ran ran = run_shell("'" HOIST_PROGRAM "' devices --profile > '" + here + "'");
  ASSERT_EQ(ran.code, 0) << ran.err;
  auto text = read_file(here);
  ASSERT_TRUE(text.ok());
  ASSERT_THAT(*text, HasSubstr("name = "));
  ASSERT_TRUE(
      write_file(in("other.profile"), std::regex_replace(*text, std::regex("name = .*"), "name = other CPU")).ok());
  const auto said_of = [&](const std::string& profile) {
    const std::string bundle = in("elsewhere.hoist");
    const Ran compiled = run_hoist({"compile", model, "-o", bundle, "--force", "--no-check", "--profile", profile});
    EXPECT_EQ(compiled.code, 0) << compiled.err;
    std::string out;
    for (const std::vector<std::string>& words : {std::vector<std::string>{"verify", bundle},
                                                  {"bench", bundle, "--seconds", "0.02"},
                                                  {"evaluate", bundle, "--data", test_data}}) {
      const Ran used = run_hoist(words);
      EXPECT_EQ(used.code, 0) << words[0] << ": " << used.err;
      // On a busy machine a command may print its progress.
      const std::string said = std::regex_replace(used.err, std::regex("hoist: progress: .*\\n"), "");
      EXPECT_TRUE(out.empty() || out == said) << words[0] << ": " << said;
      out = said;
    }
    return out;
  };
  EXPECT_EQ(said_of(here), "");
  EXPECT_THAT(said_of(in("other.profile")), HasSubstr("note: the bundle is made for other CPU and runs on "));
  if (text->find("kind = cpu") != std::string::npos) {
    EXPECT_THAT(said_of("nvidia-a100"), HasSubstr("warning: the bundle is made for nvidia-a100, a GPU, and runs on "));
  }
}

TEST_F(HonestWords, NumbersThatAreNoneAreCounted) {
  auto file = NpzFile::open(test_data);
  ASSERT_TRUE(file.ok());
  auto images = file->read("image"), labels = file->read("labels");
  ASSERT_TRUE(images.ok() && labels.ok());
  images->set_float(3 * 64 + 5, std::nan(""));
  images->set_float(7 * 64, INFINITY);
  const std::string data = data_file(folder_->path(), {{"image", *images}, {"labels", *labels}}).string();
  const Ran ran = run_hoist({"evaluate", in("first.hoist"), "--data", data, "--json", in("nan.json")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("warning: 2 runs have NaN or infinities in their inputs"));
  EXPECT_EQ(json_of(in("nan.json"))["inputs_not_finite"], 2);
  EXPECT_EQ(json_of(in("nan.json"))["total"], 500);
}

// Masks with one class per pixel. If the scores of the first class are halved, one of four pixels changes its class.
TEST_F(HonestWords, MasksAreComparedPixelByPixel) {
  const auto compile = [&](const std::string& name, float first) {
    onnx::ModelProto made = empty_model();
    add_input(made, "image", {"N", "3", "1", "4"});
    onnx::TensorProto weights = float_tensor("weights", {3, 3, 1, 1}, 0);
    for (int channel = 0; channel < 3; ++channel) weights.set_float_data(4 * channel, channel == 0 ? first : 1);
    *made.mutable_graph()->add_initializer() = weights;
    add_node(made, "Conv", {"image", "weights"}, {"masks"}, "segment");
    add_output(made, "masks", {"N", "3", "1", "4"});
    std::ofstream(in(name + ".onnx"), std::ios::binary) << made.SerializeAsString();
    const Ran ran = run_hoist({"compile", in(name + ".onnx"), "-o", in(name + ".hoist"), "--dim", "N=1"});
    ASSERT_EQ(ran.code, 0) << ran.err;
  };
  compile("masks", 1);
  compile("halved", 0.5f);
  //                                  the first class   the second        the third
  const std::vector<double> pixels = {1, 1, 0, 0, /**/ 0.625, 0.25, 1, 0, /**/ 0, 0, 0, 1};
  const std::string data =
      data_file(folder_->path(), {{"image", Tensor::of(Scalar::f32, {1, 3, 1, 4}, pixels)}}).string();
  const Ran none = run_hoist({"evaluate", in("halved.hoist"), "--data", data});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("output masks: is [1][3][1][4]f32, expected a score for each class"));
  EXPECT_THAT(none.err, HasSubstr("--against BUNDLE compares outputs of any kind"));
  Ran ran = run_hoist(
      {"evaluate", in("halved.hoist"), "--data", data, "--against", in("masks.hoist"), "--json", in("masks.json")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("masks: 3 of 4 positions agree, 75.00 %; SQNR 9.5 dB, largest error 0.5\n"));
  const json found = json_of(in("masks.json"))["outputs"][0];
  EXPECT_EQ(found["agreement"], 0.75);
  EXPECT_NEAR(found["sqnr"].get<double>(), 10 * std::log10((2 + 0.625 * 0.625 + 0.25 * 0.25 + 2) / 0.5), 1e-9);
  ran = run_hoist({"evaluate", in("masks.hoist"), "--data", data, "--against", in("masks.hoist")});
  EXPECT_THAT(ran.out, HasSubstr("masks: 4 of 4 positions agree, 100.00 %; all numbers are equal\n"));
  ran = run_hoist({"evaluate", in("masks.hoist"), "--data", data, "--against", in("first.hoist")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("has other outputs: logits"));
  ran = run_hoist({"evaluate", in("masks.hoist"), "--data", data, "--against", in("masks.hoist"), "--classes"});
  EXPECT_EQ(ran.code, 2);
}

// Dynamic lengths: a different length is reported and counts as disagreement.
TEST_F(HonestWords, OutputsOfOtherLengthsAreCounted) {
  const auto compile = [&](const std::string& name, float last) {
    onnx::ModelProto made = empty_model();
    add_input(made, "x", {"2", "3"});
    onnx::TensorProto factors = float_tensor("factors", {3}, 1);
    factors.set_float_data(2, last);
    *made.mutable_graph()->add_initializer() = factors;
    add_node(made, "Mul", {"x", "factors"}, {"scaled"}, "scale");
    add_node(made, "NonZero", {"scaled"}, {"places"}, "find");
    add_value(made.mutable_graph()->add_output(), "places", {"2", ""}, onnx::TensorProto::INT64);
    std::ofstream(in(name + ".onnx"), std::ios::binary) << made.SerializeAsString();
    const Ran ran = run_hoist({"compile", in(name + ".onnx"), "-o", in(name + ".hoist")});
    ASSERT_EQ(ran.code, 0) << ran.err;
  };
  compile("places", 1);
  compile("fewer", 0);
  const std::vector<double> numbers = {1, 0, 0, 0, 1, 0, /**/ 1, 0, 1, 0, 0, 0};
  const std::string data = data_file(folder_->path(), {{"x", Tensor::of(Scalar::f32, {2, 2, 3}, numbers)}}).string();
  const Ran ran = run_hoist(
      {"evaluate", in("fewer.hoist"), "--data", data, "--against", in("places.hoist"), "--json", in("places.json")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  // Two positions with two coordinates per sample; in the second sample one is missing.
  EXPECT_THAT(ran.out, HasSubstr("places: 4 of 8 positions agree, 50.00 %; all numbers are equal; in 1 of 2 runs of "
                                 "another shape, and compared in the others alone\n"));
  EXPECT_EQ(json_of(in("places.json"))["outputs"][0]["other_shape"], 1);
}

}  // namespace hoist::honest_words_test
