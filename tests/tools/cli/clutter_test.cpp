// Tests that superfluous layers of exporters (shape arithmetic, copies, casts to the same type, inverse transpositions,
// duplicate layers, constants computed at run time) are in the imported program and in no kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <fstream>

#include "tests/tools/program.h"

namespace hoist::clutter_test {

using testing::HasSubstr;
using testing::Not;

TEST_F(InTemporaryFolder, ExportersClutterIsInNoKernel) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, R"(
      <ir_version: 10, opset_import: ["" : 21]>
      clutter (float[2,3,4] x) => (float[2,12] y) <float[12] b = {1,1,1,1,1,1,1,1,1,1,1,1}> {
        a = Identity(x)
        d = Dropout(a)
        c = Cast<to = 1>(d)
        t = Transpose<perm = [0, 2, 1]>(c)
        u = Transpose<perm = [0, 2, 1]>(t)
        s = Shape(u)
        zero = Constant<value = int64 {0}>()
        n = Gather(s, zero)
        axis = Constant<value = int64[1] {0}>()
        rows = Unsqueeze(n, axis)
        rest = Constant<value = int64[1] {-1}>()
        shape = Concat<axis = 0>(rows, rest)
        flat = Reshape(u, shape)
        once = Relu(flat)
        twice = Relu(flat)
        e = Exp(b)
        z = Add(once, twice)
        y = Mul(z, e)
      })");
  ASSERT_TRUE(status.IsOK()) << status.ErrorMessage();
  std::ofstream(in("clutter.onnx"), std::ios::binary) << model.SerializeAsString();
  const std::string graph = run_hoist({"inspect", in("clutter.onnx"), "--stage", "graph"}).out;
  const size_t middle = graph.find("-- graph: what kernels are made of, 4 operator calls");
  ASSERT_NE(middle, std::string::npos) << graph;
  const std::string imported = graph.substr(0, middle), rewritten = graph.substr(middle);
  for (const char* gone : {"Identity(", "Dropout(", "Cast(", "Transpose(", "Exp("})
    EXPECT_THAT(rewritten, Not(HasSubstr(gone)));
  EXPECT_EQ(rewritten.find("Relu("), rewritten.rfind("Relu("));
  for (const char* there : {"Identity(", "Dropout(", "Cast(", "Transpose(%t", "Reshape(%u; shape = [2, -1])"})
    EXPECT_THAT(imported, HasSubstr(there));
  for (const char* evaluated : {"Shape(", "Gather(", "Unsqueeze(", "Concat("})
    EXPECT_THAT(imported, Not(HasSubstr(evaluated)));
  const Ran layers = run_hoist({"inspect", in("clutter.onnx")});
  ASSERT_EQ(layers.code, 0) << layers.err;
  EXPECT_THAT(layers.out, HasSubstr("15 layers in 1 kernel"));
  EXPECT_THAT(layers.out, testing::ContainsRegex("Exp_15 +Exp +none: evaluated at compile time"));
  EXPECT_THAT(layers.out, testing::ContainsRegex("Shape_5 +Shape +none: evaluated at compile time"));
  const std::string merged =
      run_hoist({"inspect", in("clutter.onnx"), "--print-after", "merge-producers", "--stop-after", "merge-producers"})
          .out;
  EXPECT_THAT(merged, Not(HasSubstr("transpose")));
  EXPECT_THAT(merged, Not(HasSubstr("exp")));
  EXPECT_EQ(merged.find("relu"), merged.rfind("relu")) << merged;  // a duplicate layer is computed once
  EXPECT_NE(merged.find("relu"), std::string::npos);
}

}  // namespace hoist::clutter_test
