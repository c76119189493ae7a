// parse(print(e)) is e, the same pointer: for random terms, for every row of every table, for every kind of literal.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "ir/text/definitions.h"
#include "ir/text/text.h"
#include "tests/support/random_terms.h"

namespace hoist::round_trip_test {

void expect_round_trip(Expr e, const PrintOptions& options = {}) {
  std::string text = print(e, options);
  auto again = parse(text);
  ASSERT_TRUE(again.ok()) << again.errors()[0].text() << "\n" << text;
  ASSERT_EQ(*again, e) << text << "\nreads as\n" << print(*again, options);
}

TEST(RoundTrip, random_terms) {
  std::set<Pattern> seen;
  std::set<Function> functions;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    RandomTermOptions options;
    options.operator_calls = seed % 2 == 0;
    options.patterns = 5 + static_cast<int>(seed % 50);
    options.symbolic = seed % 3 == 0;
    options.scalars_only = seed % 2 == 0;
    Expr e = random_term(random, options);
    PrintOptions print_options{seed % 5 == 0 ? 40 : 100, seed % 7 == 0, seed % 4 != 0};
    expect_round_trip(e, print_options);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
    std::set<Expr> visited;
    std::function<void(Expr)> walk = [&](Expr n) {
      if (!visited.insert(n).second) return;
      seen.insert(n->pattern);
      if (n->pattern == Pattern::call) functions.insert(n->function);
      for (Expr c : n->children) walk(c);
    };
    walk(e);
  }
  for (const PatternRow& r : pattern_table()) {
    const bool is_special = r.pattern == Pattern::meta || r.pattern == Pattern::host;  // no random array is a string
    EXPECT_TRUE(is_special || seen.count(r.pattern) != 0) << r.name << " never occurs in a random term";
  }
  EXPECT_EQ(functions.size(), function_table().size());
}

TEST(RoundTrip, the_same_seed_gives_the_same_term) {
  std::mt19937_64 a(7), b(7);
  EXPECT_EQ(random_term(a), random_term(b));
}

TEST(RoundTrip, every_function) {
  for (const FunctionRow& r : function_table()) {
    Scalar s = r.on_float ? Scalar::f32 : r.on_integer ? Scalar::i32 : Scalar::boolean;
    std::vector<Expr> parameters, literals;
    for (int i = 0; i < r.arity; ++i) {
      parameters.push_back(parameter("p" + std::to_string(i), scalar_type(s)));
      literals.push_back(literal(s, i - 1));
    }
    expect_round_trip(call(r.function, parameters));
    expect_round_trip(call(r.function, literals));
    if (r.arity == 1)
      expect_round_trip(call(r.function, {call(r.function, {cast(s, call(r.function, literals))})->children[0]}));
    if (r.arity != 2 || r.result == ResultKind::boolean) continue;
    // nested to the left and to the right, with an operator of another precedence
    for (Function other : {r.function, Function::add, Function::multiply, Function::logical_or, Function::subtract}) {
      bool fits = s == Scalar::f32 ? row(other).on_float : row(other).on_integer;
      if (!fits) continue;
      Expr inner = call(other, parameters);
      expect_round_trip(call(r.function, {inner, parameters[0]}));
      expect_round_trip(call(r.function, {parameters[0], inner}));
      expect_round_trip(call(r.function, {inner, call(Function::negate, {inner})}));
    }
    Expr array = parameter("a", array_type(4, scalar_type(s)));
    expect_round_trip(reduce(r.function, literals[1], array));
    expect_round_trip(map([&](Expr x) { return call(r.function, {x, parameters[0]}); }, array));
    expect_round_trip(map([&](Expr x) { return call(r.function, {parameters[0], x}); }, array));
    expect_round_trip(map([&](Expr x) { return call(r.function, {get(0, x), get(1, x)}); }, zip({array, array})));
    expect_round_trip(map([&](Expr x) { return call(r.function, {get(1, x), get(0, x)}); }, zip({array, array})));
  }
}

// Hundreds of prefixes; parentheses may nest 500 deep.
TEST(RoundTrip, prefixes_of_prefixes) {
  for (const std::vector<Function>& prefixes : std::vector<std::vector<Function>>{
           {Function::logical_not}, {Function::negate}, {Function::negate, Function::logical_not}}) {
    Expr e = parameter("x", scalar_type(Scalar::i32));
    for (size_t i = 0; i < 450; ++i) e = call(prefixes[i % prefixes.size()], {e});
    expect_round_trip(e);
    expect_round_trip(call(Function::subtract, {e, e}));
  }
}

TEST(RoundTrip, literals_of_every_type) {
  for (int i = 0; i < scalar_count; ++i) {
    auto s = static_cast<Scalar>(i);
    std::vector<uint64_t> patterns = {0,
                                      1,
                                      2,
                                      3,
                                      5,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x3c00,
                                      0x7c00,
                                      0x7e00,
                                      0x8000,
                                      0xffff,
                                      0x3dcccccd,
                                      0x7f800000,
                                      0x7fc00000,
                                      0x7fc00001,
                                      0xff800000,
                                      0x80000000,
                                      0x00000001,
                                      0xffffffff,
                                      0x3fb999999999999aull,
                                      0x7ff0000000000000ull,
                                      0x7ff8000000000001ull,
                                      0x8000000000000000ull,
                                      ~uint64_t{0}};
    for (uint64_t bits : patterns) {
      Spec spec;
      spec.bits = bits;
      spec.type = scalar_type(s);
      Expr e = build(spec);
      expect_round_trip(e);
      expect_round_trip(tuple({e, e}));
      if (s == Scalar::string) expect_round_trip(call(Function::equal, {parameter("x", e->type), e}));
      if (s != Scalar::boolean && s != Scalar::string) {
        expect_round_trip(call(Function::maximum, {parameter("x", e->type), e}));
        expect_round_trip(call(Function::negate, {e}));
      }
      if (row(s).bits < 8) continue;
      Tensor t(s, {3});
      for (int64_t j = 0; j < 3; ++j) {
        for (int b = 0; b < row(s).bits / 8; ++b)
          t.data()[j * (row(s).bits / 8) + b] = static_cast<std::byte>(bits >> (8 * b) & 0xff);
      }
      expect_round_trip(constant(t));
    }
  }
}

TEST(RoundTrip, constants) {
  for (Scalar s : {Scalar::f32, Scalar::i4, Scalar::u4, Scalar::boolean, Scalar::bf16, Scalar::f8e4m3fn, Scalar::i2,
                   Scalar::u2, Scalar::f4e2m1, Scalar::f8e8m0}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{}, {0}, {1}, {3}, {2, 0, 3}, {4, 4}, {17}, {5, 7}, {100}}) {
      Tensor t(s, shape);
      for (int64_t i = 0; i < t.size(); ++i) {
        if (is_float(s))
          t.set_float(i, static_cast<double>(i % 13) / 4 - 1);
        else
          t.set_integer(i, s == Scalar::boolean ? i % 2 : i % 7);
      }
      expect_round_trip(constant(t));
    }
  }
  Tensor padded(Scalar::i4, {1}, {std::byte{0xf3}});  // the bits after the last element belong to the bytes
  expect_round_trip(constant(padded));
}

TEST(RoundTrip, parameters_with_odd_names) {
  for (const std::string name :
       {"x", "a/b:0", "with space", "quote\"back\\slash", "new\nline", "ümlaut", "%", "0", "--", "in", "map"}) {
    expect_round_trip(parameter(name, scalar_type(Scalar::f32)));
    expect_round_trip(
        operator_add(parameter(name, scalar_type(Scalar::f32)), parameter("other", scalar_type(Scalar::f32))));
  }
  // one name with two types cannot be bound, but it is a term
  expect_round_trip(tuple({parameter("x", scalar_type(Scalar::f32)), parameter("x", scalar_type(Scalar::i8)),
                           parameter("x", scalar_type(Scalar::f32))}));
}

// A definition parses to its term, and the term prints as the definition.
TEST(RoundTrip, every_named_composition) {
  const std::map<std::string, std::vector<std::string>> uses = {
      {"map2d", {"map2d exp (%x : [3][4]f32)"}},
      {"map3d", {"map3d exp (%x : [2][3][4]f32)"}},
      {"zip2d", {"%y : [3][4]f32 |> zip2d (%x : [3][4]f32)"}},
      {"slide2d", {"%x : [5][6]f32 |> slide2d 3 2", "%x : [n + 3][n + 3]f32 |> slide2d 3 1"}},
      {"pad2d", {"%x : [3][4]f32 |> pad2d 1 2 0.5", "%x : [h][w](f32, f32) |> pad2d 1 2 (%v : (f32, f32))"}},
      {"flatten",
       {"%x : [2][3][4]f32 |> flatten", "%x : [2][3][4][5]f32 |> flatten", "%x : [1][2][3][4][5]f32 |> flatten"}},
      {"reverse", {"%x : [n]f32 |> reverse"}},
      {"gather", {"%x : [9]f32 |> gather (%i : [4]i32)"}},
      {"relu", {"relu(%x : f32)"}},
      {"clip", {"clip 0 6 (%x : f32)"}},
      {"sigmoid", {"sigmoid(%x : f32)"}},
  };
  for (const std::string& name : definition_names()) {
    ASSERT_TRUE(uses.count(name)) << name << " needs a use here";
    for (const std::string& use : uses.at(name)) {
      auto e = parse(use);
      ASSERT_TRUE(e.ok()) << use << ": " << e.errors()[0].text();
      EXPECT_NE(print(*e).find(name), std::string::npos) << print(*e);
      expect_round_trip(*e);
      expect_round_trip(*e, {100, false, false});
      EXPECT_EQ(print(*e, {100, false, false}).find(name), std::string::npos);
    }
  }
  EXPECT_EQ(print(*parse("flatten (%x : [2][3]f32)")), "%x : [2][3]f32 |> join");  // one pattern keeps its own name
  // terms that only resemble the definition
  for (const std::string text :
       {"%x : [2][3][4][5]f32 |> join |> join", "max(%x : f32, 1)", "max(0, %x : f32)",
        "%x : [3][4]f32 |> map (pad 1 1 0) |> pad 1 1 (fill 1 [6])", "%x : [5]f32 |> slice 3 4 step -1",
        "%x : [3][4]f32 |> map seq (map exp)", "%i : [4]i32 |> map (\\i. index i (repeat 4 i))"}) {
    auto e = parse(text);
    ASSERT_TRUE(e.ok()) << text << ": " << e.errors()[0].text();
    expect_round_trip(*e);
    for (const std::string& name : definition_names()) EXPECT_EQ(print(*e).find(name), std::string::npos) << print(*e);
  }
}

}  // namespace hoist::round_trip_test
