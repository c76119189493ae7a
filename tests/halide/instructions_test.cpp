// Tests products with a processor's matrix and dot instructions: the instructions are in the code, and the results are
// the interpreter's.
#include <gtest/gtest.h>

#include "tests/halide/runner.h"
#include "tests/halide/small_terms.h"

namespace hoist::instructions_test {

using testing::array;
using testing::check;
using testing::zero;

// Dot products added to a start value, `together` elements at a time, one row for each of `columns` lanes.
Expr dot_products(Expr xs, Expr columns, int64_t together = 4) {
  auto step = [](Expr sum, Expr p) {
    return call(Function::add,
                {sum, call(Function::multiply, {cast(Scalar::i32, get(0, p)), cast(Scalar::i32, get(1, p))})});
  };
  return map(
      [&](Expr column) {
        return fold(
            [&](Expr sum, Expr q) {
              return fold(step, sum, zip({get(0, q), get(1, q)}), Mode::vec);
            },
            literal_integer(Scalar::i32, 5), zip({split(together, xs), column}));
      },
      columns, columns->type->size == Nat(1) ? Mode::seq : Mode::vec);
}

// Applies `sum` to every row and column, in tiles of `tile` rows and 16 columns.
Expr in_matrix_tiles(Expr rows, Expr columns, int64_t tile, const std::function<Expr(Expr, Expr)>& sum) {
  const auto tiled = [&](Expr band) {
    return map(
        [&](Expr row) {
          return join(
              map([&](Expr some) { return map([&](Expr column) { return sum(row, column); }, some, Mode::vec); },
                  split(16, transpose(columns)), Mode::unroll));
        },
        band, Mode::matrix);
  };
  return join(map(tiled, split(tile, rows), Mode::unroll));
}

// Matmul of byte rows with columns of 4-byte words, in tiles of `tile` rows and 16 columns, `words` words at a time;
// `first` is the start value of the sums.
Expr matrix_products(Expr rows, Expr columns, int64_t tile, int64_t words, int64_t first) {
  const auto step = [](Expr sum, Expr p) {
    return call(Function::add,
                {sum, call(Function::multiply, {cast(Scalar::i32, get(0, p)), cast(Scalar::i32, get(1, p))})});
  };
  const auto dot = [&](Expr sum, Expr q) { return fold(step, sum, zip({get(0, q), get(1, q)}), Mode::vec); };
  const auto part = [&](Expr sum, Expr b) { return fold(dot, sum, zip({get(0, b), get(1, b)}), Mode::matrix); };
  const auto sum = [&](Expr row, Expr column) {
    Expr all =
        fold(part, literal_integer(Scalar::i32, first), zip({split(words, split(4, row)), split(words, column)}));
    return call(Function::multiply, {all, literal_integer(Scalar::i32, 3)});
  };
  return in_matrix_tiles(rows, columns, tile, sum);
}

// The same for bf16: even and odd elements of a step are summed separately.
Expr bf16_matrix_products(Expr rows, Expr columns, int64_t tile, int64_t words, double first) {
  const auto step = [](Expr sum, Expr p) {
    return call(Function::fma, {cast(Scalar::f32, get(0, p)), cast(Scalar::f32, get(1, p)), sum});
  };
  const auto sum_of_words = [&](Expr sum, Expr b) {
    const auto every_second = [&](int64_t from) {
      Expr operands = zip({slice(from, words, get(0, b), 2), slice(from, words, get(1, b), 2)});
      return fold(step, literal(Scalar::f32, 0), operands, Mode::vec);
    };
    return call(Function::add, {sum, call(Function::add, {every_second(0), every_second(1)})});
  };
  const auto sum = [&](Expr row, Expr column) {
    Expr all =
        fold(sum_of_words, literal(Scalar::f32, first), zip({split(2 * words, row), split(2 * words, join(column))}));
    return call(Function::multiply, {all, literal(Scalar::f32, 3)});
  };
  return in_matrix_tiles(rows, columns, tile, sum);
}

// The number of tile multiplications in the code: of unsigned and signed bytes (tdpbusd), or of bf16 (tdpbf16ps).
int count_matrix_instructions(const std::string& object, bool of_bf16) {
  const int prefix = of_bf16 ? 0x02 : 0x01, operation = of_bf16 ? 0x5c : 0x5e;
  int found = 0;
  for (size_t i = 0; i + 4 < object.size(); ++i) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(object[i + k]); };
    const bool is_one = byte(0) == 0xc4 && byte(1) == 0xe2 && (byte(2) & 0x87) == prefix && byte(3) == operation;
    found += is_one ? 1 : 0;
  }
  return found;
}

// Expects this number of instructions for a processor that has them, and the interpreter's results on every target, for
// inputs in the range.
void expect_matrix_instructions(Expr term, bool of_bf16, int instructions, double low, double high) {
  EmitOptions best;
  best.native = {"sapphirerapids"};
  for (const char* cold : {"", "w"}) {
    best.cold = {cold};
    auto kernel = emit(term, best);
    ASSERT_TRUE(kernel.ok()) << kernel.errors()[0].text();
    EXPECT_EQ(count_matrix_instructions(kernel->objects[0], of_bf16), instructions) << cold;
  }
  EXPECT_EQ(check(term, {}, 0, low, high), "");
  for (const std::string& target : testing::native_targets_here()) {
    EmitOptions native;
    native.native = {target};
    EXPECT_EQ(check(term, native, 0, low, high), "") << target;
  }
}

TEST(Emit, MatrixInstructions) {
  struct Case {
    int64_t tile, tiles, words, steps, columns, offset, first;
    int instructions;
  };
  // Cases: the rows of an image, fewer words than a tile, one column of tiles. Bytes that fill no whole words, and sums
  // with a start value, use loops.
  for (const Case& c : {Case{16, 2, 16, 3, 32, 0, 0, 4}, Case{7, 1, 5, 2, 48, 0, 0, 3}, Case{14, 2, 16, 1, 16, 4, 0, 2},
                        Case{16, 1, 16, 2, 32, 1, 0, 0}, Case{16, 1, 16, 2, 32, 0, 5, 0}}) {
    const int64_t terms = 4 * c.words * c.steps;
    Expr rows = parameter("x", array({c.tile * c.tiles, terms + 8}, Scalar::u8));
    Expr columns = parameter("w", array({terms / 4, c.columns, 4}, Scalar::i8));
    Expr cut = map([&](Expr row) { return slice(c.offset, terms, row); }, rows);
    Expr term = matrix_products(cut, columns, c.tile, c.words, c.first);
    expect_matrix_instructions(term, false, c.instructions, -128, 255);
  }
}

TEST(Emit, MatrixInstructionsOfBf16) {
  struct Case {
    int64_t tile, tiles, words, steps, columns, offset;
    double first;
    int instructions;
  };
  for (const Case& c : {Case{16, 2, 16, 3, 32, 0, 0, 4}, Case{7, 1, 5, 2, 48, 0, 0, 3}, Case{14, 2, 16, 1, 16, 2, 0, 2},
                        Case{16, 1, 16, 2, 32, 1, 0, 0}, Case{16, 1, 16, 2, 32, 0, 5, 0}}) {
    const int64_t terms = 2 * c.words * c.steps;
    Expr rows = parameter("x", array({c.tile * c.tiles, terms + 8}, Scalar::bf16));
    Expr columns = parameter("w", array({terms / 2, c.columns, 2}, Scalar::bf16));
    Expr cut = map([&](Expr row) { return slice(c.offset, terms, row); }, rows);
    Expr term = bf16_matrix_products(cut, columns, c.tile, c.words, c.first);
    expect_matrix_instructions(term, true, c.instructions, -2, 2);
  }
}

TEST(Emit, DotInstructions) {
  for (int64_t lanes : {2, 4, 8, 16}) {
    constexpr int64_t words = 6;
    Expr xs = parameter("x", array({4 * words + 1}, Scalar::u8));
    Expr ws = parameter("w", array({words, lanes, 4}, Scalar::i8));
    // Aligned words, and an offset of one byte, where words are assembled from bytes.
    Expr aligned = dot_products(slice(0, 4 * words, xs), transpose(ws));
    EXPECT_EQ(check(aligned, {}, 0, -128, 255), "");
    auto kernel = emit(aligned);
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(kernel->source.find("hoist_word"), std::string::npos) << kernel->source;
    EXPECT_EQ(check(dot_products(slice(1, 4 * words, xs), transpose(ws)), {}, 0, -128, 255), "");
    // Each native target has its own instructions.
    for (const std::string& target : testing::native_targets_here()) {
      EmitOptions native;
      native.native = {target};
      EXPECT_EQ(check(aligned, native, 0, -128, 255), "") << target;
    }
  }
  Expr floats = fold([](Expr s, Expr v) { return operator_add(s, v); }, zero(), parameter("x", array({4})), Mode::vec);
  auto kernel = emit(floats);
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.errors()[0].text().find("not a dot product"), std::string::npos);
}

// 16-bit operands with 8-bit or 16-bit right operands; large values too, whose sums wrap.
TEST(Emit, DotsOfPairs) {
  for (const Scalar right : {Scalar::i16, Scalar::i8}) {
    for (int64_t lanes : {1, 2, 4, 8, 16}) {
      constexpr int64_t words = 6;
      Expr xs = parameter("x", array({2 * words + 1}, Scalar::i16));
      Expr ws = parameter("w", array({words, lanes, 2}, right));
      Expr aligned = dot_products(slice(0, 2 * words, xs), transpose(ws), 2);
      Expr apart = dot_products(slice(1, 2 * words, xs), transpose(ws), 2);
      EXPECT_EQ(check(aligned, {}, 0, -32768, 32767), "");
      EXPECT_EQ(check(apart, {}, 0, -128, 255), "");
      for (const std::string& target : testing::native_targets_here()) {
        EmitOptions native;
        native.native = {target};
        EXPECT_EQ(check(aligned, native, 0, -32768, 32767), "") << target;
        EXPECT_EQ(check(apart, native, 0, -128, 255), "") << target;
      }
    }
  }
}

}  // namespace hoist::instructions_test
