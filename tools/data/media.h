// Converts images and sounds to inputs of a model: decodes, resizes and scales them as in training. Files are
// untrusted: sizes are checked before decoding. Arrays are read by npy.h and frontend/file/tensor_file.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backends/runtime/hoist_runtime.h"
#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

/// The conversion of an image file to an input, in this order: resize, centre crop, colour order, (value * scale -
/// mean) / std, layout. Values are 0 to 255 at first. An option that is "" or empty comes from `stored`, else has its
/// default.
struct ImageOptions {
  std::string layout;                              ///< nchw | nhwc; by default the dimension with extent 1 or 3 is the
                                                   ///< channels
  std::string resize;                              ///< WxH, or N for the shorter side; by default the input's size
  std::string crop;                                ///< WxH or N; by default none
  std::string colours;                             ///< rgb | bgr, by default rgb; an input with one channel takes grey
  std::vector<double> mean, deviation;             ///< one number, or one per channel; of scaled values
  std::string scale;                               ///< a number or 1/255; by default 1/255 for floats, 1 for integers
  std::optional<hoist_preprocessing> stored = {};  ///< the bundle's description of this input
};

/// Errors: the text is not a value of --resize, --crop or --scale.
Result<Nothing> check_resize(const std::string& text);
Result<Nothing> check_crop(const std::string& text);
Result<Nothing> check_scale(const std::string& text);
/// True if the command line has one of these options.
bool any_given(const ImageOptions& options);

/// The conversion for an input of shape [N][C][H][W], [N][H][W][C] or without the N. Errors: the input takes no images,
/// or an option is malformed or does not fit the input.
Result<hoist_preprocessing> preprocessing_for(const ValueInfo& input, const ImageOptions& options);

/// An image with 8 bits per channel, in row-major order.
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> values;
};

/// True if the file's ending is that of an image (a sound).
bool is_image(const std::filesystem::path& file);
bool is_sound(const std::filesystem::path& file);
/// True if the file is an image, by its ending, and the input takes it encoded: an array of bytes.
bool is_stream(const std::filesystem::path& file, const ValueInfo& input);

/// Decodes an image in any format that ImageDecoder supports (host_images.h), detected from the content, to three
/// channels (grey: one). Transparency is dropped, 16 bits become 8. Errors: no such file, damaged, more than
/// HOIST_MOST_PIXELS.
Result<Image> decode_image(const std::filesystem::path& file, bool grey);
/// Reads an image as this input of one image: [1][C][H][W], [1][H][W][C] or without the 1. The C runtime does the
/// arithmetic (hoist_prepare_pixels).
Result<Tensor> read_image(const std::filesystem::path& file, const ValueInfo& input, const ImageOptions& options);

/// Reads a .wav file (PCM with 8, 16, 24 or 32 bits, or f32) as this input: samples in [-1, 1], channels averaged,
/// padded with zeros at the end or cut. `rate` receives the samples per second if it is not null.
Result<Tensor> read_sound(const std::filesystem::path& file, const ValueInfo& input, int64_t* rate = nullptr);

/// The bytes of the file, padded with zeros.
Result<Tensor> read_stream(const std::filesystem::path& file, const ValueInfo& input);

/// Reads an image, decoded or encoded, or a sound, as the ending and the input require.
Result<Tensor> read_media(const std::filesystem::path& file, const ValueInfo& input, const ImageOptions& options);

}  // namespace hoist
