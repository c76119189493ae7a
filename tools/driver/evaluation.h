// Measures the accuracy of a bundle on labelled data: the question, the runs, and sums over parts of the data that can
// be combined in any order. For evaluate, locally and on workers of a queue. To compare two models use
// neural_rules/choice/metric.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "backends/bundle/bundle.h"
#include "backends/opencl/bundle_runner.h"
#include "ir/base/result.h"
#include "neural_rules/calibration/runner.h"
#include "tools/data/media.h"
#include "tools/data/samples.h"
#include "tools/data/scores.h"

namespace hoist {

/// The options in the form of the command line; "" if not given.
struct EvaluationQuestion {
  std::string data, output, labels;
  ImageOptions images;
};

struct FittingSamples {
  Plan plan;  ///< plan of the specialisation that the samples fit
  Samples samples;
  size_t specialisation = 0;  ///< index of the specialisation
};

/// Reads the samples of a file or folder for a bundle, without a device. For a bundle with several sizes it takes the
/// first specialisation that the samples fit, unless `sizes` selects one.
Result<FittingSamples> fitting_samples(const std::filesystem::path& bundle, const BundleInfo& first, const Sizes& sizes,
                                       const std::filesystem::path& data, const SampleNeeds& needs);

struct LabelledData : FittingSamples {
  size_t output = 0;               ///< index of the output with the scores
  int64_t classes = 0;             ///< number of classes of that output
  std::vector<std::string> names;  ///< names of classes; empty if not given
};

/// Reads and checks all data of the question, without a device.
Result<LabelledData> labelled_data(const std::filesystem::path& bundle, const Sizes& sizes,
                                   const EvaluationQuestion& question);

struct Evaluation {
  ScoreCard card;
  int64_t inputs_not_finite = 0;  ///< runs with a NaN or an infinity in an input
  double seconds = 0;             ///< seconds of all runs, with upload and download

  void add(const Evaluation& other);
};

/// Runs the samples. Requires that the specialisation that fits them is selected and that labels are below the number
/// of classes. `show` receives the number of finished samples.
Result<Evaluation> evaluate_samples(BundleRunner& bundle, const Samples& samples, size_t output,
                                    const std::function<void(int64_t)>& show);

}  // namespace hoist
