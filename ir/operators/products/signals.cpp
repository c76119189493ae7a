// Signals: Fourier transforms as contractions with tables of sines and cosines, and the weights of frequency bands. A
// transform of n elements costs n products per output.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

constexpr int64_t most_sines = int64_t{1} << 24;  // maximum size of a transform's table

// A known integer scalar.
Result<int64_t> known_whole(const OperatorContext& c, size_t i, const std::string& role) {
  HOIST_TRY(const Tensor value, constant_input(c, i, role));
  if (value.size() != 1) return fault(fmt::format("{} has to be one number", role));
  return is_float(value.scalar()) ? static_cast<int64_t>(value.float_at(0)) : value.integer_at(0);
}

// A transform of rows as one product with a table. Columns of the table alternately give the real and the imaginary
// part of a result: the sum of the row's real parts, and of its imaginary parts if it has any, times cosines or sines.
struct Transform {
  Scalar scalar;       // scalar of the signal
  int64_t length = 0;  // length of the transform
  int64_t in = 0, out = 0;
  bool inverse = false;
  bool real_result = false;  // for an inverse transform whose input is half a spectrum

  // cos or sin of 2 pi k n / length, times the factors of an inverse transform. Multiples of a quarter turn are exact.
  double factor(int64_t k, int64_t n, bool sine) const {
    const int64_t turn = k * n % length;  // both are below most_sines
    const double angle = 2 * std::numbers::pi * static_cast<double>(turn) / static_cast<double>(length);
    double value = sine ? std::sin(angle) : std::cos(angle);
    if (turn * 4 % length == 0) value = std::round(value);
    // The other half of the spectrum is the conjugate of this half.
    if (real_result && n != 0 && 2 * n != length) value *= 2;
    return inverse ? value / static_cast<double>(length) : value;
  }

  int64_t parts_of_result() const { return real_result ? 1 : 2; }

  // [out][parts of the result][in][parts], for signals with this number of parts per element (1 real, 2 complex).
  Expr table(int64_t parts) const {
    Tensor values(wide_float(scalar), {out * parts_of_result(), in * parts});
    // e^(-i a) = cos a - i sin a; an inverse has the opposite sign.
    const double turn = inverse ? 1 : -1;
    int64_t place = 0;
    for (int64_t k = 0; k < out; ++k) {
      for (int64_t result = 0; result < parts_of_result(); ++result) {
        for (int64_t n = 0; n < in; ++n) {
          for (int64_t part = 0; part < parts; ++part) {
            const double sign = part == result ? 1 : result == 1 ? turn : -turn;
            values.set_float(place++, sign * factor(k, n, part != result));
          }
        }
      }
    }
    return constant(values);
  }

  // [in][parts] to [out * parts of the result]
  Expr of(Expr signal, Expr factors) const {
    const Expr row = map([&](Expr part) { return convert(wide_float(scalar), part); }, flatten(signal));
    return map(
        [&](Expr column) {
          return convert(
              scalar, sum(map_zip({row, column}, [&](const std::vector<Expr>& p) { return (Number(p[0]) * p[1]).e; })));
        },
        factors);
  }

  Result<std::function<Expr(Expr)>> make(int64_t parts) const {
    if (length < 1 || in < 0 || out < 1)
      return fault(fmt::format("a transform of length {} of {} elements", length, in));
    if (out > most_sines || in > most_sines / out)
      return fault(
          fmt::format("a transform from {} to {} elements; at most {} products are supported", in, out, most_sines));
    return std::function<Expr(Expr)>([*this, factors = table(parts)](Expr signal) { return of(signal, factors); });
  }
};

// [n][parts] padded with zeros or cut to this length.
Expr of_length(int64_t n, Expr signal) {
  const int64_t found = signal->type->size.value();
  if (found >= n) return slice(0, n, signal);
  return pad_with(0, n - found, zero(element_of(signal)), signal);
}

Lowered lower_dft(const OperatorContext& c) {
  Expr x = c.inputs[0];
  const Shape shape = extents(x);
  const int64_t rank = rank_of(x);
  if (rank < 2 || (shape.back() != 1 && shape.back() != 2))
    return fault(
        fmt::format("the signal is {}, expected rows of real or complex elements (last extent 1 or 2)", text(shape)));
  HOIST_TRY(int64_t inverse, integer_attribute(c, "inverse", 0));
  HOIST_TRY(int64_t onesided, integer_attribute(c, "onesided", 0));
  int64_t named = -2;
  if (is_given(c, 2, "axis")) {
    HOIST_TRY(named, known_whole(c, 2, "axis"));
  }
  HOIST_TRY(int64_t axis, normalise_axis(named, rank));
  if (axis == rank - 1) return fault("the last axis holds real and imaginary parts");
  const int64_t n = shape[static_cast<size_t>(axis)];
  Transform transform{element_of(x)};
  transform.inverse = inverse != 0;
  transform.real_result = inverse != 0 && onesided != 0;
  transform.length = transform.real_result ? 2 * (n - 1) : n;
  if (is_given(c, 1, "dft_length")) {
    HOIST_TRY(transform.length, known_whole(c, 1, "dft_length"));
  }
  if (transform.length < 1 || transform.length > most_sines)
    return fault(fmt::format("a transform of length {}, at most {}", transform.length, most_sines));
  const int64_t half = transform.length / 2 + 1;
  transform.in = std::min(n, transform.real_result ? half : transform.length);
  transform.out = onesided != 0 && inverse == 0 ? half : transform.length;
  HOIST_TRY(auto f, transform.make(shape.back()));
  // The axis moves next to the parts.
  Shape permutation = with_last({axis, rank - 1}, rank);
  Expr rows = permute(permutation, x);
  const int64_t in = transform.in;
  rows = map_at(
      static_cast<int>(rank - 2), [&](Expr signal) { return f(of_length(in, signal)); }, rows);
  Shape transformed = extents(rows);
  transformed.back() = transform.out;
  transformed.push_back(transform.parts_of_result());
  rows = reshape(rows, transformed);
  return one(permute(hoist::operators::inverse(permutation), rows));
}

Lowered lower_stft(const OperatorContext& c) {
  Expr x = c.inputs[0], window = input(c, 2);
  const Shape shape = extents(x);
  if (shape.size() != 3 || (shape[2] != 1 && shape[2] != 2))
    return fault(fmt::format("the signal is {}, expected [batch][length] and 1 or 2 parts", text(shape)));
  HOIST_TRY(int64_t onesided, integer_attribute(c, "onesided", 1));
  HOIST_TRY(int64_t step, known_whole(c, 1, "frame_step"));
  if (window != nullptr && rank_of(window) != 1)
    return fault(fmt::format("the window is {}, expected one number per element of a frame", text(extents(window))));
  int64_t length = window == nullptr ? shape[1] : extents(window)[0];
  if (is_given(c, 3, "frame_length")) {
    HOIST_TRY(length, known_whole(c, 3, "frame_length"));
  }
  if (step < 1 || length < 1 || length > shape[1])
    return fault(
        fmt::format("frames of {} with a stride of {} do not fit into a signal of {}", length, step, shape[1]));
  if (window != nullptr && extents(window)[0] != length)
    return fault(fmt::format("the window is {}, the frames have {} elements", text(extents(window)), length));
  if (window != nullptr && element_of(window) != element_of(x))
    return fault("the window has another element type than the signal");
  if (onesided != 0 && shape[2] == 2) return fault("half a spectrum does not determine a complex signal");
  Transform transform{element_of(x), length, length, onesided != 0 ? length / 2 + 1 : length};
  HOIST_TRY(auto f, transform.make(shape[2]));
  const Expr rows = map(
      [&](Expr signal) {
        return map(
            [&](Expr frame) {
              if (window == nullptr) return f(frame);
              return f(map_zip({frame, window}, [&](const std::vector<Expr>& p) {
                return map([&](Expr v) { return (Number(v) * p[1]).e; }, p[0]);
              }));
            },
            slide(length, step, 1, signal));
      },
      x);
  return one(reshape(rows, {shape[0], extents(rows)[1], transform.out, transform.parts_of_result()}));
}

Lowered lower_mel_weights(const OperatorContext& c) {
  HOIST_TRY(int64_t bands, known_whole(c, 0, "num_mel_bins"));
  HOIST_TRY(int64_t length, known_whole(c, 1, "dft_length"));
  HOIST_TRY(int64_t rate, known_whole(c, 2, "sample_rate"));
  std::array<double, 2> edges{};
  for (size_t i = 0; i < 2; ++i) {
    HOIST_TRY(const Tensor edge, constant_input(c, 3 + i, i == 0 ? "lower_edge_hertz" : "upper_edge_hertz"));
    if (edge.size() != 1 || !is_float(edge.scalar())) return fault("an edge has to be one float");
    edges[i] = edge.float_at(0);
  }
  if (bands < 1 || length < 1 || rate < 1 || bands > most_table_entries || length > most_table_entries ||
      bands > most_table_entries / (length / 2 + 1))
    return fault(fmt::format("{} bands of a transform of {} at {} samples per second", bands, length, rate));
  HOIST_TRY(int64_t type, integer_attribute(c, "output_datatype", 1));
  HOIST_TRY(Scalar scalar, scalar_of_onnx(type));
  const auto mel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::numbers::ln10; };
  const double low = mel(edges[0]), step = (mel(edges[1]) - low) / static_cast<double>(bands + 2);
  const int64_t lines = length / 2 + 1;
  Shape centres;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * std::expm1((static_cast<double>(i) * step + low) / 2595 * std::numbers::ln10);
    const double line = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(line >= 0 && line < static_cast<double>(lines)))
      return fault(
          fmt::format("a band reaches {} Hz, which is outside the {} frequencies of the transform", hertz, lines));
    centres.push_back(static_cast<int64_t>(line));
  }
  Tensor weights(scalar, {lines, bands});
  const auto set = [&](int64_t line, int64_t band, double value) {
    if (is_float(scalar))
      weights.set_float(line * bands + band, value);
    else
      weights.set_integer(line * bands + band, static_cast<int64_t>(value));
  };
  for (int64_t i = 0; i < bands; ++i) {
    const int64_t left = centres[static_cast<size_t>(i)], middle = centres[static_cast<size_t>(i) + 1],
                  right = centres[static_cast<size_t>(i) + 2];
    if (middle == left) set(middle, i, 1);
    for (int64_t k = left; k <= middle && middle > left; ++k)
      set(k, i, static_cast<double>(k - left) / static_cast<double>(middle - left));
    for (int64_t k = middle; k < right; ++k)
      set(k, i, static_cast<double>(right - k) / static_cast<double>(right - middle));
  }
  return one(constant(weights));
}

// clang-format off
constexpr auto signal_rows = std::to_array<OperatorRow>({
  {"", "DFT", 20, 1, 3, Takes::floats, lower_dft,
   "the Fourier transform of rows as contractions with a table; in C++, since the length decides the table", -2, 2, "1 dft_length, 2 axis"},
  {"", "STFT", 17, 2, 4, Takes::floats, lower_stft,
   "the Fourier transforms of frames of a signal; in C++, since the length of a frame decides the table", -2, 2, "1 frame_step, 3 frame_length"},
  {"", "MelWeightMatrix", 17, 5, 5, Takes::integers, lower_mel_weights,
   "a table of triangles over the frequencies of a spectrum; in C++, since the values of the inputs decide the table", -2, 2,
   "0 num_mel_bins, 1 dft_length, 2 sample_rate, 3 lower_edge_hertz, 4 upper_edge_hertz"},
});
// clang-format on

}  // namespace

std::span<const OperatorRow> signal_operators() { return signal_rows; }

}  // namespace hoist::operators
