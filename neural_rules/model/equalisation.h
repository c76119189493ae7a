// Moving scale between layers: if one layer makes a channel s times smaller and the next multiplies it by s, the result
// is the same in real arithmetic, but the arrays between and the weights on both sides are easier to round. Every
// change is of the rounding class and recorded in the program's steps; only useful before a model is quantised.
// Statistics of scaled values become invalid: calibrate again.
//
// SmoothQuant gains 0.1 to 1 dB of W8A8 on ResNet-8 and squeezenet1.1 and 3 to 5 dB on MobileNet (vww), for a second
// calibration; so it is automatic if it predicts half of the error. Equalising weight ranges alone is not: on vww it
// reduced 28 dB to 0.5 dB, since a channel with small weights had large values. Records contain the factors.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/base/result.h"
#include "neural_rules/calibration/calibration.h"

namespace hoist {

/// automatic: SmoothQuant if it predicts at most half of the error of 8-bit contractions.
enum class ChannelScaling : uint8_t { automatic, off, equalise, smoothquant };
Result<ChannelScaling> parse_channel_scaling(std::string_view name);

/// By value, the factor of each channel at its producer; the consumers' weights are divided by it.
using ChannelFactors = std::map<std::string, std::vector<double>>;

/// Cross-layer equalisation (Nagel et al. 2019, arXiv 1906.04721): wherever one contraction leads to another, with only
/// Relu, LeakyRelu or views of feature maps between and without other consumers, each channel's weight ranges become
/// equal on both sides; iterated through chains of depthwise layers to a fixed point. Needs no data, and therefore
/// misses channels with small weights and large values.
ChannelFactors equalisation(const Program& program);

/// SmoothQuant (Xiao et al. 2022, arXiv 2211.10438): if all consumers of a value are contractions with constant
/// weights, and its producer is a normalisation or contraction with at most Relu between, channels with large numbers
/// are divided by max|x|^alpha / max|w|^(1 - alpha), limited to between 1/32 and 32 times the geometric mean over all
/// channels. Alpha is the value among 0, 0.05, ..., 1 with the smallest error of rounding activation and weights to 8
/// bits; 0 changes nothing. Values stay unchanged if more than `share` of the error remains, or without statistics of
/// their channels.
ChannelFactors smoothquant(const Program& program, const Statistics& statistics, double share = 1);

ChannelFactors channel_factors(const Program& program, const Statistics& statistics, ChannelScaling how);

/// Implemented in C++ instead of as a row: values keep their names, which statistics and records use, while their
/// contents are scaled, and any number of layers may propagate the scale. Recorded in the program's steps with the
/// factors. Errors: a value whose channels cannot be scaled, a wrong number of factors, or factors that are not
/// positive (records are untrusted).
Result<Nothing> scale_channels(Program& program, const ChannelFactors& factors);

inline constexpr std::string_view channel_scaling_step = "channel-scaling";
/// Repeats a recorded step.
Result<Nothing> repeat_scaling(Program& program, const ProgramStep& step);

}  // namespace hoist
