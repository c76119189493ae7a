// Emits and runs the formulas that approximate functions: every row of the function rules, in vectors.
#include "neural_rules/functions/functions.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/halide/runner.h"

namespace hoist::functions_test {

TEST(Functions, RewrittenOnesRunAsTheInterpreterSays) {
  for (const RuleRow& r : function_rule_rows()) {
    const std::string type = r.given.substr(3);
    auto term = parse("map group(0) (map vec (\\x. " + r.left + ")) (split 16 (%v : [4096]" + type + ")) |> join");
    ASSERT_TRUE(term.ok()) << term.errors()[0].text();
    Rewriter rewriter(function_rule_table(), *term);
    ASSERT_EQ(rewriter.apply_everywhere({r.name}), 1) << r.name;
    // On devices without correctly rounded division, a quotient may have the error that OpenCL allows.
    const bool divides = r.name.find("rational") != std::string::npos;
    EXPECT_EQ(testing::check(rewriter.term(), {}, divides ? row(Function::divide).ulp + 1 : 0, -12, 12), "") << r.name;
    auto kernel = emit(rewriter.term());
    ASSERT_TRUE(kernel.ok());
    EXPECT_TRUE(kernel->exact) << r.name;
    EXPECT_EQ(kernel->divides, divides) << r.name;
  }
}

TEST(Functions, DivisionAndSquareRootAreKnownApart) {
  struct {
    std::string body, type;
    bool exact, divides;
  } const cases[] = {
      {"x + 1", "f32", true, false},  {"x / 3", "f32", true, true},      {"sqrt x", "f32", true, true},
      {"exp x", "f32", false, false}, {"exp x / 3", "f32", false, true}, {"x / 3", "f64", true, false},
      {"x / 3", "f16", true, true},   {"x / 3", "i32", true, false},
  };
  for (const auto& c : cases) {
    auto term = parse("map group(0) (\\x. " + c.body + ") (%v : [16]" + c.type + ")");
    ASSERT_TRUE(term.ok()) << term.errors()[0].text();
    auto kernel = emit(*term);
    ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
    EXPECT_EQ(kernel->exact, c.exact) << c.body << " in " << c.type;
    EXPECT_EQ(kernel->divides, c.divides) << c.body << " in " << c.type;
  }
}

}  // namespace hoist::functions_test
