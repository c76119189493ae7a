// Tests pixels as inputs: the arithmetic against a plain reference, the description of inputs in a bundle, and
// untrusted descriptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "backends/bundle/bundle.h"
#include "backends/bundle/plan_format.h"
#include "backends/runtime/hoist_runtime.hpp"
#include "backends/runtime/plan/plan_file.h"
#include "tests/bundle/small_plan.h"

namespace hoist {
namespace {

using testing::HasSubstr;

struct Photo {
  size_t rows, columns, channels;
  std::vector<unsigned char> bytes;
  hoist_pixels pixels(size_t row_pitch = 0) const { return {bytes.data(), rows, columns, channels, row_pitch, 0}; }
};

Photo random_photo(size_t rows, size_t columns, size_t channels, uint32_t seed) {
  std::mt19937 random(seed);
  Photo out{rows, columns, channels, std::vector<unsigned char>(rows * columns * channels)};
  for (unsigned char& byte : out.bytes) byte = static_cast<unsigned char>(random());
  return out;
}

hoist_preprocessing plain(size_t rows, size_t columns, size_t channels) {
  return {rows, columns, channels, 0, 0, 0, 0, 0, 1, {0, 0, 0}, {1, 1, 1}};
}

std::string problem_of(const hoist_preprocessing& how, const hoist_pixels& pixels, const char* scalar = "f32") {
  std::vector<double> room(how.rows * how.columns * 3 + 1);
  char message[512] = "";
  const hoist_status status = hoist_prepare_pixels(&how, scalar, &pixels, room.data(), message, sizeof message);
  EXPECT_EQ(status == HOIST_OK, *message == 0);
  return message;
}

template <class T>
std::vector<T> prepared(const hoist_preprocessing& how, const char* scalar, const hoist_pixels& pixels) {
  std::vector<T> out(how.rows * how.columns * how.channels);
  char message[512] = "";
  EXPECT_EQ(hoist_prepare_pixels(&how, scalar, &pixels, out.data(), message, sizeof message), HOIST_OK) << message;
  return out;
}

// The reference for one element of a resize, before rounding: all pixels under the triangle filter, weighted by
// distance.
double resized_at(const Photo& photo, size_t to_rows, size_t to_columns, size_t y, size_t x, size_t c) {
  const auto weights = [](size_t from, size_t to, size_t i) {
    const double step = double(from) / double(to), reach = std::max(step, 1.0), middle = (double(i) + 0.5) * step;
    std::vector<double> out(from);
    double sum = 0;
    for (size_t k = 0; k < from; ++k) sum += out[k] = std::max(0.0, 1 - std::fabs(double(k) + 0.5 - middle) / reach);
    for (double& weight : out) weight /= sum;
    return out;
  };
  const std::vector<double> down = weights(photo.rows, to_rows, y), along = weights(photo.columns, to_columns, x);
  double sum = 0;
  for (size_t i = 0; i < photo.rows; ++i) {
    for (size_t k = 0; k < photo.columns; ++k)
      sum += down[i] * along[k] * photo.bytes[(i * photo.columns + k) * photo.channels + c];
  }
  return sum;
}

TEST(Pixels, AreResizedByATriangleAndCroppedAroundTheMiddle) {
  std::mt19937 random(7);
  const auto side = [&] { return size_t{1} + random() % 23; };
  for (uint32_t round = 0; round < 200; ++round) {
    const size_t channels = round % 2 == 0 ? 1 : 3;
    const Photo photo = random_photo(side(), side(), channels, round);
    hoist_preprocessing how = plain(side(), side(), channels);
    size_t to_rows = how.rows, to_columns = how.columns;
    if (round % 3 == 1) {
      how.crop = 1;
      how.resize_rows = to_rows = how.rows + random() % 5;
      how.resize_columns = to_columns = how.columns + random() % 5;
    } else if (round % 3 == 2) {
      how.crop = 1;
      how.resize_columns = std::max(how.rows, how.columns) + random() % 5;
      const double shorter = double(std::min(photo.rows, photo.columns));
      to_rows = size_t(std::llround(double(photo.rows * how.resize_columns) / shorter));
      to_columns = size_t(std::llround(double(photo.columns * how.resize_columns) / shorter));
    }
    const auto values = prepared<float>(how, "f32", photo.pixels());
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t y = i / channels / how.columns + (to_rows - how.rows) / 2;
      const size_t x = i / channels % how.columns + (to_columns - how.columns) / 2;
      const double exact = resized_at(photo, to_rows, to_columns, y, x, i % channels);
      ASSERT_NEAR(values[i], exact, 0.5001) << "round " << round << ", element " << i;
      ASSERT_EQ(values[i], std::nearbyint(values[i]));
    }
  }
  const Photo line{1, 4, 1, {0, 100, 200, 100}};
  EXPECT_EQ(prepared<uint8_t>(plain(1, 2, 1), "u8", line.pixels()), (std::vector<uint8_t>{71, 143}));
  const Photo even = {9, 7, 1, std::vector<unsigned char>(63, 77)};
  EXPECT_EQ(prepared<uint8_t>(plain(3, 20, 1), "u8", even.pixels()), std::vector<uint8_t>(60, 77));
}

TEST(Pixels, AreScaledIntoTheTypeAndTheLayout) {
  const Photo photo = random_photo(5, 4, 3, 1);
  hoist_preprocessing how = plain(5, 4, 3);
  how.scale = 1 / 255.0;
  const double means[] = {0.485, 0.456, 0.406}, deviations[] = {0.229, 0.224, 0.225};
  std::copy(means, means + 3, how.mean);
  std::copy(deviations, deviations + 3, how.deviation);
  for (const bool first : {false, true}) {
    for (const bool blue : {false, true}) {
      how.channels_first = first;
      how.blue_first = blue;
      const auto values = prepared<float>(how, "f32", photo.pixels());
      for (size_t i = 0; i < 20; ++i) {
        for (size_t c = 0; c < 3; ++c) {
          const volatile double scaled = photo.bytes[3 * i + (blue ? 2 - c : c)] * how.scale;
          ASSERT_EQ(values[first ? c * 20 + i : 3 * i + c], static_cast<float>((scaled - means[c]) / deviations[c]));
        }
      }
      // The same image with reversed channel order and padded rows.
      std::vector<unsigned char> apart(5 * 17, 99);
      for (size_t i = 0; i < 60; ++i) apart[i / 12 * 17 + i % 12] = photo.bytes[i / 3 * 3 + 2 - i % 3];
      EXPECT_EQ(prepared<float>(how, "f32", {apart.data(), 5, 4, 3, 17, 1}), values);
    }
  }
  // Integers: round to nearest even, and saturate.
  how = plain(1, 5, 1);
  const Photo steps{1, 5, 1, {0, 1, 3, 5, 255}};
  how.scale = 0.5;
  EXPECT_EQ(prepared<uint8_t>(how, "u8", steps.pixels()), (std::vector<uint8_t>{0, 0, 2, 2, 128}));
  how.scale = 1;
  how.mean[0] = 128;
  EXPECT_EQ(prepared<int8_t>(how, "i8", steps.pixels()), (std::vector<int8_t>{-128, -127, -125, -123, 127}));
  EXPECT_EQ(prepared<uint8_t>(how, "u8", steps.pixels()), (std::vector<uint8_t>{0, 0, 0, 0, 127}));
  how.deviation[0] = 1e-30;
  EXPECT_EQ(prepared<int64_t>(how, "i64", steps.pixels()).back(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(prepared<int64_t>(how, "i64", steps.pixels()).front(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(prepared<uint64_t>(how, "u64", steps.pixels()).back(), std::numeric_limits<uint64_t>::max());
  // Halves, compared by their bits.
  how = plain(1, 5, 1);
  EXPECT_EQ(prepared<uint16_t>(how, "f16", steps.pixels()), (std::vector<uint16_t>{0, 0x3c00, 0x4200, 0x4500, 0x5bf8}));
}

TEST(Pixels, WhatDoesNotFitIsSaid) {
  const Photo photo = random_photo(6, 8, 3, 1);
  const hoist_pixels good = photo.pixels();
  hoist_preprocessing how = plain(4, 4, 3);
  EXPECT_EQ(problem_of(how, good), "");
  how.resize_columns = 4;
  EXPECT_THAT(problem_of(how, good), HasSubstr("8 x 6 pixels is 5 x 4 after resizing, and the input is 4 x 4 (crop"));
  how.crop = 1;
  EXPECT_EQ(problem_of(how, good), "");
  how.resize_columns = 3;
  EXPECT_THAT(problem_of(how, good), HasSubstr("(resize it to more)"));
  how.resize_columns = 99999;
  EXPECT_THAT(problem_of(how, good), HasSubstr("more than 134217728 pixels"));
  how.resize_columns = 100000;
  EXPECT_THAT(problem_of(how, good), HasSubstr("resize"));
  how = plain(4, 4, 3);
  for (const double value : {0.0, HUGE_VAL, std::nan("")}) {
    how.deviation[2] = value;
    EXPECT_THAT(problem_of(how, good), HasSubstr("deviation"));
  }
  how = plain(4, 4, 3);
  how.mean[1] = -HUGE_VAL;
  EXPECT_THAT(problem_of(how, good), HasSubstr("mean"));
  how = plain(4, 4, 2);
  EXPECT_THAT(problem_of(how, good), HasSubstr("1 or 3 channels"));
  how = plain(4, 0, 3);
  EXPECT_THAT(problem_of(how, good), HasSubstr("no pixels"));
  how = plain(4, 4, 1);
  EXPECT_THAT(problem_of(how, good), HasSubstr("an image of 3 channels, and the input has 1 (grey)"));
  how = plain(4, 4, 3);
  hoist_pixels bad = good;
  bad.row_pitch = 23;
  EXPECT_THAT(problem_of(how, bad), HasSubstr("rows of 23 bytes are too short"));
  for (const size_t rows : {size_t{0}, size_t{1} << 40, std::numeric_limits<size_t>::max()}) {
    bad = good;
    bad.rows = rows;
    EXPECT_THAT(problem_of(how, bad), HasSubstr("expected 1 to"));
  }
  bad.data = nullptr;
  EXPECT_EQ(problem_of(how, bad), "no pixels given");
  for (const char* scalar : {"bool", "string", "f31"}) EXPECT_THAT(problem_of(how, good, scalar), HasSubstr("type"));
}

// 3 * x for each element of one image of 2 x 2 pixels with 3 channels.
Plan image_plan() {
  Plan plan = sized_plan(1, 12);
  plan.arrays[0].shape = {1, 3, 2, 2};
  PlanPreprocessing how;
  how.channels_first = true;
  how.crop = true;
  how.resize_columns = 4;
  how.scale = 1 / 255.0;
  how.mean = {0.5, 0.25, 0.125};
  how.deviation = {0.5, 2, 4};
  plan.preprocessing = {how};
  return plan;
}

class PixelsOfABundle : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_bundle(image_plan(), folder_ / "a.hoist").ok()); }
  std::string bundle() const { return (folder_ / "a.hoist").string(); }
  TestFolder folder_;
};

TEST_F(PixelsOfABundle, BecomeTheInput) {
  hoist::Bundle opened(bundle());
  const hoist_preprocessing how = opened.preprocessing("x");
  EXPECT_EQ(how.rows, 2u);
  EXPECT_EQ(how.channels, 3u);
  EXPECT_EQ(how.resize_columns, 4u);
  EXPECT_EQ(how.mean[2], 0.125);
  const Photo photo = random_photo(9, 7, 3, 5);
  opened.set_pixels("x", photo.pixels());
  opened.run();
  const auto expected = prepared<float>(how, "f32", photo.pixels());
  const hoist::View<const float> found = opened.output<float>("y");
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found[i], 3 * expected[i]);
  // A refused call leaves the input unchanged.
  hoist_pixels grey = photo.pixels();
  grey.channels = 1;
  EXPECT_THROW(opened.set_pixels("x", grey), hoist::Error);
  EXPECT_THAT(hoist_error_message(opened.handle()), HasSubstr("input x: an image of 1 channels"));
  EXPECT_EQ(hoist_set_input_pixels(opened.handle(), 0, nullptr, 1), HOIST_BAD_ARGUMENT);
  EXPECT_EQ(hoist_set_input_pixels(opened.handle(), 0, &grey, 2), HOIST_BAD_ARGUMENT);
  EXPECT_THAT(hoist_error_message(opened.handle()), HasSubstr("input x takes 1 image, 2 given"));
  EXPECT_EQ(hoist_set_input_pixels(opened.handle(), 1, &grey, 1), HOIST_BAD_ARGUMENT);
  opened.run();
  EXPECT_EQ(opened.output<float>("y")[0], 3 * expected[0]);
}

TEST_F(PixelsOfABundle, AreReadBack) {
  const auto info = read_bundle(bundle());
  ASSERT_TRUE(info.ok()) << info.errors().front().text();
  ASSERT_EQ(info->plan.preprocessing.size(), 1u);
  EXPECT_EQ(encode_preprocessing(info->plan), encode_preprocessing(image_plan()));
  EXPECT_THAT(info->manifest, HasSubstr("\"shorter\": 4"));
  EXPECT_THAT(info->manifest, HasSubstr("\"layout\": \"nchw\""));
}

TEST_F(PixelsOfABundle, WithoutAWordOfThemAreRefused) {
  Plan plan = image_plan();
  plan.preprocessing.clear();
  ASSERT_TRUE(write_bundle(plan, folder_ / "b.hoist").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b.hoist/preprocessing.bin"));
  hoist::Bundle opened((folder_ / "b.hoist").string());
  const Photo photo = random_photo(2, 2, 3, 1);
  try {
    opened.set_pixels("x", photo.pixels());
    ADD_FAILURE() << "accepted";
  } catch (const hoist::Error& error) {
    EXPECT_EQ(error.status(), HOIST_BAD_ARGUMENT);
    EXPECT_THAT(error.what(), HasSubstr("does not state how pixels become it"));
  }
}

TEST_F(PixelsOfABundle, ComeSeveralAtOnceAndInOtherSizes) {
  Plan one = sized_plan(1, 12), three = sized_plan(3, 48);
  one.arrays[0].shape = {1, 2, 2, 3};
  three.arrays[0].shape = {3, 4, 4, 3};
  PlanPreprocessing how;
  how.scale = 2;
  one.preprocessing = three.preprocessing = {how};
  const std::vector<SizedPlan> plans = {{{{"batch", 1}, {"side", 2}}, &one}, {{{"batch", 3}, {"side", 4}}, &three}};
  ASSERT_TRUE(write_bundle(plans, folder_ / "b.hoist").ok());
  hoist::Bundle opened((folder_ / "b.hoist").string());
  opened.choose_input_shape("x", {3, 4, 4, 3});
  const Photo photos[] = {random_photo(4, 4, 3, 1), random_photo(5, 6, 3, 2), random_photo(2, 2, 3, 3)};
  const hoist_pixels pixels[] = {photos[0].pixels(), photos[1].pixels(), photos[2].pixels()};
  opened.set_pixels("x", hoist::View<const hoist_pixels>(pixels, 3));
  const hoist_preprocessing in_use = opened.preprocessing("x");
  EXPECT_EQ(in_use.rows, 4u);
  opened.run();
  for (size_t i = 0; i < 3; ++i) {
    const auto expected = prepared<float>(in_use, "f32", pixels[i]);
    for (size_t k = 0; k < 48; ++k)
      ASSERT_EQ(opened.output<float>("y")[48 * i + k], 3 * expected[k] + 10 * float(i)) << i << " " << k;
  }
}

// Writes plan.bin with the size and hash of other content of preprocessing.bin; all hashes are valid.
void write_untrusted(const std::filesystem::path& bundle, const std::string& content) {
  write_sealed(bundle / "preprocessing.bin", content);
  const std::string sealed = read_text(bundle / "preprocessing.bin");
  std::string plan = read_text(bundle / "plan.bin");
  const size_t at = plan.find("preprocessing.bin") + std::strlen("preprocessing.bin") + 1;
  const uint64_t words[] = {sealed.size(), hoist_hash(sealed.data(), sealed.size())};
  std::memcpy(plan.data() + at, words, sizeof words);
  write_sealed(bundle / "plan.bin", plan);
}

TEST_F(PixelsOfABundle, OfHostileBundlesAreSafe) {
  const std::string good = read_text(folder_ / "a.hoist/preprocessing.bin");
  const Photo photo = random_photo(3, 5, 3, 1);
  size_t refused = 0, taken = 0;
  const auto attempt = [&](const std::string& content) {
    write_untrusted(folder_ / "a.hoist", content);
    hoist_bundle* opened = nullptr;
    if (hoist_open(bundle().c_str(), nullptr, &opened) != HOIST_OK) {
      EXPECT_THAT(hoist_error_message(opened), HasSubstr("preprocessing.bin"));
      ++refused;
    } else {
      const hoist_pixels pixels = photo.pixels();
      taken += hoist_set_input_pixels(opened, 0, &pixels, 1) == HOIST_OK ? 1 : 0;
    }
    hoist_close(opened);
  };
  attempt(good);
  ASSERT_EQ(taken, 1u);
  for (size_t i = 24; i + 8 < good.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7f, 0xff}) {
      std::string changed = good;
      changed[i] = static_cast<char>(value);
      attempt(changed);
    }
  }
  for (size_t length = 24; length + 8 < good.size(); length += 9) attempt(good.substr(0, length) + std::string(8, 'h'));
  EXPECT_GT(refused, 30u);
  EXPECT_GT(taken, 30u);
  // Without a valid hash, every changed byte is detected.
  write_text(folder_ / "a.hoist/preprocessing.bin", good + "x");
  char message[512] = "";
  EXPECT_EQ(hoist_verify_files(bundle().c_str(), nullptr, nullptr, message, sizeof message), HOIST_BAD_BUNDLE);
  EXPECT_THAT(message, HasSubstr("preprocessing.bin"));
}

}  // namespace
}  // namespace hoist
