// Tests images and sounds as inputs: the values that run and evaluate read from generated files, and their errors on
// files that are damaged or do not fit.
#include "tools/data/media.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/tools/program.h"
#include "tools/base/files.h"
#include "tools/data/npy.h"
#include "tools/data/scores.h"

namespace hoist::media_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path models = fs::path(HOIST_SOURCE_DIR) / "models";

void write_png(const std::string& file, const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  ASSERT_NE(png_image_write_to_file(&png, file.c_str(), 0, image.values.data(), 0, nullptr), 0) << png.message;
}

void write_jpeg(const std::string& path, const Image& image) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  jpeg_stdio_dest(&info, file);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(image.values.data() + info.next_scanline * image.width * image.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::fclose(file);
}

// Left half red, right half blue.
Image two_colours(int64_t height, int64_t width) {
  Image out{height, width, 3, {}};
  for (int64_t i = 0; i < height * width; ++i) {
    const bool left = i % width < width / 2;
    out.values.insert(out.values.end(), {uint8_t(left ? 255 : 0), 0, uint8_t(left ? 0 : 255)});
  }
  return out;
}

class Media : public InTemporaryFolder {
 protected:
  static Tensor read(const std::string& file, const ValueInfo& input, const ImageOptions& options = {}) {
    auto out = read_image(file, input, options);
    EXPECT_TRUE(out.ok()) << out.errors()[0].text();
    return out.ok() ? *out : Tensor(input.scalar, input.shape);
  }
};

TEST_F(Media, ImagesBecomeInputsAsTheOptionsSay) {
  write_png(in("a.png"), two_colours(4, 6));
  const ValueInfo planes{"x", Scalar::f32, {1, 3, 4, 6}}, pixels{"x", Scalar::u8, {1, 4, 6, 3}};
  Tensor x = read(in("a.png"), planes);
  EXPECT_EQ(x.float_at(0), 1);           // red, on the left
  EXPECT_EQ(x.float_at(5), 0);           // and not on the right
  EXPECT_EQ(x.float_at(2 * 24 + 5), 1);  // blue
  x = read(in("a.png"), pixels);
  EXPECT_EQ(x.integer_at(0), 255);
  EXPECT_EQ(x.integer_at(17), 255);
  ImageOptions options;
  options.colours = "bgr";
  EXPECT_EQ(read(in("a.png"), planes, options).float_at(5), 1);
  options = {};
  options.scale = "1";
  options.mean = {100, 0, 5};
  options.deviation = {2};
  x = read(in("a.png"), planes, options);
  EXPECT_EQ(x.float_at(0), (255 - 100) / 2.0F);
  EXPECT_EQ(x.float_at(2 * 24), -2.5F);
  // Resized to the input's size; with a crop, the shorter side is resized and the centre is taken.
  write_png(in("wide.png"), two_colours(8, 32));
  x = read(in("wide.png"), {"x", Scalar::f32, {3, 4, 4}});
  EXPECT_EQ(x.float_at(0), 1);
  EXPECT_EQ(x.float_at(3), 0);
  options = {};
  options.resize = "4";
  options.crop = "4";
  x = read(in("wide.png"), {"x", Scalar::f32, {1, 3, 4, 4}}, options);
  EXPECT_EQ(x.float_at(0), 1);
  EXPECT_EQ(x.float_at(3), 0);
  // Grey by luminance; JPEG is close.
  x = read(in("a.png"), {"x", Scalar::f32, {1, 1, 4, 6}});
  EXPECT_GT(x.float_at(0), x.float_at(5));
  write_jpeg(in("a.jpg"), two_colours(16, 16));
  x = read(in("a.jpg"), {"x", Scalar::f32, {1, 3, 16, 16}});
  EXPECT_NEAR(x.float_at(0), 1, 0.05);
  EXPECT_NEAR(x.float_at(15), 0, 0.05);
}

TEST_F(Media, ImagesWithoutCompressionAreRead) {
  const ValueInfo planes{"x", Scalar::u8, {3, 1, 2}}, grey{"x", Scalar::u8, {1, 1, 2}};
  ASSERT_TRUE(write_file(in("a.ppm"), std::string("P6 # red, blue\n2 1\n255\n\xff\0\0\0\0\xff", 29)).ok());
  EXPECT_EQ(read(in("a.ppm"), planes).as_integers(), (std::vector<int64_t>{255, 0, 0, 0, 0, 255}));
  EXPECT_EQ(read(in("a.ppm"), grey).as_integers(), (std::vector<int64_t>{76, 29}));
  ASSERT_TRUE(write_file(in("a.pgm"), "P5 2 1 255 AB").ok());
  EXPECT_EQ(read(in("a.pgm"), planes).as_integers(), (std::vector<int64_t>{65, 66, 65, 66, 65, 66}));
  ASSERT_TRUE(write_file(in("a.pgm"), "P5 2 1 65535 ABCD").ok());  // 16 bits: 255 / 65535 of 0x4142 and 0x4344
  EXPECT_EQ(read(in("a.pgm"), grey).as_integers(), (std::vector<int64_t>{65, 67}));
  for (const char* bad : {"P5", "P5 2 1", "P5 2 1 255", "P5 2 1 255 A", "P5 2 1 65536 ABCD", "P5 0 1 255 A",
                          "P5 99999999 99999999 255 A", "P6 2 1 255 ABCDE", "P5 # no end"}) {
    ASSERT_TRUE(write_file(in("bad.pgm"), bad).ok());
    EXPECT_FALSE(read_image(in("bad.pgm"), grey, {}).ok()) << bad;
  }
}

TEST_F(Media, SoundsAreAveragedAndFilledUp) {
  std::string bytes = "RIFF....WAVEfmt ";
  const auto add = [&](uint32_t number, int count) {
    for (int i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i));
  };
  for (auto [number, count] : {std::pair{16u, 4}, {1u, 2}, {2u, 2}, {16000u, 4}, {64000u, 4}, {4u, 2}, {16u, 2}})
    add(number, count);
  bytes += "data";
  add(12, 4);
  for (int sample : {16384, 0, -32768, -32768, 32767, -32767}) add(static_cast<uint32_t>(sample), 2);
  ASSERT_TRUE(write_file(in("a.wav"), bytes).ok());
  int64_t rate = 0;
  auto x = read_sound(in("a.wav"), {"x", Scalar::f32, {1, 4}}, &rate);
  ASSERT_TRUE(x.ok()) << x.errors()[0].text();
  EXPECT_EQ(rate, 16000);
  EXPECT_EQ(x->float_at(0), 0.25);
  EXPECT_EQ(x->float_at(1), -1);
  EXPECT_EQ(x->float_at(2), 0);
  EXPECT_EQ(x->float_at(3), 0);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_TRUE(write_file(in("cut.wav"), bytes.substr(0, size)).ok());
    (void)read_sound(in("cut.wav"), {"x", Scalar::f32, {1, 4}});  // an error, or the available samples
  }
  ASSERT_TRUE(write_file(in("cut.wav"), bytes.substr(0, 30)).ok());
  EXPECT_FALSE(read_sound(in("cut.wav"), {"x", Scalar::f32, {1, 4}}).ok());
}

TEST_F(Media, WhatIsDamagedOrDoesNotFitIsSaid) {
  const ValueInfo input{"x", Scalar::f32, {1, 3, 4, 6}};
  const auto complaint = [&](const std::string& file, const ValueInfo& of, const ImageOptions& options = {}) {
    auto out = read_image(in(file), of, options);
    return out.ok() ? std::string() : out.errors()[0].text();
  };
  write_png(in("a.png"), two_colours(4, 6));
  write_jpeg(in("a.jpg"), two_colours(16, 16));
  for (const char* name : {"a.png", "a.jpg"}) {
    const auto whole = read_file(in(name));
    ASSERT_TRUE(whole.ok());
    constexpr size_t last_chunk = 30;  // contains no pixels
    for (size_t size = 0; size + last_chunk < whole->size(); size += 7) {
      ASSERT_TRUE(write_file(in("cut"), whole->substr(0, size)).ok());
      EXPECT_THAT(complaint("cut", input), HasSubstr("cannot be decoded")) << name << " " << size;
    }
  }
  EXPECT_THAT(complaint("missing.png", input), HasSubstr("No such file"));
  EXPECT_THAT(complaint("a.png", {"x", Scalar::f32, {1, 10}}), HasSubstr("which is not an image"));
  EXPECT_THAT(complaint("a.png", {"x", Scalar::f32, {1, 4, 6, 5}}), HasSubstr("5 channels"));
  ImageOptions options;
  options.mean = {1, 2};
  EXPECT_THAT(complaint("a.png", input, options), HasSubstr("has 2 numbers, the input 3 channels"));
  options = {};
  options.resize = "8";
  EXPECT_THAT(complaint("a.png", input, options), HasSubstr("--crop"));
  options.resize = "8x";
  EXPECT_THAT(complaint("a.png", input, options), HasSubstr("is not a size"));
  options = {};
  options.deviation = {0};
  EXPECT_THAT(complaint("a.png", input, options), HasSubstr("--std"));
  options = {};
  options.scale = "1/";
  EXPECT_THAT(complaint("a.png", input, options), HasSubstr("--scale"));
}

// The digits as images, in one folder per class: the same accuracy as with arrays.
TEST_F(Media, EvaluateReadsFoldersOfImages) {
  const std::string bundle = in("m.hoist");
  ASSERT_EQ(run_hoist({"compile", (models / "digits_fully_connected.onnx").string(), "-o", bundle, "--no-check",
                       "--dim", "N=7"})
                .code,
            0);
  auto file = NpzFile::open(models / "digits_fully_connected_test.npz");
  ASSERT_TRUE(file.ok());
  auto images = file->read("image"), labels = file->read("labels");
  ASSERT_TRUE(images.ok() && labels.ok());
  const char* const names[] = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  constexpr int64_t count = 100;
  std::string text, lines;
  for (const char* name : names) {
    fs::create_directories(in("images/") + name);
    text += std::string(name) + "\n";
  }
  fs::create_directories(in("flat"));
  ASSERT_TRUE(write_file(in("names.txt"), text).ok());
  for (int64_t i = 0; i < count; ++i) {
    Image image{8, 8, 1, {}};
    for (int64_t k = 0; k < 64; ++k)
      image.values.push_back(static_cast<uint8_t>(std::lround(255 * images->float_at(64 * i + k))));
    const std::string name = std::to_string(i) + ".png", label = names[labels->integer_at(i)];
    write_png(in("images/" + label + "/" + name), image);
    write_png(in("flat/" + name), image);
    lines += name + " " + std::to_string(labels->integer_at(i)) + "\n";
  }
  ASSERT_TRUE(write_file(in("flat/labels.txt"), lines).ok());
  const auto evaluated = [&](const std::string& data, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"evaluate", bundle, "--data", in(data), "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return std::pair{nlohmann::json::parse(ran.out, nullptr, false), ran.err};
  };
  const auto [by_folder, said] = evaluated("images", {"--labels", in("names.txt")});
  EXPECT_EQ(by_folder["total"], count);
  EXPECT_GE(by_folder["correct"], 90);
  EXPECT_GE(by_folder["top5"], 0.98);
  EXPECT_EQ(by_folder["classes"].size(), 10u);
  EXPECT_EQ(by_folder["classes"][3]["name"], "three");
  EXPECT_EQ(by_folder["no_better_than_chance"], false);
  EXPECT_EQ(said.find("warning"), std::string::npos) << said;
  EXPECT_EQ(evaluated("flat").first["correct"], by_folder["correct"]);
  // The alphabetical order of folders is not the order of the model's classes; and the images are black.
  const auto [guessed, warned] = evaluated("images", {"--mean", "9", "--std", "1000"});
  EXPECT_EQ(guessed["no_better_than_chance"], true);
  EXPECT_THAT(warned, HasSubstr("no better than guessing"));
  const Ran table = run_hoist({"evaluate", bundle, "--data", in("flat"), "--classes", "--labels", in("names.txt")});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("top5: "));
  EXPECT_THAT(table.out, HasSubstr("3 (three)"));
  ASSERT_TRUE(write_file(in("few.txt"), "one\ntwo\n").ok());
  const Ran few = run_hoist({"evaluate", bundle, "--data", in("flat"), "--labels", in("few.txt")});
  EXPECT_EQ(few.code, 3);
  EXPECT_THAT(few.err, HasSubstr("names 2 classes, output logits has 10"));
}

TEST_F(Media, RunTakesImagesAndNamesTheBestClasses) {
  const std::string bundle = in("m.hoist");
  ASSERT_EQ(run_hoist({"compile", (models / "digits_fully_connected.onnx").string(), "-o", bundle, "--no-check"}).code,
            0);
  Image image{16, 16, 1, std::vector<uint8_t>(256, 0)};
  for (int64_t y = 2; y < 14; ++y) image.values[static_cast<size_t>(y * 16 + 8)] = 255;
  write_png(in("one.png"), image);
  ASSERT_TRUE(write_file(in("names.txt"), "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n").ok());
  Ran ran = run_hoist({"run", bundle, "--input", "image=" + in("one.png"), "--output-dir", in("out"), "--labels",
                       in("names.txt"), "--top", "3", "--json", in("answer.json")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("logits: [1][10]f32"));
  const auto answer = nlohmann::json::parse(std::ifstream(in("answer.json")));
  const auto& best = answer["outputs"][0]["best"][0];
  ASSERT_EQ(best.size(), 3u);
  EXPECT_GE(best[0]["score"], best[1]["score"]);
  EXPECT_THAT(ran.out, HasSubstr("(" + best[0]["name"].get<std::string>() + ")"));
  // A NaN in the input gives a NaN in the output: both are reported.
  Tensor bad(Scalar::f32, {1, 1, 8, 8});
  bad.set_float(5, std::nan(""));
  ASSERT_TRUE(write_npy(in("bad.npy"), bad).ok());
  ran = run_hoist({"run", bundle, "--input", "image=" + in("bad.npy"), "--output-dir", in("out")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("input image has 1 NaN or infinities among 64 elements"));
  EXPECT_THAT(ran.err, HasSubstr("output logits has 10 NaN or infinities"));
}

// Options that are given at compilation are stored in the bundle: run, evaluate and its C program use them by default,
// and given options override them.
TEST_F(Media, ABundleKeepsHowImagesBecomeItsInput) {
  const std::string model = (models / "digits_fully_connected.onnx").string();
  const std::vector<std::string> options = {"--resize", "9", "--crop", "8", "--mean", "0.5", "--std", "0.25"};
  const auto compile = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words = {"compile", model, "-o", in(name), "--no-check"};
    words.insert(words.end(), more.begin(), more.end());
    return run_hoist(words);
  };
  ASSERT_EQ(compile("told.hoist", options).code, 0);
  ASSERT_EQ(compile("plain.hoist", {}).code, 0);
  const auto manifest = nlohmann::json::parse(std::ifstream(in("told.hoist/manifest.json")));
  EXPECT_EQ(manifest["preprocessing"][0]["input"], "image");
  EXPECT_EQ(manifest["preprocessing"][0]["mean"][0], 0.5);
  EXPECT_EQ(manifest["preprocessing"][0]["crop"], true);
  Image image{13, 11, 1, {}};
  for (int i = 0; i < 143; ++i) image.values.push_back(static_cast<uint8_t>(37 * i));
  write_png(in("a.png"), image);
  ASSERT_TRUE(write_file(in("a.pgm"),
                         "P5\n# made by a test\n11 13\n255\n" + std::string(image.values.begin(), image.values.end()))
                  .ok());
  const auto logits = [&](const std::string& bundle, std::vector<std::string> more = {}, const char* file = "a.png") {
    std::vector<std::string> words = {"run", in(bundle), "--input", "image=" + in(file), "--output-dir", in("out")};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run_hoist(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    auto out = read_npy(in("out/logits.npy"));
    EXPECT_TRUE(out.ok());
    std::vector<double> numbers;
    for (int64_t i = 0; out.ok() && i < out->size(); ++i) numbers.push_back(out->float_at(i));
    return numbers;
  };
  const std::vector<double> told = logits("told.hoist");
  EXPECT_EQ(told, logits("plain.hoist", options));
  EXPECT_EQ(told, logits("told.hoist", {}, "a.pgm"));
  EXPECT_NE(told, logits("plain.hoist"));
  EXPECT_EQ(logits("told.hoist", {"--mean", "0", "--std", "1", "--resize", "8x8"}), logits("plain.hoist"));
  // The bundle's own program, with only the runtime.
  const Ran made = run_shell("make -s -C '" + in("told.hoist") + "' CFLAGS='-O2 -Wall -Wextra -Werror' example");
  ASSERT_EQ(made.code, 0) << made.err;
  const Ran ran = run_shell("'" + in("told.hoist/example") + "' --runs 1 'image=" + in("a.pgm") + "'");
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  std::string expected = "logits f32[1,10]:";
  for (const double value : told) expected += fmt::format(" {:g}", value);
  EXPECT_THAT(ran.out, HasSubstr(expected));
  ASSERT_TRUE(write_file(in("cut.pgm"), "P5 11 13 255 too few").ok());
  EXPECT_EQ(run_shell("'" + in("told.hoist/example") + "' 'image=" + in("cut.pgm") + "'").code, 3);
  // The error comes before any compilation.
  const Ran wrong = compile("wrong.hoist", {"--mean", "1,2,3"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_THAT(wrong.err, HasSubstr("--mean: has 3 numbers, the input 1 channels"));
  const Ran none = run_hoist({"compile", (models / "../tests/fuzz/corpus/onnx_model/image.onnx").string(), "-o",
                              in("none.hoist"), "--crop", "5"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("which is not an image"));
}

TEST(Scores, NoBetterThanChanceIsSaid) {
  ScoreCard card(4);
  Tensor scores(Scalar::f32, {4});
  scores.set_float(1, 1);
  for (int64_t i = 0; i < 40; ++i) card.add(scores, 0, i % 4);
  EXPECT_EQ(card.right(), 10);
  EXPECT_EQ(card.in_best_five(), 40);
  EXPECT_THAT(card.chance_warning(), HasSubstr("10 of 40 right is no better than guessing at 25.0 %"));
  ScoreCard sure(4);
  for (int64_t i = 0; i < 40; ++i) {
    Tensor own(Scalar::f32, {4});
    own.set_float(i % 4, 1);
    sure.add(own, 0, i % 4);
  }
  EXPECT_EQ(sure.chance_warning(), "");
  scores.set_float(0, std::nan(""));
  sure.add(scores, 0, 0);
  EXPECT_EQ(sure.not_finite(), 1);
  EXPECT_EQ(sure.right(), 40);
}

}  // namespace hoist::media_test
