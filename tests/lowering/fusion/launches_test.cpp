// Tests which definitions are fused into one launch, and the form of its statements.
#include "lowering/fusion/launches.h"

#include <gtest/gtest.h>

#include "ir/properties/properties.h"
#include "ir/text/program_text.h"
#include "lowering/pipeline/lower.h"
#include "lowering/pipeline/passes.h"
#include "lowering/terms/statements.h"

namespace hoist::launches_test {

Program inlined(const std::string& text) {
  auto program = parse_program(text);
  HOIST_CHECK(program.ok(), program.errors()[0].text());
  const auto done = find_pass("inline-definitions")->run(*program, {});
  HOIST_CHECK(done.ok(), done.errors()[0].text());
  return std::move(*program);
}

// Four matmuls in a row with 64 elements each: 256 bytes.
constexpr char four_products[] = R"(program %chain version 21
input %x : [1][64]f32
input %w : [64][64]f32
define %a : [1][64]f32 = MatMul(%x, %w) from "a"
define %b : [1][64]f32 = MatMul(%a, %w) from "b"
define %c : [1][64]f32 = MatMul(%b, %w) from "c"
define %y : [1][64]f32 = MatMul(%c, %w) from "y"
output %y
)";

TEST(Launches, AChainBecomesOne) {
  Program program = inlined(four_products);
  program.steps.clear();
  fuse_launch_chains(program, launch_chains(program, {}));
  ASSERT_EQ(program.definitions.size(), 1u);
  const Definition& all = program.definitions[0];
  EXPECT_EQ(all.value, "y");
  EXPECT_EQ(all.layers, (std::vector<std::string>{"a", "b", "c", "y"}));
  EXPECT_EQ(count_statements(all.expression), 3u);
  EXPECT_EQ(term_of("y", statements_of(all)), all.expression);
  EXPECT_EQ(program.steps.size(), 3u);
}

TEST(Launches, WhatDoesNotFitStaysALaunchOfItsOwn) {
  // Two arrays are live at a time: the operand and the result of a statement.
  Profile profile;
  for (const auto& [bytes, launches] : {std::pair{512, 1}, {511, 2}, {256, 2}, {255, 4}}) {
    profile.local_memory = bytes;
    Program program = inlined(four_products);
    fuse_launch_chains(program, launch_chains(program, profile));
    EXPECT_EQ(program.definitions.size(), static_cast<size_t>(launches)) << bytes << " bytes";
  }
}

TEST(Launches, OutputsAndWhatOthersReadStay) {
  // Both outputs read %a, %b is an output; %c has one consumer.
  Program program = inlined(R"(program %outputs version 21
input %x : [1][64]f32
input %w : [64][64]f32
define %a : [1][64]f32 = MatMul(%x, %w) from "a"
define %b : [1][64]f32 = MatMul(%a, %w) from "b"
define %c : [1][64]f32 = MatMul(%b, %w) from "c"
define %y : [2][64]f32 = Concat(%c, %b; axis = 0) from "ignored"
output %b
output %y
)");
  fuse_launch_chains(program, launch_chains(program, {}));
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) values.push_back(definition.value);
  // A concatenation is not a statement: its parts are computed in place.
  EXPECT_EQ(values, (std::vector<std::string>{"b", "c", "y"}));
  EXPECT_EQ(count_statements(program.definitions[0].expression), 1u);
}

TEST(Launches, WhatIsKeptOfAChainLeavesTheRestToOthers) {
  Program program = inlined(four_products);
  fuse_launch_chains(program, launch_chains(program, {}, [](const LaunchChain&) { return size_t{1}; }));
  std::vector<std::string> values;
  for (const Definition& definition : program.definitions) values.push_back(definition.value);
  EXPECT_EQ(values, (std::vector<std::string>{"b", "y"}));
}

// A local array inside a loop is not a statement, since each iteration has its own.
TEST(Launches, StatementsAreTheOuterLetsAlone) {
  auto program = parse_program(R"(program %inner version 21
input %x : [4][8]f32
define %y : [4][8]f32 = %x |> map (\row. let a = materialise local (row |> map exp) in a |> map (\v. v + 1)) from "y"
output %y
)");
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_EQ(count_statements(program->definitions[0].expression), 0u);
}

// Every work-group shape gives the same value, for both mappings, also for rows that share a fold.
TEST(Launches, StatementsAreSharedOutAmongWorkItems) {
  const Program program = *parse_program(R"(program %rows version 21
input %x : [1][3][7][5]f32
input %w : [20][3][3][3]f32
input %v : [20][10]f32
define %a : [1][20][7][5]f32 = Conv(%x, %w; pads = [1, 1, 1, 1]) from "convolution"
define %p : [1][20][1][1]f32 = GlobalAveragePool(%a) from "pool"
define %f : [1][20]f32 = Reshape(%p; shape = [1, 20]) from "flatten"
define %g : [1][10]f32 = MatMul(%f, %v) from "product"
define %y : [1][10]f32 = Softmax(%g; axis = 1) from "softmax"
output %y
)");
  for (const bool gpu : {false, true}) {
    for (const int64_t items : {1, 4, 256}) {
      LowerOptions options;
      options.fusion = LaunchFusion::launch;
      Profile profile;
      profile.gpu = gpu;
      profile.maximum_group = items;
      auto model = lower_model(program, options, profile);
      ASSERT_TRUE(model.ok()) << model.errors()[0].text();
      ASSERT_EQ(model->kernels.size(), 1u);
      const LoweredGroup& group = model->groups[0];
      EXPECT_EQ(group.layers.size(), 5u);
      EXPECT_EQ(count_statements(group.low), 3u);
      int64_t most = 0;
      any_node(group.low, [&](Expr e) {
        if (e->pattern == Pattern::map && e->mode == Mode::local)
          most = std::max(most, e->children[1]->type->size.value());
        EXPECT_NE(e->mode, Mode::group);
        return false;
      });
      EXPECT_LE(most, items);
      EXPECT_GT(most, gpu ? items / 2 : 0) << "hardly any work-item has work";
    }
  }
}

}  // namespace hoist::launches_test
