// The error tolerance of each site of a model: the part of a disturbance that reaches the output (its sensitivity), the
// error of each rule where it is applied (local error) and at the output (sensitivity times local error, and measured
// alone). Small errors of different sites add up, which the choice under a budget relies on (choose.h). Needs a device
// or an evaluator only through PrepareModel. Not for times: cost.h.
//
// Noise at every site costs little more than the model, so sensitivities are measured for models of any size, and a
// run's duration predicts that of a multi-variant program. Gradients estimate most of them if a backward pass takes
// less time than a run for each site (gradient_sensitivity.h), and noise at some sites shows the error. If measuring
// all rules alone exceeds the limit (4 minutes, or a quarter of the search's time limit), one weight rule per
// contraction is measured and scales the other rules of the layer: weight errors are correlated with the layer's input,
// so an average over a feature map does not reduce them as it reduces noise. On squeezenet1.1 sensitivities by noise
// alone predicted a third of the measured error (median of 100 assignments), with such representatives they
// predicted 1.2 times the measured error. All values of a shape share one input tensor of noise, which is scaled where
// it is added; noise is switched off by selecting the unchanged value, so no bit changes.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "neural_rules/calibration/runner.h"
#include "neural_rules/choice/outputs.h"
#include "neural_rules/choice/preferences.h"
#include "neural_rules/choice/study.h"
#include "neural_rules/model/equalisation.h"
#include "neural_rules/rewrite/multi_variant.h"

namespace hoist {

/// The parts of a search for a choice, in order, each with the usual share of the whole at its end: for progress
/// displays.
enum class StudyPart : uint8_t { calibrating, uniform_baselines, sensitivities, local_errors, rules_alone, proposals };
double share_of_study(StudyPart part, size_t done, size_t all);

struct SensitivityOptions {
  int64_t local_samples = 64;  ///< maximum for measuring local errors
  bool measure_all = true;     ///< false: statistics predict local errors where possible, which halves the time
  int64_t noise_samples = 32;  ///< maximum for runs with noise
  int64_t alone_samples = 64;  ///< maximum for measuring each rule alone
  /// Large models get fewer samples, so that measuring takes about this time on the device. If even the minimum number
  /// of samples does not fit, rules are not measured alone: sensitivities and statistics predict.
  double noise_seconds = 60, alone_seconds = 240;
  /// Time for running the model on calibration data: only as many samples are used as fit.
  double calibration_seconds = std::numeric_limits<double>::infinity();
  /// Time for rounding weights with data (rounding_plan.h); layers that do not fit are not rounded with data.
  double rounding_seconds = 60;
  /// Until everything has to be finished (CalibrationWatch).
  std::function<double()> seconds_left = [] { return std::numeric_limits<double>::infinity(); };
  bool always_gradients = false;  ///< estimates by gradients even if noise at all sites takes less time
  uint64_t seed = 1;
  Preferences preferences;
  DeviceArithmetic device = {};
  ChannelScaling scaling = ChannelScaling::automatic;
  std::function<void(const std::string& text, double share)> progress = [](const std::string&, double) {};
  std::function<bool()> out_of_time = [] {
    return false;
  };  ///< when true, the remaining errors are predicted instead of measured
  std::function<bool()> predictions_over = [] { return false; };  ///< when true, no more weights are packed for them
  std::function<void()> measured = [] {};                         ///< called after each measurement that takes long
};

/// Errors refer to all outputs of the model (compare_runs).
struct Sensitivity {
  Program program;         ///< the subject of all other members: the model with scaled channels (equalisation.h)
  ChannelFactors factors;  ///< the factors of the scaling
  std::vector<Site> sites;
  std::vector<StudySite> studied;  ///< one per site; the candidates are the permitted rules
  std::vector<bool> may_stay;      ///< one per site: true if it may stay unchanged
  std::vector<SiteRule> rules;     ///< one per candidate, in the order of sites and their candidates
  Statistics statistics;  ///< statistics with rounded weights, without the second moments from which they were computed
  RunOutputs reference;   ///< outputs of the unchanged model
  double output_power = 0;
  int64_t samples = 0;   ///< of calibration
  bool complete = true;  ///< true if everything could be measured in time
  std::vector<std::string> notes;
  std::vector<std::string> left_out;  ///< notes on missing measurements
};

/// Studies values and layers under the model's rules. Errors: the errors of rewriting, preparing and running, and data
/// with non-finite numbers.
Result<Sensitivity> find_sensitivity(const Program& program, const Samples& samples, const PrepareModel& prepare,
                                     const SensitivityOptions& options);

/// The two halves of find_sensitivity. find_rules calibrates and finds the rules; all errors except those predicted by
/// statistics are NaN. measure_errors measures the unknown errors in place, so it can continue an interrupted study; a
/// Deadline (ir/base/cancellation.h) ends it as out_of_time does, in the middle of a measurement.
Result<Sensitivity> find_rules(const Program& program, const Samples& samples, const PrepareModel& prepare,
                               const SensitivityOptions& options);
Result<Nothing> measure_errors(Sensitivity& found, const Samples& samples, const PrepareModel& prepare,
                               const SensitivityOptions& options);

}  // namespace hoist
