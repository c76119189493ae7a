// Compares layers under function rules with the ONNX operators that are exported for them.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "frontend/write_model.h"
#include "ir/base/seeded.h"
#include "ir/evaluate/evaluate.h"
#include "lowering/export/export_terms.h"
#include "neural_rules/functions/functions.h"
#include "tests/neural_rules/calibrated_model.h"
#include "tests/support/named_model.h"

namespace hoist::exported_functions_test {

Program one_layer(const std::string& operation) {
  NamedModel model;
  model.name = operation;
  model.opset = 28;
  model.inputs = {{"x", Scalar::f32, {3, 257}}};
  model.outputs = {{"y", Scalar::f32, {3, 257}}};
  model.layers = {{"layer", operation, "", {}, {"x"}, {"y"}}};
  return *program_of(model);
}

TEST(ExportedFunctions, OperatorsComputeTheApproximation) {
  std::set<std::string> used;
  for (const char* operation : {"Tanh", "Sigmoid", "Gelu", "Softmax", "Erf", "Exp", "Mish"}) {
    for (const NeuralRule& rule : function_rules()) {
      SCOPED_TRACE(std::string(operation) + " under " + std::string(rule.name));
      const Program program = one_layer(operation);
      Expr approximated = nullptr;
      const auto done = replace_by_expressions(program, {"layer"}, [&](const std::string&, Expr e) -> Result<Expr> {
        HOIST_TRY(const Approximated changed, approximate(e, std::string(rule.name)));
        return approximated = changed.term;
      });
      if (approximated == nullptr) continue;  // the layer does not call the rule's function
      ASSERT_TRUE(done.ok()) << done.errors()[0].text();
      used.insert(std::string(rule.name));
      const Tensor input = seeded_tensor(Scalar::f32, {3, 257}, 5, 0, -9, 9);
      const auto wanted = evaluate(approximated, {{"x", input}});
      ASSERT_TRUE(wanted.ok());
      const Tensor found = all_values(*done, {{"x", input}}).at("y");
      // Only the rounding of multiplications that are fused in the term may differ.
      for (int64_t i = 0; i < found.size(); ++i) {
        const double error = std::abs(found.float_at(i) - wanted->float_at(i));
        ASSERT_LE(error, 1e-6 * std::max(1.0, std::abs(wanted->float_at(i)))) << input.float_at(i);
      }
      const auto bytes = write_model(*done);
      EXPECT_TRUE(bytes.ok()) << bytes.errors()[0].text();
    }
  }
  EXPECT_EQ(used.size(), function_rules().size());
}

}  // namespace hoist::exported_functions_test
