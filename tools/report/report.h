// The report of a study: one self-contained HTML page, JSON, and text for a terminal. All three show the numbers of the
// Study and simple functions of them. Names and other texts from models are untrusted: the page holds them as data
// only. The caller makes the study and compiles the layers that the page shows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "neural_rules/choice/study.h"
#include "tools/report/kernels.h"
#include "tools/report/picture.h"

namespace hoist {

/// A layer's texts at each stage; for several kernels they are concatenated. "" means missing.
struct LayerForms {
  std::string high;        ///< high-level Lift
  std::string derivation;  ///< the rules from `high` to `low`
  std::string low;         ///< low-level Lift
  std::string schedule;    ///< Halide's schedule
  std::string source;      ///< OpenCL C
  int64_t operations = 0;  ///< arithmetic operations of its kernels
};

/// A layer of the model in graph order. Layers of one kernel may have the same texts; the page stores each text once.
struct ReportLayer {
  std::string name;                                 ///< unique
  std::string operation;                            ///< "Conv"
  LayerForms reference;                             ///< in the unchanged model
  LayerForms chosen;                                ///< in the chosen assignment
  std::vector<std::string> reads = {}, gives = {};  ///< values with their types, without constants
};

/// The study with its field names; points also have their paired drop and its p-value (interval.h). Non-finite numbers
/// are null; counts, seeds and hashes are exact.
nlohmann::ordered_json to_json(const Study& study);

/// The whole page: HTML 5 in UTF-8, with style, program and data inside. It makes no network requests, and its security
/// policy forbids them. With empty `picture` or `kernels`, the page states that there is none.
std::string report_page(const Study& study, const std::vector<ReportLayer>& layers, const NetworkPicture& picture = {},
                        const ReportKernels& kernels = {});

/// The same numbers as text: the changes, the evaluated points, and the changed sites, with the largest share of the
/// error first. Lines end with a newline; control characters are escaped.
std::string summary_text(const Study& study);

}  // namespace hoist
