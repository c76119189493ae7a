// Tests the counts of executed work: closed forms, and the operations that an instrumented interpreter executes.
#include "lowering/cost/work.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ir/evaluate/evaluate.h"
#include "ir/text/text.h"
#include "tests/support/random_terms.h"

namespace hoist::work_test {

Expr term_of(const std::string& text) {
  auto term = parse(text);
  HOIST_CHECK(term.ok(), term.errors()[0].text());
  return *term;
}

Work work_of_text(const std::string& text) { return executed_work(term_of(text)); }

// Distinct numbers, so that equal operands are the same scalars.
Bindings distinct_bindings(Expr term, std::mt19937_64& random) {
  Bindings out;
  for (Expr p : parameters_of(term)) {
    Tensor values(leaf_of(p->type)->scalar, shape_of(p->type));
    std::uniform_real_distribution<double> any(0.5, 1.5);
    for (int64_t i = 0; i < values.size(); ++i) {
      if (is_float(values.scalar()))
        values.set_float(i, any(random));
      else
        values.set_integer(i, static_cast<int64_t>(random() % 2));
    }
    out.emplace(p->name, std::move(values));
  }
  return out;
}

// The distinct operations that the interpreter executes: an operation on the same operands is the same one.
int64_t executed_operations(Expr term, const Bindings& bindings) {
  std::set<std::tuple<Pattern, Function, Scalar, Scalar, std::vector<uint64_t>>> seen;
  auto value = interpret_observed(term, bindings, [&](Expr e, const std::vector<uint64_t>& operands) {
    seen.emplace(e->pattern, e->function, e->children[0]->type->scalar, e->type->scalar, operands);
  });
  HOIST_CHECK(value.ok(), value.errors()[0].text());
  return static_cast<int64_t>(seen.size());
}

int64_t all_operations(const Work& work) {
  int64_t out = 0;
  for (int64_t count : work.operations) out += count;
  return out;
}

TEST(Work, CountsPositionsThatDependOnNoLoop) {
  const Work work = work_of_text("exp(index (clip 0 23 (%i : i32)) (join (%x : [4][6]f32)))");
  EXPECT_EQ(work.of(OperationClass::transcendental), 1);
}

TEST(Work, CountsByClass) {
  const Work work = work_of_text(
      "zip(%x : [3][4]f32, %y : [3][4]f32) |> map (\\(a, b). zip(a, b) |> map (\\(c, d). "
      "exp(c) / d + max(c, d) * fma(c, d, 2f32)))");
  EXPECT_EQ(work.of(OperationClass::transcendental), 12);
  EXPECT_EQ(work.of(OperationClass::division), 12);
  EXPECT_EQ(work.of(OperationClass::comparison), 12);
  EXPECT_EQ(work.of(OperationClass::multiply_add), 36);
  EXPECT_EQ(work.products, 24);
  EXPECT_EQ(work.arithmetic(), 84) << "a fused multiply-add is two";
  EXPECT_EQ(work.read, (std::map<std::string, int64_t>{{"x", 48}, {"y", 48}}));
  EXPECT_EQ(work.written, 48);
}

TEST(Work, CountsIntegersAndConversions) {
  const Work work = work_of_text("%x : [8]u8 |> map (\\v. cast f32 (cast i32 v * 3i32 + 1i32))");
  EXPECT_EQ(work.of(OperationClass::conversion), 16);
  EXPECT_EQ(work.of(OperationClass::integer), 16);
  EXPECT_EQ(work.products, 8);
  EXPECT_EQ(work.arithmetic(), 16);
  EXPECT_EQ(work.bytes(), 8 + 32);
}

const char* const matmul =
    "%x : [5][7]f32 |> map (\\r. %w : [6][7]f32 |> map (\\c. zip(r, c) |> map (*) |> reduce (+) 0f32))";

TEST(Work, CountsSumsOfProducts) {
  const Work work = work_of_text(matmul);
  EXPECT_EQ(work.products, 5 * 6 * 7);
  EXPECT_EQ(work.arithmetic(), 2 * 5 * 6 * 7);
  EXPECT_EQ(work.bytes(), 4 * (5 * 7 + 6 * 7 + 5 * 6));
}

// The sum counts once, whatever views are between it and its uses.
TEST(Work, CountsSharedSubtermsOnce) {
  const std::string shared = std::string("let t = (") + matmul +
                             " |> transpose |> map (slice 0 4)) in zip(t, t) |> map (\\(a, b). zip(a, b) |> "
                             "map (\\(c, d). c * d + c))";
  const Work work = work_of_text(shared);
  EXPECT_EQ(work.products, 4 * 6 * 7 + 4 * 6) << "and what is cut off is not computed";
  // Uses at other positions compute it again.
  const std::string shifted = std::string("let t = (") + matmul +
                              ") in zip(t |> slice 0 4, t |> slice 1 4) |> map (\\(a, b). map (*) (zip(a, b)))";
  EXPECT_EQ(work_of_text(shifted).products, 2 * 4 * 6 * 7 + 4 * 6);
  // Unless it is materialised.
  const std::string kept = std::string("let t = materialise global (") + matmul +
                           ") in zip(t |> slice 0 4, t |> slice 1 4) |> map (\\(a, b). map (*) (zip(a, b)))";
  EXPECT_EQ(work_of_text(kept).products, 5 * 6 * 7 + 4 * 6);
}

TEST(Work, CountsFoldsByTheirPlace) {
  const char* const in_rows = "%x : [5][7]f32 |> map (\\r. let s = r |> reduce (+) 0f32 in r |> map (\\v. v / s))";
  EXPECT_EQ(work_of_text(in_rows).arithmetic(), 5 * 7 + 5 * 7);
  const char* const in_elements = "%x : [5][7]f32 |> map (\\r. r |> map (\\v. v / (r |> reduce (+) 0f32)))";
  EXPECT_EQ(work_of_text(in_elements).arithmetic(), 5 * 7 * 7 + 5 * 7) << "each element sums the row again";
}

TEST(Work, CountsWindowsOfComputedElements) {
  const char* const windows = "%x : [10]f32 |> map (\\v. exp(v)) |> slide 3 1 |> map (\\w. w |> reduce (+) 0f32)";
  EXPECT_EQ(work_of_text(windows).of(OperationClass::transcendental), 8 * 3);
}

TEST(Work, CountsTilesAsTheirElements) {
  const std::string tiled = std::string(matmul) +
                            " |> split 5 |> map group(0) (map (split 3) >> map group(1) (map unroll (\\a. a))) |> "
                            "map (map join) |> join";
  EXPECT_EQ(work_of_text(tiled).products, 5 * 6 * 7);
}

// Packed weights are read at quotients and remainders of a column, which is itself a part of a tile and is bounded by
// the last column.
TEST(Work, CountsTilesWithTailsAsTheirElements) {
  const Work work = work_of_text(
      "%x : [10][3]f32 |> map (\\a. %w : [2][3][80]f32 |> transpose (1 0 2) |> map join |> map (slice 0 147) |> "
      "transpose |> map (\\b. zip(a, b) |> fold (\\s (p, q). fma(p, q, s)) 0f32)) |> map (pad 0 13 undefined) |> "
      "split 5 |> map (map (split 80) >> transpose) |> map group(1) (map group(0) (map unroll (split 16 >> map unroll "
      "(map vec (\\a. a)) >> join) >> materialise private >> transpose >> map seq (map unroll (\\a. a)) >> transpose)) "
      "|> map (transpose >> map join) |> join |> map (slice 0 147)");
  EXPECT_GE(work.products, 10 * 3 * 147);
  EXPECT_LE(work.products, 10 * 3 * 160);
}

TEST(Work, CountsReadsOfParts) {
  EXPECT_EQ(work_of_text("%x : [1000][4]f32 |> slice 10 3").bytes(), 2 * 3 * 4 * 4);
  EXPECT_EQ(work_of_text("%i : [2]i32 |> map (\\p. index p (%x : [1000][4]f32))").read.at("x"), 2 * 4 * 4);
}

TEST(Work, CountsNoUndefinedElements) {
  const std::string array = "%x : [4][6]f32 |> map (map exp)";
  for (const char* surroundings :
       {"pad 3 5 undefined", "map (pad 0 10 undefined)", "map (pad 1 1 undefined) |> pad 0 9 undefined"}) {
    const Work work = work_of_text(array + " |> " + surroundings);
    EXPECT_EQ(work.of(OperationClass::transcendental), 24) << surroundings;
    EXPECT_EQ(work.written, 4 * 24) << surroundings;
  }
}

TEST(Work, RarelyCountsTheUsualBranch) {
  const Work work = work_of_text("%x : [8]f32 |> map (\\v. rarely(v > 1f32, exp(v), v + 1f32))");
  EXPECT_EQ(work.of(OperationClass::transcendental), 0);
  EXPECT_EQ(work.of(OperationClass::multiply_add), 8);
}

TEST(Work, DeepTermsAreCountedAsTrees) {
  constexpr int depth = 8000;
  Expr deep = parameter("x", scalar_type(Scalar::f32));
  for (int i = 0; i < depth; ++i) deep = call(Function::exp, {deep});
  const Work work = executed_work(deep);
  EXPECT_FALSE(work.is_exact);
  EXPECT_EQ(work.of(OperationClass::transcendental), depth);
}

// At least what the interpreter executes, for every pattern.
TEST(Work, OfRandomTermsCoversTheInterpreter) {
  std::mt19937_64 random(51);
  int counted = 0;
  for (int round = 0; round < 1500; ++round) {
    RandomTermOptions options;
    options.patterns = 4 + round % 20;
    const Expr term = random_term(random, options);
    const std::vector<Expr> parameters = parameters_of(term);
    if (std::any_of(parameters.begin(), parameters.end(), [](Expr p) { return !leaf_of(p->type)->is_scalar(); }))
      continue;
    const Work work = executed_work(term);
    ++counted;
    EXPECT_TRUE(work.is_exact);
    EXPECT_GE(all_operations(work), executed_operations(term, distinct_bindings(term, random))) << "term " << round;
    EXPECT_GE(work.arithmetic(), work.needed) << "term " << round;
  }
  EXPECT_GT(counted, 1000);
}

// Programs of arrays [n][m]f64. If operands of products are materialised, every value is computed once.
class RandomProgram {
 public:
  RandomProgram(uint64_t seed, bool materialises)
      : random_(seed), materialises_(materialises), n_(2 + below(4)), m_(2 + below(4)) {}

  Expr make() {
    Expr term = array(n_, m_);
    for (int step = 0; step < 6; ++step) term = stepped(term);
    return term;
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  Expr array(int64_t n, int64_t m) {
    return parameter("p" + std::to_string(names_++), array_type(Nat(n), array_type(Nat(m), scalar_type(Scalar::f64))));
  }

  Expr number() { return literal(Scalar::f64, 0.25 + 0.01 * static_cast<double>(++numbers_)); }

  Expr curve(Expr v) {
    switch (below(4)) {
      case 0:
        return call(Function::sqrt, {v});
      case 1:
        return call(Function::add, {v, number()});
      case 2:
        return call(Function::divide, {number(), call(Function::add, {v, number()})});
      default:
        return call(Function::exp, {call(Function::multiply, {v, literal(Scalar::f64, 0.01)})});
    }
  }

  Expr stepped(Expr term) {
    const int64_t n = shape_of(term->type)[0], m = shape_of(term->type)[1];
    switch (below(6)) {
      case 0:
        return map_at(
            2, [&](Expr v) { return curve(v); }, term);
      case 1: {  // shared at one position
        const Expr other = map_at(
            2, [&](Expr v) { return curve(v); }, term);
        return map(
            [&](Expr rows) {
              return map(
                  [&](Expr v) {
                    return call(Function::multiply, {get(0, v), get(1, v)});
                  },
                  zip({get(0, rows), get(1, rows)}));
            },
            zip({other, term}));
      }
      case 2:
        // Without the array, each column recomputes the values of a row.
        return transpose(materialise(Memory::global, term));
      case 3:
        return split(Nat(n), join(transpose(materialise(Memory::global, term))));
      case 4: {  // each row by its sum, which all elements share
        const Expr kept = materialise(Memory::global, term);
        return map(
            [&](Expr r) {
              const Expr more = number();  // without it a second normalisation changes nothing
              return let(reduce(Function::add, literal(Scalar::f64, 0), r), [&](Expr sum) {
                return map([&](Expr v) { return call(Function::divide, {v, call(Function::add, {sum, more})}); }, r);
              });
            },
            kept);
      }
      default: {
        const Expr weights = array(2 + below(3), m);
        return map(
            [&](Expr r) {
              return map(
                  [&](Expr column) {
                    return reduce(Function::add, literal(Scalar::f64, 0),
                                  map(
                                      [](Expr v) {
                                        return call(Function::multiply, {get(0, v), get(1, v)});
                                      },
                                      zip({r, column})));
                  },
                  weights);
            },
            materialises_ ? materialise(Memory::global, term) : term);
      }
    }
  }

  std::mt19937_64 random_;
  bool materialises_;
  int64_t n_, m_;
  int names_ = 0, numbers_ = 0;
};

TEST(Work, OfRandomProgramsIsExact) {
  std::mt19937_64 random(7);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Expr term = RandomProgram(seed, true).make();
    const Work work = executed_work(term);
    EXPECT_EQ(all_operations(work), executed_operations(term, distinct_bindings(term, random)))
        << "program " << seed << ": " << print(term);
    EXPECT_EQ(work.needed, all_operations(work)) << "program " << seed;
  }
}

// Columns of a product compute the elements of a row again, unless it is materialised.
TEST(Work, OfRandomProgramsIsBoundedFromBelow) {
  std::mt19937_64 random(8);
  int repeated = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Expr term = RandomProgram(seed, false).make();
    const Work work = executed_work(term);
    EXPECT_GE(work.needed, executed_operations(term, distinct_bindings(term, random))) << "program " << seed;
    EXPECT_GE(work.arithmetic(), work.needed) << "program " << seed;
    repeated += work.arithmetic() > work.needed ? 1 : 0;
  }
  EXPECT_GT(repeated, 50);
}

}  // namespace hoist::work_test
