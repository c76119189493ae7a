// The text of a program is the whole program: a compilation in which every pass starts from the text that the previous
// pass produced gives the same bundle, byte for byte. Real models are tested if HOIST_SHARED names their folder.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "backends/bundle/bundle.h"
#include "frontend/frontend.h"
#include "ir/base/temporary_folder.h"
#include "ir/target/starter_profiles.h"
#include "tests/lowering/random_graphs.h"
#include "tests/support/lower_model.h"
#include "tools/driver/compile.h"

namespace hoist::text_models_test {

std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    out[std::filesystem::relative(entry.path(), folder)] = bytes.str();
  }
  return out;
}

class TextModels : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make();
    ASSERT_TRUE(made.ok());
    folder_.emplace(std::move(*made));
  }

  std::map<std::string, std::string> bundle_of(Result<LoweredModel> lowered, const CompileOptions& options,
                                               const Profile& profile) {
    if (!lowered.ok()) {
      ADD_FAILURE() << lowered.errors()[0].text();
      return {};
    }
    auto plan = make_plan(std::move(*lowered), options, profile);
    if (!plan.ok()) {
      ADD_FAILURE() << plan.errors()[0].text();
      return {};
    }
    const auto path = folder_->path() / "bundle";
    auto written = write_bundle(*plan, path, {.force = true});
    EXPECT_TRUE(written.ok()) << written.errors()[0].text();
    return files_of(path);
  }

  void expect_same_bundle(const Program& program, const CompileOptions& options, const Profile& profile) {
    const auto straight = bundle_of(lower_model(program, options.lower, profile), options, profile);
    const auto from_text = bundle_of(lower_through_text(program, options.lower, profile), options, profile);
    EXPECT_GT(straight.size(), 2U);
    ASSERT_EQ(from_text.size(), straight.size());
    for (const auto& [name, bytes] : straight) EXPECT_TRUE(from_text.at(name) == bytes) << name << " differs";
  }

  void expect_same_bundle(const std::filesystem::path& model, const std::vector<DimensionValue>& dimensions = {}) {
    SCOPED_TRACE(model.filename().string());
    ReadOptions reading;
    reading.dimensions = dimensions;
    auto program = read_model(model, reading);
    ASSERT_TRUE(program.ok()) << program.errors()[0].text();
    CompileOptions options;
    options.check_positions = 1;
    options.check_model = false;
    expect_same_bundle(*program, options, find_starter_profile("cpu-avx2")->profile);
    options.targets = {"x86-64-v3"};
    expect_same_bundle(*program, options, find_starter_profile("cpu-avx2")->profile);
  }

  std::optional<TemporaryFolder> folder_;
};

TEST_F(TextModels, RandomModelsGiveTheSameBundles) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    auto program = program_of(random_graph(random).graph);
    ASSERT_TRUE(program.ok()) << program.errors()[0].text();
    const auto [lower, profile] = varied_compilation(seed);
    CompileOptions options;
    options.lower = lower;
    expect_same_bundle(*program, options, profile);
  }
}

TEST_F(TextModels, OwnModelsGiveTheSameBundles) {
  for (const char* name : {"digits_attention", "digits_fully_connected", "digits_convolutional", "digits_residual"})
    expect_same_bundle(std::filesystem::path(HOIST_SOURCE_DIR) / "models" / (std::string(name) + ".onnx"));
}

TEST_F(TextModels, RealModelsGiveTheSameBundles) {
  const char* shared = std::getenv("HOIST_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "HOIST_SHARED is not set";
  for (const char* name : {"mnist-8", "mnist-cnn_convinteger_quant", "mlperftiny_kws_dscnn_int8_qdq",
                           "mlperftiny_ic_resnet8_fp32", "mlperftiny_ic_resnet8_int8_qdq", "squeezenet1.1_fp32"})
    expect_same_bundle(std::filesystem::path(shared) / "models" / (std::string(name) + ".onnx"));
  expect_same_bundle(std::filesystem::path(shared) / "models" / "silero_vad.onnx",
                     {{"input.0", 1}, {"input.1", 576}, {"state.1", 1}});
}

}  // namespace hoist::text_models_test
