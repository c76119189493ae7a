// Tests another OpenCL driver than PoCL from a user's view: Mesa's rusticl on llvmpipe, which offers its device only if
// RUSTICL_ENABLE requests it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/program.h"

namespace hoist::drivers_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string rusticl = "RUSTICL_ENABLE=llvmpipe ";

std::vector<fs::path> small_models() {
  std::vector<fs::path> out;
  for (const char* folder : {"models", "tests/fuzz/corpus/onnx_model"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(HOIST_SOURCE_DIR) / folder)) {
      if (entry.path().extension() == ".onnx") out.push_back(entry.path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Rusticl : public InTemporaryFolder {
 protected:
  void SetUp() override {
    if (run_hoist({"devices"}, rusticl).out.find("rusticl") == std::string::npos)
      GTEST_SKIP() << "no device of rusticl: it comes with Debian's mesa-opencl-icd";
    InTemporaryFolder::SetUp();
  }
};

TEST_F(Rusticl, SmallModelsAreCompiledAndCheckThemselves) {
  const std::vector<fs::path> models = small_models();
  ASSERT_GE(models.size(), 10u);
  for (const fs::path& model : models) {
    SCOPED_TRACE(model.filename());
    const std::string bundle = in(model.stem().string() + ".hoist");
    const Ran compiled = run_hoist({"compile", model.string(), "-o", bundle, "--device", "llvmpipe"}, rusticl);
    // Mesa 22.3 compares a negative int converted to long as unsigned; then no bundle is written.
    if (model.filename() == "text.onnx" && compiled.code == 5) {
      EXPECT_THAT(compiled.err, HasSubstr("the code generator or the driver causes the difference"));
      EXPECT_FALSE(fs::exists(bundle));
      continue;
    }
    ASSERT_EQ(compiled.code, 0) << compiled.err;
    EXPECT_THAT(compiled.out, HasSubstr("checked on llvmpipe"));
    const Ran verified = run_hoist({"verify", bundle, "--all", "--device", "llvmpipe"}, rusticl);
    // It also replaces the product of 0 and an infinite number by 0, which some positions of GELU show.
    if (verified.code == 1)
      EXPECT_THAT(verified.out, HasSubstr("is 0, expected nan"));
    else
      EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  }
}

// PoCL's binaries do not fit another driver, and the bundle reports the other device.
TEST_F(Rusticl, ABundleMadeOnPoclRuns) {
  const std::string bundle = in("digits.hoist");
  ASSERT_EQ(run_hoist({"compile", HOIST_SOURCE_DIR "/models/digits_fully_connected.onnx", "-o", bundle, "--programs",
                       "--device", "pthread"})
                .code,
            0);
  const Ran verified = run_hoist({"verify", bundle, "--all", "--device", "llvmpipe"}, rusticl);
  EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("checks passed on llvmpipe"));
  EXPECT_THAT(verified.err, HasSubstr("the bundle is made for pthread"));
}

}  // namespace hoist::drivers_test
