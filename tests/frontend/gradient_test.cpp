// ONNX's operator Gradient becomes the backward pass of the layers before it.
#include <gmock/gmock.h>

#include <cmath>

#include "frontend/write_model.h"
#include "tests/frontend/text_models.h"

namespace hoist {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Program> read_gradient(const std::string& call) {
  return read_graph(21,
                    "g (float[2] x, float[2] w) => (float[2] dx, float[2] dw) { y = Mul(x, w) z = Exp(y) dx, dw = "
                    "ai.onnx.preview.training.Gradient " +
                        call + " }",
                    ", \"ai.onnx.preview.training\" : 1");
}

TEST(GradientOperator, IsTheBackwardPass) {
  const auto program = read_gradient("<xs = [\"x\", \"w\"], y = \"z\"> (x, w)");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const double e = std::exp(2.0), f = std::exp(-1.5);
  EXPECT_THAT(results_of(*program, {{1, -0.5}, {2, 3}}), ElementsAre(DoubleNear(2 * e, 1e-4), DoubleNear(3 * f, 1e-4),
                                                                     DoubleNear(e, 1e-4), DoubleNear(-0.5 * f, 1e-4)));
}

TEST(GradientOperator, IsNotWritten) {
  const auto program = read_gradient("<xs = [\"x\", \"w\"], y = \"z\"> (x, w)");
  ASSERT_TRUE(program.ok());
  const auto written = write_model(*program, {});
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.errors()[0].text(), HasSubstr("is an expression of a backward pass"));
}

TEST(GradientOperator, RefusesOtherValues) {
  const auto problem = [](const std::string& call) {
    const auto program = read_gradient(call);
    return program.ok() ? "none" : program.errors()[0].text();
  };
  EXPECT_THAT(problem("<xs = [\"x\", \"w\"], y = \"z\"> (w, x)"), HasSubstr("at other values than the values that xs"));
  EXPECT_THAT(problem("<xs = [\"x\", \"w\"], y = \"zz\"> (x, w)"), HasSubstr("zz"));
  EXPECT_THAT(problem("<y = \"z\"> (x, w)"), HasSubstr("xs"));
}

}  // namespace
}  // namespace hoist
