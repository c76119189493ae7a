// Tests that an operator that one row of text adds is fused, tabulated between 8-bit values, and exported as ONNX's own
// operators, without further code. Neural rules: tests/neural_rules/added_operator_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/operators/definitions/operator_text.h"
#include "ir/text/program_text.h"
#include "ir/text/text.h"
#include "lowering/export/export_terms.h"
#include "lowering/pipeline/lower.h"

namespace hoist::added_operator_test {

using operators::ScopedOperators;

constexpr char wave[] = "operator Wave since 1 (x : floats; depth = 0.5) = each x. depth * tanh(x) + x * x";

Program program_of_text(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  return std::move(*program);
}

TEST(AddedOperator, IsFusedWithWhatItFollows) {
  const ScopedOperators added(wave);
  const Program program = program_of_text(
      "program version 21\n"
      "input %x : [4][8]f32\n"
      "constant %w : [8][2]f32 = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}\n"
      "define %p : [4][2]f32 = MatMul(%x, %w) from \"product\"\n"
      "define %y : [4][2]f32 = Wave(%p; depth = 0.25) from \"wave\"\n"
      "output %y\n");
  auto lowered = lower_model(program, {}, {});
  ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
  ASSERT_EQ(lowered->kernels.size(), 1U);
  EXPECT_EQ(lowered->kernels[0].layers, (std::vector<std::string>{"product", "wave"}));
}

TEST(AddedOperator, IsATableBetweenBytes) {
  const ScopedOperators added(wave);
  const Program program = program_of_text(
      "program version 21\n"
      "input %x : [4][8]u8\n"
      "constant %s : f32 = {0.0625}\n"
      "constant %z : u8 = {128}\n"
      "define %f : [4][8]f32 = DequantizeLinear(%x, %s, %z) from \"in\"\n"
      "define %g : [4][8]f32 = Wave(%f) from \"wave\"\n"
      "define %y : [4][8]u8 = QuantizeLinear(%g, %s, %z) from \"out\"\n"
      "output %y\n");
  LowerOptions options;
  options.tables.use = TableUse::on;
  auto lowered = lower_model(program, options, {});
  ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
  const std::vector<ProgramStep>& steps = lowered->derivation.steps;
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](const ProgramStep& s) { return s.rule == "integer-tables"; }));
}

TEST(AddedOperator, IsExportedToOnnx) {
  const ScopedOperators added(wave);
  auto call = parse("Wave(%x : [2][3]f32)");
  ASSERT_TRUE(call.ok()) << call.errors()[0].text();
  auto definition = inline_call(**call);
  ASSERT_TRUE(definition.ok());
  auto exported = export_term(*definition, "y", "wave");
  ASSERT_TRUE(exported.ok()) << exported.errors()[0].text();
  const auto has = [&](const char* operation) {
    return std::any_of(exported->layers.begin(), exported->layers.end(),
                       [&](const NamedCall& call) { return call.operation == operation; });
  };
  EXPECT_TRUE(has("Tanh") && has("Mul") && has("Add"));
  EXPECT_FALSE(has("Wave"));
}

}  // namespace hoist::added_operator_test
