// Tests bundles for a range of sizes as a user makes and runs them.
#include <gmock/gmock.h>

#include "backends/opencl/bundle_runner.h"
#include "ir/base/seeded.h"
#include "ir/program/program_values.h"
#include "tests/tools/program.h"
#include "tools/driver/model.h"

namespace hoist::open_sizes_test {

using testing::HasSubstr;

const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";

class OpenSizes : public InTemporaryFolder {
 protected:
  Ran compile(const std::string& dimension, const std::vector<std::string>& more = {"--target", "native"}) {
    std::vector<std::string> command = {"compile", model, "-o", in("a.hoist"), "--dim", dimension};
    command.insert(command.end(), more.begin(), more.end());
    return run_hoist(command);
  }
};

TEST_F(OpenSizes, OneBundleIsRightAtAnyOfThem) {
  const Ran compiled = compile("N=1..300");
  if (compiled.err.find("no target is for this processor") != std::string::npos) GTEST_SKIP() << compiled.err;
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("agree with the interpreter"));
  EXPECT_EQ(run_hoist({"verify", in("a.hoist")}).code, 0);
  auto runner = BundleRunner::open(in("a.hoist"), {});
  ASSERT_TRUE(runner.ok()) << runner.errors()[0].text();
  // The ends, around multiples of tiles, and others.
  for (const int64_t n : {300, 1, 2, 5, 6, 7, 31, 32, 97, 143, 222, 299}) {
    ModelOptions options;
    options.dimensions = {"N=" + std::to_string(n)};
    auto program = read_program(model, options);
    ASSERT_TRUE(program.ok()) << program.errors()[0].text();
    const auto& [name, type] = program->inputs[0];
    const Tensor x = seeded_tensor(Scalar::f32, shape_of(type), static_cast<uint64_t>(n), 0, 0, 1);
    auto values = program_values(*program, {{name, x}});
    ASSERT_TRUE(values.ok()) << values.errors()[0].text();
    const Tensor& expected = values->at(program->outputs[0]);
    ASSERT_TRUE(runner->choose_input_shape(0, shape_of(type)).ok());
    ASSERT_TRUE(runner->set_input(0, x).ok());
    ASSERT_TRUE(runner->run().ok());
    auto found = runner->output(0);
    ASSERT_TRUE(found.ok()) << found.errors()[0].text();
    ASSERT_EQ(found->shape(), expected.shape());
    for (int64_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found->float_at(i), expected.float_at(i), 1e-4) << "element " << i << " for " << n;
  }
}

TEST_F(OpenSizes, RangesThatNoBundleCanHaveAreRefused) {
  EXPECT_THAT(compile("N=8..4").err, HasSubstr("--dim N=8..4: is an empty range (write N=1..512)"));
  EXPECT_THAT(compile("N=0..4").err, HasSubstr("is an empty range"));
  EXPECT_THAT(compile("N=1..x").err, HasSubstr("--dim N=x: is not NAME=N"));
  EXPECT_THAT(compile("N=1..64", {}).err,
              HasSubstr("leaves a size open, which native code alone can do (add --target native)"));
  EXPECT_THAT(compile("N=1..12").err, HasSubstr("the range 1 to 12 is too small"));
  EXPECT_THAT(compile("N=1..64", {"--dim", "M=1..64", "--target", "native"}).err,
              HasSubstr("leaves a second size open"));
  EXPECT_EQ(compile("N=1..64", {"--target", "native", "--validate"}).code, 2);
}

}  // namespace hoist::open_sizes_test
