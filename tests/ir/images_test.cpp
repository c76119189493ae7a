// Tests the image decoder on the host: every format, and streams that are truncated, damaged or have false sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "ir/evaluate/evaluate.h"
#include "ir/evaluate/interpreter/host_call.h"
#include "ir/language/expression.h"
#include "ir/text/text.h"

namespace hoist::images_test {

using testing::HasSubstr;

constexpr int64_t height = 6, width = 8;

Type pixels_of(int64_t rows, int64_t columns) { return array_type({rows, columns, Nat(3)}, scalar_type(Scalar::u8)); }

Tensor stream_of(const std::string& bytes) {
  Tensor out(Scalar::u8, {static_cast<int64_t>(bytes.size())});
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

Result<Tensor> decoded(const std::string& bytes, int64_t rows = height, int64_t columns = width) {
  return evaluate_host_call("picture_decode", {stream_of(bytes)}, pixels_of(rows, columns));
}

std::string refusal(const std::string& bytes) {
  const auto made = decoded(bytes);
  return made.ok() ? "" : made.errors().front().what;
}

// Also the fuzzer's initial corpus.
std::map<std::string, std::string> images() {
  std::map<std::string, std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(HOIST_SOURCE_DIR "/tests/fuzz/corpus/image")) {
    const std::string name = entry.path().filename().string();
    std::ifstream file(entry.path(), std::ios::binary);
    if (!name.starts_with("bad_")) out[name] = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  return out;
}

// All files show the same image in some form.
int64_t colour_at(const std::string& name, int64_t y, int64_t x, int64_t c) {
  const int64_t colours[] = {x * 32, y * 40, (x + y) * 18};
  if (name.ends_with(".pbm")) return colours[0] > 100 ? 255 : 0;
  if (name == "deep.png" || name == "wide.pgm") return colours[0];
  if (name.starts_with("grey")) return (19595 * colours[0] + 38470 * colours[1] + 7471 * colours[2] + 32768) >> 16;
  return colours[c];
}

// 0 if a format is lossless.
int64_t allowed_error(const std::string& name) {
  if (name == "masks.bmp") return 8;  // 5 bits per channel
  if (name.starts_with("palette")) return 40;
  if (name.ends_with(".jpg") || name == "jpeg.tif" || name == "lossy.webp") return 60;
  return 0;
}

TEST(Images, OfEveryFormat) {
  const auto all = images();
  ASSERT_GE(all.size(), 25u);
  for (const auto& [name, bytes] : all) {
    const auto made = decoded(bytes);
    ASSERT_TRUE(made.ok()) << name << ": " << made.errors().front().text();
    for (int64_t i = 0; i < made->size(); ++i) {
      const int64_t expected = colour_at(name, i / 3 / width, i / 3 % width, i % 3);
      ASSERT_LE(std::abs(made->integer_at(i) - expected), allowed_error(name)) << name << ", element " << i;
    }
  }
}

TEST(Images, MayHaveZerosBehindThem) {
  for (const auto& [name, bytes] : images()) {
    const auto alone = decoded(bytes), padded = decoded(bytes + std::string(1000, '\0'));
    ASSERT_TRUE(padded.ok()) << name << ": " << padded.errors().front().text();
    EXPECT_EQ(*alone, *padded) << name;
  }
}

TEST(Images, CutOffAnywhereAreRefused) {
  for (const auto& [name, bytes] : images()) {
    for (size_t length = 0; length < bytes.size(); ++length) {
      const auto made = decoded(bytes.substr(0, length));
      // Text formats: a stream truncated within the last number or line end is accepted.
      if (made.ok())
        EXPECT_TRUE(name.starts_with("plain") && length + 4 > bytes.size()) << name << ", " << length << " bytes";
      else
        EXPECT_NE(made.errors().front().what, "") << name;
    }
  }
}

// The hashes of the false sizes are valid, in formats that have them.
TEST(Images, ThatClaimAnotherSizeAreRefusedByTheirHeaders) {
  std::map<std::string, std::string> all = images(), claims;
  claims["pnm"] = "P6 60000 60000 255\n";
  claims["bmp"] = all["colours.bmp"].replace(18, 8, std::string("\x60\xEA\0\0\x60\xEA\0\0", 8));
  claims["png"] =
      all["colours.png"].replace(16, 8, std::string("\0\0\xEA\x60\0\0\xEA\x60", 8)).replace(29, 4, "\x0F\xB0\xE2\x15");
  std::string& jpeg = claims["jpeg"] = all["colours.jpg"];
  jpeg.replace(jpeg.find("\xFF\xC0") + 5, 4, "\xEA\x60\xEA\x60");
  std::string& jpeg2000 = claims["jpeg 2000"] = all["colours.jp2"];
  jpeg2000.replace(jpeg2000.find("\xFF\x4F\xFF\x51") + 8, 8, std::string("\0\0\xEA\x60\0\0\xEA\x60", 8));
  std::string& tiff = claims["tiff"] = all["colours.tif"];
  for (const char tag : {'\0', '\1'}) {  // width and height, as entries of the directory
    const size_t entry = tiff.find(std::string({tag, '\1', '\4', '\0', '\1', '\0', '\0', '\0'}));
    ASSERT_NE(entry, std::string::npos);
    tiff.replace(entry + 8, 4, std::string("\x60\xEA\0\0", 4));
  }
  for (const auto& [format, bytes] : claims)
    EXPECT_THAT(refusal(bytes), HasSubstr("an image of 60000x60000 (width x height), and the model states 8x6"))
        << format;
  std::string& webp = all["colours.webp"];  // 14 bits each, less one
  webp.replace(webp.find("VP8L") + 9, 4, "\xFF\xFF\xFF\x0F");
  EXPECT_THAT(refusal(webp), HasSubstr("an image of 16384x16384"));
}

TEST(Images, OfMoreTilesOrComponentsThanThereCanBeAreRefused) {
  std::string bytes = images()["colours.jp2"];
  const size_t header = bytes.find("\xFF\x4F\xFF\x51");
  std::string components = bytes;
  components.replace(header + 40, 2, "\x40\x01");
  EXPECT_THAT(refusal(components), HasSubstr("of 16385 components"));
  bytes.replace(header + 24, 8, std::string(8, '\0'));  // tiles of zero size
  EXPECT_THAT(refusal(bytes), HasSubstr("is damaged"));
}

TEST(Images, OtherFormatsAreNotLookedAt) {
  for (const char* bytes :
       {"", "B", "GIF89a", "push graphic-context\nimage over 0,0 0,0 'x'", "<?xml version=\"1.0\"?><svg/>",
        "%!PS-Adobe-3.0", "%PDF-1.4", "8BPS", "RIFF    WAVE", "P7\nWIDTH 8"}) {
    EXPECT_THAT(refusal(bytes), HasSubstr("are not an image in BMP")) << bytes;
  }
}

TEST(Images, HaveToHaveTheSizeOfTheModel) {
  const auto made = decoded(images()["colours.png"], 8, 6);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.errors().front().what,
              HasSubstr("an image of 8x6 (width x height), and the model states 6x8; give"));
}

TEST(Images, AreTypedByHeightWidthAndColours) {
  const Type stream = array_type({Nat(100)}, scalar_type(Scalar::u8));
  EXPECT_EQ(host_call_problem("picture_decode", {stream}, pixels_of(2, 3)), "");
  EXPECT_THAT(host_call_problem("picture_decode", {stream}, pixels_of(0, 3)), HasSubstr("does not turn"));
  EXPECT_THAT(
      host_call_problem("picture_decode", {stream}, array_type({Nat(2), Nat(3), Nat(1)}, scalar_type(Scalar::u8))),
      HasSubstr("does not turn"));
  EXPECT_THAT(host_call_problem("picture_decode", {pixels_of(2, 3)}, pixels_of(2, 3)), HasSubstr("does not turn"));
}

// Data for benchmarks and checks.
TEST(Images, OfSeededBytesFillTheRoomThatThereIs) {
  for (const int64_t bytes : {159, 155, 154, 59, 58, 13, 12}) {
    Tensor stream(Scalar::u8, {bytes});
    for (int64_t i = 0; i < bytes; ++i) store_element(stream.data(), 8, i, static_cast<uint64_t>(i * 7 + 3) & 255);
    seed_for_host("picture_decode", stream, pixels_of(height, width));
    EXPECT_EQ(evaluate_host_call("picture_decode", {stream}, pixels_of(height, width)).ok(), bytes >= 13) << bytes;
  }
}

TEST(Images, InOtherOrdersAndInGrey) {
  const std::string bytes = images()["colours.png"];
  const auto rgb = decoded(bytes);
  ASSERT_TRUE(rgb.ok());
  for (const std::string format : {"RGB", "BGR", "Grayscale"}) {
    const auto call = parse("ImageDecoder(%x : [" + std::to_string(bytes.size()) + "]u8; pixel_format = \"" + format +
                            "\", size = [6, 8])");
    ASSERT_TRUE(call.ok()) << call.errors().front().text();
    const Bindings values = {{"x", stream_of(bytes)}};
    const auto made = evaluate(*call, values), slow = interpret(*call, values);
    ASSERT_TRUE(made.ok() && slow.ok());
    EXPECT_EQ(*made, *slow);
    const int64_t channels = format == "Grayscale" ? 1 : 3;
    ASSERT_EQ(made->shape(), (std::vector<int64_t>{height, width, channels}));
    for (int64_t i = 0; i < made->size(); ++i) {
      const int64_t pixel = i / channels * 3;
      const int64_t grey = (19595 * rgb->integer_at(pixel) + 38470 * rgb->integer_at(pixel + 1) +
                            7471 * rgb->integer_at(pixel + 2) + 32768) >>
                           16;
      EXPECT_EQ(made->integer_at(i), format == "Grayscale" ? grey
                                     : format == "BGR"     ? rgb->integer_at(pixel + 2 - i % 3)
                                                           : rgb->integer_at(i));
    }
  }
}

TEST(Images, NeedASizeThatIsKnown) {
  const auto without = parse("ImageDecoder(%x : [100]u8)");
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.errors().front().text(), HasSubstr("the height and width of its images are unknown"));
  EXPECT_FALSE(parse("ImageDecoder(%x : [100]u8; size = [0, 8])").ok());
  EXPECT_FALSE(parse("ImageDecoder(%x : [10][10]u8; size = [6, 8])").ok());
  EXPECT_FALSE(parse("ImageDecoder(%x : [100]i8; size = [6, 8])").ok());
}

}  // namespace hoist::images_test
