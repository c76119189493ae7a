// Moving scale between layers: a channel that one layer makes s times smaller and the next one multiplies by s again is
// the same number in the end, but the arrays between and the weights on both sides become easier to round. Equal in
// real arithmetic, so every change is of the rounding class and recorded in the program's steps; worth doing only
// before a model is quantised. Statistics of values that were scaled hold no longer: calibrate again.
//
// SmoothQuant gains 0.1 to 1 dB of W8A8 on ResNet-8 and squeezenet1.1 and 3 to 5 dB on MobileNet (vww), for a second
// calibration; so it is automatic where it promises half of the error. Equalising ranges of weights alone is not: of
// vww it left 0.5 dB where there were 28, since a channel with small weights had large values. Records keep the
// factors.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/result.h"
#include "neural_rules/calibration/calibration.h"

namespace hoist {

/// automatic: SmoothQuant where it promises at most half of the error of 8-bit products.
enum class ChannelScaling : uint8_t { automatic, off, equalise, smoothquant };
Result<ChannelScaling> parse_channel_scaling(std::string_view name);

/// By value, what each of its channels is multiplied by where it is made; its readers' weights are divided by it.
using ChannelFactors = std::map<std::string, std::vector<double>>;

/// Cross-layer equalisation (Nagel et al. 2019, arXiv 1906.04721): wherever one product leads to another with nothing
/// between that reads the value too, and only Relu, LeakyRelu or views of pictures in between, the ranges of weights of
/// each channel become the same on both sides; through chains of depthwise layers until nothing changes any more.
/// Needs no data, and so does not see a channel whose weights are small and whose values are not.
ChannelFactors equalisation(const Program& program);

/// SmoothQuant (Xiao et al. 2022, arXiv 2211.10438): where all readers of a value are products with constant weights,
/// and a normalisation or product with nothing but Relu between makes it, channels with large numbers are divided by
/// max|x|^alpha / max|w|^(1 - alpha), at most 32 times the geometric mean of all channels and at least 1/32 of it.
/// Alpha is the one of 0, 0.05, ..., 1 for which rounding activation and weights to 8 bits costs least; 0 changes
/// nothing. Values stay as they are where that leaves more than `share` of the cost, or where there are no statistics
/// of their channels.
ChannelFactors smoothquant(const Program& program, const Statistics& statistics, double share = 1);

ChannelFactors channel_factors(const Program& program, const Statistics& statistics, ChannelScaling how);

/// A C++ function and no row: values keep their names, which statistics and records know, while what they hold is
/// scaled, and any number of layers may carry the scale on. Recorded in the program's steps, with the factors. Errors:
/// a value whose channels cannot be scaled, factors of another count or that are no positive numbers (a record may hold
/// anything).
Result<Nothing> scale_channels(Program& program, const ChannelFactors& factors);

inline constexpr std::string_view channel_scaling_step = "channel-scaling";
/// What such a step did, done again.
Result<Nothing> repeat_scaling(Program& program, const ProgramStep& step);

}  // namespace hoist
