// An operator that one row of text adds has sites for neural rules, takes part in formats, and its functions are
// approximated, without another line. Fusion, tables and export: tests/lowering/added_operator_test.cpp.
#include <gmock/gmock.h>

#include <algorithm>

#include "ir/operators/operator_text.h"
#include "ir/text/program_text.h"
#include "neural_rules/functions/functions.h"
#include "neural_rules/rewrite/rewrite_model.h"

namespace hoist {
namespace {

using operators::by_text;
using operators::ScopedOperators;
using testing::Contains;
using testing::IsEmpty;
using testing::Not;

TEST(AddedOperatorRules, TakesPartInNeuralRules) {
  const ScopedOperators added({by_text("Wave", 1, "(x : floats; depth = 0.5) = each x. depth * tanh(x) + x * x")});
  auto program = parse_program(
      "program version 21\n"
      "input %x : [4][2]f32\n"
      "constant %v : [2][3]f32 = {1, 2, 3, 4, 5, 6}\n"
      "constant %w : [3][2]f32 = {1, 2, 3, 4, 5, 6}\n"
      "define %p : [4][3]f32 = MatMul(%x, %v) from \"first\"\n"
      "define %g : [4][3]f32 = Wave(%p) from \"wave\"\n"
      "define %y : [4][2]f32 = MatMul(%g, %w) from \"second\"\n"
      "output %y\n");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();

  std::vector<std::string> keys;
  for (const Site& site : find_sites(*program)) keys.push_back(site.key());
  EXPECT_THAT(keys, Contains("product first"));
  EXPECT_THAT(keys, Contains("product second"));
  EXPECT_THAT(keys, Contains("function wave"));
  // The wave is part of the kernel of the first product, so its result is the array between both.
  EXPECT_THAT(keys, Contains("value g"));
  EXPECT_THAT(keys, Not(Contains("value p")));

  auto definition = unfold(*find_definition(*program, "g")->expression);
  ASSERT_TRUE(definition.ok());
  const std::set<std::string>& rules = function_rules_in(*definition);
  ASSERT_THAT(rules, Not(IsEmpty()));
  auto approximated = approximate(*definition, *rules.begin());
  ASSERT_TRUE(approximated.ok()) << approximated.errors()[0].text();
  EXPECT_NE(approximated->term, *definition);

  Statistics statistics;
  statistics["g"].low = -8;
  statistics["g"].high = 8;
  auto rewritten =
      rewrite(*program, {{"value g", "f16"}, {"product second", "w8"}, {"function wave", *rules.begin()}}, statistics);
  ASSERT_TRUE(rewritten.ok()) << rewritten.errors()[0].text();
  EXPECT_EQ(rewritten->uses.size(), 3U);
  EXPECT_EQ(rewritten->functions.at("wave"), *rules.begin());
}

}  // namespace
}  // namespace hoist
