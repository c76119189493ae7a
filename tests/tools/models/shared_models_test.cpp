// Compares real models with their recorded outputs on the first device, and runs MNIST's test images. Needs
// HOIST_SHARED.
#include <gtest/gtest.h>

#include <cstdlib>

#include "ir/base/temporary_folder.h"
#include "tests/tools/program.h"

namespace hoist::shared_models_test {

namespace fs = std::filesystem;

class SharedModel : public testing::TestWithParam<const char*> {};

TEST_P(SharedModel, AgreesWithTheRecordedOutputs) {
  const char* shared = std::getenv("HOIST_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  const std::string name = GetParam();
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const fs::path models = fs::path(shared) / "models";
  Ran ran = run_shell("tar -xzf '" + (models / "golden.tar.gz").string() + "' -C '" + folder->path().string() + "' '" +
                      name + "'");
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_hoist({"test", (models / (name + ".onnx")).string(), "--data", (folder->path() / name).string(), "--rtol",
                   "1e-3", "--atol", "1e-4"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

// An LSTM over 70 steps in both directions, twice: its steps share a few kernels.
TEST(SharedModels, RecurrentStepsShareKernels) {
  const char* shared = std::getenv("HOIST_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  const fs::path models = fs::path(shared) / "models";
  Ran ran = run_shell("tar -xzf '" + (models / "golden.tar.gz").string() + "' -C '" + folder->path().string() +
                      "' byte_sb_bidi_lstm");
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = run_hoist({"test", (models / "byte_sb_bidi_lstm.onnx").string(), "--dim", "length=70", "--data",
                   (folder->path() / "byte_sb_bidi_lstm").string(), "--rtol", "1e-3", "--atol", "1e-4"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

INSTANTIATE_TEST_SUITE_P(All, SharedModel,
                         testing::Values("mnist-8", "mlperftiny_ic_resnet8_fp32", "mlperftiny_ic_large_fp32",
                                         "mlperftiny_kws_dscnn_fp32", "mlperftiny_vww_mobilenet_fp32",
                                         "mlperftiny_ad_autoencoder_fp32", "micro_kws_m_static_fp32",
                                         "squeezenet1.1_fp32", "super_resolution_espcn_bsds",
                                         "ultraface_version-RFB-320", "yolox_nano"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

}  // namespace hoist::shared_models_test
