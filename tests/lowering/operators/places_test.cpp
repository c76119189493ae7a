// Tests operators on places of arrays by hand and by plain loops: diagonals, windows that overlap, samples between
// elements, and regions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/lowering/operators/operators_layer.h"

namespace hoist::places_test {

TEST(Operators, TrianglesTakeAnyDiagonal) {
  const Tensor x = counting({3, 4}), none = floats({3, 4}, std::vector<double>(12, 0));
  for (const int64_t k :
       {INT64_MIN, int64_t{INT32_MIN} - 1, int64_t{-3}, int64_t{4}, int64_t{INT32_MAX} + 1, INT64_MAX}) {
    for (const bool upper : {false, true}) {
      for (const bool known : {false, true}) {
        const LayerCase layer =
            LayerCase("Trilu", {x, integers({}, {k})}, {{"upper", int64_t{upper}}}).with_known({false, known});
        EXPECT_EQ(layer.run(), upper == (k < 0) ? x : none) << k << " " << upper;
      }
    }
  }
  EXPECT_EQ(show(LayerCase("Trilu", {x, integers({}, {1})}).run()), "[3][4] 0 1 2 3 0 0 6 7 0 0 0 11");
}

TEST(Operators, TopKHasTheFirstOfEqualOnesFirst) {
  const Tensor k = integers({1}, {3});
  const auto top = [&](const Tensor& x, Attributes attributes, size_t output) {
    return show(LayerCase("TopK", {x, k}, std::move(attributes), 2).with_known({false, true}).run(output));
  };
  const Tensor x = floats({1, 5}, {2, 7, 7, -1, 2});
  EXPECT_EQ(top(x, {}, 0), "[1][3] 7 7 2");
  EXPECT_EQ(top(x, {}, 1), "[1][3] 1 2 0");
  EXPECT_EQ(top(x, {{"largest", int64_t{0}}}, 1), "[1][3] 3 0 4");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(top(floats({5}, {2, nan, 7, nan, 2}), {}, 1), "[3] 1 3 2");  // each position once
  EXPECT_EQ(LayerCase("TopK", {counting({2}), k}).with_known({false, true}).error(), "k is 3, axis 0 has 2 elements");
}

TEST(Operators, WindowsPutBackOverlap) {
  // Windows of 2 in a row of 3, which overlap in its middle.
  EXPECT_EQ(show(LayerCase("Col2Im", {counting({1, 2, 2}), integers({1}, {3}), integers({1}, {2})})
                     .with_known({false, true, true})
                     .run()),
            "[1][1][3] 0 3 3");
  EXPECT_EQ(show(LayerCase("MaxUnpool", {floats({1, 1, 2}, {5, 6}), integers({1, 1, 2}, {3, 0})},
                           {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}})
                     .run()),
            "[1][1][4] 6 0 0 5");
}

// Windows with stride 1 are sums of shifted images, other windows use lookups: both are compared with a plain loop.
TEST(Operators, WindowsPutBackAnywhere) {
  std::mt19937_64 random(5);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 30; ++round) {
    Ints image, block, strides, dilations, begin, end, windows;
    for (int i = 0; i < 2; ++i) {
      block.push_back(1 + below(3));
      strides.push_back(round % 2 == 0 ? 1 : 1 + below(3));
      dilations.push_back(1 + below(2));
      begin.push_back(below(3));
      end.push_back(below(3));
      image.push_back((block.back() - 1) * dilations.back() + 1 + below(4));
      windows.push_back(
          (image.back() + begin.back() + end.back() - (block.back() - 1) * dilations.back() - 1) / strides.back() + 1);
    }
    const int64_t taps = block[0] * block[1], places = windows[0] * windows[1];
    std::vector<double> x, expected(static_cast<size_t>(2 * image[0] * image[1]), 0);
    for (int64_t i = 0; i < 2 * taps * places; ++i) x.push_back(static_cast<double>(below(100)));
    for (int64_t i = 0; i < 2 * taps * places; ++i) {
      const int64_t place = i % places, tap = i / places % taps, channel = i / places / taps;
      const int64_t at[] = {place / windows[1] * strides[0] + tap / block[1] * dilations[0] - begin[0],
                            place % windows[1] * strides[1] + tap % block[1] * dilations[1] - begin[1]};
      if (at[0] < 0 || at[0] >= image[0] || at[1] < 0 || at[1] >= image[1]) continue;
      expected[static_cast<size_t>((channel * image[0] + at[0]) * image[1] + at[1])] += x[static_cast<size_t>(i)];
    }
    const Ints pads = {begin[0], begin[1], end[0], end[1]};
    EXPECT_EQ(LayerCase("Col2Im", {floats({1, 2 * taps, places}, x), integers({2}, image), integers({2}, block)},
                        {{"strides", strides}, {"dilations", dilations}, {"pads", pads}})
                  .with_known({false, true, true})
                  .run(),
              floats({1, 2, image[0], image[1]}, expected))
        << round;
  }
}

TEST(Operators, PlacesOfAGrid) {
  // A single image, which a body of the standard's own calls would refuse: its grid is moved by half an image to the
  // right.
  const Tensor moved = floats({1, 2, 3}, {1, 0, 0.5, 0, 1, 0});
  const auto grid = [&](int64_t aligned, const Tensor& theta, const Ints& size) {
    return LayerCase("AffineGrid", {theta, integers({static_cast<int64_t>(size.size())}, size)},
                     {{"align_corners", aligned}})
        .with_known({false, true});
  };
  EXPECT_EQ(show(grid(0, moved, {1, 1, 1, 2}).run()), "[1][1][2][2] 0 0 1 0");
  EXPECT_EQ(show(grid(1, moved, {1, 1, 2, 2}).run()), "[1][2][2][2] -0.5 -1 1.5 -1 -0.5 1 1.5 1");
  const Tensor depth = floats({1, 3, 4}, {1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 3});
  EXPECT_EQ(show(grid(1, depth, {1, 1, 1, 2, 2}).run()), "[1][1][2][2][3] -1 -2 2 1 -2 2 -1 2 2 1 2 2");
  EXPECT_EQ(grid(0, moved, {2, 1, 1, 2}).error(), "theta is [1][2][3], expected [2][2][3] for the size [2][1][1][2]");
}

TEST(Operators, SamplesBetweenElements) {
  const auto sampled = [](const char* padding, double place) {
    return show(LayerCase("GridSample", {counting({1, 1, 1, 3}), floats({1, 1, 1, 2}, {place, 0})},
                          {{"align_corners", int64_t{1}}, {"padding_mode", std::string(padding)}})
                    .run());
  };
  EXPECT_EQ(sampled("zeros", 0.5), "[1][1][1][1] 1.5");
  EXPECT_EQ(sampled("zeros", 1.5), "[1][1][1][1] 1");
  EXPECT_EQ(sampled("border", 9), "[1][1][1][1] 2");
  EXPECT_EQ(sampled("reflection", 1.5), "[1][1][1][1] 1.5");
  EXPECT_EQ(sampled("zeros", std::numeric_limits<double>::infinity()), "[1][1][1][1] 0");
}

// Compared with a plain loop: regions inside the array, across its borders, outside, and reversed; also negative
// values.
TEST(Operators, RegionsHaveTheLargestOfTheirParts) {
  std::mt19937_64 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 40; ++round) {
    const int n = 1 + below(3), channels = 1 + below(3), h = 1 + below(9), w = 1 + below(9), regions = 1 + below(4);
    const int tall = 1 + below(4), wide = 1 + below(4);
    const double scale = std::vector<double>{1, 0.5, 0.25}[static_cast<size_t>(below(3))];
    std::vector<double> x, corners, expected;
    for (int i = 0; i < n * channels * h * w; ++i) x.push_back(below(200) - 150);
    for (int r = 0; r < regions; ++r) {
      corners.push_back(below(n));
      for (int i = 0; i < 4; ++i) corners.push_back((below(2 * (h + w)) - 4) / (2 * scale));
    }
    for (int r = 0; r < regions; ++r) {
      const double* region = corners.data() + r * 5;
      const double left = std::round(region[1] * scale), top = std::round(region[2] * scale);
      const double width = std::max(std::round(region[3] * scale) - left + 1, 1.0);
      const double height = std::max(std::round(region[4] * scale) - top + 1, 1.0);
      for (int c = 0; c < channels; ++c) {
        for (int p = 0; p < tall * wide; ++p) {
          const auto limit = [](double begin, double part, int extent) {
            return static_cast<int>(std::clamp(begin + part, 0.0, static_cast<double>(extent)));
          };
          const int line = p / wide, column = p % wide;
          const int y0 = limit(top, std::floor(line * height / tall), h);
          const int y1 = limit(top, std::ceil((line + 1) * height / tall), h);
          const int x0 = limit(left, std::floor(column * width / wide), w);
          const int x1 = limit(left, std::ceil((column + 1) * width / wide), w);
          double most = -1e9;
          for (int y = y0; y < y1; ++y) {
            for (int i = x0; i < x1; ++i)
              most = std::max(most,
                              x[static_cast<size_t>(((static_cast<int>(region[0]) * channels + c) * h + y) * w + i)]);
          }
          expected.push_back(y1 <= y0 || x1 <= x0 ? 0 : most);
        }
      }
    }
    for (const Scalar scalar : {Scalar::f32, Scalar::f64, Scalar::f16}) {
      const LayerCase layer("MaxRoiPool",
                            {Tensor::of(scalar, {n, channels, h, w}, x), Tensor::of(scalar, {regions, 5}, corners)},
                            {{"pooled_shape", Ints{tall, wide}}, {"spatial_scale", scale}});
      EXPECT_EQ(layer.run(), Tensor::of(scalar, {regions, channels, tall, wide}, expected)) << round;
    }
  }
  const Tensor image = counting({1, 1, 2, 2}), region = floats({1, 5}, {0, 0, 0, 1, 1});
  EXPECT_EQ(LayerCase("MaxRoiPool", {image, region}, {{"pooled_shape", Ints{2}}}).error(),
            "pooled_shape is [2], expected a height and a width");
  EXPECT_NE(LayerCase("MaxRoiPool", {image, floats({1, 4}, {0, 0, 1, 1})}, {{"pooled_shape", Ints{2, 2}}}).error(), "");
  EXPECT_EQ(
      show(LayerCase("MaxRoiPool", {image, floats({1, 5}, {NAN, NAN, 0, INFINITY, 1})}, {{"pooled_shape", Ints{1, 1}}})
               .run())
          .substr(0, 12),
      "[1][1][1][1]");
}

// The number of samples depends on each region. Compared with a plain loop over samples: small and large regions,
// across borders, outside, reversed.
TEST(Operators, RegionsHaveAsManySamplesAsTheyAreLong) {
  std::mt19937_64 random(12);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 60; ++round) {
    const int channels = 1 + below(2), h = 1 + below(8), w = 1 + below(8), regions = 3, tall = 1 + below(4),
              wide = 1 + below(3);
    const bool most = round % 2 == 1, half = round % 4 < 2;
    const double scale = 0.5;
    std::vector<double> x, corners, expected;
    for (int i = 0; i < channels * h * w; ++i) x.push_back(below(200) - 120);
    for (int i = 0; i < regions * 4; ++i) corners.push_back((below(10 * (h + w)) - 3 * (h + w)) / 2.0 + 0.25);
    for (int r = 0; r < regions; ++r) {
      const double* region = corners.data() + r * 4;
      const auto begin = [&](int i) { return region[i] * scale - (half ? 0.5 : 0); };
      const auto length = [&](int i, int parts) {
        const double all = begin(i + 2) - begin(i);
        return (half ? all : std::max(all, 1.0)) / parts;
      };
      const int lines = static_cast<int>(std::ceil(length(1, tall))),
                columns = static_cast<int>(std::ceil(length(0, wide)));
      for (int part = 0; part < channels * tall * wide; ++part) {
        const int c = part / (tall * wide), line = part / wide % tall, column = part % wide;
        double total = 0, largest = -1e9;
        for (int i = 0; i < std::max(lines, 0); ++i) {
          for (int k = 0; k < std::max(columns, 0); ++k) {
            double y = begin(1) + (line + (i + 0.5) / lines) * length(1, tall);
            double at = begin(0) + (column + (k + 0.5) / columns) * length(0, wide);
            if (y < -1 || y > h || at < -1 || at > w) {
              largest = std::max(largest, 0.0);
              continue;
            }
            y = std::max(y, 0.0), at = std::max(at, 0.0);
            const int y0 = std::min(static_cast<int>(y), h - 1), x0 = std::min(static_cast<int>(at), w - 1);
            const double fy = y0 == h - 1 ? 0 : y - y0, fx = x0 == w - 1 ? 0 : at - x0;
            for (int corner = 0; corner < 4; ++corner) {
              const int yy = std::min(y0 + corner / 2, h - 1), xx = std::min(x0 + corner % 2, w - 1);
              const double value = (corner / 2 == 1 ? fy : 1 - fy) * (corner % 2 == 1 ? fx : 1 - fx) *
                                   x[static_cast<size_t>((c * h + yy) * w + xx)];
              total += value;
              largest = std::max(largest, value);
            }
          }
        }
        const bool none = lines < 1 || columns < 1;
        expected.push_back(none ? 0 : most ? largest : total / (lines * columns));
      }
    }
    const LayerCase layer("RoiAlign",
                          {Tensor::of(Scalar::f64, {1, channels, h, w}, x),
                           Tensor::of(Scalar::f64, {regions, 4}, corners), integers({regions}, {0, 0, 0})},
                          {{"output_height", int64_t{tall}},
                           {"output_width", int64_t{wide}},
                           {"spatial_scale", scale},
                           {"mode", std::string(most ? "max" : "avg")},
                           {"coordinate_transformation_mode", std::string(half ? "half_pixel" : "output_half_pixel")}});
    const Tensor found = layer.run();
    ASSERT_EQ(found.size(), std::ssize(expected));
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found.float_at(static_cast<int64_t>(i)), expected[i], 1e-9) << round << ", element " << i;
  }
}

}  // namespace hoist::places_test
