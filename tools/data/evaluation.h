// How right a bundle is over labelled data: what is to be run, the runs, and sums that parts of the data add to in any
// order. For evaluate, here and by workers of a queue. Not for comparing two models: neural_rules/choice/metric.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "neural_rules/calibration/runner.h"
#include "tools/cli/attempt.h"
#include "tools/data/media.h"
#include "tools/data/samples.h"
#include "tools/data/scores.h"

namespace hoist {

/// As the command line has it; "" is what was not given.
struct EvaluationQuestion {
  std::string data, output, labels;
  PictureOptions pictures;
};

struct FittingSamples {
  Plan plan;  ///< of the specialisation that the samples fit
  Samples samples;
  size_t specialisation = 0;  ///< by its number
};

/// The samples of a file or folder for a bundle, read without a device. Of a bundle for several sizes, the first
/// specialisation that they fit, unless `sizes` choose.
Attempt<FittingSamples> fitting_samples(const std::filesystem::path& bundle, const BundleInfo& first,
                                        const Sizes& sizes, const std::filesystem::path& data,
                                        const SampleNeeds& needs);

struct LabelledData : FittingSamples {
  size_t output = 0;               ///< that holds the scores
  int64_t classes = 0;             ///< that it has
  std::vector<std::string> names;  ///< of classes; none unless they are given
};

/// Everything that is asked is read and checked, without a device.
Attempt<LabelledData> labelled_data(const std::filesystem::path& bundle, const Sizes& sizes,
                                    const EvaluationQuestion& question);

struct Evaluation {
  ScoreCard card;
  int64_t inputs_not_finite = 0;  ///< runs with a NaN or an infinity in an input
  double seconds = 0;             ///< of all runs, with upload and download

  void add(const Evaluation& other);
};

/// The specialisation that the samples fit is in use, their labels are classes of the output. `show` is told how many
/// samples are done.
Attempt<Evaluation> evaluate_samples(BundleRunner& bundle, const Samples& samples, size_t output,
                                     const std::function<void(int64_t)>& show);

}  // namespace hoist
