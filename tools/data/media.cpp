#include "tools/data/media.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "ir/host/host_images.h"
#include "tools/base/files.h"
#include "tools/data/data.h"

namespace hoist {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_media_bytes = size_t{1} << 30;  // per file

// ---- Values of the options -----------------------------------------------------------------------------------------

struct Extents {
  int64_t width = 0, height = 0;  // height 0: `width` is the length of the shorter side
};

Result<Extents> parse_extents(const std::string& option, const std::string& text) {
  Extents out;
  const size_t by = text.find('x');
  const auto number = [](const std::string& digits, int64_t& value) {
    if (digits.empty() || digits.size() > 5 || digits.find_first_not_of("0123456789") != std::string::npos)
      return false;
    value = std::stoll(digits);
    return value > 0;
  };
  const bool good = by == std::string::npos
                        ? number(text, out.width)
                        : number(text.substr(0, by), out.width) && number(text.substr(by + 1), out.height);
  if (good) return out;
  return Diagnostic{option + " " + text, "is not a size", "write " + option + " 256, or " + option + " 320x240"};
}

Result<double> parse_scale(const std::string& text, Scalar scalar) {
  if (text.empty()) return is_float(scalar) ? 1.0 / 255 : 1.0;
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (*end == '/') {
    const char* divisor = end + 1;
    value /= std::strtod(divisor, &end);
    if (end == divisor) value = std::numeric_limits<double>::quiet_NaN();
  }
  if (end != text.c_str() && *end == 0 && std::isfinite(value)) return value;
  return Diagnostic{"--scale " + text, "is not a number", "write --scale 1, or --scale 1/255"};
}

// Finds the layout and the numbers of rows, columns and channels of the input.
Result<Nothing> find_pixels(const ValueInfo& input, const ImageOptions& options, hoist_preprocessing& how) {
  std::vector<int64_t> shape = input.shape;
  const std::string type = type_text(input.scalar, input.shape);
  if (shape.size() == 4) shape.erase(shape.begin());
  if (shape.size() != 3 || input.scalar == Scalar::boolean || input.scalar == Scalar::string)
    return Diagnostic{"input " + input.name, "is " + type + ", which is not an image",
                      "images go into [1][channels][height][width] or [1][height][width][channels]"};
  const auto are_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  if (options.layout.empty() && options.stored)
    how.channels_first = options.stored->channels_first;
  else
    how.channels_first = options.layout == "nchw" || (options.layout != "nhwc" && are_channels(shape[0])) ? 1 : 0;
  const bool first = how.channels_first != 0;
  how.channels = static_cast<size_t>(shape[first ? 0 : 2]);
  how.rows = static_cast<size_t>(shape[first ? 1 : 0]);
  how.columns = static_cast<size_t>(shape[first ? 2 : 1]);
  if (!are_channels(shape[first ? 0 : 2]))
    return Diagnostic{"input " + input.name,
                      fmt::format("is {}, with {} channels, and images have 3 or 1", type, how.channels),
                      "--layout states the dimension of the channels"};
  const auto height = static_cast<uint64_t>(shape[first ? 1 : 0]), width = static_cast<uint64_t>(shape[first ? 2 : 1]);
  if (height > 0 && width > 0 && height <= HOIST_MOST_PIXELS / width) return Nothing{};
  return Diagnostic{"input " + input.name,
                    fmt::format("has {} x {} pixels, expected from 1 to {}", width, height, HOIST_MOST_PIXELS), ""};
}

Result<Nothing> read_sizes(const ImageOptions& options, hoist_preprocessing& how) {
  if (!options.resize.empty()) {
    HOIST_TRY(const Extents to, parse_extents("--resize", options.resize));
    how.resize_rows = static_cast<size_t>(to.height);
    how.resize_columns = static_cast<size_t>(to.width);
  }
  if (options.crop.empty()) return Nothing{};
  HOIST_TRY(Extents crop, parse_extents("--crop", options.crop));
  if (crop.height == 0) crop.height = crop.width;
  how.crop = 1;
  if (static_cast<size_t>(crop.width) == how.columns && static_cast<size_t>(crop.height) == how.rows) return Nothing{};
  return Diagnostic{
      "--crop " + options.crop,
      fmt::format("results in {} x {} pixels, the input has {} x {}", crop.width, crop.height, how.columns, how.rows),
      "leave --crop out, or crop to the input's size"};
}

// Reads one number, or one per channel; leaves the value unchanged if none is given.
Result<Nothing> read_channels(const std::string& option, const std::vector<double>& given, size_t channels,
                              double (&out)[3]) {
  if (!given.empty() && given.size() != 1 && given.size() != channels)
    return Diagnostic{option, fmt::format("has {} numbers, the input {} channels", given.size(), channels),
                      "give one number, or one per channel"};
  for (size_t c = 0; c < channels && !given.empty(); ++c) {
    out[c] = given[given.size() == 1 ? 0 : c];
    if (!std::isfinite(out[c])) return Diagnostic{option, "has a number that is not finite", "give finite ones"};
  }
  return Nothing{};
}

bool has_ending(const fs::path& file, std::initializer_list<std::string_view> endings) {
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

// A little-endian number of at most 4 bytes.
uint32_t number_at(const std::string& bytes, size_t at, size_t count) {
  uint32_t out = 0;
  for (size_t i = count; i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

struct WaveFormat {
  uint32_t kind = 0, channels = 0, rate = 0, bits = 0;
};

double wave_sample(const std::string& bytes, size_t at, const WaveFormat& format) {
  const uint32_t number = number_at(bytes, at, format.bits / 8);
  if (format.kind == 3) {
    float value = 0;
    std::memcpy(&value, &number, sizeof value);
    return value;
  }
  if (format.bits == 8) return (static_cast<double>(number) - 128) / 128;  // the only unsigned format
  const auto moved = static_cast<int32_t>(number << (32 - format.bits));
  return static_cast<double>(moved) / 2147483648.0;
}

}  // namespace

Result<Nothing> check_resize(const std::string& text) {
  HOIST_TRY_VOID(parse_extents("--resize", text));
  return Nothing{};
}

Result<Nothing> check_crop(const std::string& text) {
  HOIST_TRY_VOID(parse_extents("--crop", text));
  return Nothing{};
}

Result<Nothing> check_scale(const std::string& text) {
  HOIST_TRY_VOID(parse_scale(text, Scalar::f32));
  return Nothing{};
}

bool any_given(const ImageOptions& options) {
  return !options.layout.empty() || !options.resize.empty() || !options.crop.empty() || !options.colours.empty() ||
         !options.mean.empty() || !options.deviation.empty() || !options.scale.empty();
}

Result<hoist_preprocessing> preprocessing_for(const ValueInfo& input, const ImageOptions& options) {
  hoist_preprocessing how = options.stored.value_or(hoist_preprocessing{});
  if (!options.stored) std::fill(how.deviation, how.deviation + 3, 1.0);
  HOIST_TRY_VOID(find_pixels(input, options, how));
  HOIST_TRY_VOID(read_sizes(options, how));
  if (!options.colours.empty()) how.blue_first = options.colours == "bgr" ? 1 : 0;
  if (!options.scale.empty() || !options.stored) {
    HOIST_TRY(how.scale, parse_scale(options.scale, input.scalar));
  }
  HOIST_TRY_VOID(read_channels("--mean", options.mean, how.channels, how.mean));
  HOIST_TRY_VOID(read_channels("--std", options.deviation, how.channels, how.deviation));
  for (size_t c = 0; c < how.channels; ++c) {
    if (how.deviation[c] == 0) return Diagnostic{"--std", "is zero", "values are divided by it"};
  }
  return how;
}

bool is_image(const fs::path& file) {
  return has_ending(file, {".bmp", ".j2k", ".jp2", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tif",
                           ".tiff", ".webp"});
}
bool is_stream(const fs::path& file, const ValueInfo& input) {
  return input.scalar == Scalar::u8 && input.shape.size() == 1 && is_image(file);
}
bool is_sound(const fs::path& file) { return has_ending(file, {".wav"}); }

Result<Image> decode_image(const fs::path& file, bool grey) {
  HOIST_TRY(const std::string bytes, read_file(file, most_media_bytes));
  hoist_image decoded = {};
  char message[256] = "";
  if (hoist_read_image(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), &decoded, message,
                       sizeof message) != HOIST_HOST_OK)
    return Diagnostic{file.string(), fmt::format("cannot be decoded: {}", message), "is it whole?"};
  const std::unique_ptr<unsigned char, decltype(&std::free)> owner(decoded.pixels, std::free);
  Image out{static_cast<int64_t>(decoded.height), static_cast<int64_t>(decoded.width), grey ? 1 : 3, {}};
  const size_t count = decoded.height * decoded.width;
  if (grey) {
    out.values.resize(count);
    for (size_t i = 0; i < count; ++i) {  // luminance as in JPEG
      const unsigned char* pixel = decoded.pixels + 3 * i;
      out.values[i] = static_cast<uint8_t>((299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2] + 500) / 1000);
    }
  } else {
    out.values.assign(decoded.pixels, decoded.pixels + 3 * count);
  }
  return out;
}

Result<Tensor> read_image(const fs::path& file, const ValueInfo& input, const ImageOptions& options) {
  HOIST_TRY(const hoist_preprocessing how, preprocessing_for(input, options));
  if (input.shape.size() == 4 && input.shape[0] != 1)
    return Diagnostic{"input " + input.name, fmt::format("takes {} images at once", input.shape[0]),
                      "give an array, or a folder of images as --data"};
  HOIST_TRY(const Image image, decode_image(file, how.channels == 1));
  const hoist_pixels pixels = {image.values.data(),
                               static_cast<size_t>(image.height),
                               static_cast<size_t>(image.width),
                               static_cast<size_t>(image.channels),
                               0,
                               0};
  Tensor out(input.scalar, input.shape);
  char message[512] = "";
  const std::string scalar(row(input.scalar).name);
  if (hoist_prepare_pixels(&how, scalar.c_str(), &pixels, out.data(), message, sizeof message) == HOIST_OK) return out;
  return Diagnostic{file.string(), message,
                    fmt::format("--resize and --crop {}x{} make it fit", how.columns, how.rows)};
}

Result<Tensor> read_stream(const fs::path& file, const ValueInfo& input) {
  HOIST_TRY(const std::string bytes, read_file(file, most_media_bytes));
  Tensor out(input.scalar, input.shape);
  if (bytes.size() > static_cast<size_t>(out.size()))
    return Diagnostic{file.string(),
                      fmt::format("has {} bytes, and input {} takes {}", bytes.size(), input.name, out.size()),
                      fmt::format("compile for more, for example --dim {}.0={}, if the model leaves that open",
                                  input.name, 2 * bytes.size())};
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

Result<Tensor> read_sound(const fs::path& file, const ValueInfo& input, int64_t* rate) {
  HOIST_TRY(const std::string bytes, read_file(file, most_media_bytes));
  const auto bad = [&](const std::string& why) {
    return Diagnostic{file.string(), "cannot be read: " + why, "sounds are .wav files of PCM or f32"};
  };
  if (bytes.size() < 12 || bytes.compare(0, 4, "RIFF") != 0 || bytes.compare(8, 4, "WAVE") != 0)
    return bad("is not a .wav file");
  WaveFormat format;
  size_t begin = 0, end = 0;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const size_t size = number_at(bytes, at + 4, 4), from = at + 8, to = std::min(bytes.size(), from + size);
    if (bytes.compare(at, 4, "fmt ") == 0 && to - from >= 16) {
      format = {number_at(bytes, from, 2), number_at(bytes, from + 2, 2), number_at(bytes, from + 4, 4),
                number_at(bytes, from + 14, 2)};
      if (format.kind == 0xfffe && to - from >= 26)
        format.kind = number_at(bytes, from + 24, 2);  // the extensible format stores
                                                       // the actual format later
    }
    if (bytes.compare(at, 4, "data") == 0 && end == 0) {
      begin = from;
      end = to;
    }
    at = from + size + size % 2;
  }
  const bool known =
      (format.kind == 1 && (format.bits == 8 || format.bits == 16 || format.bits == 24 || format.bits == 32)) ||
      (format.kind == 3 && format.bits == 32);
  if (!known || format.channels == 0)
    return bad(fmt::format("has format {} of {} bits and {} channels", format.kind, format.bits, format.channels));
  if (end <= begin) return bad("has no samples");
  if (!is_float(input.scalar))
    return Diagnostic{"input " + input.name, "is " + type_text(input.scalar, input.shape) + ", and sounds are floats",
                      ""};
  if (rate != nullptr) *rate = format.rate;
  const size_t step = size_t{format.bits / 8} * format.channels, count = (end - begin) / step;
  Tensor out(input.scalar, input.shape);
  for (size_t i = 0; i < std::min<size_t>(count, static_cast<size_t>(out.size())); ++i) {
    double sum = 0;
    for (size_t c = 0; c < format.channels; ++c)
      sum += wave_sample(bytes, begin + i * step + c * (format.bits / 8), format);
    out.set_float(static_cast<int64_t>(i), sum / format.channels);
  }
  return out;
}

Result<Tensor> read_media(const fs::path& file, const ValueInfo& input, const ImageOptions& options) {
  if (is_stream(file, input)) return read_stream(file, input);
  return is_sound(file) ? read_sound(file, input) : read_image(file, input, options);
}

}  // namespace hoist
