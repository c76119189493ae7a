// A layer of a model or of a bundle at each stage between ONNX and OpenCL, as readable text. For inspect and for the
// Python package. For the steps from one stage to the next use explanation.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "ir/plan/plan.h"
#include "tools/driver/model.h"

namespace hoist {

/// graph, high, low, halide, and opencl or native: the names of the stages in order.
const std::vector<std::string>& stage_names();

struct LayerStage {
  std::string stage;  ///< one of stage_names()
  std::string title;  ///< describes the text
  std::string text;
};

struct LayerStages {
  std::string layer;
  std::vector<LayerStage> stages;  ///< in stage order, of all kernels that compute the layer
  std::string absence;             ///< why no kernel computes it; "" if one does
  Diagnostics refused = {};        ///< the errors of the Halide backend, if it stopped the later stages
};

struct StageOptions {
  std::vector<std::string> stages = {};  ///< only these stages; empty means all
  bool types = false;                    ///< for a model: print the type after each pattern
};

/// The stages of a layer of a model. Errors: no layer has that name.
Result<LayerStages> stages_of(const OpenedModel& model, const std::string& layer, const StageOptions& options);
/// A bundle stores neither the stage high nor halide: requesting them is bad input, and requesting types is wrong use.
Result<Nothing> refuse_stages_of_models(const StageOptions& options);
Result<LayerStages> stages_of(const Plan& plan, const std::string& layer, const StageOptions& options);

/// {"layer", "stages": [{"stage", "title", "text"}], "absence"}
nlohmann::ordered_json to_json(const LayerStages& layer);

}  // namespace hoist
