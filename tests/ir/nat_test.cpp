#include "ir/language/nat.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "ir/language/size_operations.h"

namespace hoist::nat_test {

const Nat n = Nat::name("n"), m = Nat::name("m"), k = Nat::name("k");

TEST(Nat, equal_polynomials_are_the_same_object) {
  const std::vector<std::pair<Nat, Nat>> table = {
      {n + m, m + n},
      {n * m * k, k * n * m},
      {(n + 1) * (n - 1), n * n - 1},
      {n * 2 + n * 3, n * 5},
      {n - n, 0},
      {(n + m) * (n + m), n * n + m * n * 2 + m * m},
      {n * 0, 0},
      {floor_division(n * m, m), n},
      {floor_division(n * 6 + m * 3, 3), n * 2 + m},
      {floor_division(n * 2 + 5, 2), n + 2},
      {floor_division(n * 2 - 1, 2), n - 1},
      {floor_division(n * 3, 2), n + floor_division(n, 2)},
      {floor_division(n + 4, 2), floor_division(n, 2) + 2},
      {floor_division(n, 1), n},
      {remainder(n * 4 + 3, 4), 3},
      {remainder(n * m, m), 0},
      {minimum(n, n + 1), n},
      {maximum(n, n + 1), n + 1},
      {minimum(n, 1), 1},  // a size name is at least 1
      {maximum(n * 2, 2), n * 2},
      {ceiling_division(n * 4, 4), n},
      {ceiling_division(n * 4 + 1, 4), n + 1},
  };
  for (const auto& [a, b] : table) {
    EXPECT_EQ(a, b) << a.text() << " and " << b.text();
    EXPECT_EQ(a.hash(), b.hash());
    EXPECT_EQ(a.polynomial(), b.polynomial());
  }
  EXPECT_NE(n, m);
  EXPECT_NE(n, n + 1);
  EXPECT_NE(floor_division(n, 2), floor_division(n, 3));
}

TEST(Nat, divides) {
  declare_size("multiple_of_8", {8, 1024, 8});
  Nat e = Nat::name("multiple_of_8");
  const std::vector<std::tuple<Nat, Nat, Answer>> table = {{4, 12, Answer::yes},
                                                           {4, 13, Answer::no},
                                                           {k, m * k, Answer::yes},
                                                           {k, m * k + k, Answer::yes},
                                                           {k, m, Answer::unknown},
                                                           {2, n * 4 + 6, Answer::yes},
                                                           {2, n, Answer::unknown},
                                                           {8, e, Answer::yes},
                                                           {4, e * n, Answer::yes},
                                                           {16, e, Answer::unknown},
                                                           {1, n, Answer::yes},
                                                           {n, n, Answer::yes},
                                                           {n * k, n * k * m * 3, Answer::yes},
                                                           {0, 4, Answer::no},
                                                           {0, 0, Answer::yes},
                                                           {3, 0, Answer::yes}};
  for (const auto& [a, b, answer] : table) EXPECT_EQ(divides(a, b), answer) << a.text() << " into " << b.text();
}

TEST(Nat, at_most) {
  declare_size("between_3_and_5", {3, 5, 1});
  Nat t = Nat::name("between_3_and_5");
  const std::vector<std::tuple<Nat, Nat, Answer>> table = {
      {1, 2, Answer::yes},    {2, 1, Answer::no},      {n, n, Answer::yes},         {n, n + 1, Answer::yes},
      {n + 1, n, Answer::no}, {n, m, Answer::unknown}, {1, n, Answer::yes},         {t, 5, Answer::yes},
      {6, t, Answer::no},     {4, t, Answer::unknown}, {n, n * m, Answer::unknown}, {0, n * m - 1, Answer::yes}};
  for (const auto& [a, b, answer] : table) EXPECT_EQ(at_most(a, b), answer) << a.text() << " <= " << b.text();
}

TEST(Nat, text_does_not_depend_on_the_order_of_names) {
  EXPECT_EQ((Nat::name("zeta") + Nat::name("alpha") * 2 - 1).text(), "2*alpha + zeta - 1");
  EXPECT_EQ((Nat(0) - n).text(), "0 - n");
  EXPECT_EQ((n * n * m).text(), "m*n*n");
  EXPECT_EQ(Nat(-3).text(), "-3");
  EXPECT_EQ(n.as_name(), "n");
  EXPECT_FALSE((n + 1).as_name());
  EXPECT_FALSE(minimum(n, m).as_name());
}

// The value of a size by its operations.
int64_t run(const Nat& size, const std::map<std::string, int64_t>& values) {
  std::vector<int64_t> stack;
  for (const SizeOperation& operation : operations_of(size)) {
    if (operation.kind == SizeOperation::constant || operation.kind == SizeOperation::name) {
      stack.push_back(operation.kind == SizeOperation::name ? values.at(operation.text) : operation.value);
      continue;
    }
    const int64_t b = stack.back();
    stack.pop_back();
    int64_t& a = stack.back();
    const int64_t quotient = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    if (operation.kind == SizeOperation::add) a += b;
    if (operation.kind == SizeOperation::multiply) a *= b;
    if (operation.kind == SizeOperation::floor_division) a = quotient;
    if (operation.kind == SizeOperation::remainder) a -= b * quotient;
    if (operation.kind == SizeOperation::minimum) a = std::min(a, b);
    if (operation.kind == SizeOperation::maximum) a = std::max(a, b);
  }
  EXPECT_EQ(stack.size(), 1U);
  return stack.front();
}

TEST(Nat, operations_compute_the_size) {
  const std::vector<Nat> sizes = {7,
                                  0,
                                  -3,
                                  n,
                                  n * n * m - 4 * n + 5,
                                  ceiling_division(n, 16) * 16,
                                  remainder(n * m, 7) * m - floor_division(m - 40, 3),
                                  minimum(n, m) + maximum(floor_division(n, 2), m - 3) * 2};
  for (const Nat& size : sizes) {
    for (const auto& [a, b] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {17, 5}, {31, 64}, {512, 3}})
      EXPECT_EQ(run(size, {{"n", a}, {"m", b}}), size.substitute({{"n", a}, {"m", b}}).value()) << size.text();
  }
  // Equal operations whatever was made first.
  const Nat first = Nat::name("made_second") * 2, second = Nat::name("made_later") + first;
  EXPECT_EQ(operations_of(second).front(), (SizeOperation{SizeOperation::name, 0, "made_later"}));
}

TEST(Nat, upper_bounds_follow_from_ranges) {
  declare_size("up_to_100", {1, 100, 1});
  const Nat t = Nat::name("up_to_100");
  EXPECT_EQ(upper_bound(12), 12);
  EXPECT_EQ(upper_bound(t * 3 + 1), 301);
  EXPECT_EQ(upper_bound(ceiling_division(t, 16) * 16), 112);
  EXPECT_EQ(upper_bound(Nat(100) - t), 99);
}

TEST(Nat, coefficient_bound_bounds_products) {
  EXPECT_EQ(coefficient_bound(n * 3 - m * 2 + 5), 10);
  EXPECT_EQ(coefficient_bound(0), 0);
  Nat a = n * 3 - 7, b = m * 2 + n - 1;
  EXPECT_LE(coefficient_bound(a * b), coefficient_bound(a) * coefficient_bound(b));
}

// Random expressions: the normal form has the value of plain arithmetic at every point.
TEST(Nat, normal_form_keeps_the_value) {
  std::mt19937_64 random(1);
  auto pick = [&](int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); };
  for (int round = 0; round < 2000; ++round) {
    std::map<std::string, Nat> point = {{"n", 1 + pick(20)}, {"m", 1 + pick(20)}, {"k", 1 + pick(20)}};
    std::function<std::pair<Nat, int64_t>(int)> make = [&](int depth) -> std::pair<Nat, int64_t> {
      if (depth == 0) {
        if (pick(2) == 0) {
          int64_t c = pick(7);
          return {c, c};
        }
        std::string name = std::vector<std::string>{"n", "m", "k"}[static_cast<size_t>(pick(3))];
        return {Nat::name(name), point[name].value()};
      }
      auto [a, x] = make(depth - 1);
      auto [b, y] = make(depth - 1);
      auto floor = [](int64_t p, int64_t q) { return p / q - (p % q < 0 ? 1 : 0); };
      switch (pick(7)) {
        case 0:
          return {a + b, x + y};
        case 1:
          return {a - b, x - y};
        case 2:
          return {a * b, x * y};
        case 3: {
          int64_t q = 1 + pick(5);
          return {floor_division(a, q), floor(x, q)};
        }
        case 4: {
          int64_t q = 1 + pick(5);
          return {remainder(a, q), x - q * floor(x, q)};
        }
        case 5:
          return {minimum(a, b), std::min(x, y)};
        default:
          return {maximum(a, b), std::max(x, y)};
      }
    };
    auto [size, value] = make(3);
    EXPECT_EQ(size.substitute(point), Nat(value)) << size.text();
    EXPECT_TRUE(!size.is_constant() || size.value() == value) << value;
  }
}

}  // namespace hoist::nat_test
