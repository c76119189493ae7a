// Tests states on the command line: pairs of inputs and outputs, sequences of runs, and files of states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/program.h"
#include "tools/data/npy.h"

namespace hoist::cli_states_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

// hn = h + x and y = hn * c; c has no output of its type.
constexpr char graph[] =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[2] x, float[2] h, float[1] c, int64[2] past_n) => (float[2] y, float[2] hn, int64[2] present_n) {\n"
    "one = Constant <value = int64[2] {1, 1}> ()\n"
    "hn = Add(h, x)\ny = Mul(hn, c)\npresent_n = Add(past_n, one) }";

class StatesOnTheCommandLine : public InTemporaryFolder {
 protected:
  void SetUp() override {
    InTemporaryFolder::SetUp();
    onnx::ModelProto model;
    const auto status = onnx::OnnxParser::Parse(model, graph);
    ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
    model_ = in("model.onnx");
    std::ofstream(model_, std::ios::binary) << model.SerializeAsString();
  }

  Ran compile(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"compile", model_, "-o", in("a.hoist"), "--force"};
    words.insert(words.end(), more.begin(), more.end());
    return run_hoist(words);
  }

  std::string input(const std::string& name, const std::vector<int64_t>& shape, const std::vector<double>& values) {
    const std::string path = in(name + ".npy");
    EXPECT_TRUE(write_npy(path, Tensor::of(Scalar::f32, shape, values)).ok());
    return name + "=" + path;
  }

  std::vector<double> output(const std::string& name) {
    auto tensor = read_npy(in("out/" + name + ".npy"));
    EXPECT_TRUE(tensor.ok());
    std::vector<double> out;
    for (int64_t i = 0; tensor.ok() && i < tensor->size(); ++i)
      out.push_back(is_float(tensor->scalar()) ? tensor->float_at(i) : static_cast<double>(tensor->integer_at(i)));
    return out;
  }

  std::string model_;
};

TEST_F(StatesOnTheCommandLine, ASequenceOfRunsContinues) {
  for (const std::string target : {"native", "opencl"}) {
    Ran ran =
        compile({"--state", "h=hn", "--state", "past_n=present_n", "--initial", "past_n=[3,4]", "--target", target});
    ASSERT_EQ(ran.code, 0) << ran.err;
    ran = run_hoist({"inspect", in("a.hoist"), "--json", "-"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto about = nlohmann::json::parse(ran.out);
    EXPECT_EQ(about.at("inputs").size(), 2U);
    EXPECT_EQ(about.at("outputs").size(), 1U);
    ASSERT_EQ(about.at("states").size(), 2U);
    EXPECT_EQ(about.at("states")[1].at("name"), "past_n");
    ran = run_hoist({"verify", in("a.hoist")});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("passed states"));
    EXPECT_THAT(ran.out, HasSubstr("passed run 3, step"));
    const std::vector<std::string> runs = {"run",
                                           in("a.hoist"),
                                           "--output-dir",
                                           in("out"),
                                           "--sequence",
                                           "--input",
                                           input("x", {3, 2}, {1, 2, 3, 4, 5, 6}),
                                           "--input",
                                           input("c", {1}, {10})};
    std::vector<std::string> saves = runs;
    saves.insert(saves.end(), {"--save-states", in("states")});
    ran = run_hoist(saves);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(output("y"), (std::vector<double>{10, 20, 40, 60, 90, 120}));
    std::vector<std::string> continues = runs;
    continues.insert(continues.end(), {"--load-states", in("states")});
    ran = run_hoist(continues);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(output("y"), (std::vector<double>{100, 140, 130, 180, 180, 240}));
  }
}

TEST_F(StatesOnTheCommandLine, TheDerivationOfABundleHasThem) {
  Ran ran = compile({"--state", "auto", "--initial", "h=[1,2]", "--target", "native"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("note: h is a state, and hn its value in the next run"));
  EXPECT_THAT(ran.err, HasSubstr("note: past_n is a state, and present_n its value in the next run"));
  ran = run_hoist({"verify", in("a.hoist"), "--derivation", "--model", model_});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

TEST_F(StatesOnTheCommandLine, ModelsKeepTheirInterfaceUnlessAsked) {
  Ran ran = run_hoist({"check", model_, "--json", "-"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  auto about = nlohmann::json::parse(ran.out);
  EXPECT_EQ(about.at("inputs").size(), 4U);
  EXPECT_FALSE(about.contains("states"));
  ran = run_hoist({"check", model_, "--state", "auto"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("2 states between runs"));
  EXPECT_THAT(ran.out, HasSubstr("state   past_n"));
  ran = run_hoist({"inspect", model_, "--state", "h=hn", "--stage", "graph"});
  ASSERT_EQ(ran.code, 0) << ran.err;
}

TEST_F(StatesOnTheCommandLine, WrongPairsAreReportedTogether) {
  Ran ran = compile({"--state", "h=y", "--state", "hh=hn", "--state", "h=hn", "--state", "c=y", "--value", "c=2",
                     "--initial", "past_n=[1,2,3]"});
  EXPECT_EQ(ran.code, 3);
  for (const char* part : {"the model has no input hh (it has: x, h, past_n)", "the input h is a state already",
                           "the input c is fixed by --value", "the output y is the next value of a state already",
                           "--initial past_n: has shape [3], and the input [2]"})
    EXPECT_THAT(ran.err, HasSubstr(part)) << part;
  EXPECT_FALSE(fs::exists(in("a.hoist")));
  ran = compile({"--initial", "h=[1,2]"});
  EXPECT_EQ(ran.code, 2);
  ran = compile({"--state", "h=hn", "--budget", "sqnr=30dB", "--calibrate", "x"});
  EXPECT_EQ(ran.code, 2) << ran.err;
  ASSERT_EQ(compile({"--state", "h=hn", "--target", "native", "--no-check"}).code, 0);
  ran = run_hoist({"run", in("a.hoist"), "--input", input("x", {2}, {1, 2}), "--input", input("c", {1}, {1}), "--input",
                   "past_n=" + model_, "--input", input("h", {2}, {1, 2})});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("h"));
  ran = run_hoist({"run", in("a.hoist"), "--sequence", "--input", input("x", {2}, {1, 2}), "--input",
                   input("c", {1}, {1}), "--input", "past_n=" + model_});
  EXPECT_EQ(ran.code, 3);
}

// Data sets that engines without states recorded are the runs of a sequence.
TEST_F(StatesOnTheCommandLine, RecordedRunsAreASequence) {
  const auto numbers = [&](int set, const std::string& file, const Tensor& tensor) {
    const fs::path folder = fs::path(in("data")) / ("test_data_set_" + std::to_string(set));
    fs::create_directories(folder);
    ASSERT_TRUE(write_npy(folder / file, tensor).ok());
  };
  const auto pair = [](double a, double b) { return Tensor::of(Scalar::f32, {2}, std::vector<double>{a, b}); };
  const auto whole = [](int64_t n) { return Tensor::of(Scalar::i64, {2}, std::vector<int64_t>{n, n}); };
  for (int set = 0; set < 3; ++set) {
    const double h = 5 + set;
    numbers(set, "input_0.npy", pair(1, 2));
    numbers(set, "input_1.npy", pair(h, 2 * h));
    numbers(set, "input_2.npy", Tensor::of(Scalar::f32, {1}, std::vector<double>{10}));
    numbers(set, "input_3.npy", whole(set));
    numbers(set, "output_0.npy", pair(10 * (h + 1), 20 * (h + 1)));
    numbers(set, "output_1.npy", pair(h + 1, 2 * (h + 1)));
    numbers(set, "output_2.npy", whole(set + 1));
  }
  for (const std::vector<std::string>& how : std::vector<std::vector<std::string>>{
           {},
           {"--interpret"},
           {"--target", "native"},
           {"--state", "auto"},
           {"--state", "auto", "--interpret"},
           {"--state", "past_n=present_n", "--state", "h=hn", "--target", "native"}}) {
    std::vector<std::string> words = {"test", model_, "--data", in("data")};
    words.insert(words.end(), how.begin(), how.end());
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  }
  numbers(2, "output_1.npy", pair(7, 16));
  const Ran ran = run_hoist({"test", model_, "--data", in("data"), "--state", "auto", "--target", "native"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("test_data_set_2, output hn"));
}

// Voice activity in chunks of 512 samples at 16 kHz: the network's memory is a state.
TEST_F(StatesOnTheCommandLine, ARealNetworkHearsAStream) {
  const char* shared = std::getenv("HOIST_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  const std::string model = (fs::path(shared) / "models" / "silero_vad.onnx").string();
  const std::vector<std::string> sizes = {"--dim", "input.0=1", "--dim",   "input.1=576",
                                          "--dim", "state.1=1", "--value", "sr=16000"};
  const auto compiled = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"compile", model, "-o", in(name), "--target", "native"};
    words.insert(words.end(), sizes.begin(), sizes.end());
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
  };
  compiled("plain.hoist", {});
  compiled("stream.hoist", {"--state", "state=stateN"});
  constexpr int64_t chunks = 5, length = 576;
  Tensor sound(Scalar::f32, {chunks, 1, length});
  for (int64_t i = 0; i < sound.size(); ++i) sound.set_float(i, 0.3 * std::sin(0.05 * static_cast<double>(i)));
  ASSERT_TRUE(write_npy(in("sound.npy"), sound).ok());
  Ran ran = run_hoist(
      {"run", in("stream.hoist"), "--sequence", "--input", "input=" + in("sound.npy"), "--output-dir", in("out")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::vector<double> stream = output("output");
  ASSERT_EQ(stream.size(), static_cast<size_t>(chunks));
  ASSERT_TRUE(write_npy(in("state.npy"), Tensor(Scalar::f32, {2, 1, 128})).ok());
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    Tensor part(Scalar::f32, {1, length});
    for (int64_t i = 0; i < length; ++i) part.set_float(i, sound.float_at(chunk * length + i));
    ASSERT_TRUE(write_npy(in("part.npy"), part).ok());
    ran = run_hoist({"run", in("plain.hoist"), "--input", "input=" + in("part.npy"), "--input",
                     "state=" + in("state.npy"), "--output-dir", in("out")});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(output("output")[0], stream[static_cast<size_t>(chunk)]) << chunk;
    fs::copy_file(in("out/stateN.npy"), in("state.npy"), fs::copy_options::overwrite_existing);
  }
}

}  // namespace hoist::cli_states_test
