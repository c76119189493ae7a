// A layer of a model or of a bundle at each stage between ONNX and OpenCL, as text for people. For inspect and for the
// Python package. Not for how one stage follows from another: explanation.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "tools/cli/attempt.h"
#include "tools/driver/model.h"

namespace hoist {

/// graph, high, low, halide, opencl.
const std::vector<std::string>& stage_names();

struct LayerStage {
  std::string stage;  ///< one of stage_names()
  std::string title;  ///< what of the layer it shows
  std::string text;
};

struct LayerStages {
  std::string layer;
  std::vector<LayerStage> stages;       ///< in their order, of all kernels that compute the layer
  std::string absence;                  ///< why no kernel does; "" where one does
  std::optional<Failure> refused = {};  ///< by the Halide layer: why the stages behind the last one are missing
};

struct StageOptions {
  std::vector<std::string> stages = {};  ///< these alone; empty: all
  bool types = false;                    ///< of a model: with the type after each pattern
};

/// Errors: no layer has that name.
Attempt<LayerStages> stages_of(const OpenedModel& model, const std::string& layer, const StageOptions& options);
/// A bundle keeps neither the stage high nor halide: bad input where they are asked for; and types are wrong use.
Attempt<> refuse_stages_of_models(const StageOptions& options);
Attempt<LayerStages> stages_of(const Plan& plan, const std::string& layer, const StageOptions& options);

/// {"layer", "stages": [{"stage", "title", "text"}], "absence"}
nlohmann::ordered_json to_json(const LayerStages& layer);

}  // namespace hoist
