// Tests the program as users call it, on the project's models: every command once, with the properties that scripts
// rely on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "backends/bundle/bundle.h"
#include "ir/base/temporary_folder.h"
#include "tests/frontend/model_builder.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist::commands_test {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const fs::path models = fs::path(HOIST_SOURCE_DIR) / "models";

nlohmann::json json_of(const fs::path& path) { return nlohmann::json::parse(std::ifstream(path)); }

class Commands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto made = TemporaryFolder::make();
    ASSERT_TRUE(made.ok());
    folder_ = new TemporaryFolder(std::move(*made));
    const Ran ran = run_hoist({"compile", (models / "digits_residual.onnx").string(), "-o", bundle()});
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string in(const std::string& name) { return (folder_->path() / name).string(); }
  static std::string bundle() { return in("digits.hoist"); }

  static TemporaryFolder* folder_;
};
TemporaryFolder* Commands::folder_ = nullptr;

TEST_F(Commands, EveryDigitsModelHasItsAccuracy) {
  const auto accuracy = json_of(models / "accuracy.json");
  for (const auto& [name, counts] : accuracy.items()) {
    const std::string folder = in(name + ".hoist"), answer = in(name + ".json");
    Ran ran = run_hoist({"compile", (models / (name + ".onnx")).string(), "-o", folder});
    ASSERT_EQ(ran.code, 0) << name << ": " << ran.err;
    ran = run_hoist({"evaluate", folder, "--data", (models / (name + "_test.npz")).string(), "--json", answer});
    ASSERT_EQ(ran.code, 0) << name << ": " << ran.err;
    EXPECT_EQ(json_of(answer)["correct"], counts["test_correct"]) << name;
    EXPECT_EQ(json_of(answer)["total"], counts["test_total"]) << name;
    EXPECT_THAT(ran.out, HasSubstr("right"));
  }
}

TEST_F(Commands, AModelIsCalledWhatItsFileIsCalled) {
  Ran ran = run_hoist({"check", (models / "digits_convolutional.onnx").string()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\ndigits_convolutional: logits"));
  fs::copy_file(models / "digits_residual.onnx", in("mine.onnx"));
  ran = run_hoist({"compile", in("mine.onnx"), "-o", in("mine.hoist"), "--no-check"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(run_hoist({"inspect", in("mine.hoist")}).out, testing::StartsWith("mine: logits"));
}

TEST_F(Commands, OutputsAreAsLongAsDataDecide) {
  onnx::ModelProto model = empty_model(21);
  add_input(model, "x", {"2", "3"});
  add_node(model, "NonZero", {"x"}, {"places"}, "chosen");
  add_value(model.mutable_graph()->add_output(), "places", {"2", ""}, onnx::TensorProto::INT64);
  const std::string file = in("chosen.onnx"), folder = in("chosen.hoist");
  std::ofstream(file, std::ios::binary) << model.SerializeAsString();
  Ran ran = run_hoist({"check", file});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, ContainsRegex("output *places *\\[2\\]\\[up to 6\\]i64"));
  ran = run_hoist({"compile", file, "-o", folder});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_hoist({"inspect", folder});
  EXPECT_THAT(ran.out, ContainsRegex("output *places *\\[2\\]\\[up to 6\\]i64"));
  ASSERT_TRUE(write_npy(in("x.npy"), Tensor::of(Scalar::f32, {2, 3}, std::vector<double>{1, 0, -2, 0, 0, 5})).ok());
  ran = run_hoist({"run", folder, "--input", "x=" + in("x.npy"), "--output-dir", in("chosen")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("places: [2][3]i64"));
  auto places = read_npy(in("chosen") + "/places.npy");
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(places->as_integers(), (std::vector<int64_t>{0, 0, 1, 0, 2, 2}));
  ran = run_hoist({"verify", folder});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  // A layer across a dynamic dimension uses its actual length, or is named in an error.
  add_node(model, "ReduceMax", {"places"}, {"most"}, "across");
  add_value(model.mutable_graph()->add_output(), "most", {"", ""}, onnx::TensorProto::INT64);
  std::ofstream(file, std::ios::binary) << model.SerializeAsString();
  ran = run_hoist({"check", file});
  EXPECT_EQ(ran.code, 0) << ran.err;
  add_node(model, "Unique", {"places"}, {"different"}, "distinct");
  add_value(model.mutable_graph()->add_output(), "different", {""}, onnx::TensorProto::INT64);
  std::ofstream(file, std::ios::binary) << model.SerializeAsString();
  ran = run_hoist({"check", file});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("distinct: reads places, whose dimension 1 has a data-dependent length, up to 6, and "
                                 "Unique"));
}

TEST_F(Commands, SamplesOfALargerBatchCountOnce) {
  // 500 is not a multiple of 7, so the last run is padded.
  const std::string folder = in("batch.hoist"), answer = in("batch.json");
  Ran ran = run_hoist({"compile", (models / "digits_fully_connected.onnx").string(), "-o", folder, "--dim", "N=7"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_hoist(
      {"evaluate", folder, "--data", (models / "digits_fully_connected_test.npz").string(), "--json", answer});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json_of(answer)["correct"], json_of(models / "accuracy.json")["digits_fully_connected"]["test_correct"]);
  EXPECT_EQ(json_of(answer)["total"], 500);
}

TEST_F(Commands, FormsOfConvolutionAndStrictAgree) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--pass", "convolution=stencil"},
                                                  {"--pass", "convolution=im2col"},
                                                  {"--pass", "convolution=winograd"},
                                                  {"--pass", "fusion=launch"},
                                                  {"--strict"}}) {
    const std::string folder = in("form.hoist"), answer = in("form.json");
    std::vector<std::string> words = {"compile", (models / "digits_residual.onnx").string(), "-o", folder, "--force"};
    words.insert(words.end(), options.begin(), options.end());
    Ran ran = run_hoist(words);
    ASSERT_EQ(ran.code, 0) << options[0] << ": " << ran.err;
    ran = run_hoist({"evaluate", folder, "--data", (models / "digits_residual_test.npz").string(), "--json", answer});
    ASSERT_EQ(ran.code, 0) << options[0] << ": " << ran.err;
    EXPECT_EQ(json_of(answer)["correct"], json_of(models / "accuracy.json")["digits_residual"]["test_correct"])
        << options[0];
  }
}

TEST_F(Commands, RunWritesOutputsByName) {
  ASSERT_TRUE(write_npy(in("image.npy"), Tensor(Scalar::f32, {1, 1, 8, 8})).ok());
  const Ran shown = run_hoist({"run", bundle(), "--input", "image=" + in("image.npy")});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, ContainsRegex(": \\[.*f32\n"));
  EXPECT_EQ(run_hoist({"run", bundle(), "--input", in("image.npy")}).out, shown.out) << "there is one input";
  const Ran ran = run_hoist({"run", bundle(), "--input", "image=" + in("image.npy"), "--output-dir", in("outputs")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(files_below(in("outputs")), std::vector<std::string>{"logits.npy"});
  auto logits = read_npy(in("outputs") + "/logits.npy");
  ASSERT_TRUE(logits.ok());
  EXPECT_EQ(logits->shape(), (std::vector<int64_t>{1, 10}));
}

TEST_F(Commands, CompilingTwiceGivesTheSameBytes) {
  Ran ran = run_hoist({"compile", (models / "digits_residual.onnx").string(), "-o", in("again.hoist")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_shell("diff -r '" + bundle() + "' '" + in("again.hoist") + "'");
  EXPECT_EQ(ran.code, 0) << ran.out;
}

TEST_F(Commands, TheLogSaysWhatIsDone) {
  const std::string model = (models / "digits_fully_connected.onnx").string();
  Ran ran = run_hoist({"compile", model, "-o", in("log.hoist"), "--log-level", "debug"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("hoist: debug: pass inline-definitions: "));
  EXPECT_THAT(ran.err, HasSubstr("hoist: debug: kernel "));
  EXPECT_THAT(ran.err, HasSubstr("compiled kernels: "));
  EXPECT_EQ(ran.out.find("debug"), std::string::npos);
  ran = run_hoist({"--log-level", "info", "compile", model, "-o", in("log.hoist"), "--force"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, Not(HasSubstr("debug")));
  EXPECT_THAT(ran.err, HasSubstr("compiled kernels: hit"));
  ran = run_hoist({"compile", model, "-o", in("log.hoist"), "--force"});
  EXPECT_THAT(ran.err, Not(HasSubstr("compiled kernels")));
  ran = run_hoist({"compile", model, "-o", in("log.hoist"), "--force", "--log-level", "loud"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("loud"));
  ran = run_hoist({"compile", model, "-o", in("log.hoist"), "--log-levle", "info"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("did you mean --log-level?"));
}

TEST_F(Commands, TheWholeModelIsVerifiedToo) {
  const Ran ran = run_hoist({"verify", bundle()});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("passed output logits: 10 positions"));
}

TEST_F(Commands, AProfileReplacesTheDevice) {
  Ran ran = run_hoist({"devices", "--profile"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  // The rates are measured, so that no two files have the same, and decide nothing but the predicted time.
  ASSERT_THAT(ran.out, HasSubstr("rate_multiply_adds = "));
  ASSERT_TRUE(write_file(in("measured.profile"), ran.out).ok());
  ASSERT_TRUE(write_file(in("here.profile"), std::regex_replace(ran.out, std::regex("rate_.*\n"), "")).ok());
  ran = run_hoist({"compile", (models / "digits_residual.onnx").string(), "-o", in("measured.hoist"), "--profile",
                   in("measured.profile"), "--no-check"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("predicted: "));
  EXPECT_EQ(*read_file(in("measured.hoist") + "/expressions.lift"), *read_file(bundle() + "/expressions.lift"));
  ran = run_hoist({"compile", (models / "digits_residual.onnx").string(), "-o", in("profile.hoist"), "--profile",
                   in("here.profile")},
                  "OCL_ICD_VENDORS=/nowhere ");
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_shell("diff -r '" + bundle() + "' '" + in("profile.hoist") + "'");
  EXPECT_EQ(ran.code, 0) << ran.out;
}

// A file of that name is preferred to the starter description; a printed description is read back.
TEST_F(Commands, AStarterProfileIsTakenByItsName) {
  const std::string model = (models / "digits_fully_connected.onnx").string();
  Ran ran = run_hoist({"profiles"});
  EXPECT_THAT(ran.out, HasSubstr("nvidia-a100"));
  ran = run_hoist({"profiles", "nvidia-a100"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ASSERT_TRUE(write_file(in("printed.profile"), ran.out).ok());
  ran = run_hoist({"compile", model, "-o", in("a100.hoist"), "--profile", "nvidia-a100"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("for nvidia-a100"));
  EXPECT_THAT(ran.out + ran.err, HasSubstr("not checked"));
  ran = run_hoist({"compile", model, "-o", in("printed.hoist"), "--profile", in("printed.profile")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_shell("diff -r '" + in("a100.hoist") + "' '" + in("printed.hoist") + "'");
  EXPECT_EQ(ran.code, 0) << ran.out;
  for (const char* name : {"cpu-neon", "amd-mi300x", "intel-arc-a770", "arm-mali-g710"}) {
    ran = run_hoist({"compile", (models / "digits_residual.onnx").string(), "-o", in(name), "--profile", name});
    EXPECT_EQ(ran.code, 0) << name << ": " << ran.err;
  }
  ran = run_hoist({"profiles", "nvidia-a10"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("did you mean nvidia-a100?"));
}

TEST_F(Commands, TestComparesAndSaysWhatDiffers) {
  const fs::path one = folder_->path() / "case";
  fs::create_directories(one / "test_data_set_0");
  fs::copy_file(models / "digits_residual.onnx", one / "model.onnx");
  ASSERT_TRUE(write_npy(in("zeros.npy"), Tensor(Scalar::f32, {1, 1, 8, 8})).ok());
  ASSERT_EQ(run_hoist({"run", bundle(), "--input", "image=" + in("zeros.npy"), "--output-dir", in("zeros")}).code, 0);
  fs::copy_file(in("zeros.npy"), one / "test_data_set_0/input_0.npy");
  auto logits = read_npy(in("zeros") + "/logits.npy");
  ASSERT_TRUE(logits.ok());
  ASSERT_TRUE(write_npy(one / "test_data_set_0/output_0.npy", *logits).ok());
  Ran ran = run_hoist({"test", one.string(), "--json", in("test.json")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "passed case\n1 of 1 cases passed\n");
  EXPECT_EQ(json_of(in("test.json"))["passed"], 1);
  ran = run_hoist({"test", (models / "digits_residual.onnx").string(), "--data", (one / "test_data_set_0").string()});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;

  logits->set_float(3, logits->float_at(3) + 1);
  ASSERT_TRUE(write_npy(one / "test_data_set_0/output_0.npy", *logits).ok());
  ran = run_hoist({"test", one.string(), "--json", in("test.json")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("failed case: output logits differs at [0, 3]: "));
  EXPECT_THAT(ran.out, HasSubstr("1 of 10 elements; largest error 1"));
  EXPECT_EQ(json_of(in("test.json"))["failed"], 1);
  EXPECT_EQ(run_hoist({"test", one.string(), "--atol", "2"}).code, 0);
}

TEST_F(Commands, VerifyPassesOnRealInputs) {
  const Ran ran = run_hoist(
      {"verify", bundle(), "--data", (models / "digits_residual_test.npz").string(), "--json", in("verify.json")});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("failed ")));
  EXPECT_EQ(json_of(in("verify.json"))["passed"], true);
  EXPECT_GT(json_of(in("verify.json"))["findings"].size(), 20u);
}

// Twenty channels are stored as thirty-two: elements after the twentieth are undefined, and every element before is
// checked.
TEST_F(Commands, VerifyComparesAllThatMeansSomethingAndNoMore) {
  onnx::ModelProto model = empty_model();
  add_input(model, "image", {"1", "3", "6", "6"});
  *model.mutable_graph()->add_initializer() = float_tensor("wide", {20, 3, 1, 1});
  *model.mutable_graph()->add_initializer() = float_tensor("narrow", {4, 20, 1, 1});
  add_node(model, "Conv", {"image", "wide"}, {"between"}, "first");
  add_node(model, "Conv", {"between", "narrow"}, {"result"}, "second");
  add_output(model, "result", {"1", "4", "6", "6"});
  const Folder folder;
  const std::string path = folder.write("model.onnx", model.SerializeAsString()).string();
  const std::string sound = in("sound.hoist"), damaged = in("damaged.hoist");
  // A fused launch would be compared with the damaged kernel.
  ASSERT_EQ(run_hoist({"compile", path, "-o", sound, "--pass", "fusion=none"}).code, 0);
  auto info = read_bundle(sound, true);
  ASSERT_TRUE(info.ok());
  const PlanKernel& first = info->plan.kernels[0];
  ASSERT_EQ(first.name, "first");
  const auto result = std::find_if(first.parameters.begin(), first.parameters.end(),
                                   [](const KernelParameter& parameter) { return parameter.written; });
  const Region region = result->regions_or_whole().front();
  ASSERT_THAT(region.array, testing::ElementsAre(1, 6, 6, testing::Gt(20)));  // padded to the device's vectors
  ASSERT_EQ(region.shape, (std::vector<int64_t>{1, 6, 6, 20}));
  // Makes the work-group that wrote `position` overwrite it at the end.
  const auto damage = [&](int64_t position) {
    Plan plan = info->plan;
    plan.model_check = {};  // it would detect the damage
    std::string& source = plan.kernels[0].source;
    source.insert(source.rfind('}'), "if (get_group_id(0) + get_group_id(1) + get_group_id(2) == 0) result[" +
                                         std::to_string(position) + "] += 1.0f;\n");
    ASSERT_TRUE(write_bundle(plan, damaged, {.force = true}).ok());
  };
  ASSERT_THAT(first.check_positions, Not(testing::Contains(1)));
  damage(1);
  Ran ran = run_hoist({"verify", damaged, "--positions", "2"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  ran = run_hoist({"verify", damaged, "--all"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("failed step 0, kernel first: position [0, 0, 0, 1]: "));
  EXPECT_THAT(ran.out, Not(HasSubstr("failed step 1")));
  damage(20);
  ran = run_hoist({"verify", damaged, "--all"});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("passed step 0, kernel first: 720 positions"));
}

TEST_F(Commands, BenchHasTheFieldsThatScriptsRead) {
  const Ran ran = run_hoist({"bench", bundle(), "--seconds", "0.05", "--json", in("bench.json")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto times = json_of(in("bench.json"));
  EXPECT_GT(times["lower_quartile_ms"], 0);
  EXPECT_LE(times["minimum_ms"], times["lower_quartile_ms"]);
  EXPECT_LE(times["lower_quartile_ms"], times["median_ms"]);
  EXPECT_GT(times["load_ms"], 0);
  EXPECT_GE(times["threads"], 1);
  EXPECT_FALSE(times["device"].get<std::string>().empty());
  ASSERT_FALSE(times["kernels"].empty());
  for (const auto& kernel : times["kernels"]) {
    EXPECT_FALSE(kernel["name"].get<std::string>().empty());
    EXPECT_FALSE(kernel["layers"].empty());
    EXPECT_GE(kernel["lower_quartile_ms"], 0);
  }
}

TEST_F(Commands, BenchShowsTheRooflineAndAnotherBundle) {
  const Ran ran = run_hoist({"bench", bundle(), "--seconds", "0.05", "--roofline", "--against", bundle(), "--json",
                             in("roof.json"), "--page", in("kernels.html")});
  EXPECT_THAT(read_file(in("kernels.html")).ok() ? *read_file(in("kernels.html")) : "", HasSubstr("class=\"roof\""));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("interleaved runs; relative time of this bundle: "));
  EXPECT_THAT(ran.out, HasSubstr("measured peak: "));
  EXPECT_THAT(ran.out, HasSubstr("all kernels"));
  const auto times = json_of(in("roof.json"));
  EXPECT_GT(times["peaks"]["operations_per_second"], 1e9);
  EXPECT_GT(times["peaks"]["byte_operations_per_second"], 1e9);
  EXPECT_GT(times["peaks"]["launch_ms"], 0);
  EXPECT_EQ(times["peaks"]["copies"].size(), 3u);
  EXPECT_GT(times["against"]["ratio"], 0);
  double bounds = 0;
  for (const auto& kernel : times["kernels"]) {
    EXPECT_GT(kernel["bytes"], 0);
    bounds += kernel["bound_ms"].get<double>();
  }
  EXPECT_NEAR(times["bound_ms"].get<double>(), bounds, 1e-9);
  EXPECT_EQ(run_hoist({"bench", bundle(), "--against", in("nothing.hoist")}).code, 3);
}

// Small networks run on PoCL's device without threads, unless another one is requested.
TEST_F(Commands, SmallNetworksAndOneThreadTakeTheSerialDevice) {
  if (run_hoist({"devices"}).out.find(": basic-") == std::string::npos) GTEST_SKIP() << "no serial device is here";
  const auto device_of = [&](const std::string& path, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"bench", path, "--seconds", "0.02", "--json", in("times.json")};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.err.find("made for"), std::string::npos) << ran.err;
    return json_of(in("times.json")).value("device", "").substr(0, 5);
  };
  EXPECT_EQ(device_of(bundle(), {}), "basic");
  EXPECT_EQ(device_of(bundle(), {"--device", "0"}), "pthre");
  const std::string model = (models / "digits_fully_connected.onnx").string();
  ASSERT_EQ(run_hoist({"compile", model, "--dim", "N=4096", "-o", in("large.hoist"), "--no-check"}).code, 0);
  EXPECT_EQ(device_of(in("large.hoist"), {}), "pthre");
  EXPECT_EQ(device_of(in("large.hoist"), {"--threads", "1"}), "basic");
}

TEST_F(Commands, InspectShowsEveryStage) {
  const std::string model = (models / "digits_residual.onnx").string();
  Ran ran = run_hoist({"inspect", model, "relu1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* text :
       {"-- graph: relu1 as the model has it", "-- high: relu1 alone", "relu1 is part of kernel conv1",
        "-- low: conv1, normalize1, relu1", "-- halide:", "-- opencl: kernel conv1", "__global"}) {
    EXPECT_THAT(ran.out, HasSubstr(text));
  }
  ran = run_hoist({"inspect", model, "conv1", "--stage", "low"});
  EXPECT_THAT(ran.out, HasSubstr("-- low:"));
  EXPECT_THAT(ran.out, Not(HasSubstr("-- graph:")));
  ran = run_hoist({"inspect", model});
  EXPECT_THAT(ran.out, HasSubstr("block3/conv1"));
  ran = run_hoist({"inspect", bundle(), "relu1", "--stage", "low,opencl"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("-- opencl: kernel conv1"));
  ran = run_hoist({"inspect", bundle(), "conv1", "--stage", "halide"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.out, "");
}

// For each layer of the model, a bundle names the kernel that computes it or the reason why there is none.
TEST_F(Commands, EveryLayerIsAccountedFor) {
  const std::string model = (models / "digits_residual.onnx").string();
  const Ran of_model = run_hoist({"inspect", model}), of_bundle = run_hoist({"inspect", bundle()});
  ASSERT_EQ(of_bundle.code, 0) << of_bundle.err;
  EXPECT_EQ(of_model.out, of_bundle.out);
  EXPECT_THAT(of_bundle.out, testing::ContainsRegex("\nnormalize1 +BatchNormalization +conv1\n"));
  EXPECT_THAT(of_bundle.out, Not(HasSubstr("none:")));
  for (const std::string& subject : {model, bundle()}) {
    Ran ran = run_hoist({"explain", subject, "normalize1"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("kernel conv1 computes conv1, normalize1, relu1"));
    EXPECT_THAT(
        ran.out,
        HasSubstr("   1. batch-norm-folding at layer conv1  [rounding]  the batch normalisation scales each channel"));
    ran = run_hoist({"inspect", subject, "normalize1", "--stage", "opencl"});
    EXPECT_THAT(ran.out, HasSubstr("-- opencl: kernel conv1"));
  }
}

TEST_F(Commands, LayersWithoutAKernelSayWhy) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"2", "3"});
  add_node(model, "Exp", {"x"}, {"z"}, "spare");  // only its shape is read
  add_node(model, "Shape", {"z"}, {"shape"}, "extents");
  add_node(model, "Reshape", {"x", "shape"}, {"same"}, "reshape");
  add_node(model, "Relu", {"same"}, {"y"}, "relu");
  add_output(model, "y", {"2", "3"});
  const Folder folder;
  const std::string path = folder.write("model.onnx", model.SerializeAsString()).string();
  ASSERT_EQ(run_hoist({"compile", path, "-o", in("absence.hoist")}).code, 0);
  for (const std::string& subject : {path, in("absence.hoist")}) {
    EXPECT_EQ(run_hoist({"explain", subject, "extents"}).out, "extents: evaluated at compile time\n");
    EXPECT_THAT(run_hoist({"explain", subject, "spare"}).out,
                testing::StartsWith("spare: no output of the model depends on it\n"));
    EXPECT_THAT(run_hoist({"inspect", subject, "extents"}).out, HasSubstr("-- extents: evaluated at compile time\n"));
    EXPECT_THAT(run_hoist({"explain", subject, "reshape"}).out, HasSubstr("computes reshape, relu\n"));
  }
}

TEST_F(Commands, ExplainPrintsTheDerivation) {
  const std::string model = (models / "digits_residual.onnx").string();
  Ran ran = run_hoist({"explain", model, "conv1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* text : {"kernel conv1 computes conv1, normalize1, relu1", "batch-norm-folding", "   1. ", "[exact]",
                           "[rounding]", "end:"}) {
    EXPECT_THAT(ran.out, HasSubstr(text));
  }
  ran = run_hoist({"explain", model, "conv1", "--terms"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  ran = run_hoist({"explain", bundle(), "conv1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("[rounding]"));
}

TEST_F(Commands, ExplainPrintsOrdersWithTheirCosts) {
  const std::string model = (models / "digits_residual.onnx").string();
  Ran ran = run_hoist({"explain", model, "--choices", "--target", "native:x86-64-v3"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(" of layer conv1: order 0 2 3 1, cost "));
  EXPECT_THAT(ran.out, HasSubstr("\nall values: cost "));
  EXPECT_THAT(ran.out, HasSubstr("; chosen by cost "));
  ran = run_hoist({"explain", model, "conv1", "--choices", "--target", "native:x86-64-v3", "--pass", "layouts=rule"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(" of layer conv1: order 0 2 3 1, cost "));
  ran = run_hoist({"explain", model, "--choices", "--target", "native:x86-64-v3", "--dim", "N=1024"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(" of 1024 samples at a time: cost "));
  ran = run_hoist(
      {"explain", model, "--choices", "--target", "native:x86-64-v3", "--dim", "N=1024", "--pass", "batches=whole"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("samples at a time")));
  ran = run_hoist({"explain", model, "conv0", "--choices", "--target", "native:x86-64-v3"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("conv0: no kernel computes this layer"));
  EXPECT_EQ(run_hoist({"explain", bundle(), "--choices"}).code, 2);
}

// Steps of a recurrent layer launch the same kernel, with equal derivations.
TEST_F(Commands, ExplainTellsAKernelOnce) {
  onnx::ModelProto model = empty_model();
  add_input(model, "x", {"9", "2", "3"});
  *model.mutable_graph()->add_initializer() = float_tensor("w", {1, 4, 3});
  *model.mutable_graph()->add_initializer() = float_tensor("r", {1, 4, 4});
  add_node(model, "RNN", {"x", "w", "r"}, {"y"}, "cell");
  add_output(model, "y", {"9", "1", "2", "4"});
  const Folder folder;
  const std::string path = folder.write("model.onnx", model.SerializeAsString()).string();
  const Ran ran = run_hoist({"explain", path, "cell"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::map<std::string, int> told;
  bool several = false;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("kernel ", 0) != 0) continue;
    ++told[line.substr(0, line.find(" computes"))];
    several |= line.find(" launches") != std::string::npos;
  }
  EXPECT_TRUE(several) << ran.out.substr(0, 500);
  for (const auto& [kernel, times] : told) EXPECT_EQ(times, 1) << kernel;
}

TEST_F(Commands, ThePageOfOperatorsIsThatOfTheTables) {
  const std::string file = std::string(HOIST_SOURCE_DIR) + "/ir/operators/COVERAGE.md";
  const Ran page = run_hoist({"operators", "--page"});
  ASSERT_EQ(page.code, 0) << page.err;
  if (std::getenv("HOIST_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file(file, page.out).ok());
  }
  auto there = read_file(file);
  ASSERT_TRUE(there.ok());
  EXPECT_TRUE(*there == page.out) << "HOIST_UPDATE_GOLDEN=1 writes ir/operators/COVERAGE.md anew";
}

TEST_F(Commands, ListingsComeFromTheTables) {
  EXPECT_THAT(run_hoist({"operators"}).out, HasSubstr("Conv "));
  EXPECT_THAT(run_hoist({"operators", "Elu"}).out, HasSubstr("select(x < 0"));
  const std::string words = run_hoist({"language"}).out;
  for (const char* word : {"slide size step dilation", "shift_left", "map (map f) x", "f8e4m3fn"})
    EXPECT_THAT(words, HasSubstr(word));
  EXPECT_THAT(run_hoist({"rules", "--strategies"}).out, HasSubstr("register-tiles"));
  EXPECT_THAT(run_hoist({"rules", "map-fusion"}).out, HasSubstr("map-fusion"));
  EXPECT_THAT(run_hoist({"rules", "w8a8"}).out, HasSubstr("at product sites"));
  EXPECT_THAT(run_hoist({"rules", "tanh-rational-5"}).out, HasSubstr("absolute error at most"));
  EXPECT_THAT(run_hoist({"devices"}).out, HasSubstr("0: "));
  EXPECT_GT(nlohmann::json::parse(run_hoist({"operators", "--json", "-"}).out).size(), 50u);
  EXPECT_GT(nlohmann::json::parse(run_hoist({"rules", "--json", "-"}).out).size(), 20u);
  EXPECT_GE(nlohmann::json::parse(run_hoist({"devices", "--json", "-"}).out).size(), 1u);
}

TEST_F(Commands, EveryCommandTeaches) {
  for (const char* command : {"check", "compile", "run", "evaluate", "test", "verify", "inspect", "explain", "bench",
                              "worker", "devices", "language", "rules", "operators"}) {
    const Ran ran = run_hoist({command, "--help"});
    EXPECT_EQ(ran.code, 0) << command;
    EXPECT_THAT(ran.out, HasSubstr(std::string("hoist ") + command)) << "the example";
    EXPECT_EQ(ran.err, "");
  }
}

TEST_F(Commands, TheExampleProgramBuildsAndRuns) {
  const std::string example = in("example");
  Ran ran = run_shell("cp -r '" + bundle() + "' '" + example + "' && make -s -C '" + example + "'");
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
}

}  // namespace hoist::commands_test
