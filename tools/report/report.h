// The report of a study as people read it: one HTML page that needs nothing beside itself, JSON, and text for a
// terminal. All three show the numbers of the Study and compute nothing that is not a plain function of them. What
// comes from models (names above all) is hostile: the page carries it as data only. Not for making a study or for
// compiling the layers that the page shows: whoever calls hands both in.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "neural_rules/choice/study.h"
#include "tools/report/kernels.h"
#include "tools/report/picture.h"

namespace hoist {

/// What a layer became, as text for people; of several kernels one after the other. "" is what there is not.
struct LayerForms {
  std::string high;        ///< high-level Lift
  std::string derivation;  ///< the rules that led from `high` to `low`
  std::string low;         ///< low-level Lift
  std::string schedule;    ///< of Halide
  std::string source;      ///< OpenCL C
  int64_t operations = 0;  ///< arithmetic operations of its kernels
};

/// A layer of the model in graph order. Layers of one kernel may carry the same texts; the page holds each text once.
struct ReportLayer {
  std::string name;                                 ///< unique
  std::string operation;                            ///< "Conv"
  LayerForms reference;                             ///< in the model as it is
  LayerForms chosen;                                ///< under the chosen assignment
  std::vector<std::string> reads = {}, gives = {};  ///< values with their types, constants left out
};

/// The structure with the names of its fields; points have their paired drop and its p-value (interval.h) too. Numbers
/// that are not finite are null; counts, seeds and hashes are as they are.
nlohmann::ordered_json to_json(const Study& study);

/// The whole page: HTML 5 in UTF-8, with style, program and data inside. It asks no network for anything and forbids
/// itself to do so. `picture` and `kernels` may be empty: the page says then that there is none.
std::string report_page(const Study& study, const std::vector<ReportLayer>& layers, const NetworkPicture& picture = {},
                        const ReportKernels& kernels = {});

/// The same numbers for a terminal: what changed, the points that were evaluated, and the sites that changed, largest
/// share of the error first. Lines end with a newline; characters that a terminal acts on are written out.
std::string summary_text(const Study& study);

}  // namespace hoist
