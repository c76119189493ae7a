// The kernels of a run as a page, or as a part of a study's report: a timeline and a roofline (after Williams, Waterman
// and Patterson). Static, in the style of the report. Names come from models and are text only. For measuring use
// tools/inspection/roofline.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/inspection/roofline.h"

namespace hoist {

/// The kernels of a report; empty if nothing was timed.
struct ReportKernels {
  std::vector<TimedKernel> chosen, reference;
  std::vector<TimedKernel> tuned = {};  ///< `chosen` with the knobs of records; empty without records
  Peaks peaks;
};

/// Layers that no form of the model computes together with other layers, and the times of their kernels in each form.
struct BoughtTime {
  std::vector<std::string> layers;
  double reference = 0, chosen = 0, tuned = 0;  ///< seconds per run
};
/// The saved times, in the order of the run.
std::vector<BoughtTime> bought_times(const ReportKernels& kernels);

/// The page, with kernels in the order of the run. Kernels without operations or bytes appear in the timeline only.
std::string kernels_page(const std::string& model, const std::string& device, const std::vector<TimedKernel>& kernels,
                         const Peaks& peaks);

/// The same for all forms of a model, on one time scale; each kernel links to #layer=NAME, its first layer. With a
/// tuned form, a table shows the time saved by rules and by tuning.
std::string kernels_section(const ReportKernels& kernels);

/// Times in seconds, with the bound of each kernel.
nlohmann::ordered_json to_json(const ReportKernels& kernels);
nlohmann::ordered_json to_json(const Peaks& peaks);

}  // namespace hoist
