// Compares operators with dynamic results with plain loops, interpreted and after all passes, for few elements and for
// sorting networks; and tests which layers may follow them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "lowering/pipeline/passes.h"
#include "tests/lowering/operators/called_outputs.h"

namespace hoist::selection_test {

using testing::HasSubstr;

TEST(Selection, NonZeroGivesPositions) {
  const auto places = [](const Tensor& x) {
    return outputs_of_calls({x}, {call_named("NonZero", {"x0"}, {"y"})}, {"y"})[0];
  };
  EXPECT_EQ(show(places(whole({2, 3}, {1, 0, -2, 0, 0, 5}))), "[2][3] 0 0 1 0 2 2");
  EXPECT_EQ(show(places(whole({4}, {0, 0, 0, 0}))), "[1][0]");
  EXPECT_EQ(show(places(whole({2}, {std::numeric_limits<double>::quiet_NaN(), -0.0}))), "[1][1] 0");
  EXPECT_EQ(show(places(integers({}, {3}))), "[0][1]");
  EXPECT_EQ(show(places(integers({}, {0}))), "[0][0]");
  EXPECT_EQ(show(places(Tensor::of(Scalar::boolean, {3}, std::vector<int64_t>{0, 1, 1}))), "[1][2] 1 2");
  EXPECT_EQ(show(places(whole({0, 2}, {}))), "[2][0]");
  const Tensor x = drawn_numbers({5, 6, 7}, 3, 4);
  std::vector<int64_t> wanted;
  for (int64_t dimension = 0; dimension < 3; ++dimension) {
    for (int64_t i = 0; i < x.size(); ++i) {
      if (x.float_at(i) != 0) wanted.push_back(dimension == 0 ? i / 42 : dimension == 1 ? i / 7 % 6 : i % 7);
    }
  }
  EXPECT_EQ(places(x), integers({3, static_cast<int64_t>(wanted.size()) / 3}, wanted));
  // Several blocks, with a partial last block.
  const Tensor long_one = drawn_numbers({5003}, 4, 5);
  std::vector<int64_t> those;
  for (int64_t i = 0; i < long_one.size(); ++i) {
    if (long_one.float_at(i) != 0) those.push_back(i);
  }
  EXPECT_EQ(places(long_one), integers({1, static_cast<int64_t>(those.size())}, those));
}

TEST(Selection, CompressKeepsWhatAComputedConditionSays) {
  const Tensor x = counting({3, 4}), keep = Tensor::of(Scalar::boolean, {3}, std::vector<int64_t>{1, 0, 1});
  const auto kept = [&](Attributes attributes) {
    return show(
        outputs_of_calls({x, keep}, {call_named("Compress", {"x0", "x1"}, {"y"}, std::move(attributes))}, {"y"})[0]);
  };
  EXPECT_EQ(kept({{"axis", int64_t{0}}}), "[2][4] 0 1 2 3 8 9 10 11");
  EXPECT_EQ(kept({{"axis", int64_t{-1}}}), "[3][2] 0 2 4 6 8 10");
  EXPECT_EQ(kept({}), "[2] 0 2");
}

TEST(Selection, TopKTakesAComputedNumber) {
  const Tensor x = drawn_numbers({3, 100}, 5, 12);
  const auto top = [&](int64_t k) {
    return outputs_of_calls({x, integers({1}, {k})}, {call_named("TopK", {"x0", "x1"}, {"values", "places"})},
                            {"values", "places"});
  };
  for (const int64_t k : {0, 1, 17, 100}) {
    const std::vector<Tensor> found = top(k);
    ASSERT_EQ(found[1].shape(), (std::vector<int64_t>{3, k}));
    for (int64_t r = 0; r < 3; ++r) {
      std::vector<int64_t> order(100);
      for (int64_t i = 0; i < 100; ++i) order[static_cast<size_t>(i)] = i;
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return x.float_at(100 * r + a) > x.float_at(100 * r + b); });
      for (int64_t i = 0; i < k; ++i) {
        EXPECT_EQ(found[1].integer_at(r * k + i), order[static_cast<size_t>(i)]);
        EXPECT_EQ(found[0].float_at(r * k + i), x.float_at(100 * r + order[static_cast<size_t>(i)]));
      }
    }
  }
  // A number beyond the elements is an error when the outputs are cut.
  ProgramBuilder builder = builder_of({x, integers({1}, {1})}, {call_named("TopK", {"x0", "x1"}, {"values"})});
  builder.add_output("values");
  auto program = builder.finish();
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  const auto refused = cut_outputs(*program, {x, Tensor::of(Scalar::i64, {}, std::vector<int64_t>{101})});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.errors()[0].text(), HasSubstr("has 101 elements along dimension 1, and its capacity is 100"));
}

TEST(Selection, SortedPlacesAreThoseOfAStableSort) {
  for (const int64_t n : {1, 2, 63, 64, 65, 100, 128, 129}) {
    const Tensor x = drawn_numbers({n}, static_cast<uint64_t>(n), 9);
    Tensor with_nan = x;
    if (n > 2) with_nan.set_float(n / 2, std::numeric_limits<double>::quiet_NaN());
    for (const bool largest : {false, true}) {
      const LayerCase top =
          LayerCase("TopK", {with_nan, integers({1}, {n})}, {{"largest", static_cast<int64_t>(largest)}}, 2)
              .with_known({false, true});
      auto results = top.lower();
      ASSERT_TRUE(results.ok()) << results.errors()[0].text();
      auto found = evaluate((*results)[1], {{"x0", with_nan}});
      ASSERT_TRUE(found.ok()) << found.errors()[0].text();
      std::vector<int64_t> order(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
      const auto before = [&](int64_t i, int64_t j) {
        const double a = with_nan.float_at(i), b = with_nan.float_at(j);
        return a < b || (std::isnan(b) && !std::isnan(a));
      };
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return largest ? before(b, a) : before(a, b); });
      EXPECT_EQ(found->as_integers(), order) << n;
    }
  }
}

// Long rows: the blocks with the largest elements contain all results, including equal elements and the end of a
// partial block.
TEST(Selection, TheFewLargestOfALongRowLieInFewBlocks) {
  for (const int64_t n : {4096, 5003}) {
    for (const int64_t k : {1, 7, 16}) {
      Tensor x = drawn_numbers({2, n}, static_cast<uint64_t>(n + k), 9);
      x.set_float(n / 2, std::numeric_limits<double>::quiet_NaN());
      for (const bool largest : {false, true}) {
        const LayerCase top =
            LayerCase("TopK", {x, integers({1}, {k})}, {{"largest", static_cast<int64_t>(largest)}}, 2)
                .with_known({false, true});
        auto results = top.lower();
        ASSERT_TRUE(results.ok()) << results.errors()[0].text();
        auto found = evaluate((*results)[1], {{"x0", x}});
        ASSERT_TRUE(found.ok()) << found.errors()[0].text();
        std::vector<int64_t> expected;
        for (int64_t line = 0; line < 2; ++line) {
          std::vector<int64_t> order(static_cast<size_t>(n));
          for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
          const auto before = [&](int64_t i, int64_t j) {
            const double a = x.float_at(line * n + i), b = x.float_at(line * n + j);
            return a < b || (std::isnan(b) && !std::isnan(a));
          };
          std::stable_sort(order.begin(), order.end(),
                           [&](int64_t a, int64_t b) { return largest ? before(b, a) : before(a, b); });
          expected.insert(expected.end(), order.begin(), order.begin() + k);
        }
        EXPECT_EQ(found->as_integers(), expected) << n << " " << k << " " << largest;
      }
    }
  }
}

// 64-bit elements with their positions do not fit one integer; the minimum and maximum values are included.
TEST(Selection, TheFewLargestOfWideNumbersAreThoseOfAStableSort) {
  constexpr int64_t n = 100;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Scalar scalar : {Scalar::f64, Scalar::i64, Scalar::u64}) {
    Tensor x(scalar, {n});
    const Tensor drawn = drawn_numbers({n}, 6, 9);
    for (int64_t i = 0; i < n; ++i) {
      if (is_float(scalar))
        x.set_float(i, drawn.float_at(i));
      else
        x.set_integer(i, static_cast<int64_t>(drawn.float_at(i)));
    }
    if (is_float(scalar)) {
      const double special[] = {std::numeric_limits<double>::quiet_NaN(), -infinity, infinity, -0.0, 0.0};
      for (size_t i = 0; i < std::size(special); ++i) x.set_float(static_cast<int64_t>(11 * i), special[i]);
    } else {
      for (const int64_t i : {3, 70}) x.set_integer(i, INT64_MIN);
      for (const int64_t i : {40, 41}) x.set_integer(i, INT64_MAX);
      x.set_integer(12, -1);
      x.set_integer(90, 0);
    }
    const auto before = [&](int64_t i, int64_t j) {
      if (scalar == Scalar::i64) return x.integer_at(i) < x.integer_at(j);
      if (scalar == Scalar::u64) return static_cast<uint64_t>(x.integer_at(i)) < static_cast<uint64_t>(x.integer_at(j));
      return x.float_at(i) < x.float_at(j) || (std::isnan(x.float_at(j)) && !std::isnan(x.float_at(i)));
    };
    for (const bool largest : {false, true}) {
      std::vector<int64_t> order(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return largest ? before(b, a) : before(a, b); });
      const LayerCase top = LayerCase("TopK", {x, integers({1}, {20})}, {{"largest", static_cast<int64_t>(largest)}}, 2)
                                .with_known({false, true});
      auto results = top.lower();
      ASSERT_TRUE(results.ok()) << results.errors()[0].text();
      auto found = evaluate((*results)[1], {{"x0", x}});
      ASSERT_TRUE(found.ok()) << found.errors()[0].text();
      EXPECT_EQ(found->as_integers(), std::vector<int64_t>(order.begin(), order.begin() + 20))
          << row(scalar).name << " " << largest;
    }
  }
}

// Elements of at most 16 bits fit 32 bits with their positions, in short rows; the minimum and maximum values, both
// zeros and NaN are included.
TEST(Selection, TheFewLargestOfNarrowNumbersAreThoseOfAStableSort) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Case {
    Scalar scalar;
    int64_t n, k;
  };
  std::vector<Case> cases;
  for (const Scalar scalar : {Scalar::i8, Scalar::u8, Scalar::i16, Scalar::u16, Scalar::f16, Scalar::bf16})
    cases.insert(cases.end(), {{scalar, 100, 20}, {scalar, 5003, 3}});
  for (const int64_t n : {65535, 65536}) cases.push_back({Scalar::i16, n, 2});
  for (const Case& c : cases) {
    Tensor x(c.scalar, {c.n});
    const Tensor drawn = drawn_numbers({c.n}, 6, 9);
    const auto set = [&](int64_t i, double value) {
      if (is_float(c.scalar))
        x.set_float(i, value);
      else
        x.set_integer(i, static_cast<int64_t>(value));
    };
    for (int64_t i = 0; i < c.n; ++i) set(i, row(c.scalar).is_signed ? drawn.float_at(i) : drawn.float_at(i) + 20);
    if (is_float(c.scalar)) {
      const double special[] = {std::numeric_limits<double>::quiet_NaN(), -infinity, infinity, -0.0, 0.0, 1e-7, -1e-7};
      for (size_t i = 0; i < std::size(special); ++i) set(static_cast<int64_t>(11 * i), special[i]);
    } else {
      const int64_t bits = row(c.scalar).bits - (row(c.scalar).is_signed ? 1 : 0);
      const double most = std::exp2(static_cast<double>(bits)) - 1, least = row(c.scalar).is_signed ? -most - 1 : 0;
      for (const int64_t i : {3, 70}) set(i, least);
      for (const int64_t i : {40, 41}) set(i, most);
      set(c.n - 1, most);
      set(c.n - 2, least);
    }
    const auto number = [&](int64_t i) {
      return is_float(c.scalar) ? x.float_at(i) : static_cast<double>(x.integer_at(i));
    };
    const auto before = [&](int64_t i, int64_t j) {
      return number(i) < number(j) || (std::isnan(number(j)) && !std::isnan(number(i)));
    };
    for (const bool largest : {false, true}) {
      std::vector<int64_t> order(static_cast<size_t>(c.n));
      for (int64_t i = 0; i < c.n; ++i) order[static_cast<size_t>(i)] = i;
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return largest ? before(b, a) : before(a, b); });
      const LayerCase top =
          LayerCase("TopK", {x, integers({1}, {c.k})}, {{"largest", static_cast<int64_t>(largest)}}, 2)
              .with_known({false, true});
      auto results = top.lower();
      ASSERT_TRUE(results.ok()) << results.errors()[0].text();
      auto found = evaluate((*results)[1], {{"x0", x}});
      ASSERT_TRUE(found.ok()) << found.errors()[0].text();
      EXPECT_EQ(found->as_integers(), std::vector<int64_t>(order.begin(), order.begin() + c.k))
          << row(c.scalar).name << " " << c.n << " " << largest;
    }
  }
}

// Larger numbers of elements use a host op if the device is the host's processor; any type, along any axis.
TEST(Selection, ManyLargestAreThoseOfAStableSort) {
  for (const int64_t k : {17, 100, 300}) {
    for (const Scalar scalar : {Scalar::f32, Scalar::f64, Scalar::f16, Scalar::i64, Scalar::u8}) {
      for (const int64_t axis : {0, 1}) {
        for (const bool largest : {false, true}) {
          const int64_t n = 300, rows = 3;
          const Tensor drawn = drawn_numbers({n * rows}, static_cast<uint64_t>(k), 50);
          Tensor x(scalar, axis == 0 ? std::vector<int64_t>{n, rows} : std::vector<int64_t>{rows, n});
          for (int64_t i = 0; i < x.size(); ++i) {
            if (is_float(scalar))
              x.set_float(i, drawn.float_at(i));
            else
              x.set_integer(i, static_cast<int64_t>(drawn.float_at(i)) + 2);
          }
          const auto element = [&](int64_t line, int64_t i) { return axis == 0 ? i * rows + line : line * n + i; };
          const auto number = [&](int64_t i) {
            return is_float(scalar) ? x.float_at(i) : static_cast<double>(x.integer_at(i));
          };
          const Attributes attributes = {
              {"k", std::vector<int64_t>{k}}, {"axis", axis}, {"largest", static_cast<int64_t>(largest)}};
          const std::vector<Tensor> found = outputs_of_calls(
              {x}, {call_named("TopK", {"x0"}, {"values", "places"}, attributes)}, {"values", "places"});
          for (int64_t line = 0; line < rows; ++line) {
            std::vector<int64_t> order(static_cast<size_t>(n));
            for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
            std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
              const double p = number(element(line, a)), q = number(element(line, b));
              return largest ? p > q : p < q;
            });
            for (int64_t i = 0; i < k; ++i) {
              const int64_t at = axis == 0 ? i * rows + line : line * k + i, place = order[static_cast<size_t>(i)];
              ASSERT_EQ(found[1].integer_at(at), place) << k << " " << row(scalar).name << " " << axis << " " << i;
              ASSERT_EQ(is_float(scalar) ? found[0].float_at(at) : static_cast<double>(found[0].integer_at(at)),
                        number(element(line, place)));
            }
          }
        }
      }
    }
  }
}

// As described by ONNX, one box at a time.
std::vector<int64_t> suppressed(const Tensor& boxes, const Tensor& scores, int64_t most, float overlap,
                                float threshold) {
  std::vector<int64_t> out;
  const std::vector<int64_t> s = scores.shape();
  for (int64_t image = 0; image < s[0]; ++image) {
    for (int64_t kind = 0; kind < s[1]; ++kind) {
      const auto score = [&](int64_t box) { return scores.float_at((image * s[1] + kind) * s[2] + box); };
      const auto corner = [&](int64_t box, int64_t i, bool larger) {
        const auto a = static_cast<float>(boxes.float_at((image * s[2] + box) * 4 + i)),
                   b = static_cast<float>(boxes.float_at((image * s[2] + box) * 4 + i + 2));
        return larger ? std::max(a, b) : std::min(a, b);
      };
      std::vector<int64_t> order, kept;
      for (int64_t box = 0; box < s[2]; ++box) {
        if (score(box) > threshold) order.push_back(box);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score(a) > score(b); });
      for (const int64_t box : order) {
        if (static_cast<int64_t>(kept.size()) == most) break;
        const bool free = std::none_of(kept.begin(), kept.end(), [&](int64_t other) {
          const float height = std::min(corner(box, 0, true), corner(other, 0, true)) -
                               std::max(corner(box, 0, false), corner(other, 0, false)),
                      width = std::min(corner(box, 1, true), corner(other, 1, true)) -
                              std::max(corner(box, 1, false), corner(other, 1, false));
          if (height <= 0 || width <= 0) return false;
          const auto area = [&](int64_t i) {
            return (corner(i, 0, true) - corner(i, 0, false)) * (corner(i, 1, true) - corner(i, 1, false));
          };
          return height * width / (area(box) + area(other) - height * width) > overlap;
        });
        if (free) kept.push_back(box);
      }
      for (const int64_t box : kept) out.insert(out.end(), {image, kind, box});
    }
  }
  return out;
}

TEST(Selection, BoxesThatOverlapBetterOnesGo) {
  std::mt19937_64 random(11);
  const auto number = [&] { return static_cast<double>(random() % 64) / 16; };
  for (const int64_t n : {1, 7, 12, 70, 100}) {
    std::vector<double> corners, values;
    for (int64_t i = 0; i < 2 * n; ++i) {
      const double y = number(), x = number();
      corners.insert(corners.end(), {y, x, y + number(), x + number()});
    }
    for (int64_t i = 0; i < 2 * 3 * n; ++i) values.push_back(number() / 4);
    const Tensor boxes = whole({2, n, 4}, corners), scores = whole({2, 3, n}, values);
    for (const int64_t most : {0, 2, 1000}) {
      const auto found =
          outputs_of_calls({boxes, scores, integers({1}, {most}), whole({1}, {0.25}), whole({1}, {0.3})},
                           {call_named("NonMaxSuppression", {"x0", "x1", "x2", "x3", "x4"}, {"y"})}, {"y"});
      const std::vector<int64_t> wanted = suppressed(boxes, scores, most, 0.25F, 0.3F);
      EXPECT_EQ(found[0], integers({static_cast<int64_t>(wanted.size()) / 3, 3}, wanted)) << n << ", " << most;
    }
  }
}

Program choosing_boxes(std::vector<int64_t> boxes, std::vector<int64_t> scores, int64_t most, bool with_threshold,
                       int64_t centred) {
  ProgramBuilder builder("chosen", newest_version);
  builder.add_input({"boxes", Scalar::f32, std::move(boxes)});
  builder.add_input({"scores", Scalar::f32, std::move(scores)});
  builder.add_constant("most", integers({1}, {most}));
  builder.add_constant("overlap", whole({1}, {0.4}));
  builder.add_constant("threshold", whole({1}, {0.1}));
  std::vector<std::string> inputs = {"boxes", "scores", "most", "overlap"};
  if (with_threshold) inputs.emplace_back("threshold");
  builder.add_call(call_named("NonMaxSuppression", inputs, {"y"}, {{"center_point_box", centred}}));
  builder.add_output("y");
  auto program = builder.finish();
  EXPECT_TRUE(program.ok()) << program.errors()[0].text();
  return std::move(*program);
}

// Boxes with negative sizes, zero area and NaN, and scores that are equal, negative, infinite and NaN.
TEST(Selection, AFunctionOfTheHostTakesTheSameBoxes) {
  std::mt19937_64 random(5);
  const double none = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  const auto pick = [&](const std::vector<double>& from) { return from[random() % from.size()]; };
  for (int i = 0; i < 60; ++i) {
    const int64_t n = 1 + static_cast<int64_t>(random() % 20), most = static_cast<int64_t>(random() % 8),
                  centred = i % 2;
    std::vector<double> corners, values;
    for (int64_t k = 0; k < 2 * n * 4; ++k)
      corners.push_back(random() % 40 == 0 ? pick({none, infinite}) : pick({-1, 0, 0.25, 0.5, 1, 1.5, 2}));
    for (int64_t k = 0; k < 2 * 2 * n; ++k)
      values.push_back(pick({none, -infinite, -1, -0.0, 0, 0.5, 0.5, 1, infinite}));
    Program program = choosing_boxes({2, n, 4}, {2, 2, n}, most, i % 3 != 0, centred);
    const std::vector<Tensor> given = {whole({2, n, 4}, corners), whole({2, 2, n}, values)};
    const auto defined = program_outputs(program, given);
    ASSERT_TRUE(find_pass("compute-on-host")->run(program, {}).ok());
    const auto on_host = program_outputs(program, given);
    ASSERT_TRUE(defined.ok() && on_host.ok());
    EXPECT_EQ(*defined, *on_host) << i;
  }
}

// If the device is the host's own processor, a host op computes them; else each step is a kernel.
TEST(Selection, BoxesAreTakenOnTheHostWhereThatIsTheDevice) {
  const Program program = choosing_boxes({1, 40, 4}, {1, 3, 40}, 30, false, 0);
  const auto on_host = [](const Program& lowered) {
    return std::any_of(lowered.definitions.begin(), lowered.definitions.end(), [](const Definition& definition) {
      return definition.expression->pattern == Pattern::host && definition.expression->name == "boxes_apart";
    });
  };
  const auto lowered = lower_model(program, {}, {});
  ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
  EXPECT_TRUE(on_host(lowered->program));
  // No kernel is left, which would have to be synchronised with the host.
  for (const LoweredKernel& kernel : lowered->kernels) EXPECT_NE(kernel.host, "") << kernel.name;
  Profile gpu;
  gpu.gpu = true;
  const auto unrolled = lower_model(program, {}, gpu);
  ASSERT_TRUE(unrolled.ok()) << unrolled.errors()[0].text();
  EXPECT_FALSE(on_host(unrolled->program));
  EXPECT_GT(unrolled->program.definitions.size(), 30u);
}

// ---- Layers after dynamic shapes -----------------------------------------------------------------------------------

TEST(Extents, GoAlongWithLayersThatKeepElementsApart) {
  const Tensor x = whole({2, 3}, {1, 0, -2, 0, 0, 5});
  ProgramBuilder builder = builder_of({x}, {});
  builder.add_constant("one", integers({}, {1}));
  builder.add_constant("axis", integers({1}, {0}));
  for (const NamedCall& call :
       {call_named("NonZero", {"x0"}, {"places"}), call_named("Transpose", {"places"}, {"pairs"}),
        call_named("GatherND", {"x0", "pairs"}, {"elements"}), call_named("Neg", {"elements"}, {"less"}),
        call_named("Gather", {"places", "one"}, {"columns"}, {{"axis", int64_t{0}}}),
        call_named("Unsqueeze", {"columns", "axis"}, {"row"}), call_named("Add", {"columns", "one"}, {"next"})})
    builder.add_call(call);
  for (const char* output : {"less", "columns", "row", "next", "pairs"}) builder.add_output(output);
  auto program = builder.finish();
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_EQ(program->extents.size(), 5u);
  EXPECT_EQ(model_output_count(*program), 5u);
  EXPECT_EQ(program->outputs.size(), 6u);  // they all share one actual length
  const auto lowered = lower_model(*program, {}, {});
  ASSERT_TRUE(lowered.ok()) << lowered.errors()[0].text();
  const auto cut = program_outputs(*program, outputs_of(*lowered, bindings_of({x})));
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(show((*cut)[0]), "[3] -1 2 -5");
  EXPECT_EQ(show((*cut)[1]), "[3] 0 2 2");
  EXPECT_EQ(show((*cut)[2]), "[1][3] 0 2 2");
  EXPECT_EQ(show((*cut)[3]), "[3] 1 3 3");
  EXPECT_EQ(show((*cut)[4]), "[3][2] 0 0 0 2 1 2");
}

TEST(Extents, LayersThatLookAcrossThemAreRefused) {
  const Tensor x = counting({2, 3});
  const auto refused = [&](const NamedCall& call) {
    ProgramBuilder builder = builder_of({x, counting({6}, Scalar::i64)}, {call_named("NonZero", {"x0"}, {"places"})});
    builder.add_constant("axes", integers({1}, {1}));
    builder.add_constant("flat", integers({1}, {-1}));
    builder.add_call(call);
    builder.add_output(call.outputs[0]);
    auto program = builder.finish();
    return program.ok() ? "" : program.errors()[0].text();
  };
  const std::string reads = "y_layer: reads places, whose dimension 1 has a data-dependent length, up to 6, and ";
  EXPECT_THAT(refused(call_named("Unique", {"places"}, {"y"})), HasSubstr(reads + "Unique has no type that holds"));
  EXPECT_THAT(refused(call_named("Det", {"places"}, {"y"})), HasSubstr("y_layer: "));
  EXPECT_THAT(refused(call_named("Add", {"places", "x1"}, {"y"})), HasSubstr(reads));
  EXPECT_EQ(refused(call_named("Cast", {"places"}, {"y"}, {{"to", int64_t{1}}})), "");
}

TEST(Extents, OfConstantsAreKnown) {
  ProgramBuilder builder("chosen", newest_version);
  builder.add_input({"x", Scalar::f32, {4}});
  builder.add_constant("mask", whole({5}, {0, 1, 1, 0, 1}));
  builder.add_call(call_named("NonZero", {"mask"}, {"places"}));
  builder.add_call(call_named("Shape", {"places"}, {"shape"}));
  builder.add_output("places");
  builder.add_output("shape");
  auto program = builder.finish();
  ASSERT_TRUE(program.ok()) << program.errors()[0].text();
  EXPECT_TRUE(program->extents.empty());
  EXPECT_EQ(show(program->constants.at("places")), "[1][3] 1 2 4");
  EXPECT_EQ(text(find_type(*program, "shape")), "[2]i64");
}

}  // namespace hoist::selection_test
