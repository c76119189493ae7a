// Convolutions in several kernels. A right side says with `materialise global` what is kept between them, and in which
// order of dimensions; the pass "cut-kernels" makes definitions of it (lowering/cut.h).
//
// Winograd's F(2x2, 3x3) is that of Lavin and Gray (arXiv 1509.09308): tiles d of 4x4 elements, two apart, and filters
// g become B^T d B and G g G^T, whose products element by element, summed over channels, are m; A^T m A is a tile of
// 2x2 results. Every row of B^T has two elements that are not zero, so it is two positions and a sign; the rows of A^T
// are windows of (1, 1, 1) and (1, -1, -1). The filters are transformed in f64 and rounded once. Numbers of small size
// whose sums are exact give the same results as the convolution; an infinite one makes all results of its tile NaN,
// where in the convolution it concerns those whose windows hold it.
#include <fmt/format.h>

#include <algorithm>

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

// `transform` of a tile's rows and then of its columns, {0} standing for the array.
std::string both_ways(const std::string& transform) {
  const std::string rows = fmt::format(fmt::runtime(transform), "row"),
                    columns = fmt::format(fmt::runtime(transform), "column");
  return "(\\square. square |> map (\\row. " + rows + ") |> transpose |> map (\\column. " + columns + ") |> transpose)";
}

// `operands` are given beside the image and the filters, `filter` is the filter in an element f of the zip of filters
// and operands, `sum` is what follows a sum on the left, `result` what follows the tiles on the right.
RuleRow winograd(const char* name, const std::string& operands, const std::string& filter, const std::string& sum,
                 const std::string& result) {
  const std::string sums_of_products = "map (\\q. q.0 * q.1) |> reduce (\\a b. a + b) ";
  const std::string filter_rows = "constant [4][3]f64 {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1}";
  const std::string filters =
      "g |> map (map (\\m. " + filter_rows + " |> map (\\r. " + filter_rows +
      " |> map (\\s. cast f32 (zip(r, m) |> map (\\y. y.0 * (zip(s, y.1) |> map (\\q. q.0 * cast f64 q.1)"
      " |> reduce (\\a b. a + b) 0f64)) |> reduce (\\a b. a + b) 0f64)))))"
      " |> transpose (2 3 1 0) |> join |> materialise global";
  const std::string two_of_four =
      "zip(constant [4]i64 {{0, 1, 2, 1}}, constant [4]i64 {{2, 2, 1, 3}}, constant [4]f32 {{-1, 1, -1, -1}})"
      " |> map (\\y. index y.0 {0} + y.2 * index y.1 {0})";
  const std::string tiles =
      "x |> map (map (pad 0 i (repeat (2*u + 2 - j) 0f32))) |> map (map (map (pad 0 j 0f32)))"
      " |> map (map (\\plane. plane |> map (slide 4 2) |> slide 4 2 |> map transpose |> map (map " +
      both_ways(two_of_four) + "))) |> transpose (4 5 0 2 3 1) |> join |> map (join >> join) |> materialise global";
  const std::string products =
      "zip(" + filters + ", " + tiles +
      ") |> map (\\y. y.1 |> map (\\row. transpose y.0 |> map (\\column. zip(row, column) |> " + sums_of_products +
      "0f32))) |> materialise global";
  const std::string three_of_four =
      "zip(slide 3 1 {0}, constant [2]f32 {{1, -1}})"
      " |> map (\\y. index 0i64 y.0 + y.1 * (index 1i64 y.0 + index 2i64 y.0))";
  RuleRow row;
  row.name = name;
  row.parameters = "i, j";
  row.given = "x: [n][c][2*t + 2 - i][2*u + 2 - j]f32, g: [o][c][3][3]f32, " + operands + "z: f32";
  row.left = "x |> map (\\image. " + std::string(operands.empty() ? "g" : "zip(g, b)") +
             " |> map (\\f. image |> map (slide 3 1) |> map (map (map (slide 3 1))) |> transpose (1 3 0 2 4)"
             " |> map (map (\\w. zip(join (join w), join (join " +
             filter + ")) |> " + sums_of_products + "z" + sum + "))))";
  row.right = products +
              " |> split 4 |> map (map (split u >> split t)) |> transpose (2 5 3 4 0 1)"
              " |> map (map (\\plane. plane |> map (map " +
              both_ways(three_of_four) +
              ") |> map transpose |> join |> map join |> slice 0 (2*t - i) |> map (slice 0 (2*u - j))))" + result;
  row.where = "z is 0";
  row.rule_class = RuleClass::rounding;
  row.meaning =
      "Winograd's F(2x2, 3x3): transformed tiles times transformed filters, 16 products instead of 36 for 2x2 "
      "results; i and j are 1 where their number is odd";
  return row;
}

}  // namespace

std::vector<RuleRow> convolution_rules() {
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
      winograd("winograd-f2x2-3x3", "", "f", "", ""),
      winograd("winograd-f2x2-3x3-bias", "b: [o]f32, ", "f.0", " |> (+ f.1)",
               " |> map (\\planes. zip(planes, b) |> map (\\y. y.0 |> map (map (\\v. v + y.1))))"),
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
