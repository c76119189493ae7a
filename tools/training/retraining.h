// Retraining under a budget: the points of a study are trained with the rounding of their rules (Retrain), from the
// unchanged model's answers on the calibration data, or from its labels. A step is one program, as for hoist train. The
// choice of the points is neural_rules/choice/choose.h; training without rules is trainer.h.
#pragma once

#include <filesystem>

#include "neural_rules/calibration/runner.h"
#include "neural_rules/learning/retraining.h"
#include "tools/study/device_models.h"

namespace hoist {

struct RetrainingOptions {
  int64_t epochs = 0;  ///< 0: none
  uint64_t seed = 1;
  bool scales = false;  ///< train the scales of weights too
  bool labels = false;  ///< learn the labels of the calibration data, not the model's answers
};

/// Fewer samples are refused: a network would learn them by heart.
inline constexpr int64_t least_retraining_samples = 64;

/// The function that trains the model under the rules of a point. It works on the study's device or target, and is to
/// be called while the arguments live. The last epoch's weights count: no data are kept apart to select others. Errors:
/// too few calibration samples, no labels where they are to be learnt, verification samples that are among them, an
/// input without an axis of samples. The function has the errors of the model's training program and of the device, and
/// of a loss that is not finite.
Result<Retrain> retrain_on_device(const std::filesystem::path& path, const ModelOptions& options,
                                  const StudiedModel& model, const Samples& calibration, const Samples& verification,
                                  const RetrainingOptions& retraining);

}  // namespace hoist
