// Compares Unique with plain loops, interpreted and after all passes, for numbers and strings.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/base/strings.h"
#include "tests/lowering/operators/called_outputs.h"

namespace hoist::unique_test {

struct Distinct {
  std::vector<double> values;
  std::vector<int64_t> firsts, inverse, counts;
};

Distinct distinct_numbers(const Tensor& x, bool sorted) {
  Distinct out;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (std::find(out.values.begin(), out.values.end(), x.float_at(i)) == out.values.end())
      out.values.push_back(x.float_at(i));
  }
  if (sorted) std::sort(out.values.begin(), out.values.end());
  out.firsts.assign(out.values.size(), -1);
  out.counts.assign(out.values.size(), 0);
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto at =
        static_cast<size_t>(std::find(out.values.begin(), out.values.end(), x.float_at(i)) - out.values.begin());
    out.inverse.push_back(static_cast<int64_t>(at));
    if (out.counts[at]++ == 0) out.firsts[at] = i;
  }
  return out;
}

TEST(Unique, GivesWhatDiffers) {
  for (const int64_t n : {1, 10, 64, 90}) {
    for (const bool sorted : {true, false}) {
      const Tensor x = drawn_numbers({n}, static_cast<uint64_t>(n) + 7, 20);
      const Distinct wanted = distinct_numbers(x, sorted);
      const std::vector<Tensor> found =
          outputs_of_calls({x},
                           {call_named("Unique", {"x0"}, {"y", "firsts", "inverse", "counts"},
                                       {{"sorted", static_cast<int64_t>(sorted)}})},
                           {"y", "firsts", "inverse", "counts"});
      const auto count = static_cast<int64_t>(wanted.values.size());
      EXPECT_EQ(found[0], whole({count}, wanted.values)) << n;
      EXPECT_EQ(found[1].as_integers(), wanted.firsts) << n;
      EXPECT_EQ(found[2].as_integers(), wanted.inverse) << n;
      EXPECT_EQ(found[3].as_integers(), wanted.counts) << n;
    }
  }
}

TEST(Unique, OfSlicesComparesThemElementByElement) {
  const Tensor x = whole({4, 2}, {2, 1, 1, 9, 2, 1, 1, 3});
  const auto found = outputs_of_calls(
      {x}, {call_named("Unique", {"x0"}, {"y", "", "", "counts"}, {{"axis", int64_t{0}}})}, {"y", "counts"});
  EXPECT_EQ(show(found[0]), "[3][2] 1 3 1 9 2 1");
  EXPECT_EQ(show(found[1]), "[3] 1 1 2");
}

// In the order of their characters.
const std::vector<std::string> ordered_texts = {"",
                                                std::string("\0", 1),
                                                " ",
                                                "10",
                                                "9",
                                                "A",
                                                "Zz",
                                                "a",
                                                std::string("a\0", 2),
                                                "aa",
                                                "ab",
                                                "abc",
                                                "b",
                                                "ba",
                                                "z",
                                                "é",
                                                "éa",
                                                "日",
                                                "Ａ",
                                                "😀"};

// The text whose place in the order is the number, which is at least -2.
Tensor texts_of(const std::vector<int64_t>& shape, const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(ordered_texts.at(static_cast<size_t>(number + 2)));
  return *tensor_of_strings(shape, texts);
}
Tensor texts_of(const Tensor& numbers) {
  std::vector<double> all;
  for (int64_t i = 0; i < numbers.size(); ++i) all.push_back(numbers.float_at(i));
  return texts_of(numbers.shape(), all);
}

TEST(Unique, OfStringsIsThatOfTheirPlacesInTheOrder) {
  for (const int64_t n : {1, 10, 64, 90}) {
    for (const int64_t sorted : {0, 1}) {
      const Tensor numbers = drawn_numbers({n}, static_cast<uint64_t>(n) + 7, ordered_texts.size());
      const Distinct wanted = distinct_numbers(numbers, sorted != 0);
      const std::vector<Tensor> found =
          outputs_of_calls({texts_of(numbers)},
                           {call_named("Unique", {"x0"}, {"y", "firsts", "inverse", "counts"}, {{"sorted", sorted}})},
                           {"y", "firsts", "inverse", "counts"});
      EXPECT_EQ(found[0], texts_of({std::ssize(wanted.values)}, wanted.values)) << n;
      EXPECT_EQ(found[1].as_integers(), wanted.firsts) << n;
      EXPECT_EQ(found[2].as_integers(), wanted.inverse) << n;
      EXPECT_EQ(found[3].as_integers(), wanted.counts) << n;
    }
  }
}

TEST(Unique, OfSlicesOfStringsComparesThemElementByElement) {
  const auto found =
      outputs_of_calls({texts_of({4, 2}, {2, 1, 1, 9, 2, 1, 1, 3})},
                       {call_named("Unique", {"x0"}, {"y", "firsts", "inverse", "counts"}, {{"axis", int64_t{0}}})},
                       {"y", "firsts", "inverse", "counts"});
  EXPECT_EQ(found[0], texts_of({3, 2}, {1, 3, 1, 9, 2, 1}));
  EXPECT_EQ(show(found[1]), "[3] 3 1 0");
  EXPECT_EQ(show(found[2]), "[4] 2 1 2 0");
  EXPECT_EQ(show(found[3]), "[3] 1 1 2");
}

}  // namespace hoist::unique_test
