// Moving scale between layers: a channel that one layer makes s times smaller and the next one multiplies by s again is
// the same number in the end, but the arrays between and the weights on both sides become easier to round. Equal in
// real arithmetic, so every change is of the rounding class and recorded in the graph's steps; worth doing only before
// a model is quantised. Statistics of values that were scaled hold no longer: calibrate again.
#pragma once

#include <string>
#include <vector>

#include "neural_rules/calibration.h"

namespace hoist {

/// Cross-layer equalisation (Nagel et al. 2019, arXiv 1906.04721): wherever one product leads to another with nothing
/// between that reads the value too, and only Relu, LeakyRelu or views of pictures in between, the ranges of weights of
/// each channel become the same on both sides; through chains of depthwise layers until nothing changes any more.
/// Needs no data. Returns the layers whose weights changed, in the order of the graph.
std::vector<std::string> equalise(Graph& graph);

/// Smoothing (Xiao et al. 2022, arXiv 2211.10438): where all readers of a value are products with constant weights, and
/// a normalisation or product with nothing but Relu between makes it, channels with large numbers are divided by
/// max|x|^alpha / max|w|^(1 - alpha). Alpha is the one of 0, 0.05, ..., 1 for which rounding activation and weights to
/// 8 bits costs least; 0 changes nothing. Returns the values that were smoothed. Values without statistics of their
/// channels stay as they are.
std::vector<std::string> smooth(Graph& graph, const Statistics& statistics);

}  // namespace hoist
