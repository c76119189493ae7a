// Tests the parts of a plan besides its kernels: the tolerances and the data of the comparison with the interpreter.
#include <gmock/gmock.h>

#include <cmath>

#include "ir/text/program_text.h"
#include "tools/driver/compile.h"

namespace hoist::plan_test {

Plan plan_of(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  auto lowered = lower_model(*program, {}, {});
  HOIST_CHECK(lowered.ok(), lowered.errors()[0].text());
  auto plan = make_plan(*lowered, {}, {});
  HOIST_CHECK(plan.ok(), plan.errors()[0].text());
  return *plan;
}

Plan unary(const std::string& operation) {
  return plan_of("program %unary version 21\ninput %x : [3][4]f32\ndefine %y : [3][4]f32 = " + operation +
                 "(%x) from \"layer\"\noutput %y\n");
}

// Kernels of one term and name, for another device and of another name.
TEST(EmittedKernels, AreThoseThatWouldBeEmittedAgain) {
  const auto program = parse_program(
      "program %two version 21\ninput %x : [64][48]f32\ndefine %y : [48][64]f32 = Transpose(%x; perm = [1, 0]) from "
      "\"turn\"\ndefine %z : [48][64]f32 = Exp(%y) from \"exp\"\noutput %z\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const auto emitted = std::make_shared<EmittedKernels>();
  Profile gpu;
  gpu.gpu = true;
  for (const Profile& profile : {Profile{}, gpu, Profile{}}) {
    for (const char* suffix : {"", "_b", ""}) {
      CompileOptions options;
      options.kernel_suffix = suffix;
      const auto lowered = lower_model(*program, {}, profile);
      ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
      const auto anew = make_plan(*lowered, options, profile);
      options.emitted = emitted;
      const auto known = make_plan(*lowered, options, profile);
      ASSERT_TRUE(anew.ok() && known.ok());
      ASSERT_EQ(anew->kernels.size(), known->kernels.size());
      for (size_t i = 0; i < anew->kernels.size(); ++i) {
        EXPECT_EQ(anew->kernels[i].source, known->kernels[i].source);
        EXPECT_EQ(anew->kernels[i].global, known->kernels[i].global);
        EXPECT_EQ(anew->kernels[i].parameters.size(), known->kernels[i].parameters.size());
      }
    }
  }
}

TEST(Plan, DivisionIsExactWhereTheDeviceSaysSo) {
  EXPECT_TRUE(unary("Neg").kernels[0].tolerance.exact);
  EXPECT_FALSE(unary("Neg").kernels[0].tolerance.divides);
  for (const char* dividing : {"Reciprocal", "Sqrt"}) {
    const Tolerance tolerance = unary(dividing).kernels[0].tolerance;
    EXPECT_TRUE(tolerance.exact) << dividing;
    EXPECT_TRUE(tolerance.divides) << dividing;
    EXPECT_GT(tolerance.relative, 0) << dividing;
  }
  EXPECT_FALSE(unary("Exp").kernels[0].tolerance.exact);
}

TEST(Plan, SeededDataLieWhereOperatorsAreDefined) {
  for (const char* operation : {"Log", "Sqrt", "Acosh"}) {
    const Plan plan = unary(operation);
    ASSERT_EQ(plan.input_domains.size(), 1U);
    EXPECT_GT(plan.input_domains[0].low, 0) << operation;
    const PlanKernel& kernel = plan.kernels[0];
    EXPECT_EQ(kernel.parameters[0].low, plan.input_domains[0].low);
    const Tensor expected(Scalar::f32, {static_cast<int64_t>(kernel.check_positions.size())}, kernel.check_values);
    for (int64_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(std::isfinite(expected.float_at(i))) << operation;
  }
  EXPECT_TRUE(unary("Exp").input_domains.empty());
  EXPECT_EQ(unary("Exp").kernels[0].parameters[0].low, -1);
}

// A view in between, and two consumers with different ranges.
TEST(Plan, DomainsReachThroughViewsAndMeet) {
  const Plan plan = plan_of(
      "program %two version 21\ninput %x : [3][4]f32\n"
      "define %t : [4][3]f32 = Transpose(%x; perm = [1, 0]) from \"transpose\"\n"
      "define %y : [4][3]f32 = Log(%t) from \"log\"\n"
      "define %z : [3][4]f32 = Acos(%x) from \"acos\"\noutput %y\noutput %z\n");
  ASSERT_EQ(plan.input_domains.size(), 1U);
  EXPECT_EQ(plan.input_domains[0].low, 0.1);
  EXPECT_EQ(plan.input_domains[0].high, 1);
}

std::string two_layers(const std::string& first, const std::string& second) {
  return "program %chain version 21\ninput %x : [3][4]f32\ninput %m : [4][4]f32\n"
         "define %p : [3][4]f32 = " +
         first +
         " from \"first\"\n"
         "define %y : [3][4]f32 = " +
         second + " from \"second\"\noutput %y\n";
}

TEST(Plan, SmallModelsAreCheckedAsAWhole) {
  // Two matmuls are two kernels.
  const Plan exact = plan_of(two_layers("MatMul(%x, %m)", "MatMul(%p, %m)"));
  ASSERT_EQ(exact.steps.size(), 2U);
  ASSERT_EQ(exact.model_check.size(), 1U);
  EXPECT_EQ(exact.model_check[0].positions.size(), 12U);
  EXPECT_EQ(exact.model_check[0].values.size(), 48U);
  EXPECT_TRUE(exact.model_tolerance.exact);
  // With a division in between: exact if the device divides exactly.
  const Plan divided = plan_of(two_layers("Reciprocal(%x)", "MatMul(%p, %m)"));
  ASSERT_EQ(divided.model_check.size(), 1U);
  EXPECT_TRUE(divided.model_tolerance.exact && divided.model_tolerance.divides);
  // With an exponential at the end there are bounds; with one in between there is no comparison.
  const Plan last = plan_of(two_layers("MatMul(%x, %m)", "Softmax(%p; axis = 1)"));
  ASSERT_EQ(last.model_check.size(), 1U);
  EXPECT_FALSE(last.model_tolerance.exact);
  EXPECT_TRUE(plan_of(two_layers("Softmax(%x; axis = 1)", "MatMul(%p, %m)")).model_check.empty());
}

TEST(Plan, LargeModelsAreNotCheckedAsAWhole) {
  const Plan plan = plan_of(
      "program %large version 21\ninput %x : [256][256]f32\ninput %m : [256][256]f32\n"
      "define %y : [256][256]f32 = MatMul(%x, %m) from \"product\"\noutput %y\n");
  EXPECT_TRUE(plan.model_check.empty());
  EXPECT_FALSE(plan.kernels[0].check_positions.empty());
}

}  // namespace hoist::plan_test
