// What is known of the values that flow through a model on calibration data. Independent of the order of samples and of
// how they are batched: extremes first, then histograms over the fixed range between them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/result.h"
#include "ir/tensor.h"

namespace hoist {

/// Of all elements of a value over all samples; per channel (dimension 1) where `channels` is not empty.
struct ValueStatistics {
  int64_t count = 0;
  double low = 0, high = 0;
  double mean = 0, mean_square = 0;
  std::vector<uint64_t> histogram;  ///< equal bins over [low, high]
  struct Channel {
    double low = 0, high = 0, mean = 0;
  };
  std::vector<Channel> channels;
};
using Statistics = std::map<std::string, ValueStatistics>;  ///< by value name

}  // namespace hoist
