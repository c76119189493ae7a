// The kernels of a bundle as a page: when each of them runs in one run, and what bounds it (a roofline after Williams,
// Waterman and Patterson). Without a program, in the style of the report. Names come from models and are text alone.
#pragma once

#include <string>
#include <vector>

#include "tools/roofline.h"

namespace hoist {

struct TimedKernel {
  std::string name;
  std::vector<std::string> layers;
  double seconds = 0;                 ///< of one launch
  int64_t operations = 0, bytes = 0;  ///< of one launch, as roof_of takes them
};

/// In the order of a run. Kernels without operations or bytes are in the timeline alone.
std::string kernels_page(const std::string& model, const std::string& device, const std::vector<TimedKernel>& kernels,
                         const Peaks& peaks);

}  // namespace hoist
