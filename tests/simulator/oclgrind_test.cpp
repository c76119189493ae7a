// Runs every form of kernel on a simulated device that detects faults which real devices hide: accesses outside an
// array, races between work-items, results that depend on uninitialised memory, wrong calls of the OpenCL API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "backends/bundle/bundle.h"
#include "ir/base/temporary_folder.h"
#include "ir/text/program_text.h"
#include "tests/simulator/layers.h"
#include "tests/support/lower_model.h"
#include "tools/driver/compile.h"

namespace hoist {
namespace {

using testing::HasSubstr;

struct Form {
  const char* name;
  bool gpu;
  ConvolutionForm convolution;
  bool convolutions_only;
  int64_t vector_width;
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

bool has_oclgrind() { return shell("command -v oclgrind >/dev/null") == 0; }

struct Reports {
  int code = 0;      ///< code of the program
  std::string said;  ///< its output
  std::string log;   ///< Oclgrind's output
};

// `what` is an argument of verify_bundle.
Reports simulate(const std::string& options, const std::string& what, const std::filesystem::path& folder) {
  const std::filesystem::path log = folder / "log", said = folder / "said";
  std::filesystem::remove(log);
  Reports out;
  out.code = shell("oclgrind " + options + " --log '" + log.string() + "' '" + HOIST_VERIFY_BUNDLE "' " + what + " '" +
                   (folder / "layers.hoist").string() + "' >'" + said.string() + "' 2>&1");
  out.said = content(said);
  out.log = content(log);
  return out;
}

// Checks each kernel alone for uninitialised values, with initialised parameters: Oclgrind reports such a value as soon
// as it is an operand, and elements of an open border may be operands of discarded results. Without -cl-opt-disable it
// meets instructions that it does not know (freeze).
Reports simulate_kernels(const std::filesystem::path& folder) {
  return simulate("--uninitialized --build-options -cl-opt-disable", "kernels", folder);
}
Reports simulate_model(const std::filesystem::path& folder) {
  return simulate("--check-api --data-races", "model", folder);
}

Result<Plan> compile(const std::vector<SmallLayer>& layers, const Form& form) {
  Profile profile;
  profile.gpu = form.gpu;
  profile.vector_width = form.vector_width;
  CompileOptions options;
  options.lower.convolution = form.convolution;
  options.lower.separate_arrays = true;
  const NamedModel model = model_of(layers);
  HOIST_TRY(auto lowered, lower_model(model, options.lower, profile));
  return make_plan(std::move(lowered), options, profile);
}

class Simulated : public testing::TestWithParam<Form> {};

TEST_P(Simulated, NothingToReport) {
  if (!has_oclgrind()) GTEST_SKIP() << "oclgrind is not installed";
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  std::vector<SmallLayer> layers = convolution_layers();
  if (!GetParam().convolutions_only) {
    for (SmallLayer& layer : other_layers()) layers.push_back(std::move(layer));
  }
  auto compiled = compile(layers, GetParam());
  ASSERT_TRUE(compiled.ok()) << testing::PrintToString(texts(compiled.errors()));
  ASSERT_TRUE(write_bundle(*compiled, folder->path() / "layers.hoist").ok());
  for (const auto& simulated : {simulate_kernels, simulate_model}) {
    const Reports found = simulated(folder->path());
    EXPECT_EQ(found.code, 0) << found.said;
    EXPECT_THAT(found.said, HasSubstr("on Oclgrind Simulator"));
    EXPECT_EQ(found.log, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Simulated,
                         testing::Values(Form{"cpu", false, ConvolutionForm::stencil, false, 16},
                                         Form{"cpu_narrow", false, ConvolutionForm::stencil, false, 4},
                                         Form{"gpu", true, ConvolutionForm::stencil, false, 4},
                                         Form{"cpu_im2col", false, ConvolutionForm::im2col, true, 16},
                                         Form{"gpu_im2col", true, ConvolutionForm::im2col, true, 4},
                                         Form{"cpu_winograd", false, ConvolutionForm::winograd, true, 16},
                                         Form{"gpu_winograd", true, ConvolutionForm::winograd, true, 4}),
                         [](const auto& form) { return std::string(form.param.name); });

// Several layers in one launch: without the barriers between them they would race for the arrays in local memory.
constexpr char chain[] = R"(program %chain version 21
input %x : [1][3][7][5]f32
input %w : [6][3][3][3]f32
input %u : [6][6][1][1]f32
input %v : [6][10]f32
define %a : [1][6][7][5]f32 = Conv(%x, %w; pads = [1, 1, 1, 1]) from "convolution"
define %b : [1][6][7][5]f32 = Conv(%a, %u) from "pointwise"
define %c : [1][6][3][2]f32 = MaxPool(%a; kernel_shape = [3, 3], strides = [2, 2]) from "pool"
define %d : [1][6][3][2]f32 = MaxPool(%b; kernel_shape = [3, 3], strides = [2, 2]) from "second_pool"
define %s : [1][6][3][2]f32 = Add(%c, %d) from "sum"
define %p : [1][6][1][1]f32 = GlobalAveragePool(%s) from "average"
define %f : [1][6]f32 = Reshape(%p; shape = [1, 6]) from "flatten"
define %g : [1][10]f32 = MatMul(%f, %v) from "product"
define %y : [1][10]f32 = Softmax(%g; axis = 1) from "softmax"
output %y
)";

TEST(SimulatedLaunch, StatementsOfOneLaunch) {
  if (!has_oclgrind()) GTEST_SKIP() << "oclgrind is not installed";
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  auto program = parse_program(chain);
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  for (const bool gpu : {false, true}) {
    Profile profile;
    profile.gpu = gpu;
    profile.vector_width = 4;
    profile.maximum_group = 16;
    CompileOptions options;
    options.lower.fusion = LaunchFusion::launch;
    auto lowered = lower_model(*program, options.lower, profile);
    ASSERT_TRUE(lowered.ok()) << testing::PrintToString(texts(lowered.errors()));
    auto compiled = make_plan(std::move(*lowered), options, profile);
    ASSERT_TRUE(compiled.ok()) << testing::PrintToString(texts(compiled.errors()));
    ASSERT_EQ(compiled->kernels.size(), 1u);
    if (gpu) {
      EXPECT_THAT(compiled->kernels[0].source, HasSubstr("barrier(CLK_LOCAL_MEM_FENCE)"));
    }
    ASSERT_TRUE(write_bundle(*compiled, folder->path() / "layers.hoist", {true}).ok());
    for (const auto& simulated : {simulate_kernels, simulate_model}) {
      const Reports found = simulated(folder->path());
      EXPECT_EQ(found.code, 0) << found.said;
      EXPECT_EQ(found.log, "");
    }
  }
}

// Faulty kernels, which show that the test above detects faults.
struct Fault {
  const char* name;
  const char* body;  ///< body of a kernel over x[13] and result[13], run by two work-items
  Reports (*simulated)(const std::filesystem::path&);
  const char* report;
};

class Faulty : public testing::TestWithParam<Fault> {};

TEST_P(Faulty, IsSeen) {
  if (!has_oclgrind()) GTEST_SKIP() << "oclgrind is not installed";
  auto folder = TemporaryFolder::make();
  ASSERT_TRUE(folder.ok());
  std::vector<SmallLayer> layers = other_layers();
  std::erase_if(layers, [](const SmallLayer& layer) { return layer.name != "relu_tail_13"; });
  auto compiled = compile(layers, {"", false, ConvolutionForm::stencil, false, 16});
  ASSERT_TRUE(compiled.ok()) << testing::PrintToString(texts(compiled.errors()));
  ASSERT_EQ(compiled->kernels.size(), 1u);
  compiled->launches.clear();
  PlanKernel& kernel = compiled->kernels[0];
  kernel.global = {2, 1, 1};
  kernel.local = {1, 1, 1};
  std::string parameters;
  for (const KernelParameter& p : kernel.parameters) {
    parameters += (parameters.empty() ? "" : ", ") + std::string("__global float* ") + (p.written ? "result" : "x");
  }
  kernel.source = "__kernel void " + kernel.name + "(" + parameters + ") {\n  int i = get_global_id(0);\n  " +
                  GetParam().body + "\n}\n";
  ASSERT_TRUE(write_bundle(*compiled, folder->path() / "layers.hoist").ok());
  const Reports found = GetParam().simulated(folder->path());
  EXPECT_THAT(found.log + found.said, HasSubstr(GetParam().report));
}

INSTANTIATE_TEST_SUITE_P(Faults, Faulty,
                         testing::Values(Fault{"overrun", "result[12 + i] = x[12];", simulate_kernels, "Invalid write"},
                                         Fault{"race", "result[0] = x[i];", simulate_model, "Write-write data race"},
                                         Fault{"uninitialised", "float t[2]; t[0] = 1; if (t[i] > 0) result[i] = x[i];",
                                               simulate_kernels, "uninitialized"},
                                         Fault{"unwritten",
                                               "if (i == 0) for (int k = 1; k < 13; ++k) result[k] = x[k];",
                                               simulate_model, "nobody wrote"},
                                         Fault{"wrong", "result[i] = 2;", simulate_kernels, "positions differ"}),
                         [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace hoist
