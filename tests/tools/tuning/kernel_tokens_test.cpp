// Tests the encoding of a kernel's term as statements for a sequence model.
#include "tools/tuning/model/kernel_tokens.h"

#include <gmock/gmock.h>

#include "ir/text/text.h"
#include "tests/support/random_terms.h"

namespace hoist::tuning {
namespace kernel_tokens_test {

using testing::SizeIs;

std::vector<Statement> statements_of(const std::string& text, const Profile& profile = {}) {
  auto term = parse(text);
  EXPECT_TRUE(term.ok()) << text << ": " << term.errors()[0].text();
  return kernel_tokens(*term, profile);
}

// Numbers are quantised to half octaves: 1 + 2 log2.
TEST(KernelTokens, LoopsHaveExtentsAndRepetitions) {
  const auto statements = statements_of("%x : [4][16]f32 |> map group(0) (map vec (\\v. exp v))");
  ASSERT_THAT(statements, SizeIs(5)) << "the device, two loops, the function, the array";
  EXPECT_EQ(statements[1][2], 1 + 4) << "4 groups";
  EXPECT_EQ(statements[1][5], 1) << "once";
  EXPECT_EQ(statements[2][2], 1 + 8) << "16 lanes";
  EXPECT_EQ(statements[2][5], 1 + 4) << "in each group";
  EXPECT_EQ(statements[3][5], 1 + 12) << "64 times";
  EXPECT_EQ(statements[4][3], 1 + 12) << "64 elements";
  EXPECT_NE(statements[1][0], statements[2][0]) << "another mode is another token";
}

TEST(KernelTokens, TellVariantsAndDevicesApart) {
  const std::string text = "%x : [64]f32 |> split 8 |> map group(0) (map vec abs) |> join";
  EXPECT_NE(statements_of(text), statements_of("%x : [64]f32 |> split 8 |> map group(1) (map vec abs) |> join"));
  EXPECT_NE(statements_of(text), statements_of("%x : [64]f32 |> split 8 |> map group(0) (map unroll abs) |> join"));
  EXPECT_NE(statements_of(text), statements_of("%x : [64]f32 |> split 16 |> map group(0) (map vec abs) |> join"));
  EXPECT_NE(statements_of(text), statements_of("%x : [64]f32 |> split 8 |> map group(0) (map vec sqrt) |> join"));
  EXPECT_NE(statements_of("%x : [64]f32 |> slice 0 8 step 2 |> map vec abs"),
            statements_of("%x : [64]f32 |> slice 0 8 step 4 |> map vec abs"));
  EXPECT_NE(statements_of(text), statements_of("%x : [64]f16 |> split 8 |> map group(0) (map vec abs) |> join"));
  Profile other;
  other.compute_units = 96;
  EXPECT_NE(statements_of(text), statements_of(text, other));
}

TEST(KernelTokens, WhatStandsTwiceIsSaidOnce) {
  EXPECT_EQ(statements_of("let y = %x : [8]f32 |> map vec exp in map vec (+) (zip(y, y))").size(),
            statements_of("let y = %x : [8]f32 |> map vec exp in map vec (\\v. v + 1f32) y").size());
}

TEST(KernelTokens, AreWithinTheVocabulary) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i)
    for (const Statement& statement : kernel_tokens(random_term(random), {}))
      for (const int token : statement) {
        EXPECT_GT(token, 0);
        EXPECT_LT(token, token_count());
      }
}

}  // namespace kernel_tokens_test
}  // namespace hoist::tuning
