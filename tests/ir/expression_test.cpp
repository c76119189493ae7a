// Interning, normal form, variables and places.
#include "ir/language/expression.h"

#include <gtest/gtest.h>

#include <thread>

#include "ir/text/text.h"
#include "tests/support/random_terms.h"

namespace hoist::expression_test {

const Type f32 = scalar_type(Scalar::f32);
Expr array(const Nat& n) { return parameter("x", array_type(n, f32)); }

TEST(Expression, equal_terms_are_one_node) {
  Nat n = Nat::name("n");
  auto make_it = [&] { return map([](Expr x) { return operator_add(x, literal(Scalar::f32, 1)); }, array(n * 2)); };
  EXPECT_EQ(make_it(), make_it());
  EXPECT_NE(make_it(), map([](Expr x) { return operator_add(x, literal(Scalar::f32, -1)); }, array(n * 2)));
  EXPECT_NE(literal(Scalar::f32, 0.0), literal(Scalar::f32, -0.0));  // by bits
  EXPECT_EQ(literal(Scalar::f32, 0.1), literal(Scalar::f32, static_cast<double>(0.1f)));
  EXPECT_EQ(parameter("x", f32), parameter("x", f32));
  EXPECT_NE(parameter("x", f32), parameter("x", scalar_type(Scalar::i8)));
  EXPECT_NE(map(function(f32, [](Expr x) { return identity(x); }), array(4), Mode::seq),
            map(function(f32, [](Expr x) { return identity(x); }), array(4)));
}

TEST(Expression, literals_have_one_form) {
  Spec spec;
  spec.type = scalar_type(Scalar::i8);
  spec.bits = 0xff;
  EXPECT_EQ(build(spec), literal_integer(Scalar::i8, -1));
  EXPECT_EQ(build(spec), literal(Scalar::i8, -1));
  spec.type = scalar_type(Scalar::u8);
  spec.bits = 0x1ff;
  EXPECT_EQ(build(spec), literal_integer(Scalar::u8, 255));
  spec.type = scalar_type(Scalar::boolean);
  EXPECT_EQ(build(spec), literal_integer(Scalar::boolean, 1));
}

TEST(Expression, threads_share_nodes) {
  std::vector<Expr> made(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < made.size(); ++t) {
    threads.emplace_back([&made, t] {
      std::mt19937_64 random(42);
      Expr e = nullptr;
      for (int i = 0; i < 50; ++i) e = random_term(random);
      made[t] = e;
    });
  }
  for (auto& t : threads) t.join();
  for (Expr e : made) EXPECT_EQ(e, made[0]);
}

TEST(Expression, normal_form) {
  Nat n = Nat::name("n"), k = Nat::name("k");
  Expr x = array(n * k), b = parameter("b", array_type({2, 3, 4}, f32)), p = parameter("p", f32),
       q = parameter("q", scalar_type(Scalar::i8));
  EXPECT_EQ(join(split(k, x)), x);
  EXPECT_EQ(split(3, join(b)), b);
  EXPECT_NE(split(6, join(b)), b);
  EXPECT_EQ(get(1, tuple({p, q})), q);
  EXPECT_EQ(transpose(transpose(b)), b);
  EXPECT_EQ(transpose({1, 2, 0}, transpose({1, 2, 0}, transpose({1, 2, 0}, b))), b);
  EXPECT_EQ(transpose({0, 1, 2}, b), b);
  EXPECT_EQ(transpose({1, 0, 2}, b), transpose(b));
  EXPECT_EQ(text(transpose({2, 0, 1}, b)->type), "[4][2][3]f32");
  EXPECT_EQ(text(transpose({1, 0}, transpose({2, 0, 1}, b))->type), "[2][4][3]f32");
  EXPECT_EQ(pad(0, 0, Border::clamp, x), x);
  EXPECT_EQ(slice(0, n * k, x), x);
  EXPECT_NE(slice(0, 2, b), slice(0, 1, b));
  EXPECT_EQ(concat({x}), x);
  EXPECT_EQ(map([](Expr v) { return v; }, x), x);
  EXPECT_NE(map([](Expr v) { return v; }, x, Mode::seq), x);  // a loop is kept
  EXPECT_EQ(cast(Scalar::f32, p), p);
  EXPECT_EQ(select(parameter("c", scalar_type(Scalar::boolean)), p, p), p);
}

TEST(Expression, bound_positions_count_outwards) {
  Expr e = map(
      [](Expr row) {
        return fold(
            [&](Expr s, Expr v) {
              return operator_add(operator_multiply(s, v), index(literal_integer(Scalar::i32, 0), row));
            },
            literal(Scalar::f32, 0), row);
      },
      parameter("b", array_type({3, 4}, f32)));
  Expr body = at(e, {0, 0, 0, 0});  // body of the fold's function
  EXPECT_EQ(body->children[0]->children[0], bound(1, f32));
  EXPECT_EQ(body->children[0]->children[1], bound(0, f32));
  EXPECT_EQ(body->children[1]->children[1], bound(2, array_type(4, f32)));
  EXPECT_EQ(body->free, 3);
  EXPECT_EQ(at(e, {0})->free, 0);
  EXPECT_EQ(e->free, 0);
}

TEST(Expression, apply_and_shift_keep_variables_right) {
  Expr y = bound(0, f32);  // a free variable
  Expr f = function(f32, f32, [&](Expr a, Expr b) { return operator_add(operator_multiply(a, b), a); });
  Expr p = parameter("p", f32);
  EXPECT_EQ(apply(f, {p, y}), operator_add(operator_multiply(p, y), p));
  // under a function inside, the argument's outer variable moves by one
  Expr g = function(f32, [&](Expr a) { return map([&](Expr e) { return operator_add(e, a); }, array(4)); });
  Expr applied = apply(g, {y});
  EXPECT_EQ(at(applied, {0, 0}), operator_add(bound(0, f32), bound(1, f32)));
  EXPECT_EQ(shift(applied, 2)->children[0]->children[0], operator_add(bound(0, f32), bound(3, f32)));
  EXPECT_EQ(shift(applied, 2, 1), applied);
  EXPECT_EQ(shift(shift(applied, 3), -3), applied);
}

TEST(Expression, substitution_goes_under_functions) {
  Expr e = map([](Expr v) { return operator_add(v, parameter("s", f32)); }, array(4));
  Expr r = substitute_parameters(e, {{"s", bound(0, f32)}});
  EXPECT_EQ(at(r, {0, 0}), operator_add(bound(0, f32), bound(1, f32)));
  EXPECT_EQ(substitute_parameters(e, {{"unused", literal(Scalar::f32, 1)}}), e);
  auto parameters = parameters_of(e);
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0]->name, "s");
  EXPECT_EQ(parameters[1]->name, "x");
}

TEST(Expression, places) {
  auto e = parse("%x : [8]f32 |> split 4 |> map (reduce (+) 0)");
  ASSERT_TRUE(e.ok());
  EXPECT_EQ(text(Path{}), "root");
  EXPECT_EQ(text(Path{0, 12, 1}), "0.12.1");
  for (const char* t : {"root", "0", "0.12.1"}) EXPECT_EQ(text(*path_named(t)), t);
  for (const char* t : {"", ".", "0.", "a", "0..1", "-1", "99999999"}) EXPECT_FALSE(path_named(t).ok()) << t;
  EXPECT_EQ(at(*e, {1})->pattern, Pattern::split);
  EXPECT_EQ(at(*e, {1, 0, 0}), nullptr);
  EXPECT_EQ(at(*e, {7}), nullptr);
  auto replaced = replace_at(*e, {1, 0}, parameter("y", array_type(8, f32)));
  ASSERT_TRUE(replaced.ok());
  EXPECT_EQ(print(*replaced), "%y : [8]f32 |> split 4 |> map (reduce (+) 0)");
  EXPECT_EQ(replace_at(*e, {1, 0}, parameter("y", f32)).errors()[0].text(),
            "1.0: the term there has type [8]f32, its replacement f32");
  EXPECT_EQ(replace_at(*e, {3}, *e).errors()[0].text(), "3: no such place in the term");
}

}  // namespace hoist::expression_test
