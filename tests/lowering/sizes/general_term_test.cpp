#include "lowering/sizes/general_term.h"

#include <gmock/gmock.h>

#include "ir/text/text.h"

namespace hoist::general_term_test {

using testing::HasSubstr;

const std::vector<int64_t> probes = {67, 131, 257, 509};

// The text with n, the padding to a multiple of 16, and 2 n in place of N, P and D.
Result<Expr> general(const std::string& pattern) {
  SizeFit fit("n", probes);
  GeneralTerms terms(fit);
  std::vector<Expr> each;
  for (const int64_t n : probes) {
    std::string text = pattern;
    for (const auto& [from, to] : {std::pair<std::string, int64_t>{"N", n}, {"P", (16 - n % 16) % 16}, {"D", 2 * n}}) {
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
        text.replace(at, from.size(), std::to_string(to));
    }
    auto term = parse(text);
    HOIST_CHECK(term.ok(), text + ": " + term.errors()[0].text());
    each.push_back(*term);
  }
  return terms.term(each);
}

std::string text_of(const Result<Expr>& term) { return term.ok() ? print(*term) : term.errors()[0].text(); }

TEST(GeneralTerms, AreTypedWithTheSymbol) {
  auto term = general(
      "%x : [N][4]f32 |> map (map relu) |> pad 0 P undefined |> split 16 |> map group(0) (\\v. v) |> join |> slice 0 "
      "N");
  ASSERT_TRUE(term.ok()) << text_of(term);
  EXPECT_EQ(text((*term)->type), "[n][4]f32");
  EXPECT_THAT(print(*term), HasSubstr("pad 0"));
  EXPECT_EQ(text_of(general("%x : [2][3]f32 |> join")), "%x : [2][3]f32 |> join");
}

TEST(GeneralTerms, DifferInNumbersAlone) {
  SizeFit fit("n", {67, 131, 257, 509});
  GeneralTerms terms(fit);
  const auto parsed = [](const std::string& text) { return *parse(text); };
  EXPECT_THAT(text_of(terms.term({parsed("%x : [67]f32 |> map relu"), parsed("%x : [131]f32 |> map relu"),
                                  parsed("%x : [257]f32 |> map relu"), parsed("%x : [509]f32 |> map tanh")})),
              HasSubstr("other forms at different sizes"));
  EXPECT_THAT(text_of(terms.term(
                  {parsed("%x : [67]f32"), parsed("%x : [131]f32"), parsed("%x : [257]f32"), parsed("%x : [510]f32")})),
              HasSubstr("the numbers 67, 131, 257, 510 at n = 67, 131, 257, 509 have no known form"));
  EXPECT_THAT(text_of(terms.term({parsed("%x : [67]f32"), parsed("%x : [131]f32"), parsed("%x : [257]f32"),
                                  parsed("%x : [509][1]f32")})),
              HasSubstr("differ in more than numbers"));
}

}  // namespace hoist::general_term_test
