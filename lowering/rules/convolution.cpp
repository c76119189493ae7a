// Convolutions in several kernels. The right side of a rule marks with `materialise global` the arrays between the
// kernels and their order of dimensions; the pass `cut-kernels` makes them definitions (lowering/fusion/cut.h).
//
// Winograd's F(m x m, r x r) (Lavin and Gray, arXiv 1509.09308). A tile d has n x n elements, n = m + r - 1; tiles are
// m apart. Tiles become B^T d B and filters g become G g G^T; their elementwise products, summed over channels, are a
// matrix q, and A^T q A is a tile of m x m results. The matrices follow from points at which polynomials are evaluated:
// here 0, infinity and pairs +p, -p. The rows of B^T for p and -p are the sum and the difference of an even and an odd
// part, and so are the columns of A^T. F(2x2, 3x3) takes the pair of 1, the other two forms the pairs of 3/4 and 3/2:
// all entries of A and B are exact in f32, and the error is less than with 1 and 2. Filters are transformed in f64 and
// rounded once.
//
// Rounding: for 256 channels of normally distributed elements, half of them zero as after a ReLU, the largest error
// over the root mean square of the results is 1.3e-6 for F(2x2, 3x3), 7.0e-6 for F(4x4, 3x3) and 4.6e-6 for F(2x2,
// 5x5). Direct sums in f32 have 2.6e-6, 3.5e-6 and 3.9e-6. All are far below the relative 1e-3 with which ONNX's own
// cases compare results in f32. With the points of 1, small integers whose sums are exact give the same results as the
// convolution. A transform spreads an element over all results of its tile: an infinite one as NaN, a large one down to
// its last digits. So only tiles of elements of similar magnitude are transformed (unfit_results); the results of other
// tiles are sums of the window's products.
//
// Integers: with integer points p_i only the distances between points cause fractions. The filters keep their values at
// the points, G' = D G with D = diag(d_i), where d_i is the product of (p_i - p_k) over the other points. The output
// compensates with A' = l A D^-1, where l is the least common multiple of the distances: A' and B are integer matrices,
// and a tile of results is l^2 times too large. Nothing is rounded, and sums may wrap. l^2 y is known modulo 2^32; the
// odd part of l^2 is undone by its inverse modulo 2^32 and the power of two, 2^e, by a shift, so y is right if it is
// below 2^(31 - e). For bytes x and signed bytes g, |y| <= r^2 c 255 * 128. F(2x2, 3x3) has the points 0, 1, -1 and
// infinity and l = 2, so c may be 1,827; F(4x4, 3x3) adds 2 and -2 and has l = 24, l^2 = 2^6 * 9, so c may be 114.
// Tiles and filters fit in 16 bits, and one instruction sums pairs of 16-bit products: the positive coefficients of a
// row of B sum to at most 5, the negative ones to at most 8, together 10, so |B^T d B| <= (2 * 2 + 8 * 8) * 255 =
// 17,340; the coefficients of a row of G' sum to at most 7, so |G' g G'^T| <= 49 * 128 = 6,272. Tiles of 6x6 results
// would not fit. Floats cannot replace these integers: f32 holds integers up to 2^24, less than two of the products
// above.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "lowering/cost/winograd.h"
#include "lowering/rules/tables.h"

namespace hoist {
namespace {

// The element types of a convolution, of its transformed tiles and of its transformed filters. `exact` is the type in
// which the filters' transform is computed.
struct Numbers {
  const char *image, *filter, *sum;
  const char *transformed, *exact;
  bool whole;
};
constexpr Numbers floats = {"f32", "f32", "f32", "f32", "f64", false};
constexpr Numbers bytes = {"u8", "i8", "i32", "i16", "i32", true};

// The matrices of F(m x m, r x r) as text of the language.
class Transforms {
 public:
  Transforms(int64_t window, std::vector<double> pairs, const Numbers& numbers)
      : r_(window), n_(2 * static_cast<int64_t>(pairs.size()) + 2), pairs_(std::move(pairs)), numbers_(numbers) {}

  int64_t window() const { return r_; }
  int64_t tile() const { return n_; }
  int64_t results() const { return n_ - r_ + 1; }
  const Numbers& numbers() const { return numbers_; }

  // The values of the filter at the points; for floats each value is divided by the product of the point's distances to
  // all others.
  std::string filter_rows() const {
    std::vector<std::vector<double>> rows;
    const auto at = [&](double point) {
      std::vector<double> powers(static_cast<size_t>(r_), numbers_.whole ? 1 : 1 / distances(point));
      for (size_t i = 1; i < powers.size(); ++i) powers[i] = point == 0 ? 0 : powers[i - 1] * point;
      return powers;
    };
    for (double point : finite_points()) rows.push_back(at(point));
    rows.emplace_back(static_cast<size_t>(r_), 0.0).back() = 1;  // infinity: the highest power
    std::string out;
    for (const std::vector<double>& row : rows)
      out += (out.empty() ? "" : ", ") + fmt::format("{}", fmt::join(row, ", "));
    return fmt::format("constant [{}][{}]{} {{{}}}", n_, r_, numbers_.exact, out);
  }

  // The factor by which integer results are too large: the square of the distances' least common multiple.
  int64_t excess() const { return common_distance() * common_distance(); }

  // B^T v: the row of a point holds the coefficients of the product of (x - other) over the other points.
  std::string input() const {
    const char* type = numbers_.transformed;
    const std::vector<double> all = squares({});
    std::string lets;
    std::vector<std::string> rows = {sum(all, "v", 0, type)};
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const std::vector<double> others = squares(i);
      lets += fmt::format("let even{0} = {1} in let odd{0} = {2} in ", i, sum(others, "v", 2, type),
                          scaled(pairs_[i], sum(others, "v", 1, type), type));
      rows.push_back(fmt::format("even{0} + odd{0}", i));
      rows.push_back(fmt::format("even{0} - odd{0}", i));
    }
    rows.push_back(sum(all, "v", 1, type));
    return lets + array(rows);
  }

  // A^T v: row i holds the i-th powers of the points. For integers each point's column is multiplied by the factor that
  // the filter was not divided by.
  std::string output() const {
    const char* type = numbers_.sum;
    std::string lets;
    for (size_t i = 0; i < pairs_.size(); ++i)
      lets += fmt::format("let plus{0} = {1} + {2} in let minus{0} = {1} - {2} in ", i, element("v", 2 * i + 1),
                          element("v", 2 * i + 2));
    std::vector<std::string> rows;
    std::vector<double> powers;
    for (const double pair : pairs_) powers.push_back(left_out(pair));
    for (int64_t i = 0; i < results(); ++i) {
      std::string row = i == 0 ? scaled(left_out(0), element("v", 0), type) : "";
      for (size_t k = 0; k < pairs_.size(); ++k) {
        row +=
            (row.empty() ? "" : " + ") + scaled(powers[k], fmt::format("{}{}", i % 2 == 0 ? "plus" : "minus", k), type);
        powers[k] *= pairs_[k];
      }
      if (i + 1 == results())
        row += " + " + scaled(static_cast<double>(common_distance()), element("v", static_cast<size_t>(n_ - 1)), type);
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

  double distances(double point) const {
    double out = 1;
    for (double other : finite_points()) out *= other == point ? 1 : point - other;
    return out;
  }

  // 1 for floats, whose filters are divided by the distances.
  int64_t common_distance() const {
    int64_t out = 1;
    for (double point : finite_points())
      out = numbers_.whole ? std::lcm(out, static_cast<int64_t>(distances(point))) : out;
    return out;
  }
  double left_out(double point) const {
    return numbers_.whole ? static_cast<double>(common_distance()) / distances(point) : 1;
  }

  // The coefficients of the even powers in the product of (x^2 - p^2) over all pairs but one; the coefficients of odd
  // powers are 0.
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
  static std::string scaled(double factor, const std::string& text, const char* type) {
    return factor == 1 ? "(" + text + ")" : fmt::format("{}{} * ({})", factor, type, text);
  }
  // The sum of the elements first, first + 2, ... times these factors; the last factor is 1, so its element comes
  // first.
  static std::string sum(const std::vector<double>& factors, const std::string& array, size_t first, const char* type) {
    std::string out;
    for (size_t i = factors.size(); i-- > 0;)
      out += (out.empty() ? "" : " + ") + scaled(factors[i], element(array, first + 2 * i), type);
    return out;
  }
  static std::string array(const std::vector<std::string>& elements) {
    return fmt::format("concat(repeat 1 ({}))", fmt::join(elements, "), repeat 1 ("));
  }

  int64_t r_, n_;
  std::vector<double> pairs_;
  Numbers numbers_;
};

// Removes the excess from i32 results below 2^(31 - e), where 2^e is the power of two in the excess.
std::string divided(int64_t excess) {
  const int shift = __builtin_ctzll(static_cast<uint64_t>(excess));
  const auto odd = static_cast<uint32_t>(excess >> shift);
  uint32_t inverse = 1;  // each step doubles the number of correct bits
  for (int step = 0; step < 5; ++step) inverse *= 2 - odd * inverse;
  const std::string product =
      inverse == 1 ? "v" : fmt::format("v * {}i32", static_cast<int64_t>(static_cast<int32_t>(inverse)));
  return fmt::format("shift_right({}, {}i32)", product, shift);
}

// The transform of a tile's columns and then of its rows. The transformed columns are materialised, because all rows
// read them.
std::string both_ways(const std::string& transform) {
  const std::string function = "(\\v. " + transform + ")";
  return "(\\square. square |> transpose |> map unroll (\\column. column |> " + function +
         " |> map unroll (\\s. s)) |> materialise private |> transpose |> map " + function + ")";
}

// The squares [rows][columns][side][side] of a channel plane, `step` apart.
std::string squares(const std::string& side, const std::string& step) {
  return "map (slide " + side + " " + step + ") |> slide " + side + " " + step + " |> map transpose";
}

// The positions of a channel plane [rows][columns], completed by i rows and j columns to whole tiles.
std::string completed(const Transforms& transforms, const std::string& zero) {
  const std::string m = std::to_string(transforms.results()), overlap = std::to_string(transforms.window() - 1);
  return "pad 0 i (repeat (" + m + "*u + " + overlap + " - j) " + zero + ") |> map (pad 0 j " + zero + ")";
}

// For each result of the images x: 1 if its tile may not be computed by the transform, else 0. Sums of magnitudes over
// the channels are compared as bits, which have the order of the sums and place infinity and NaN last. The last tiles
// are completed with repeated results, which change nothing.
std::string unfit_results(const Transforms& transforms) {
  const std::string r = std::to_string(transforms.window()), m = std::to_string(transforms.results());
  constexpr int64_t mantissa = 1 << 23, bias = 127;
  const std::string largest = " |> reduce (\\a b. max(a, b)) 0i32";
  const std::string magnitudes =
      "transpose (0 2 3 1) x |> map (map (map (\\channels. reinterpret i32 (channels |> map (\\v. abs(v))"
      " |> reduce (\\a b. a + b) 0f32)))) |> materialise global";
  const std::string of_windows = "map (\\plane. plane |> " + squares(r, "1") + " |> map (map (\\window. join window" +
                                 largest + "))) |> materialise global";
  const std::string unfit = fmt::format(
      "\\square. let ends = join square |> fold (\\s w. (max(s.0, w), min(s.1, w))) (0i32, 2147483647i32) in "
      "cast i32 ((ends.0 >= {}i32) | (ends.0 - ends.1 > {}i32))",
      (winograd_magnitude + bias) * mantissa, winograd_ratio * mantissa);
  const auto for_each = [&](const std::string& lacking, const std::string& count) {
    return "map (repeat " + m + ") |> join |> slice 0 (" + m + "*" + count + " - " + lacking + ")";
  };
  return magnitudes + " |> " + of_windows +
         " |> map (\\plane. plane |> pad 0 i clamp |> map (pad 0 j clamp)"
         " |> map (split " +
         m + ") |> split " + m + " |> map transpose |> map (map (" + unfit +
         "))) |> materialise global"
         " |> map (\\tiles. tiles |> map (\\row. row |> " +
         for_each("j", "u") + ") |> " + for_each("i", "t") + ")";
}

// A convolution with the window size and the strides that `transforms` covers; with `bias`, one that adds a bias for
// each filter.
RuleRow winograd(const Transforms& transforms, bool bias) {
  const std::string r = std::to_string(transforms.window()), m = std::to_string(transforms.results()),
                    n = std::to_string(transforms.tile()), overlap = std::to_string(transforms.window() - 1);
  const Numbers& numbers = transforms.numbers();
  const std::string image = numbers.image, filter = numbers.filter, sum = numbers.sum, exact = numbers.exact;
  const std::string zero = "0" + image;
  const auto widened = [](const std::string& from, const std::string& type, const std::string& into) {
    return from == type ? into : "cast " + from + " " + into;
  };
  const auto sums_of_products = [&](const std::string& left, const std::string& right) {
    return "map (\\q. " + widened(sum, left, "q.0") + " * " + widened(sum, right, "q.1") +
           ") |> reduce (\\a b. a + b) ";
  };
  const std::string transformed = numbers.transformed, filter_rows = transforms.filter_rows();
  // Channels and filters are the innermost dimensions, as in the result, so that one side computes them in the order in
  // which the other reads them.
  const std::string products_of = " |> map (\\q. q.0 * cast " + exact + " q.1) |> reduce (\\a b. a + b) 0" + exact;
  const std::string filters = filter_rows + " |> map (\\a. " + filter_rows +
                              " |> map (\\s. transpose (2 1 0 3) g |> map (map (map (\\w. zip(s, w)" + products_of +
                              "))) |> transpose (1 2 0) |> map (map (\\w. cast " + transformed + " (zip(a, w)" +
                              products_of + "))))) |> join |> materialise global";
  const std::string of_planes =
      "\\plane. plane |> " + (image == transformed ? "" : "map (map (cast " + transformed + ")) |> ");
  const std::string tiles = "x |> map (map (\\plane. plane |> " + completed(transforms, zero) + ")) |> map (map (" +
                            of_planes + squares(n, m) + " |> map (map " + both_ways(transforms.input()) +
                            "))) |> transpose (4 5 0 2 3 1) |> join |> map (join >> join) |> materialise global";
  const std::string products =
      "zip(" + filters + ", " + tiles +
      ") |> map (\\y. y.1 |> map (\\row. transpose y.0 |> map (\\column. zip(row, column) |> " +
      sums_of_products(transformed, transformed) + "0" + sum + "))) |> materialise global";
  const std::string results =
      numbers.whole ? " |> map (map (\\v. " + divided(transforms.excess()) + "))" : std::string();
  RuleRow row;
  row.name = fmt::format("winograd-{3}f{0}x{0}-{1}x{1}{2}", m, r, bias ? "-bias" : "", numbers.whole ? "bytes-" : "");
  row.pass = "winograd";
  row.parameters = "i, j";
  row.given = "x: [n][c][" + m + "*t + " + overlap + " - i][" + m + "*u + " + overlap + " - j]" + image +
              ", g: [o][c][" + r + "][" + r + "]" + filter + ", " + (bias ? "b: [o]" + sum + ", " : "") + "z: " + sum;
  const auto windows = [&](const std::string& picture) {
    return picture + " |> map (slide " + r + " 1) |> map (map (map (slide " + r + " 1))) |> transpose (1 3 0 2 4)";
  };
  const auto sum_over = [&](const std::string& window, const std::string& filter_of) {
    return "zip(join (join " + window + "), join (join " + filter_of + ")) |> " + sums_of_products(image, filter);
  };
  row.left = "x |> map (\\image. " + std::string(bias ? "zip(g, b)" : "g") + " |> map (\\f. " + windows("image") +
             " |> map (map (\\w. " + sum_over("w", bias ? "f.0" : "f") + "z" + (bias ? " |> (+ f.1)" : "") + "))))";
  const std::string transformed_results = products + " |> split " + n +
                                          " |> map (map (split u >> split t)) |> transpose (2 5 3 4 0 1)" +
                                          " |> map (map (\\plane. plane |> map (map " + both_ways(transforms.output()) +
                                          ") |> map transpose |> join |> map join |> slice 0 (" + m +
                                          "*t - i) |> map (slice 0 (" + m + "*u - j))" + results + "))";
  // Filters that the sums of a few results read are stored in the order in which vectors of those results read them.
  const std::string guarded =
      "zip(x, " + unfit_results(transforms) + ", " + transformed_results +
      ") |> map (\\y. zip(transpose (1 2 3 0) g |> materialise global |> transpose (3 0 1 2), y.2) |> map (\\f. zip(" +
      windows("y.0") + ", y.1, f.1) |> map (\\row. zip(row.0, row.1, row.2) |> map (\\p. rarely(p.1 != 0i32, " +
      sum_over("p.0", "f.0") + "0" + sum + ", p.2)))))";
  row.right = (numbers.whole ? transformed_results : guarded) +
              (bias ? " |> map (\\planes. zip(planes, b) |> map (\\y. y.0 |> map (map (\\v. v + y.1))))" : "");
  row.where = "z is 0";
  row.rule_class = RuleClass::rounding;
  row.meaning = fmt::format(
      "Winograd's F({0}x{0}, {1}x{1}): transformed tiles times transformed filters, {2} products instead of {3} for "
      "{0}x{0} results; i and j complete the extents to multiples of {0}",
      m, r, transforms.tile() * transforms.tile(),
      transforms.results() * transforms.results() * transforms.window() * transforms.window());
  if (numbers.whole) {
    // Signed and unsigned bytes; see above.
    const int64_t most = ((int64_t{1} << 31) / (transforms.excess() & -transforms.excess()) - 1) /
                         (transforms.window() * transforms.window() * 255 * 128);
    row.where += fmt::format(", c <= {}", most);
    row.rule_class = RuleClass::exact;
    row.meaning += ". For integers, whose sums may wrap: this many channels still fit";
  }
  return row;
}

}  // namespace

std::vector<RuleRow> convolution_rules() {
  const Transforms f2x2_3x3(3, {1}, floats), f4x4_3x3(3, {0.75, 1.5}, floats), f2x2_5x5(5, {0.75, 1.5}, floats);
  const Transforms bytes_f2x2_3x3(3, {1}, bytes), bytes_f4x4_3x3(3, {1, 2}, bytes);
  return {
      winograd(f2x2_3x3, false),       winograd(f2x2_3x3, true),       winograd(f4x4_3x3, false),
      winograd(f4x4_3x3, true),        winograd(f2x2_5x5, false),      winograd(f2x2_5x5, true),
      winograd(bytes_f2x2_3x3, false), winograd(bytes_f2x2_3x3, true), winograd(bytes_f4x4_3x3, false),
      winograd(bytes_f4x4_3x3, true),
  };
}

}  // namespace hoist
