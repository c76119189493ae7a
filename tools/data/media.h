// Pictures and sounds as inputs of a model: decoded, resized and scaled as the model was trained to see them. Files are
// hostile: sizes are checked before anything is decoded. Not for arrays: npy.h and frontend/file/tensor_file.h read
// those.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "backends/runtime/hoist_runtime.h"
#include "ir/program/program.h"
#include "tools/cli/attempt.h"

namespace CLI {
class App;
}

namespace hoist {

/// What happens to a picture between its file and the input, in this order: the resize, the crop from its middle, the
/// order of colours, (value * scale - mean) / std, the layout. Values are 0 to 255 at first. What is "" or empty is as
/// `stored` says, else as it is usual.
struct PictureOptions {
  std::string layout;                              ///< nchw | nhwc; usually where the input has an extent of 1 or 3
  std::string resize;                              ///< WxH, or N for the shorter side; usually to what the input is
  std::string crop;                                ///< WxH or N; usually none
  std::string colours;                             ///< rgb | bgr, usually rgb; an input of one channel takes grey
  std::vector<double> mean, deviation;             ///< one number, or one a channel; of scaled values
  std::string scale;                               ///< a number or 1/255; usually 1/255 for floats, 1 for integers
  std::optional<hoist_preprocessing> stored = {};  ///< what a bundle says of this input
};

void add_picture_options(CLI::App& command, PictureOptions& options);
/// Whether the command line has one of them.
bool any_given(const PictureOptions& options);

/// The options for an input, [N][C][H][W], [N][H][W][C] or without the N. Errors: it takes no pictures, an option is
/// nothing that it could be, or does not fit the input.
Result<hoist_preprocessing> preprocessing_for(const ValueInfo& input, const PictureOptions& options);

/// Height, width and channels of 8 bits, row by row.
struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> values;
};

/// A file that is read as a picture or a sound rather than as an array, by its ending.
bool is_picture(const std::filesystem::path& file);
bool is_sound(const std::filesystem::path& file);
/// A picture, by its ending, for an input that takes it encoded: one array of bytes.
bool is_stream(const std::filesystem::path& file, const ValueInfo& input);

/// A picture in any format that ImageDecoder knows (host_pictures.h), by what the file holds, as three channels (grey:
/// one); transparency is left out, 16 bits become 8. Errors: no such file, damaged, more than HOIST_MOST_PIXELS.
Result<Picture> decode_picture(const std::filesystem::path& file, bool grey);
/// The picture as this input, which holds one of them: [1][C][H][W], [1][H][W][C] or without the 1. The arithmetic is
/// the C runtime's (hoist_prepare_pixels).
Result<Tensor> read_picture(const std::filesystem::path& file, const ValueInfo& input, const PictureOptions& options);

/// The samples of a .wav (PCM of 8, 16, 24 or 32 bits, or f32) in [-1, 1], channels averaged, as this input: from its
/// beginning, zeros behind its end. `rate` gets samples a second where it is not null.
Result<Tensor> read_sound(const std::filesystem::path& file, const ValueInfo& input, int64_t* rate = nullptr);

/// The bytes of the file, zeros behind them.
Result<Tensor> read_stream(const std::filesystem::path& file, const ValueInfo& input);

/// A picture, decoded or as it is, or a sound, by its ending and the input.
Result<Tensor> read_media(const std::filesystem::path& file, const ValueInfo& input, const PictureOptions& options);

}  // namespace hoist
