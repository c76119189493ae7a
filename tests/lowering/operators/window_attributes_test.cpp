// Compares convolutions and pools with a plain loop, for every small combination of attributes: windows, strides (also
// larger than the window), dilations, asymmetric pads, auto_pad, ceil_mode, groups. Values are small integers, so that
// every sum is exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/evaluate/evaluate.h"
#include "tests/lowering/operators/operators_layer.h"

namespace hoist::window_attributes_test {

// One axis with the layer's attributes and explicit pads.
struct WindowAxis {
  int64_t size = 1, window = 1, stride = 1, dilation = 1, before = 0, after = 0;

  int64_t span() const { return dilation * (window - 1) + 1; }
  /// The number of windows; 0 or less if none fits.
  int64_t count(bool rounds_up) const {
    const int64_t room = size + before + after - span();
    if (room < 0) return 0;
    int64_t out = room / stride + 1;
    // One more window, unless it would start after the array and the pads before it.
    if (rounds_up && room % stride != 0 && out * stride < size + before) ++out;
    return out;
  }
  /// The position of a window's element in the array; out of bounds in the pads.
  int64_t position(int64_t window_at, int64_t element) const {
    return window_at * stride + element * dilation - before;
  }
  bool holds(int64_t position) const { return position >= 0 && position < size; }

  /// Sets the pads of auto_pad.
  void pad_by_itself(const std::string& mode) {
    before = after = 0;
    if (mode == "VALID") return;
    const int64_t wanted = (size + stride - 1) / stride;
    const int64_t total = std::max<int64_t>((wanted - 1) * stride + span() - size, 0);
    before = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    after = total - before;
  }
};

// Rows and columns; a layer with one axis has one column.
struct WindowPlane {
  WindowAxis rows, columns;
  bool one_axis = true;

  std::vector<int64_t> list(int64_t WindowAxis::*member) const {
    if (one_axis) return {rows.*member};
    return {rows.*member, columns.*member};
  }
  std::vector<int64_t> shape(int64_t a, int64_t b, int64_t WindowAxis::*member) const {
    std::vector<int64_t> out = {a, b};
    for (const int64_t extent : list(member)) out.push_back(extent);
    return out;
  }
  Attributes attributes(const std::string& auto_pad) const {
    Attributes out = {{"kernel_shape", list(&WindowAxis::window)},
                      {"strides", list(&WindowAxis::stride)},
                      {"dilations", list(&WindowAxis::dilation)}};
    if (!auto_pad.empty()) {
      out["auto_pad"] = auto_pad;
      return out;
    }
    std::vector<int64_t> pads = list(&WindowAxis::before);
    for (const int64_t after : list(&WindowAxis::after)) pads.push_back(after);
    out["pads"] = pads;
    return out;
  }
  std::string text() const {
    std::string out;
    for (const WindowAxis& a : {rows, columns}) {
      out += "size " + std::to_string(a.size) + " window " + std::to_string(a.window) + " stride " +
             std::to_string(a.stride) + " dilation " + std::to_string(a.dilation) + " pads " +
             std::to_string(a.before) + ", " + std::to_string(a.after) + "; ";
    }
    return out;
  }
};

Tensor small_numbers(const std::vector<int64_t>& shape, int64_t seed) {
  Tensor out(Scalar::f32, shape);
  for (int64_t i = 0; i < out.size(); ++i) out.set_float(i, static_cast<double>((i * 7 + seed * 3) % 11 - 5));
  return out;
}

// The sum, minimum or maximum: `take` receives every window element inside the array, `pads` counts the elements in the
// pads.
template <class Take>
int64_t visit_window(const WindowPlane& plane, int64_t row, int64_t column, const Take& take) {
  int64_t pads = 0;
  for (int64_t i = 0; i < plane.rows.window; ++i) {
    for (int64_t j = 0; j < plane.columns.window; ++j) {
      const int64_t r = plane.rows.position(row, i), c = plane.columns.position(column, j);
      if (plane.rows.holds(r) && plane.columns.holds(c))
        take(r * plane.columns.size + c, i * plane.columns.window + j);
      else if (r < plane.rows.size + plane.rows.after && c < plane.columns.size + plane.columns.after)
        ++pads;
    }
  }
  return pads;
}

// Returns false if there is no window.
bool check_convolution(const WindowPlane& plane, int64_t groups, const std::string& auto_pad) {
  const int64_t channels = 2, filters = 4;
  const Tensor x = small_numbers(plane.shape(1, channels, &WindowAxis::size), 1);
  const Tensor w = small_numbers(plane.shape(filters, channels / groups, &WindowAxis::window), 2);
  Attributes attributes = plane.attributes(auto_pad);
  attributes["group"] = groups;
  const int64_t rows = plane.rows.count(false), columns = plane.columns.count(false);
  if (rows < 1 || columns < 1) return false;
  const Tensor y = LayerCase("Conv", {x, w}, attributes).run();
  const std::string place = plane.text() + auto_pad + " groups " + std::to_string(groups);
  std::vector<int64_t> shape = {1, filters, rows};
  if (!plane.one_axis) shape.push_back(columns);
  EXPECT_EQ(y.shape(), shape) << place;
  if (testing::Test::HasFailure()) return true;
  const int64_t elements = plane.rows.size * plane.columns.size, window = plane.rows.window * plane.columns.window;
  const int64_t group_channels = channels / groups;
  int64_t at = 0;
  for (int64_t f = 0; f < filters; ++f) {
    const int64_t first = f / (filters / groups) * group_channels;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c, ++at) {
        double sum = 0;
        for (int64_t k = 0; k < group_channels; ++k) {
          visit_window(plane, r, c, [&](int64_t element, int64_t weight) {
            sum +=
                x.float_at((first + k) * elements + element) * w.float_at((f * group_channels + k) * window + weight);
          });
        }
        EXPECT_EQ(y.float_at(at), sum) << place << " at " << at;
      }
    }
  }
  return true;
}

bool check_pools(const WindowPlane& plane, bool rounds_up, const std::string& auto_pad) {
  const int64_t channels = 2, rows = plane.rows.count(rounds_up), columns = plane.columns.count(rounds_up);
  if (rows < 1 || columns < 1) return false;
  const Tensor x = small_numbers(plane.shape(1, channels, &WindowAxis::size), 3);
  const int64_t elements = plane.rows.size * plane.columns.size;
  for (const std::string operation : {"MaxPool", "AveragePool", "AveragePool with pads", "LpPool"}) {
    Attributes attributes = plane.attributes(auto_pad);
    attributes["ceil_mode"] = int64_t{rounds_up};
    const bool largest = operation == "MaxPool", powers = operation == "LpPool";
    const bool with_pads = operation == "AveragePool with pads";
    if (with_pads) attributes["count_include_pad"] = int64_t{1};
    if (powers) attributes["p"] = int64_t{1};
    const Tensor y = LayerCase(operation.substr(0, operation.find(' ')), {x}, attributes).run();
    const std::string place = operation + " " + plane.text() + auto_pad + (rounds_up ? " ceil" : "");
    std::vector<int64_t> shape = {1, channels, rows};
    if (!plane.one_axis) shape.push_back(columns);
    EXPECT_EQ(y.shape(), shape) << place;
    if (testing::Test::HasFailure()) return true;
    int64_t at = 0;
    for (int64_t k = 0; k < channels; ++k) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c, ++at) {
          double sum = 0, top = -INFINITY;
          int64_t count = 0;
          const int64_t pads = visit_window(plane, r, c, [&](int64_t element, int64_t) {
            const double value = x.float_at(k * elements + element);
            sum += powers ? std::abs(value) : value, top = std::max(top, value), ++count;
          });
          if (count == 0) continue;  // a window of pads alone is undefined
          const double wanted = largest  ? top
                                : powers ? sum
                                         : sum / static_cast<double>(count + (with_pads ? pads : 0));
          EXPECT_NEAR(y.float_at(at), wanted, largest || powers ? 0 : 1e-6) << place << " at " << at;
        }
      }
    }
  }
  return true;
}

// All layers with one axis up to these sizes; in some layers that axis is the columns, and there is an axis of rows
// too.
template <class Check>
void for_small_windows(const Check& check) {
  int64_t number = 0;
  WindowAxis last;
  for (int64_t size = 1; size <= 5; ++size) {
    for (int64_t window = 1; window <= 3; ++window) {
      for (int64_t stride = 1; stride <= 4; ++stride) {
        for (int64_t dilation = 1; dilation <= (window > 1 ? 2 : 1); ++dilation) {
          for (int64_t pads = 0; pads < window * window; ++pads) {
            const WindowAxis axis{size, window, stride, dilation, pads / window, pads % window};
            check(WindowPlane{axis, {}, true}, "");
            if (++number % 5 == 0) check(WindowPlane{axis, last, false}, "");
            if (number % 3 == 0) last = axis;
          }
          for (const std::string mode : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
            WindowAxis axis{size, window, stride, dilation, 0, 0};
            axis.pad_by_itself(mode);
            check(WindowPlane{axis, {}, true}, mode);
            WindowAxis other{4, 2, 3, 1, 0, 0};
            other.pad_by_itself(mode);
            if (++number % 3 == 0) check(WindowPlane{axis, other, false}, mode);
          }
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(WindowAttributes, ConvolutionsAreAsAPlainLoop) {
  int checked = 0;
  for_small_windows([&](const WindowPlane& plane, const std::string& auto_pad) {
    for (const int64_t groups : {1, 2}) {
      if (!testing::Test::HasFailure()) checked += check_convolution(plane, groups, auto_pad);
    }
  });
  EXPECT_GT(checked, 1000);
}

TEST(WindowAttributes, PoolsAreAsAPlainLoop) {
  int checked = 0;
  for_small_windows([&](const WindowPlane& plane, const std::string& auto_pad) {
    for (const bool rounds_up : {false, true}) {
      if (!testing::Test::HasFailure()) checked += check_pools(plane, rounds_up && auto_pad.empty(), auto_pad);
    }
  });
  EXPECT_GT(checked, 1000);
}

// Every element of x is added to its window; elements in the pads are dropped.
TEST(WindowAttributes, TransposedConvolutionsAreAsAPlainLoop) {
  const int64_t channels = 2, filters = 2;
  for (int64_t size = 1; size <= 3; ++size) {
    for (int64_t window = 1; window <= 3; ++window) {
      for (int64_t stride = 1; stride <= 4; ++stride) {
        for (int64_t dilation = 1; dilation <= 2; ++dilation) {
          for (int64_t pads = 0; pads < 4; ++pads) {
            for (int64_t added = 0; added < std::max(stride, dilation); ++added) {
              for (const int64_t groups : {1, 2}) {
                const int64_t before = pads / 2, after = pads % 2;
                const int64_t n = stride * (size - 1) + added + dilation * (window - 1) + 1 - before - after;
                if (n < 1) continue;
                const int64_t each = filters / groups;
                const Tensor x = small_numbers({1, channels, size}, 1), w = small_numbers({channels, each, window}, 2);
                const Tensor y = LayerCase("ConvTranspose", {x, w},
                                           {{"kernel_shape", std::vector<int64_t>{window}},
                                            {"strides", std::vector<int64_t>{stride}},
                                            {"dilations", std::vector<int64_t>{dilation}},
                                            {"pads", std::vector<int64_t>{before, after}},
                                            {"output_padding", std::vector<int64_t>{added}},
                                            {"group", groups}})
                                     .run();
                const std::string place = "size " + std::to_string(size) + " window " + std::to_string(window) +
                                          " stride " + std::to_string(stride) + " dilation " +
                                          std::to_string(dilation) + " pads " + std::to_string(before) + ", " +
                                          std::to_string(after) + " output_padding " + std::to_string(added) +
                                          " groups " + std::to_string(groups);
                ASSERT_EQ(y.shape(), (std::vector<int64_t>{1, filters, n})) << place;
                std::vector<double> sums(static_cast<size_t>(filters * n));
                for (int64_t c = 0; c < channels; ++c) {
                  for (int64_t f = 0; f < each; ++f) {
                    for (int64_t i = 0; i < size; ++i) {
                      for (int64_t k = 0; k < window; ++k) {
                        const int64_t at = i * stride + k * dilation - before;
                        const int64_t filter = c / (channels / groups) * each + f;
                        if (at < 0 || at >= n) continue;
                        sums[static_cast<size_t>(filter * n + at)] +=
                            x.float_at(c * size + i) * w.float_at((c * each + f) * window + k);
                      }
                    }
                  }
                }
                for (int64_t i = 0; i < filters * n; ++i)
                  ASSERT_EQ(y.float_at(i), sums[static_cast<size_t>(i)]) << place;
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace hoist::window_attributes_test
