// Formulas that stand in for functions, emitted and run: every row of the function rules, in vectors.
#include "neural_rules/functions.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "tests/halide/runner.h"

namespace hoist {
namespace {

TEST(Functions, RewrittenOnesRunAsTheInterpreterSays) {
  for (const RuleRow& r : function_rule_rows()) {
    const std::string type = r.given.substr(3);
    auto term = parse("map group(0) (map vec (\\x. " + r.left + ")) (split 16 (%v : [4096]" + type + ")) |> join");
    ASSERT_TRUE(term.ok()) << term.errors()[0].text();
    Rewriter rewriter(function_rule_table(), *term);
    ASSERT_EQ(rewriter.apply_everywhere({r.name}), 1) << r.name;
    // A quotient differs as far as OpenCL lets divisions; what has none is exact.
    const bool divides = r.name.find("rational") != std::string::npos;
    EXPECT_EQ(testing::check(rewriter.term(), {}, divides ? row(Function::divide).ulp + 1 : 0, -12, 12), "") << r.name;
    auto kernel = emit(rewriter.term());
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(kernel->exact, !divides) << r.name;
  }
}

}  // namespace
}  // namespace hoist
