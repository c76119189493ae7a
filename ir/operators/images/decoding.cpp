// Decoding of images: a host op (ir/host) decodes them to red, green and blue; the order of colours and the conversion
// to grey are ordinary terms, so that kernels merge them into their consumers.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/operators/definitions/support.h"
#include "ir/operators/families.h"

namespace hoist::operators {
namespace {

// By the weights of ITU-R BT.601 in 16 bits, rounded to nearest, as the standard's reference computes it. The sum runs
// over the colours, which kernels read in sequence.
Expr grey_of(Expr pixel) {
  const Expr weights = constant(Tensor::of(Scalar::i32, {3}, std::vector<int64_t>{19595, 38470, 7471}));
  const Expr products = map(
      [](Expr pair) {
        return call(Function::multiply, {cast(Scalar::i32, get(0, pair)), get(1, pair)});
      },
      zip({pixel, weights}));
  const Number sum = reduce(Function::add, literal_integer(Scalar::i32, 0), products);
  return cast(Scalar::u8, ((sum + 32768.0) / 65536.0).e);
}

Result<Shape> size_of_image(const OperatorContext& c) {
  HOIST_TRY(const Shape size, integers_attribute(c, "size", {}));
  if (size.size() != 2) {
    return fault("the height and width of its images are unknown",
                 "hoist takes it from the type that the model declares for the result, outside of bodies");
  }
  if (size[0] < 1 || size[1] < 1) return fault("images of " + text(size) + " pixels, expected at least one");
  HOIST_TRY_VOID(check_extents({size[0], size[1], 3}));
  return size;
}

Lowered lower_image_decoder(const OperatorContext& c) {
  const Expr stream = c.inputs[0];
  if (element_of(stream) != Scalar::u8 || rank_of(stream) != 1)
    return fault(fmt::format("the stream is {}, expected bytes ([n]u8)", hoist::text(stream->type)));
  HOIST_TRY(const std::string format, choice_attribute(c, "pixel_format", "RGB", {"RGB", "BGR", "Grayscale"}));
  HOIST_TRY(const Shape size, size_of_image(c));
  const std::vector<Nat> colours = {size[0], size[1], 3};
  HOIST_TRY(const Expr pixels, host("picture_decode", {stream}, array_type(colours, scalar_type(Scalar::u8))));
  if (format == "RGB") return one(pixels);
  if (format == "BGR")
    return one(map_at(
        2, [](Expr pixel) { return slice(2, 3, pixel, -1); }, pixels));
  return one(map_at(
      2, [](Expr pixel) { return repeat(1, grey_of(pixel)); }, pixels));
}

constexpr OperatorRow with_declared_extents(OperatorRow row, int count) {
  row.declared_extents = count;
  return row;
}

// clang-format off
constexpr auto image_rows = std::to_array<OperatorRow>({
  with_declared_extents({"", "ImageDecoder", 20, 1, 1, Takes::integers, lower_image_decoder,
   "an image decoded on the host: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP of the height and width that the model declares, with zeros allowed after the stream; undecodable images and images of another size are errors of the run, for which the standard has an empty image; in C++, since the size is not an operand"}, 2),
});
// clang-format on

}  // namespace

std::span<const OperatorRow> image_operators() { return image_rows; }

}  // namespace hoist::operators
