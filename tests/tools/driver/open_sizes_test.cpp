// Tests bundles for a range of sizes as a user makes and runs them.
#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "backends/opencl/bundle_runner.h"
#include "ir/base/seeded.h"
#include "ir/program/program_values.h"
#include "tests/frontend/model_builder.h"
#include "tests/tools/program.h"
#include "tools/data/npy.h"
#include "tools/driver/model.h"

namespace hoist::open_sizes_test {

using testing::HasSubstr;

const std::string model = std::string(HOIST_SOURCE_DIR) + "/models/digits_fully_connected.onnx";

// The bundle's outputs are the model's for these values of the size.
void expect_right(const std::string& model, const std::string& bundle, const std::string& size,
                  const std::vector<int64_t>& values) {
  auto runner = BundleRunner::open(bundle, {});
  ASSERT_TRUE(runner.ok()) << runner.errors()[0].text();
  for (const int64_t n : values) {
    ModelOptions options;
    options.dimensions = {size + "=" + std::to_string(n)};
    auto program = read_program(model, options);
    ASSERT_TRUE(program.ok()) << program.errors()[0].text();
    Bindings inputs;
    for (size_t i = 0; i < program->inputs.size(); ++i) {
      const auto& [name, type] = program->inputs[i];
      inputs[name] = seeded_tensor(Scalar::f32, shape_of(type), static_cast<uint64_t>(n), i, 0, 1);
      ASSERT_TRUE(runner->choose_input_shape(i, shape_of(type)).ok());
    }
    for (size_t i = 0; i < program->inputs.size(); ++i)
      ASSERT_TRUE(runner->set_input(i, inputs[program->inputs[i].first]).ok());
    auto values_there = program_values(*program, inputs);
    ASSERT_TRUE(values_there.ok()) << values_there.errors()[0].text();
    const Tensor& expected = values_there->at(program->outputs[0]);
    ASSERT_TRUE(runner->run().ok());
    auto found = runner->output(0);
    ASSERT_TRUE(found.ok()) << found.errors()[0].text();
    ASSERT_EQ(found->shape(), expected.shape());
    for (int64_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found->float_at(i), expected.float_at(i), 1e-4) << "element " << i << " for " << n;
  }
}

class OpenSizes : public InTemporaryFolder {
 protected:
  Ran compile(const std::string& dimension, const std::vector<std::string>& more = {"--target", "native"},
              const std::string& subject = model) {
    std::vector<std::string> command = {"compile", subject, "-o", in("a.hoist"), "--dim", dimension};
    command.insert(command.end(), more.begin(), more.end());
    return run_hoist(command);
  }
};

TEST_F(OpenSizes, OneBundleIsRightAtAnyOfThem) {
  const Ran compiled = compile("N=1..300");
  if (compiled.err.find("no target is for this processor") != std::string::npos) GTEST_SKIP() << compiled.err;
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("agree with the interpreter"));
  EXPECT_THAT(compiled.out, HasSubstr("checked at the sizes 1, "));
  EXPECT_EQ(run_hoist({"verify", in("a.hoist")}).code, 0);
  const Ran derived = run_hoist({"verify", in("a.hoist"), "--derivation"});
  EXPECT_EQ(derived.code, 2);
  EXPECT_THAT(derived.err, HasSubstr("--derivation: is not checked for a range of sizes"));
  // The ends, around multiples of tiles, and others.
  expect_right(model, in("a.hoist"), "N", {300, 1, 2, 5, 6, 7, 31, 32, 97, 143, 222, 299});
}

TEST_F(OpenSizes, AttentionWithAMaskIsRightAtAnyOfThem) {
  onnx::ModelProto made = empty_model();
  add_input(made, "x", {"1", "n", "16"});
  add_input(made, "mask", {"1", "n"});
  *made.mutable_graph()->add_initializer() = float_tensor("w", {16, 16}, 0.05F);
  add_node(made, "MatMul", {"x", "w"}, {"queries"});
  set_integers(add_node(made, "Transpose", {"x"}, {"keys"}), "perm", {0, 2, 1});
  add_node(made, "MatMul", {"queries", "keys"}, {"scores"});
  add_node(made, "Add", {"scores", "mask"}, {"masked"});
  add_node(made, "Softmax", {"masked"}, {"shares"});
  add_node(made, "MatMul", {"shares", "x"}, {"y"});
  add_output(made, "y", {"1", "n", "16"});
  const std::string attention = in("attention.onnx");
  std::ofstream(attention, std::ios::binary) << made.SerializeAsString();
  const Ran compiled = compile("n=1..96", {"--target", "native"}, attention);
  if (compiled.err.find("no target is for this processor") != std::string::npos) GTEST_SKIP() << compiled.err;
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  expect_right(attention, in("a.hoist"), "n", {96, 1, 3, 15, 16, 17, 40, 95});
  // Inputs that contradict each other.
  for (const auto& [name, shape] : std::map<std::string, std::vector<int64_t>>{{"x", {1, 5, 16}}, {"mask", {1, 7}}})
    ASSERT_TRUE(write_npy(in(name + ".npy"), seeded_tensor(Scalar::f32, shape, 1, 0, 0, 1)).ok());
  const Ran ran = run_hoist({"run", in("a.hoist"), "--input", "x=" + in("x.npy"), "--input", "mask=" + in("mask.npy"),
                             "--output-dir", in("outputs")});
  EXPECT_NE(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("input x: is [1][7][16]f32, given [1][5][16]f32"));
  EXPECT_FALSE(std::filesystem::exists(in("outputs")));
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
