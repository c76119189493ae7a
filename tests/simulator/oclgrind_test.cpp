// Every form of kernel on a simulated device that sees what real ones hide: accesses outside an array, races between
// work-items, results that depend on what was never written, wrong calls of the OpenCL API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "backends/bundle/bundle.h"
#include "tests/simulator/layers.h"
#include "tools/compile.h"
#include "tools/files.h"

namespace hoist {
namespace {

using testing::HasSubstr;

struct Form {
  const char* name;
  bool gpu;
  ConvolutionForm convolution;
  bool convolutions_only;
};

int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string content(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

std::vector<std::string> texts(const Diagnostics& problems) {
  std::vector<std::string> out;
  for (const Diagnostic& problem : problems) out.push_back(problem.text());
  return out;
}

class Simulated : public testing::TestWithParam<Form> {};

TEST_P(Simulated, NothingToReport) {
  if (shell("command -v oclgrind >/dev/null") != 0) GTEST_SKIP() << "oclgrind is not installed";
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());

  std::vector<SmallLayer> layers = convolution_layers();
  if (!GetParam().convolutions_only) {
    for (SmallLayer& layer : other_layers()) layers.push_back(std::move(layer));
  }
  Profile profile;
  profile.gpu = GetParam().gpu;
  CompileOptions options;
  options.lower.convolution = GetParam().convolution;
  options.lower.separate_arrays = true;
  auto compiled = compile_graph(graph_of(layers), options, profile);
  ASSERT_TRUE(compiled.ok()) << testing::PrintToString(texts(compiled.errors()));
  const std::filesystem::path bundle = folder->path() / "layers.hoist", said = folder->path() / "said",
                              log = folder->path() / "log";
  ASSERT_TRUE(write_bundle(compiled->plan, bundle).ok());

  const int code =
      shell("oclgrind --build-options -cl-opt-disable --check-api --data-races --uninitialized --log '" + log.string() +
            "' '" + HOIST_VERIFY_BUNDLE "' '" + bundle.string() + "' >'" + said.string() + "' 2>&1");
  EXPECT_EQ(code, 0) << content(said);
  EXPECT_THAT(content(said), HasSubstr("on Oclgrind Simulator"));
  EXPECT_EQ(content(log), "") << content(said);
}

INSTANTIATE_TEST_SUITE_P(Forms, Simulated,
                         testing::Values(Form{"cpu", false, ConvolutionForm::stencil, false},
                                         Form{"gpu", true, ConvolutionForm::stencil, false},
                                         Form{"cpu_im2col", false, ConvolutionForm::im2col, true},
                                         Form{"gpu_im2col", true, ConvolutionForm::im2col, true}),
                         [](const auto& form) { return std::string(form.param.name); });

}  // namespace
}  // namespace hoist
