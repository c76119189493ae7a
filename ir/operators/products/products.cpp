// Products: of matrices, of filters and windows, and of quantised numbers. There is one meaning of an integer layer:
// the exact sum of products of (number - zero point), plus the bias, times one f32 factor, rounded half to even, plus
// the zero point, saturated. All take the form on which the strategies rely: a row against a row of the transposed
// other side, a zip, a map of products, a reduce.
#include <fmt/format.h>

#include <array>

#include "ir/operators/definitions/einsum.h"
#include "ir/operators/definitions/operator_text.h"
#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// The sum of the products of two rows, in the type W.
#define HOIST_DOT(a, b) "(zip(" a ", " b ") |> map (\\(p, q). convert(W, p) * convert(W, q)) |> reduce (+) 0)"

// Filters against the windows of each image, with and without numbers to add, one a filter. The windows of all groups
// are one view of the image, so that they can become an array (im2col.h). The text defines `dot` of a window and a
// filter.
#define HOIST_CONVOLUTION(strides)                                                                    \
  "convolved = \\images fs. images |> map (\\image. select(group == 1, "                              \
  "fs |> map (plane (patched image)), "                                                               \
  "zip(map patched (split (c // group) image), split (o // group) fs) "                               \
  "|> map (\\(v, f). f |> map (plane v)) |> join)); "                                                 \
  "convolved_plus = \\images fs bs. images |> map (\\image. select(group == 1, "                      \
  "zip(fs, bs) |> map (plane_plus (patched image)), "                                                 \
  "zip(map patched (split (c // group) image), split (o // group) fs, split (o // group) bs) "        \
  "|> map (\\(v, f, b). zip(f, b) |> map (plane_plus v)) |> join)); "                                 \
  "plane = \\v f. under (rank(x) - 2) (\\window. dot (flatten window) (flatten f)) v; "               \
  "plane_plus = \\v (f, b). under (rank(x) - 2) (\\window. dot (flatten window) (flatten f) + b) v; " \
  "patched = patches (spatial(w)) " strides " dilations"

// The check of filters, whose number of channels equals the input's.
#define HOIST_FILTERS(channels)                                                                                \
  "refuse rank(x) < 3 | rank(x) > 5: \"the input has to be [N][C] and 1 to 3 spatial dimensions, found {x}\" " \
  "refuse rank(w) != rank(x): \"the weights {w} have another rank than the input {x}\" "                       \
  "refuse given(kernel_shape) & kernel_shape != spatial(w): "                                                  \
  "\"kernel_shape {kernel_shape} disagrees with the weights {w}\" "                                            \
  "refuse group < 1 | c % group != 0 | extent(0, w) % group != 0: "                                            \
  "\"{group} groups do not divide {c} channels and {extent(0, w)} filters\" "                                  \
  "refuse elements(w) == 0 | c == 0: \"the weights {w} are empty\" "                                           \
  "refuse " channels " != c: \"the input has {c} channels, the weights {w} require {" channels "}\" "

#define HOIST_BIAS(outputs)                                                                                            \
  "refuse given(bias) & (rank(bias) != 1 | extent(0, bias) != " outputs "): \"the bias is {bias}, expected [{" outputs \
  "}]\" "

#define HOIST_CONVOLUTION_HEAD \
  "group = 1, kernel_shape?, strides?, pads?, dilations?, auto_pad = \"NOTSET\", ceil_mode = 0"

// The type of the results of products of floats, where rules between calls keep their sums, which is the operands' in
// the standard.
#define HOIST_OUTPUT_TYPE "output_dtype? : type | 0"
#define HOIST_OF_OUTPUT_TYPE(value, role) \
  "refuse given(" value ") & type(" value ") != T: \"the " role " is {type(" value ")}, expected {T}\" "

#define HOIST_INTEGERS_UP_TO(most, x, place)                                        \
  "refuse !integers(" x ") | bits(" x ") > " most ": \"input " place " is {type(" x \
  ")}, expected an integer of 8 bits\" "
#define HOIST_EIGHT_BITS(x, place) HOIST_INTEGERS_UP_TO("8", x, place)
// The first operand of integer contractions: rules between calls widen it beyond the standard's types.
#define HOIST_SIXTEEN_BITS(x, place) HOIST_INTEGERS_UP_TO("16", x, place)
#define HOIST_ZERO_POINT(x, place, zero)                                                  \
  "refuse given(" zero ") & type(" zero ") != type(" x "): \"input " place " is {type(" x \
  ")}, its zero point {type(" zero ")}\" "
#define HOIST_RESULT_BITS \
  "refuse !integers(y_zero) | bits(y_zero) > 8: \"the result is {type(y_zero)}, expected an integer of 8 bits\" "
#define HOIST_ONE_NUMBER(zero, role)                                                            \
  "refuse given(" zero ") & !zeros(" zero ") & !one_number(" zero "): \"the " role " is {" zero \
  "}, expected one number\" "

#define HOIST_MOST_PRODUCT "65025"  // of two differences of 8-bit numbers: 255 * 255
#define HOIST_MOST_I32 "2147483647"

#define HOIST_REQUANTISED "saturated(type(y_zero), round(convert(f32, total) * factor) + convert(f32, zero))"

// The sum of (a - zero) * b is the sum of a * b minus zero times the sum of b, which is known if b is: then the
// products are of 8-bit elements as stored. Only if all of a has one zero point, and b has none.
#define HOIST_INTEGER_PRODUCT                                                                         \
  "total = select(plain_a & plain_b, products dot a b, "                                              \
  "select(plain_b & one_number(a_zero) & rank(b) == 2 & is_known(b), "                                \
  "(each stored sums za. stored - convert(W, za) * sums), "                                           \
  "products dot (select(plain_a, each a. convert(W, a), each a az. convert(W, a) - convert(W, az))) " \
  "(select(plain_b, each b. convert(W, b), each b bz. convert(W, b) - convert(W, bz))))); "           \
  "stored = products dot a b; za = scalar a_zero; "                                                   \
  "sums = transpose b |> map (\\column. column |> map (convert(W)) |> reduce (+) 0); "                \
  "az = per_line \"zero point\" (-2) a_zero a; bz = per_line \"zero point\" (-1) b_zero b; "          \
  "plain_a = !given(a_zero) | zeros(a_zero); plain_b = !given(b_zero) | zeros(b_zero); "              \
  "dot = \\row column. " HOIST_DOT("row", "column")

// The same of filters; padding has to be known as a number then. Inputs without a zero point stay the array that they
// are, so that it can have a border (lowering/layout/borders.cpp).
#define HOIST_INTEGER_CONVOLUTION                                                                                  \
  "known_offset = plain_w & is_known(x_zero) & is_known(w); "                                                      \
  "offset = w |> map (\\f. flatten f |> map (convert(W)) |> reduce (+) 0) |> map (\\s. s * (0 - value(x_zero))); " \
  "whole_x = select(plain_x, x, each x xz. convert(W, x) - convert(W, xz)); xz = scalar x_zero; "                  \
  "whole_w = select(plain_w, each w. convert(W, w), each w wz. convert(W, w) - convert(W, wz)); "                  \
  "wz = per_place \"zero point of the weights\" 0 0 w_zero w; "                                                    \
  "plain_x = !given(x_zero) | zeros(x_zero); plain_w = !given(w_zero) | zeros(w_zero); "                           \
  "dot = \\window filter. " HOIST_DOT("window", "filter") "; " HOIST_CONVOLUTION("strides")

// The determinant of a matrix by elimination: the row whose first element is the largest comes first, and takes that
// element out of the others.
Expr determinant(Expr matrix) {
  const int64_t n = extents(matrix)[0];
  const Scalar scalar = element_of(matrix);
  if (n == 0) return literal(scalar, 1);
  const auto element = [&](int64_t i, int64_t k) { return Number(at_position(k, at_position(i, matrix))); };
  if (n == 1) return element(0, 0).e;
  if (n == 2) return (element(0, 0) * element(1, 1) - element(0, 1) * element(1, 0)).e;
  const Scalar place = Scalar::i32;
  Expr sizes = map([&](Expr row) { return abs(at_position(0, row)).e; }, matrix);
  Expr largest = fold([&](Expr best, Expr next) { return select((Number(get(0, next)) > get(0, best)).e, next, best); },
                      tuple({at_position(0, sizes), literal_integer(place, 0)}), zip({sizes, iota(n, place)}));
  return let(get(1, largest), [&](Expr first) {
    return let(index(first, matrix), [&](Expr pivot) {
      Expr rest = map_zip({slice(1, n - 1, matrix), iota(n - 1, place)}, [&](const std::vector<Expr>& p) {
        const Expr moved = (Number(p[1]) + 1.0 == first).e;
        Expr row = map_zip({p[0], at_position(0, matrix)},
                           [&](const std::vector<Expr>& q) { return select(moved, q[1], q[0]); });
        const Number factor = Number(at_position(0, row)) / at_position(0, pivot);
        return map_zip({slice(1, n - 1, row), slice(1, n - 1, pivot)},
                       [&](const std::vector<Expr>& q) { return (Number(q[0]) - factor * q[1]).e; });
      });
      // Kept, or each of its elements would be computed again for all that read it, down to the last step.
      return let(materialise(Memory::private_, rest), [&](Expr smaller) {
        const Number value = Number(at_position(0, pivot)) * determinant(smaller);
        return choose(Number(at_position(0, pivot)) == 0.0, 0.0, choose(Number(first) == 0.0, value, -value)).e;
      });
    });
  });
}

Lowered lower_determinant(const OperatorContext& c) {
  Expr x = c.inputs[0];
  const Shape shape = extents(x);
  constexpr int64_t most = 32;
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2])
    return fault(fmt::format("the input is {}, expected square matrices", text(shape)));
  if (shape.back() > most)
    return fault(fmt::format("matrices of {} rows, at most {} are supported", shape.back(), most));
  const Scalar scalar = element_of(x);
  return one(map_at(
      static_cast<int>(shape.size()) - 2,
      [&](Expr matrix) {
        Expr wide = map_at(
            2, [&](Expr v) { return convert(wide_float(scalar), v); }, matrix);
        return convert(scalar, let(wide, determinant));
      },
      x));
}

// clang-format off
constexpr auto product_rows = std::to_array<OperatorRow>({
  by_text("MatMul", 1,
          "(a : numbers, b; " HOIST_OUTPUT_TYPE ") = products (\\row column. convert(T, " HOIST_DOT("row", "column") ")) a b "
          "where W = wide(type(a)); T = select(given(output_dtype), output_dtype, type(a))"),
  by_text("Gemm", 7,
          "(a : numbers, b, c? : anything; alpha = 1.0, beta = 1.0, transA = 0, transB = 0, " HOIST_OUTPUT_TYPE ") "
          "refuse rank(a) != 2 | rank(b) != 2: \"A and B have to be matrices, found {a} and {b}\" "
          HOIST_OF_OUTPUT_TYPE("c", "third input")
          "refuse !floats(a) & !whole(alpha): \"factor {alpha} on integers is not supported\" "
          "refuse !floats(a) & !whole(beta): \"factor {beta} on integers is not supported\" "
          "= select(given(c) & beta != 0, "
          "products (\\row column v. scaled row column + select(beta == 1, v, v * beta)) left right c, "
          "products scaled left right) "
          "where left = select(transA, transpose a, a); right = select(transB, transpose b, b); "
          "scaled = \\row column. select(alpha == 1, dot row column, dot row column * alpha); "
          "dot = \\row column. convert(T, " HOIST_DOT("row", "column") "); W = wide(type(a)); "
          "T = select(given(output_dtype), output_dtype, type(a))"),
  by_text("Conv", 1,
          "(x : floats [n][c]..., w : [o][p]..., bias? : anything; " HOIST_CONVOLUTION_HEAD ", " HOIST_OUTPUT_TYPE ") "
          HOIST_FILTERS("p * group") HOIST_BIAS("o") HOIST_OF_OUTPUT_TYPE("bias", "bias")
          "= select(given(bias), convolved_plus images w bias, convolved images w) "
          "where images = margins 0 (spatial(w)) x; "
          "dot = \\window filter. convert(T, " HOIST_DOT("window", "filter") "); W = wide(type(x)); "
          "T = select(given(output_dtype), output_dtype, type(x)); " HOIST_CONVOLUTION("strides")),
  // A convolution over the image with zeros between its elements and the border that the reversed kernel needs.
  by_text("ConvTranspose", 1,
          "(x : floats [n][c]..., w : [p][m]..., bias?; group = 1, kernel_shape?, strides?, pads?, dilations?, "
          "output_padding?, output_shape?, auto_pad = \"NOTSET\" | \"VALID\" | \"SAME_UPPER\" | \"SAME_LOWER\" | \"\") "
          HOIST_FILTERS("p") HOIST_BIAS("m * group")
          "refuse given(strides) & length(strides) != rank(x) - 2 | given(dilations) & length(dilations) != rank(x) - 2 "
          "| given(pads) & length(pads) != 2 * (rank(x) - 2) | given(output_padding) & length(output_padding) != rank(x) - 2 "
          "| given(output_shape) & length(output_shape) != 0 & length(output_shape) != rank(x) - 2 & length(output_shape) != rank(x): "
          "\"an attribute does not have one value for each of {rank(x) - 2} spatial dimensions\" "
          "refuse given(strides) & (least(strides) < 1 | most(strides) > 2147483647): \"strides holds {strides}, which is out of range\" "
          "refuse given(dilations) & (least(dilations) < 1 | most(dilations) > 2147483647): \"dilations holds {dilations}, which is out of range\" "
          "refuse given(pads) & (least(pads) < -2147483648 | most(pads) > 2147483647): \"pads holds {pads}, which is out of range\" "
          "refuse given(output_padding) & (least(output_padding) < 0 | most(output_padding) > 2147483647): "
          "\"output_padding holds {output_padding}, which is out of range\" "
          "refuse given(output_shape) & length(output_shape) != 0 & (least(last(rank(x) - 2, output_shape)) < 1 | most(output_shape) > 2147483647): "
          "\"output_shape holds {output_shape}, which is out of range\" "
          "refuse least(spatial(x)) < 1: \"a spatial dimension of {x} has no elements\" "
          "= select(given(bias), convolved_plus images filters bias, convolved images filters) "
          "where images = across (range(2, rank(x))) "
          "(\\line[n] i. (select(s > 1, line |> split 1 |> map (bordered 0 0 (s - 1)) |> join |> slice 0 ((n - 1) * s + 1), line) "
          "where s = at(strides, i, 1))) "
          // Padding follows from the output's extent; an output that is wider than the sums reach ends in zeros.
          "(\\line i. (bordered 0 (span - 1 - begin) (span - 1 - end + extra) line "
          "where begin = select(follows, select(auto_pad == \"SAME_UPPER\", floor(total / 2), total - floor(total / 2)), "
          "select(auto_pad == \"VALID\", 0, at(pads, i, 0))); "
          "end = select(follows, full - out - begin, select(auto_pad == \"VALID\", 0, at(pads, i + rank(x) - 2, 0))); "
          "follows = sized | auto_pad == \"SAME_UPPER\" | auto_pad == \"SAME_LOWER\"; total = max(full - out, 0); "
          "out = select(sized, at(last(rank(x) - 2, output_shape), i), at(spatial(x), i) * s); "
          "sized = given(output_shape) & length(output_shape) != 0; "
          "full = (at(spatial(x), i) - 1) * s + span + extra; span = (at(spatial(w), i) - 1) * at(dilations, i, 1) + 1; "
          "s = at(strides, i, 1); extra = at(output_padding, i, 0))) x; "
          "filters = w |> split (c // group) |> map transpose |> join |> across (range(2, rank(x))) (\\line[k] i. slice (k - 1) k step -1 line); "
          "dot = \\window filter. convert(type(x), " HOIST_DOT("window", "filter") "); W = wide(type(x)); o = m * group; "
          HOIST_CONVOLUTION("1")),
  by_text("MatMulInteger", 10,
          "(a : integers, b : anything, a_zero? : anything, b_zero? : anything) "
          HOIST_SIXTEEN_BITS("a", "0") HOIST_ZERO_POINT("a", "0", "a_zero")
          HOIST_EIGHT_BITS("b", "1") HOIST_ZERO_POINT("b", "1", "b_zero")
          "= total where W = i32; " HOIST_INTEGER_PRODUCT),
  by_text("QLinearMatMul", 10,
          "(a : integers, a_scale : floats, a_zero : anything, b : anything, b_scale : floats, b_zero : anything, "
          "y_scale : floats, y_zero : anything) "
          HOIST_EIGHT_BITS("a", "0") HOIST_ZERO_POINT("a", "0", "a_zero")
          HOIST_EIGHT_BITS("b", "3") HOIST_ZERO_POINT("b", "3", "b_zero")
          HOIST_RESULT_BITS
          "refuse !broadcasts(factor, total): \"the scales {a_scale} and {b_scale} do not belong to the product of {a} and {b}\" "
          "= (each total factor zero. " HOIST_REQUANTISED ") "
          "where factor = each sa sb sy. convert(f32, sa) * convert(f32, sb) / convert(f32, sy); "
          "sa = per_line \"scale\" (-2) a_scale a; sb = per_line \"scale\" (-1) b_scale b; "
          "sy = per_line \"scale\" (-2) y_scale total; zero = per_line \"zero point\" (-2) y_zero total; "
          "W = select(extent(-1, a) * " HOIST_MOST_PRODUCT " <= " HOIST_MOST_I32 ", i32, i64); " HOIST_INTEGER_PRODUCT),
  by_text("ConvInteger", 10,
          "(x : integers [n][c]..., w : anything [o][p]..., x_zero? : anything, w_zero? : anything; "
          HOIST_CONVOLUTION_HEAD ") "
          HOIST_SIXTEEN_BITS("x", "0") HOIST_ZERO_POINT("x", "0", "x_zero")
          HOIST_EIGHT_BITS("w", "1") HOIST_ZERO_POINT("w", "1", "w_zero")
          HOIST_FILTERS("p * group") HOIST_ONE_NUMBER("x_zero", "zero point of the input")
          "= select(plain_x & plain_w, convolved (margins 0 (spatial(w)) x) w, "
          "select(known_offset, convolved_plus (margins (value(x_zero)) (spatial(w)) x) w offset, "
          "convolved (margins 0 (spatial(w)) whole_x) whole_w)) "
          "where W = i32; " HOIST_INTEGER_CONVOLUTION),
  by_text("QLinearConv", 10,
          "(x : integers [n][c]..., x_scale : floats, x_zero : anything, w : anything [o][p]..., w_scale : floats, w_zero : anything, "
          "y_scale : floats, y_zero : anything, bias? : anything; " HOIST_CONVOLUTION_HEAD ") "
          HOIST_EIGHT_BITS("x", "0") HOIST_ZERO_POINT("x", "0", "x_zero")
          HOIST_EIGHT_BITS("w", "3") HOIST_ZERO_POINT("w", "3", "w_zero")
          "refuse given(bias) & type(bias) != i32: \"the bias is {type(bias)}, expected i32\" "
          HOIST_FILTERS("p * group") HOIST_BIAS("o") HOIST_ONE_NUMBER("x_zero", "zero point of the input")
          "refuse !one_number(x_scale): \"the scale of the input is {x_scale}, expected one number\" "
          "refuse !one_number(y_scale): \"the scale of the result is {y_scale}, expected one number\" "
          "refuse !one_number(y_zero): \"the zero point of the result is {y_zero}, expected one number\" "
          HOIST_RESULT_BITS
          "= (each total factor zero. " HOIST_REQUANTISED ") "
          "where total = select(plain_x & plain_w, sums (margins 0 (spatial(w)) x) w, "
          "select(known_offset, convolved_plus (margins (value(x_zero)) (spatial(w)) x) w "
          "(select(given(bias), zip(offset, added) |> map (+), offset)), "
          "sums (margins 0 (spatial(w)) whole_x) whole_w)); "
          "sums = \\images fs. select(given(bias), convolved_plus images fs added, convolved images fs); "
          "added = each bias. convert(W, bias); "
          "factor = each sx sw sy. convert(f32, sx) * convert(f32, sw) / convert(f32, sy); "
          "sx = scalar x_scale; sw = per_place \"scale of the weights\" 1 0 w_scale total; sy = scalar y_scale; zero = scalar y_zero; "
          // i32 where sums of so many products of 8-bit differences, and the bias, cannot leave it.
          "W = select(given(bias) & !is_known(bias), i64, select(floor(elements(w) / o) * " HOIST_MOST_PRODUCT " <= "
          HOIST_MOST_I32 " - select(given(bias), min(largest(bias), " HOIST_MOST_I32 "), 0), i32, i64)); "
          HOIST_INTEGER_CONVOLUTION),
  in_domain("com.microsoft", by_text("FusedMatMul", 1,
          "(a : floats, b; alpha = 1.0, transA = 0, transB = 0, transBatchA = 0, transBatchB = 0) "
          "refuse transBatchA | transBatchB: \"transposed batches are not supported\" "
          "= products (\\row column. convert(type(a), scaled row column)) left right "
          "where left = select(transA & rank(a) > 1, under (rank(a) - 2) turned a, a); "
          "right = select(transB & rank(b) > 1, under (rank(b) - 2) turned b, b); turned = \\m. transpose m; "
          "scaled = \\row column. select(alpha == 1, dot row column, dot row column * alpha); "
          "dot = \\row column. " HOIST_DOT("row", "column") "; W = wide(type(a))")),
  in_domain("com.microsoft", by_text("MatMulIntegerToFloat", 1,
          "(a : integers, b : anything, a_scale : floats, b_scale, a_zero? : anything, b_zero? : anything, bias? : floats) "
          HOIST_EIGHT_BITS("a", "0") HOIST_ZERO_POINT("a", "0", "a_zero")
          HOIST_EIGHT_BITS("b", "1") HOIST_ZERO_POINT("b", "1", "b_zero")
          "refuse given(bias) & !broadcasts(bias, total): \"the bias {bias} does not broadcast to the product of {a} and {b}\" "
          "= select(given(bias), each total factor bias. convert(f32, total) * factor + bias, "
          "each total factor. convert(f32, total) * factor) "
          "where factor = each sa sb. sa * sb; sa = per_line \"scale\" (-2) a_scale a; sb = per_line \"scale\" (-1) b_scale b; "
          "W = i32; " HOIST_INTEGER_PRODUCT)),
  // The bias is one of the sum: its scale is that of the product.
  in_domain("com.microsoft", by_text("QGemm", 1,
          "(a : integers, a_scale : floats, a_zero : anything, b : anything, b_scale : floats, b_zero : anything, "
          "c? : integers, y_scale? : floats, y_zero? : integers; alpha = 1.0, transA = 0, transB = 0) "
          HOIST_EIGHT_BITS("a", "0") HOIST_ZERO_POINT("a", "0", "a_zero")
          HOIST_EIGHT_BITS("b", "3") HOIST_ZERO_POINT("b", "3", "b_zero")
          "refuse rank(a) != 2 | rank(b) != 2: \"A and B have to be matrices, found {a} and {b}\" "
          "refuse given(c) & type(c) != i32: \"the bias is {type(c)}, expected i32\" "
          "refuse !one_number(a_scale): \"the scale of A is {a_scale}, expected one number\" "
          "refuse !one_number(a_zero): \"the zero point of A is {a_zero}, expected one number\" "
          "refuse given(y_zero) & !given(y_scale): \"the result has a zero point and no scale\" "
          "refuse given(y_zero) & !integers(y_zero) | given(y_zero) & bits(y_zero) > 8: "
          "\"the result is {type(y_zero)}, expected an integer of 8 bits\" "
          "= select(given(y_scale), each total factor. saturated(T, round(convert(f32, total) * (factor / sy)) + zy), "
          "each total factor. convert(f32, total) * factor) "
          "where total = select(given(c), products (\\row column v. dot row column + v) left right c, products dot left right); "
          "left = each lines. convert(i32, lines) - za; right = each columns zb. convert(i32, columns) - convert(i32, zb); "
          "lines = select(transA, transpose a, a); columns = select(transB, transpose b, b); "
          "za = convert(i32, scalar a_zero); zb = per_line \"zero point\" (-1) b_zero columns; "
          "factor = each sb. alpha * sb * scalar a_scale; sb = per_line \"scale\" (-1) b_scale columns; sy = scalar y_scale; "
          "zy = select(given(y_zero), convert(f32, scalar y_zero), 0f32); T = select(given(y_zero), type(y_zero), type(a)); "
          "dot = \\row column. " HOIST_DOT("row", "column") "; W = i32")),
  {"", "Det", 11, 1, 1, Takes::floats, lower_determinant,
   "the determinant of matrices by elimination; a function, since each step has a matrix of another size"},
  {"", "Einsum", 12, 1, -1, Takes::numbers, lower_einsum,
   "a contraction over named dimensions; a function, since its equation is a language of its own", -2, 2, "", 0, einsum_in_pairs},
});
// clang-format on

#undef HOIST_DOT
#undef HOIST_CONVOLUTION
#undef HOIST_FILTERS
#undef HOIST_BIAS
#undef HOIST_CONVOLUTION_HEAD
#undef HOIST_EIGHT_BITS
#undef HOIST_ZERO_POINT
#undef HOIST_RESULT_BITS
#undef HOIST_ONE_NUMBER
#undef HOIST_MOST_PRODUCT
#undef HOIST_MOST_I32
#undef HOIST_REQUANTISED
#undef HOIST_INTEGER_PRODUCT
#undef HOIST_INTEGER_CONVOLUTION

}  // namespace

std::span<const OperatorRow> product_operators() { return product_rows; }

}  // namespace hoist::operators
