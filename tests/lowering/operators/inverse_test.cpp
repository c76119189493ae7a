// Tests the kernels of Inverse: rows of a matrix are no independent rows, and positions of pivots come from other
// kernels.
#include <gtest/gtest.h>

#include "lowering/pipeline/lower.h"
#include "tests/lowering/operators/operators_layer.h"
#include "tests/lowering/stored_run.h"
#include "tests/support/lower_model.h"

namespace hoist::inverse_test {

// Small matrices are inverted by one kernel, larger ones by a kernel for each step.
TEST(Inverse, KernelsInvertMatricesOfAnySize) {
  for (const int64_t n : {1, 2, 3, 8, 9, 12}) {
    SCOPED_TRACE(n);
    NamedModel model;
    model.opset = newest_version;
    model.inputs = {{"x", Scalar::f32, {2, n, n}}};
    model.outputs = {{"y", Scalar::f32, {}}};
    model.layers = {{"layer", "Inverse", "com.microsoft", {}, {"x"}, {"y"}}};
    auto lowered = lower_model(model, {}, {});
    ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
    for (const LoweredKernel& kernel : lowered->kernels)
      EXPECT_EQ(kernel.unproved, "") << "positions are clamped by the kernel that reads there";
    Tensor x(Scalar::f32, {2, n, n});
    for (int64_t i = 0; i < x.size(); ++i)
      x.set_float(i, static_cast<double>(i * i * 7 % 23) - 9 + (i % (n + 1) == 0 ? 30 : 0));
    const Tensor y = outputs_of(*lowered, {{"x", x}}).at("y");
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t matrix = i / (n * n), row = i / n % n, column = i % n;
      double sum = 0;
      for (int64_t k = 0; k < n; ++k)
        sum += x.float_at((matrix * n + row) * n + k) * y.float_at((matrix * n + k) * n + column);
      EXPECT_NEAR(sum, row == column ? 1 : 0, 1e-3);
    }
  }
}

}  // namespace hoist::inverse_test
