// The kernels of a run as a page, or as a part of the report of a study: when each of them runs, and what bounds it (a
// roofline after Williams, Waterman and Patterson). Without a program, in the style of the report. Names come from
// models and are text alone. Not for measuring: tools/inspection/roofline.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/inspection/roofline.h"

namespace hoist {

/// What a report says of kernels: none where nothing was timed.
struct ReportKernels {
  std::vector<TimedKernel> chosen, reference;
  std::vector<TimedKernel> tuned = {};  ///< as chosen, with the knobs of records; none without records
  Peaks peaks;
};

/// Layers that no form of the model computes in kernels with others, and what their kernels take in each form.
struct BoughtTime {
  std::vector<std::string> layers;
  double reference = 0, chosen = 0, tuned = 0;  ///< seconds of a run
};
/// In the order of a run.
std::vector<BoughtTime> bought_times(const ReportKernels& kernels);

/// In the order of a run. Kernels without operations or bytes are in the timeline alone.
std::string kernels_page(const std::string& model, const std::string& device, const std::vector<TimedKernel>& kernels,
                         const Peaks& peaks);

/// The same of the forms of a model, one timescale for all; a kernel is a link to #layer=NAME, its first layer. Where
/// there is a tuned form, a table says what rules and what tuning bought.
std::string kernels_section(const ReportKernels& kernels);

/// Times in seconds, with what bounds each kernel.
nlohmann::ordered_json to_json(const ReportKernels& kernels);
nlohmann::ordered_json to_json(const Peaks& peaks);

}  // namespace hoist
