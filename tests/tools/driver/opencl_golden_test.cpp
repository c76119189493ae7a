// Tests the OpenCL text of small layers: tests/golden/opencl holds programs and their kernels for one CPU target
// description, one file per case; a case called NAME.launch is compiled with --pass fusion=launch. A change there
// changes the speed, or is an error.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/program_text.h"
#include "tests/golden.h"
#include "tools/driver/compile.h"

namespace hoist::opencl_golden_test {

// Fixed, independent of the machine.
Profile profile() {
  Profile out;
  out.vector_width = 8;
  out.vector_registers = 16;
  return out;
}

std::string kernels_of(const std::string& text, LaunchFusion fusion) {
  auto program = parse_program(text);
  if (!program.ok()) return "does not parse: " + program.errors()[0].text();
  CompileOptions options;
  options.check_positions = 0;
  options.lower.fusion = fusion;
  auto lowered = lower_model(*program, options.lower, profile());
  if (!lowered.ok()) return "cannot be lowered: " + lowered.errors()[0].text();
  auto plan = make_plan(*lowered, options, profile());
  if (!plan.ok()) return "cannot be compiled: " + plan.errors()[0].text();
  std::string out;
  for (const PlanKernel& kernel : plan->kernels) {
    out += fmt::format("// {} work-items in groups of {}\n{}", fmt::join(kernel.global, " x "),
                       fmt::join(kernel.local, " x "), kernel.source);
  }
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

TEST(OpenClGoldens, KernelsOfSmallLayers) {
  const std::vector<GoldenCase> cases = golden_cases("opencl");
  EXPECT_GE(cases.size(), 12U);
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name);
    const bool launch = golden.stem.ends_with(".launch");
    const std::string kernels = kernels_of(golden.input, launch ? LaunchFusion::launch : LaunchFusion::none);
    EXPECT_NE(kernels.find("kernel"), std::string::npos) << kernels;
    expect_golden(golden.name, golden.input, kernels);
  }
}

}  // namespace hoist::opencl_golden_test
