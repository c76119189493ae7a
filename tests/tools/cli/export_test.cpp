// Tests hoist export as users call it: its output, and the errors that it reports before any work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "frontend/frontend.h"
#include "ir/base/temporary_folder.h"
#include "ir/text/program_text.h"
#include "tests/tools/program.h"
#include "tools/base/files.h"

namespace hoist::export_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path models = fs::path(HOIST_SOURCE_DIR) / "models";

class Export : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make();
    ASSERT_TRUE(made.ok());
    folder_ = std::make_unique<TemporaryFolder>(std::move(*made));
  }
  std::string in(const std::string& name) const { return (folder_->path() / name).string(); }
  std::vector<std::string> left() const { return files_below(folder_->path()); }
  Ran run(const std::string& model, const std::string& output, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"export", model, "-o", output};
    words.insert(words.end(), more.begin(), more.end());
    return run_hoist(words);
  }

  const std::string digits_ = (models / "digits_residual.onnx").string();
  std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(Export, WithoutRulesIsTheModel) {
  const Ran ran = run(digits_, in("plain.onnx"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("layers"));
  const auto before = read_model(digits_), after = read_model(in("plain.onnx"));
  ASSERT_TRUE(before.ok() && after.ok());
  ASSERT_EQ(before->layers.size(), after->layers.size());
  for (size_t i = 0; i < before->layers.size(); ++i) EXPECT_EQ(before->layers[i].name, after->layers[i].name);
  EXPECT_EQ(left(), std::vector<std::string>{"plain.onnx"});
}

// 4-bit weights: packed in the bundle, or as the f32 values that they represent. Both are the same model.
TEST_F(Export, StoredConstantsStaySmallInTheBundle) {
  ASSERT_EQ(run(digits_, in("small.onnx"), {"--rule", "w4-g32"}).code, 0);
  uintmax_t bytes[2];
  for (const bool stored : {false, true}) {
    const std::string bundle = in(stored ? "stored" : "computed");
    Ran ran = run_hoist({"compile", in("small.onnx"), "-o", bundle, "--pass",
                         std::string("constants=") + (stored ? "stored" : "computed")});
    ASSERT_EQ(ran.code, 0) << ran.err;
    ran = run_hoist({"verify", bundle});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
    bytes[stored ? 1 : 0] = fs::file_size(fs::path(bundle) / "weights.bin");
  }
  // Mappings for GPUs need the shape of weights that were inlined into a kernel.
  std::ofstream(in("gpu")) << "name=a GPU\nkind=gpu\nvector_width=4\nvector_registers=255\nlocal_memory=49152\n"
                              "compute_units=132\nmaximum_group=1024\n";
  const Ran ran = run_hoist(
      {"compile", in("small.onnx"), "-o", in("for_gpu"), "--pass", "constants=stored", "--profile", in("gpu")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_LT(bytes[1] * 3, bytes[0]);
}

TEST_F(Export, StandardOutputIsTheFileAlone) {
  ASSERT_EQ(run(digits_, in("plain.onnx")).code, 0);
  const Ran ran = run(digits_, "-");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto file = read_file(in("plain.onnx"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(ran.out == *file);
}

TEST_F(Export, FileIsReplacedOnlyWithForce) {
  std::ofstream(in("old.onnx")) << "mine";
  Ran ran = run(digits_, in("old.onnx"));
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("exists (use --force to replace it)"));
  EXPECT_EQ(*read_file(in("old.onnx")), "mine");
  ran = run(digits_, in("old.onnx"), {"--force"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(read_model(in("old.onnx")).ok());
}

TEST_F(Export, NeverReplacesTheModelItself) {
  fs::copy_file(digits_, in("model.onnx"));
  const Ran ran = run(in("model.onnx"), in("model.onnx"), {"--force"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("is the input model itself"));
}

TEST_F(Export, SaysWhyAFileCannotBeWritten) {
  Ran ran = run(digits_, in("missing/x.onnx"));
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("is not a folder"));

  ran = run(digits_, folder_->path().string());
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("is a folder"));

  ran = run(digits_, "/dev/full");
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("No space left"));

  ran = run_hoist({"export", digits_, "-o", in("cut.onnx")}, "ulimit -f 1; trap '' XFSZ; ");
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_THAT(left(), IsEmpty());

  ran = run(digits_, "");
  EXPECT_EQ(ran.code, 2);
}

TEST_F(Export, SaysWhatIsNoModel) {
  Ran ran = run(in("missing.onnx"), in("x.onnx"));
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("No such file"));

  ASSERT_EQ(run_hoist({"compile", digits_, "-o", in("digits.hoist")}).code, 0);
  ran = run(in("digits.hoist"), in("x.onnx"));
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("in the form that kernels read, not in the model's"));
  EXPECT_THAT(ran.err, HasSubstr("add --model FILE"));
  EXPECT_FALSE(fs::exists(in("x.onnx")));
}

TEST_F(Export, RulesThatNeedNoDataAreCarriedOut) {
  const Ran ran = run(digits_, in("w8.onnx"), {"--rule", "w8", "--rule", "bf16"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("w8 at"));
  EXPECT_THAT(ran.out, HasSubstr("bf16 at"));
  const auto program = read_model(in("w8.onnx"));
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const auto count = [&](const std::string& operation) {
    return std::count_if(program->layers.begin(), program->layers.end(),
                         [&](const ModelLayer& layer) { return layer.operation == operation; });
  };
  EXPECT_GT(count("DequantizeLinear"), 0);
  EXPECT_GT(count("Cast"), 0);
  EXPECT_LT(fs::file_size(in("w8.onnx")), fs::file_size(digits_) / 2);
}

TEST_F(Export, QuantisedModelsKeepTheirAnswers) {
  const std::string data = (models / "digits_residual_calibration.npz").string();
  for (const std::string rule : {"w8a8", "w8a8-adaptive"}) {
    Ran ran = run(digits_, in(rule + ".onnx"), {"--rule", "u8", "--rule", rule, "--calibrate", data});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(rule + " at"));
    ASSERT_EQ(run_hoist({"compile", in(rule + ".onnx"), "-o", in(rule + ".hoist")}).code, 0);
    ran = run_hoist({"evaluate", in(rule + ".hoist"), "--data", (models / "digits_residual_test.npz").string()});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, testing::ContainsRegex("(48[5-9]|49[0-9]|500) of 500")) << ran.out;
  }
}

// Exports the model of a bundle: without the model file if the bundle has all constants, and with it in any case.
TEST_F(Export, ABundleIsTheModelAgain) {
  const std::string model = (models / "digits_fully_connected.onnx").string();
  ASSERT_EQ(run_hoist({"compile", model, "-o", in("digits.hoist"), "--no-check"}).code, 0);
  ASSERT_EQ(run(model, in("plain.onnx"), {"--dim", "N=1"}).code, 0);
  for (const bool with_model : {false, true}) {
    const std::string file = in(with_model ? "with.onnx" : "without.onnx");
    const Ran ran = run(in("digits.hoist"), file,
                        with_model ? std::vector<std::string>{"--model", model} : std::vector<std::string>());
    ASSERT_EQ(ran.code, 0) << ran.err;
    auto back = read_model(file), plain = read_model(in("plain.onnx"));
    ASSERT_TRUE(back.ok() && plain.ok());
    back->name = plain->name = "";  // models are named after their files
    EXPECT_EQ(print_program(*back), print_program(*plain));
  }
  Ran ran = run(in("digits.hoist"), in("x.onnx"), {"--model", digits_});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("is not the bundle's model"));
  ran = run(in("digits.hoist"), in("x.onnx"), {"--rule", "bf16"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--rule: applies to models"));
  ran = run(model, in("x.onnx"), {"--model", model});
  EXPECT_EQ(ran.code, 2);
}

TEST_F(Export, SaysWhatIsWrongWithRules) {
  Ran ran = run(digits_, in("x.onnx"), {"--rule", "w9"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("rule w9: unknown rule"));

  ran = run(digits_, in("x.onnx"), {"--rule", "map-fusion"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("rule map-fusion: is exact and keeps values"));

  ran = run(digits_, in("x.onnx"), {"--rule", "u8"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("give data: --calibrate DATA"));

  ran = run(digits_, in("x.onnx"), {"--rule", "w8a8"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("rule w8a8: applies nowhere"));

  ran = run(digits_, in("x.onnx"), {"--calibrate", digits_});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("requires --rule"));

  ran = run(digits_, in("x.onnx"), {"--rule", "u8", "--calibrate", in("missing.npz")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(left(), IsEmpty());
}

}  // namespace hoist::export_test
