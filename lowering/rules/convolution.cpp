// Convolutions in several kernels. A right side says with `materialise global` what is kept between them, and in which
// order of dimensions; the pass "cut-kernels" makes definitions of it (lowering/cut.h).
//
// Winograd's F(m x m, r x r) (Lavin and Gray, arXiv 1509.09308): tiles d of n x n elements, n = m + r - 1, which lie m
// apart, and filters g become B^T d B and G g G^T, whose products element by element, summed over channels, are a
// matrix q; A^T q A is a tile of m x m results. The matrices follow from points at which polynomials are evaluated:
// here 0, infinity and pairs +p, -p, so that a row of B^T for p and the one for -p are the sum and the difference of an
// even and an odd part, and so are the columns of A^T. F(2x2, 3x3) takes the pair of 1, the other two those of 3/4 and
// 3/2: all entries of A and B are exact in f32, and the error is less than with 1 and 2. Filters are transformed in f64
// and rounded once.
//
// Rounding: of 256 channels of normally distributed numbers (half of them zero, as behind a ReLU), the largest error
// over the root mean square of the results is 1.3e-6 for F(2x2, 3x3), 7.0e-6 for F(4x4, 3x3) and 4.6e-6 for
// F(2x2, 5x5), where the sums one by one, in f32, have 2.6e-6, 3.5e-6 and 3.9e-6. All are far below
// the relative 1e-3 with which ONNX's own cases compare results in f32. With the points of 1, numbers of small size
// whose sums are exact give the same results as the convolution. An infinite number makes all results of its tile NaN,
// where in the convolution it concerns those whose windows hold it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lowering/rules/tables.h"

namespace hoist {
namespace {

// "(0 1 2 ...)"
std::string order(const std::vector<size_t>& dimensions) { return fmt::format("({})", fmt::join(dimensions, " ")); }

// What the rows call the sizes of windows, their steps, their dilations and the extents of the image, a line for each
// spatial dimension.
constexpr const char* letters[][4] = {{"k", "s", "p", "h"}, {"l", "t", "q", "v"}, {"r", "u", "w", "y"}};

// `text` for each of the dimensions, where {0} is the letter of a size, {1} of a step, {2} of a dilation and {3} of an
// extent.
std::string each(size_t rank, const std::string& separator, const std::string& text) {
  std::string out;
  for (size_t i = 0; i < rank; ++i) {
    const auto& [size, step, dilation, extent] = letters[i];
    out += (i == 0 ? "" : separator) + fmt::format(fmt::runtime(text), size, step, dilation, extent);
  }
  return out;
}

std::string mapped(size_t depth, std::string function) {
  for (size_t i = 0; i < depth; ++i) function = "map (" + function + ")";
  return function;
}

// The windows [out...][C][k...] of an image [C][spatial...].
std::string windows_of(const std::string& image, size_t rank) {
  std::string out = image;
  std::vector<size_t> dimensions;
  for (size_t i = 0; i < rank; ++i) {
    const auto& [size, step, dilation, extent] = letters[i];
    out += " |> " + mapped(2 * i + 1, fmt::format("slide {} {} dilation {}", size, step, dilation));
    dimensions.push_back(2 * i + 1);
  }
  for (size_t i = 0; i <= rank; ++i) dimensions.push_back(2 * i);
  return out + " |> transpose " + order(dimensions);
}

// The windows of all images, [N][out...][C][k...] or [N][G][out...][C][k...], as rows [N][out...] of columns
// [k...][C], or with groups [G][k...][C], in memory.
std::string kept_rows(size_t rank, size_t groups) {
  const size_t channels = 1 + groups + rank;
  std::vector<size_t> rows = {0}, back;
  for (size_t i = 0; i < rank; ++i) rows.push_back(1 + groups + i);
  if (groups != 0) rows.push_back(1);
  for (size_t i = 0; i < rank; ++i) rows.push_back(channels + 1 + i);
  rows.push_back(channels);
  for (size_t i = 0; i < rows.size(); ++i)
    back.push_back(static_cast<size_t>(std::find(rows.begin(), rows.end(), i) - rows.begin()));
  return " |> transpose " + order(rows) + " |> materialise global |> transpose " + order(back);
}

// One filter against the windows is any function of both, so these rows hold for all types of sums. `operands` is how
// many arrays groups split beside the image: the filters, and a bias.
RuleRow im2col(const char* name, size_t rank, size_t operands) {
  const std::string windows = each(rank, "", "[{0}]"), over_windows = mapped(rank, "\\w. e w f");
  RuleRow row;
  row.name = name;
  row.where = "1 < " + each(rank, "*", "{0}");
  row.meaning = "the windows of all images are an array, whose rows are multiplied with the filters";
  const std::string spatial = each(rank, "", "[{3}]");
  if (operands == 0) {
    row.given = "x: [n][c]" + spatial + "T, g: [o]B, e: [c]" + windows + "T, B -> U";
    row.left = "x |> map (\\image. g |> map (\\f. " + windows_of("image", rank) + " |> " + over_windows + "))";
    row.right = "x |> map (\\image. " + windows_of("image", rank) + ")" + kept_rows(rank, 0) +
                " |> map (\\v. g |> map (\\f. v |> " + over_windows + "))";
    return row;
  }
  const bool bias = operands == 2;
  const std::string filters = bias ? "zip(z.1, z.2)" : "z.1", zipped = bias ? "g, b" : "g";
  const std::string parts = "image |> split c |> map (\\part. " + windows_of("part", rank) + ")";
  const std::string products = " |> map (\\z. " + filters + " |> map (\\f. z.0 |> " + over_windows + ")) |> join)";
  row.given = "x: [n][m*c]" + spatial + "T, g: [m][o]B, " + (bias ? "b: [m][o]D, " : "") + "e: [c]" + windows + "T, " +
              (bias ? "(B, D)" : "B") + " -> U";
  row.left = "x |> map (\\image. zip(" + parts + ", " + zipped + ")" + products;
  row.right =
      "x |> map (\\image. " + parts + ")" + kept_rows(rank, 1) + " |> map (\\v. zip(v, " + zipped + ")" + products;
  return row;
}

// The matrices of F(m x m, r x r) as text of the language.
class Transforms {
 public:
  Transforms(int64_t window, std::vector<double> pairs)
      : r_(window), n_(2 * static_cast<int64_t>(pairs.size()) + 2), pairs_(std::move(pairs)) {}

  int64_t window() const { return r_; }
  int64_t tile() const { return n_; }
  int64_t results() const { return n_ - r_ + 1; }

  // The values of the filter at the points, each over the product of the point's distances to all others.
  std::string filter_rows() const {
    std::vector<std::vector<double>> rows;
    const auto at = [&](double point) {
      double distances = 1;
      for (double other : finite_points()) distances *= other == point ? 1 : point - other;
      std::vector<double> powers(static_cast<size_t>(r_), 1 / distances);
      for (size_t i = 1; i < powers.size(); ++i) powers[i] = point == 0 ? 0 : powers[i - 1] * point;
      return powers;
    };
    for (double point : finite_points()) rows.push_back(at(point));
    rows.emplace_back(static_cast<size_t>(r_), 0.0).back() = 1;  // infinity: the highest power
    std::string out;
    for (const std::vector<double>& row : rows)
      out += (out.empty() ? "" : ", ") + fmt::format("{}", fmt::join(row, ", "));
    return fmt::format("constant [{}][{}]f64 {{{}}}", n_, r_, out);
  }

  // B^T v: the row of a point holds the coefficients of the product of (x - other) over the other points.
  std::string input() const {
    const std::vector<double> all = squares({});
    std::string lets;
    std::vector<std::string> rows = {sum(all, "v", 0)};
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const std::vector<double> others = squares(i);
      lets += fmt::format("let even{0} = {1} in let odd{0} = {2} in ", i, sum(others, "v", 2),
                          scaled(pairs_[i], sum(others, "v", 1)));
      rows.push_back(fmt::format("even{0} + odd{0}", i));
      rows.push_back(fmt::format("even{0} - odd{0}", i));
    }
    rows.push_back(sum(all, "v", 1));
    return lets + array(rows);
  }

  // A^T v: row i holds the i-th powers of the points.
  std::string output() const {
    std::string lets;
    for (size_t i = 0; i < pairs_.size(); ++i)
      lets += fmt::format("let plus{0} = {1} + {2} in let minus{0} = {1} - {2} in ", i, element("v", 2 * i + 1),
                          element("v", 2 * i + 2));
    std::vector<std::string> rows;
    std::vector<double> powers(pairs_.size(), 1);
    for (int64_t i = 0; i < results(); ++i) {
      std::string row = i == 0 ? element("v", 0) : "";
      for (size_t k = 0; k < pairs_.size(); ++k) {
        row += (row.empty() ? "" : " + ") + scaled(powers[k], fmt::format("{}{}", i % 2 == 0 ? "plus" : "minus", k));
        powers[k] *= pairs_[k];
      }
      if (i + 1 == results()) row += " + " + element("v", static_cast<size_t>(n_ - 1));
      rows.push_back(row);
    }
    return lets + array(rows);
  }

 private:
  std::vector<double> finite_points() const {
    std::vector<double> out = {0};
    for (double p : pairs_) out.insert(out.end(), {p, -p});
    return out;
  }

  // The coefficients of the even powers in the product of (x^2 - p^2) over the pairs but one; the odd ones are 0.
  std::vector<double> squares(std::optional<size_t> without) const {
    std::vector<double> out = {1};
    for (size_t i = 0; i < pairs_.size(); ++i) {
      if (i == without) continue;
      out.insert(out.begin(), 0);
      for (size_t k = 0; k + 1 < out.size(); ++k) out[k] -= pairs_[i] * pairs_[i] * out[k + 1];
    }
    return out;
  }

  static std::string element(const std::string& array, size_t i) { return fmt::format("index {}i64 {}", i, array); }
  static std::string scaled(double factor, const std::string& text) {
    return factor == 1 ? "(" + text + ")" : fmt::format("{}f32 * ({})", factor, text);
  }
  // Of the elements first, first + 2, ... with these factors, the last one first, as its factor is 1.
  static std::string sum(const std::vector<double>& factors, const std::string& array, size_t first) {
    std::string out;
    for (size_t i = factors.size(); i-- > 0;)
      out += (out.empty() ? "" : " + ") + scaled(factors[i], element(array, first + 2 * i));
    return out;
  }
  static std::string array(const std::vector<std::string>& elements) {
    return fmt::format("concat(repeat 1 ({}))", fmt::join(elements, "), repeat 1 ("));
  }

  int64_t r_, n_;
  std::vector<double> pairs_;
};

// A transform of a tile's columns and then of its rows. What the columns give is kept, as all rows read it.
std::string both_ways(const std::string& transform) {
  const std::string function = "(\\v. " + transform + ")";
  return "(\\square. square |> transpose |> map unroll (\\column. column |> " + function +
         " |> map unroll (\\s. s)) |> materialise private |> transpose |> map " + function + ")";
}

// A convolution whose windows have the size and the steps that `transforms` is for; with `bias`, one that adds a number
// for each filter to its sums.
RuleRow winograd(const Transforms& transforms, bool bias) {
  const std::string r = std::to_string(transforms.window()), m = std::to_string(transforms.results()),
                    n = std::to_string(transforms.tile()), overlap = std::to_string(transforms.window() - 1);
  const std::string sums_of_products = "map (\\q. q.0 * q.1) |> reduce (\\a b. a + b) ";
  const std::string filter_rows = transforms.filter_rows();
  const std::string filters =
      "g |> map (map (\\f. " + filter_rows + " |> map (\\a. " + filter_rows +
      " |> map (\\s. cast f32 (zip(a, f) |> map (\\y. y.0 * (zip(s, y.1) |> map (\\q. q.0 * cast f64 q.1)"
      " |> reduce (\\a b. a + b) 0f64)) |> reduce (\\a b. a + b) 0f64)))))"
      " |> transpose (2 3 1 0) |> join |> materialise global";
  const std::string tiles = "x |> map (map (pad 0 i (repeat (" + m + "*u + " + overlap +
                            " - j) 0f32))) |> map (map (map (pad 0 j 0f32)))"
                            " |> map (map (\\plane. plane |> map (slide " +
                            n + " " + m + ") |> slide " + n + " " + m + " |> map transpose |> map (map " +
                            both_ways(transforms.input()) +
                            "))) |> transpose (4 5 0 2 3 1) |> join |> map (join >> join) |> materialise global";
  const std::string products =
      "zip(" + filters + ", " + tiles +
      ") |> map (\\y. y.1 |> map (\\row. transpose y.0 |> map (\\column. zip(row, column) |> " + sums_of_products +
      "0f32))) |> materialise global";
  RuleRow row;
  row.name = fmt::format("winograd-f{0}x{0}-{1}x{1}{2}", m, r, bias ? "-bias" : "");
  row.parameters = "i, j";
  row.given = "x: [n][c][" + m + "*t + " + overlap + " - i][" + m + "*u + " + overlap + " - j]f32, g: [o][c][" + r +
              "][" + r + "]f32, " + (bias ? "b: [o]f32, " : "") + "z: f32";
  row.left = "x |> map (\\image. " + std::string(bias ? "zip(g, b)" : "g") + " |> map (\\f. image |> map (slide " + r +
             " 1) |> map (map (map (slide " + r +
             " 1))) |> transpose (1 3 0 2 4)"
             " |> map (map (\\w. zip(join (join w), join (join " +
             (bias ? "f.0" : "f") + ")) |> " + sums_of_products + "z" + (bias ? " |> (+ f.1)" : "") + "))))";
  row.right = products + " |> split " + n + " |> map (map (split u >> split t)) |> transpose (2 5 3 4 0 1)" +
              " |> map (map (\\plane. plane |> map (map " + both_ways(transforms.output()) +
              ") |> map transpose |> join |> map join |> slice 0 (" + m + "*t - i) |> map (slice 0 (" + m +
              "*u - j))))" +
              (bias ? " |> map (\\planes. zip(planes, b) |> map (\\y. y.0 |> map (map (\\v. v + y.1))))" : "");
  row.where = "z is 0";
  row.rule_class = RuleClass::rounding;
  row.meaning = fmt::format(
      "Winograd's F({0}x{0}, {1}x{1}): transformed tiles times transformed filters, {2} products instead of {3} for "
      "{0}x{0} results; i and j are what their number lacks to a multiple of {0}",
      m, r, transforms.tile() * transforms.tile(),
      transforms.results() * transforms.results() * transforms.window() * transforms.window());
  return row;
}

}  // namespace

std::vector<RuleRow> convolution_rules() {
  const Transforms f2x2_3x3(3, {1}), f4x4_3x3(3, {0.75, 1.5}), f2x2_5x5(5, {0.75, 1.5});
  return {
      im2col("im2col-1d", 1, 0),
      im2col("im2col-2d", 2, 0),
      im2col("im2col-3d", 3, 0),
      im2col("im2col-groups-1d", 1, 1),
      im2col("im2col-groups-2d", 2, 1),
      im2col("im2col-groups-3d", 3, 1),
      im2col("im2col-groups-bias-1d", 1, 2),
      im2col("im2col-groups-bias-2d", 2, 2),
      im2col("im2col-groups-bias-3d", 3, 2),
      winograd(f2x2_3x3, false),
      winograd(f2x2_3x3, true),
      winograd(f4x4_3x3, false),
      winograd(f4x4_3x3, true),
      winograd(f2x2_5x5, false),
      winograd(f2x2_5x5, true),
      {"split-products", "k", "a: [m][l*k]A, b: [n][l*k]B, f: (A, B) -> T, op: T, T -> T, z: T",
       "a |> map (\\row. b |> map (\\column. zip(row, column) |> map f |> reduce op z))",
       "zip(a |> map (split k) |> transpose, b |> map (split k) |> transpose)"
       " |> map (\\part. part.0 |> map (\\row. part.1 |> map (\\column. zip(row, column) |> map f |> reduce op z)))"
       " |> materialise global |> transpose (1 2 0) |> map (map (reduce op z))",
       "associative op, neutral op z", RuleClass::rounding,
       "the sums of a long product in parts of k, which one kernel forms and another adds up", library::partial_sums},
  };
}

}  // namespace hoist
