// Tests the rules together: definitions become kernels step by step without a change of value.
#include <gmock/gmock.h>

#include "ir/base/seeded.h"
#include "ir/evaluate/evaluate.h"
#include "ir/text/text.h"
#include "lowering/rules/rules.h"
#include "tests/support/print_steps.h"

namespace hoist::derivation_test {

Expr term(const std::string& text) {
  auto parsed = parse(text);
  HOIST_CHECK(parsed.ok(), text + ": " + parsed.errors()[0].text());
  return *parsed;
}

// Data by parameter name, since terms of one value use them in different orders.
Tensor value_of(Expr e) {
  Bindings data;
  for (Expr p : parameters_of(e)) {
    uint32_t stream = 0;
    for (char c : p->name) stream = stream * 31 + static_cast<unsigned char>(c);
    data.emplace(p->name, seeded_tensor(leaf_of(p->type)->scalar, shape_of(p->type), 5, stream, -2, 2));
  }
  auto value = interpret(e, data);
  HOIST_CHECK(value.ok(), value.errors()[0].text());
  return *value;
}

// Checks that the derivation's text leads to the same term.
void expect_replays(const Rewriter& r) {
  auto steps = parse_steps(print_steps(r.derivation().steps));
  ASSERT_TRUE(steps.ok()) << steps.errors()[0].text();
  auto terms = replay(lowering_rules(), {r.derivation().start, *steps});
  ASSERT_TRUE(terms.ok()) << terms.errors()[0].text();
  EXPECT_EQ(terms->back(), r.term());
}

TEST(Derivation, TilesAMatrixProductIntoRegisters) {
  Expr start = term(
      "map (\\row. map (\\column. reduce (+) 0f32 (map (\\p. p.0 * p.1) (zip(row, column)))) (%B : [16][5]f32)) (%A : "
      "[8][5]f32)");
  Rewriter r(lowering_rules(), start);
  ASSERT_TRUE(r.apply_first("reduce-map-fusion-to-fold"));
  ASSERT_TRUE(r.apply("tile-nest", {}, {{"k", 4}, {"l", 8}}));
  Tensor exact = value_of(r.term());
  EXPECT_EQ(exact, value_of(start));
  // Twice, innermost first: the accumulators become a row, then a tile.
  const std::vector<std::string> tidy = {"map-of-constant", "transpose-of-zips-left", "transpose-of-zips-right",
                                         "fold-map-fusion", "zip-of-map-right",       "map-fusion"};
  auto find = [&](const std::string& rule) {
    // Searches from the outside inwards; the last place found is the innermost.
    std::optional<Path> last;
    for (Path under = {};;) {
      Rewriter probe(lowering_rules(), r.term());
      auto place = probe.apply_first(rule, {}, under);
      if (!place) break;
      last = place;
      under = *place;
      under.push_back(0);
    }
    return last;
  };
  for (int level = 0; level < 2; ++level) {
    auto found = find("map-of-fold");
    ASSERT_TRUE(found.has_value()) << print(r.term());
    ASSERT_TRUE(r.apply("map-of-fold", *found));
    r.apply_everywhere(tidy, *found);
  }
  EXPECT_EQ(value_of(r.term()), exact);
  EXPECT_EQ(r.term(),
            term("%A : [8][5]f32 |> split 4"
                 " |> map (\\rows. %B : [16][5]f32 |> split 8"
                 "   |> map (\\columns. fold (\\sums (a, b). zip(sums, a) |> map (\\(row, x). zip(row, b) |> map "
                 "(\\(s, y). s + x * y)))"
                 "                           (repeat 4 (repeat 8 0f32)) (zip(transpose rows, transpose columns))))"
                 " |> map transpose |> join |> map join"))
      << print(r.term());
  EXPECT_GT(r.apply_everywhere({"multiply-add-to-fma"}), 0);
  expect_replays(r);
}

TEST(Derivation, TilesAStencil) {
  Expr start = term("map (\\w. reduce (+) 0f32 w) (slide 3 1 (pad 1 1 0f32 (%x : [12]f32)))");
  Rewriter r(lowering_rules(), start);
  ASSERT_TRUE(r.apply("slide-tiling", {1}, {{"w", 4}}));
  ASSERT_TRUE(r.apply("map-join", {}));
  ASSERT_TRUE(r.apply_first("map-fusion"));
  EXPECT_EQ(
      r.term(),
      term("join (map (\\t. map (\\w. reduce (+) 0f32 w) (slide 3 1 t)) (slide 6 4 (pad 1 1 0f32 (%x : [12]f32))))"));
  // A tile in local memory, copied by its group's work-items.
  ASSERT_TRUE(r.apply("map-to-group", {0}, {{"d", 0}}));
  ASSERT_TRUE(r.apply("map-to-local", {0, 0, 0}, {{"d", 0}}));
  Path tile = {0, 0, 0, 1, 0};
  ASSERT_EQ(at(r.term(), tile)->pattern, Pattern::bound);
  ASSERT_TRUE(r.apply("let-introduce", tile));
  ASSERT_TRUE(r.apply("let-out", {0, 0, 0, 1}));
  ASSERT_TRUE(r.apply("let-out", {0, 0, 0}));
  ASSERT_TRUE(r.apply("copy-local", {0, 0, 0, 0}, {{"d", 0}}));
  ASSERT_TRUE(r.apply("to-local", {0, 0, 0, 0}));
  EXPECT_EQ(r.term(), term("slide 6 4 (pad 1 1 0f32 (%x : [12]f32)) |> map group(0) (\\t. let l = materialise local "
                           "(map local(0) (\\v. v) t) in"
                           " slide 3 1 l |> map local(0) (\\w. reduce (+) 0f32 w)) |> join"))
      << print(r.term());
  EXPECT_EQ(value_of(r.term()), value_of(start));
  expect_replays(r);
}

TEST(Derivation, FoldsAScaleAndABiasIntoASum) {
  Expr start = term(
      "(reduce (+) 0f32 (map (\\p. p.0 * p.1) (zip(%x : [5]f32, %w : [5]f32))) - %mean : f32) * %scale : f32 + %shift "
      ": f32");
  Rewriter r(lowering_rules(), start);
  ASSERT_TRUE(r.apply("distribute-subtract-float", {0}));
  ASSERT_TRUE(r.apply("scale-into-weights", {0, 0}));
  ASSERT_TRUE(r.apply("subtract-to-add", {0}));
  ASSERT_TRUE(r.apply("add-associate-float", {}));
  ASSERT_TRUE(r.apply("reduce-map-fusion-to-fold", {0}));
  ASSERT_TRUE(r.apply("add-into-initial-fold", {}));
  EXPECT_EQ(r.term(), term("fold (\\s p. s + p.0 * p.1) (-(%mean : f32 * %scale : f32) + %shift : f32)"
                           " (zip(%x : [5]f32, map (\\v. v * %scale) (%w : [5]f32)))"))
      << print(r.term());
  EXPECT_NEAR(value_of(r.term()).float_at(0), value_of(start).float_at(0), 1e-5);
  expect_replays(r);
}

}  // namespace hoist::derivation_test
