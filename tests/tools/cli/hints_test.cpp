// Tests that a slightly wrong command is answered with the right one, and that options work where users expect them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <nlohmann/json.hpp>

#include "tests/frontend/model_builder.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"

namespace hoist::hints_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::string model_file(const std::string& name) {
  return (fs::path(HOIST_SOURCE_DIR) / "models" / (name + ".onnx")).string();
}

class Hints : public testing::Test {
 protected:
  std::string in(const std::string& name) const { return (folder_.path() / name).string(); }

  Folder folder_;
};

TEST_F(Hints, InspectAndExplainTakeATarget) {
  const std::string model = model_file("digits_fully_connected");
  Ran ran = run_hoist({"inspect", model, "dense1", "--target", "native:x86-64-v3", "--stage", "native"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("-- native: kernel "));
  EXPECT_THAT(ran.out, Not(HasSubstr("__kernel")));
  ran = run_hoist({"inspect", model, "dense1", "--target", "native:x86-64-v3", "--stage", "opencl"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--stage opencl: is not the code of this target (write --stage native"));
  ran = run_hoist({"explain", model, "--target", "native:x86-64-v3"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("dense1"));
}

TEST_F(Hints, StopAfterNeedsNoFolder) {
  const std::string model = model_file("digits_fully_connected");
  fs::create_directory(in("taken"));
  const Ran ran = run_hoist({"compile", model, "-o", in("taken"), "--stop-after", "import"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("-- after import"));
  EXPECT_TRUE(fs::is_empty(in("taken")));
}

TEST_F(Hints, NothingIsCheckedInABundleWithoutElements) {
  const Ran ran = run_hoist(
      {"compile", model_file("digits_fully_connected"), "-o", in("empty.hoist"), "--dim", "N=0", "--target", "native"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("nothing to check: no kernel computes an element"));
  EXPECT_THAT(ran.out, Not(HasSubstr("agree")));
}

TEST_F(Hints, MisspeltNamesOfDescriptionsPassesAndRules) {
  const std::string model = model_file("digits_fully_connected");
  Ran ran = run_hoist({"compile", model, "-o", in("m.hoist"), "--profile", "nvidia-a10"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("--profile nvidia-a10: is neither a file nor a target description of hoist (did you "
                                 "mean nvidia-a100?)"));
  ran = run_hoist({"compile", model, "-o", in("m.hoist"), "--profile", "a100"});
  EXPECT_THAT(ran.err, HasSubstr("did you mean nvidia-a100?"));
  ASSERT_EQ(run_hoist({"inspect", model, "--stage", "graph", "--output", in("m.lift")}).code, 0);
  ran = run_hoist({"rewrite", in("m.lift"), "--pass", "fold-constant"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--pass fold-constant: unknown pass (did you mean fold-constants?)"));
  ran = run_hoist({"rewrite", in("m.lift"), "--rule", "split-jion(k = 4)"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("unknown rule (did you mean split-join?)")) << "of a program, without a place";
  ran = run_hoist({"rewrite", in("m.lift"), "--rule", "split-join(k = 4)"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--rule split-join(k = 4): needs a place: add --at"));
  const std::string term = folder_.write("term.lift", "%a : [8]f32 |> map exp").string();
  ran = run_hoist({"rewrite", term, "--rule", "split-jion(k = 4)"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("unknown rule (did you mean split-join?)"));
}

TEST_F(Hints, TopWorksWithoutLabels) {
  const std::string model = model_file("digits_fully_connected");
  ASSERT_EQ(run_hoist({"compile", model, "-o", in("m.hoist"), "--dim", "N=2", "--target", "native"}).code, 0);
  const Ran info = run_hoist({"inspect", in("m.hoist"), "--json", "-"});
  const auto input = nlohmann::json::parse(info.out)["inputs"][0];
  ASSERT_TRUE(write_npy(in("x.npy"), Tensor(Scalar::f32, input["shape"].get<std::vector<int64_t>>())).ok());
  const Ran ran = run_hoist({"run", in("m.hoist"), "--input", in("x.npy"), "--top", "3", "--json", in("run.json")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto answer = read_file(in("run.json"));
  ASSERT_TRUE(answer.ok());
  const auto best = nlohmann::json::parse(*answer)["outputs"][0]["best"];
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].size(), 3u);
  EXPECT_FALSE(best[0][0].contains("name"));
}

TEST_F(Hints, LongNamesOfOutputsAreShortenedAndStayDistinct) {
  const std::string name(3000, 'y');
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(
      model, ("<ir_version: 10, opset_import: [\"\" : 20]>\ng (float[1] x) => (float[1] " + name + "a, float[1] " +
              name + "b) { " + name + "a = Abs (x) " + name + "b = Neg (x) }")
                 .c_str());
  ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
  const std::string path = folder_.write("long.onnx", model.SerializeAsString()).string();
  ASSERT_EQ(run_hoist({"compile", path, "-o", in("m.hoist"), "--target", "native"}).code, 0);
  ASSERT_TRUE(write_npy(in("x.npy"), Tensor(Scalar::f32, {1})).ok());
  const Ran ran = run_hoist({"run", in("m.hoist"), "--input", in("x.npy"), "--output-dir", in("out")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(in("out"))) {
    ++files;
    EXPECT_LE(entry.path().filename().string().size(), 210u);
  }
  EXPECT_EQ(files, 2u);
}

TEST_F(Hints, ANativeBundleIsExportedFromItsRecord) {
  const std::string model = model_file("digits_fully_connected");
  const std::string data = (fs::path(HOIST_SOURCE_DIR) / "models/digits_fully_connected_calibration.npz").string();
  const Ran compiled = run_hoist({"compile", model, "-o", in("small.hoist"), "--target", "native", "--budget",
                                  "sqnr=20dB", "--objective", "size", "--calibrate", data, "--record", in("r.json")});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  const Ran of_model = run_hoist({"export", model, "--record", in("r.json"), "-o", in("model.onnx")});
  ASSERT_EQ(of_model.code, 0) << of_model.err;
  Ran ran =
      run_hoist({"export", in("small.hoist"), "--model", model, "--record", in("r.json"), "-o", in("bundle.onnx")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(*read_file(in("bundle.onnx")), *read_file(in("model.onnx")));
  ran = run_hoist({"export", in("small.hoist"), "--record", in("r.json"), "-o", in("none.onnx")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--record: of a bundle requires the model"));
  ran = run_hoist({"export", in("small.hoist"), "--model", model_file("digits_residual"), "--record", in("r.json"),
                   "-o", in("none.onnx")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_FALSE(fs::exists(in("none.onnx")));
}

}  // namespace hoist::hints_test
