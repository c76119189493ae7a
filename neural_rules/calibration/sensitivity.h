// What each site of a model tolerates: how much of a disturbance there reaches the output (its sensitivity), what each
// rule does where it is applied (local error) and to the output (sensitivity times local error, and measured alone).
// Errors add up over sites as long as they are small, which is what the choice under a budget rests on (choose.h).
// Needs a device or an evaluator only through PrepareModel. Not for times: cost.h.
//
// Noise at every site costs little more than the model, so sensitivities are known of models of any size, and the time
// of a run says what a multi-variant program would take. Where all rules alone do not fit (4 minutes, or a quarter of
// the time limit), one rule for the weights of each product is measured and the others at the layer are scaled from it:
// errors of weights have the form of what the layer reads, and an average over a picture does not shrink them as it
// does noise. On squeezenet1.1 sensitivities by noise alone predicted a third of the measured error (median of 100
// assignments), with such representatives 1.2 times it. A tensor of noise for each shape is an input that all values of
// the shape share, scaled where it is added; noise off is a selection of the value as it is, so nothing changes a bit.
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

/// The parts of a search for a choice, in order, each with the share of the whole at which it usually ends: for showing
/// how far it is.
enum class StudyPart : uint8_t { calibrating, uniform_models, sensitivities, local_errors, rules_alone, proposals };
double share_of_study(StudyPart part, size_t done, size_t all);

struct SensitivityOptions {
  int64_t local_samples = 64;  ///< that local errors are measured on, at most
  bool measure_all = true;     ///< false: statistics predict local errors where they can, which saves half the time
  int64_t noise_samples = 32;  ///< that noise is put in with, at most
  int64_t alone_samples = 64;  ///< that each rule is measured alone with, at most
  /// Large models get fewer samples, so that measuring takes about so long on this device. Where not even the least
  /// number of samples fits, rules are not measured alone: sensitivities and statistics predict.
  double noise_seconds = 60, alone_seconds = 240;
  /// Of running the model on calibration data: only as many samples are used as fit.
  double calibration_seconds = std::numeric_limits<double>::infinity();
  double rounding_seconds = 60;  ///< of rounding weights with data (rounding_plan.h); layers that do not fit have none
  uint64_t seed = 1;
  Preferences preferences;
  DeviceArithmetic device = {};
  ChannelScaling scaling = ChannelScaling::automatic;
  std::function<void(const std::string& text, double share)> progress = [](const std::string&, double) {};
  std::function<bool()> out_of_time = [] { return false; };  ///< what is not measured by then is predicted
  std::function<void()> measured = [] {};                    ///< called after each number that took a while
};

/// Errors are of all outputs of the model (compare_runs).
struct Sensitivity {
  Program program;         ///< what all else here is of: the model with channels scaled (equalisation.h)
  ChannelFactors factors;  ///< by which
  std::vector<Site> sites;
  std::vector<StudySite> studied;  ///< a site each; candidates are those that are allowed
  std::vector<bool> may_stay;      ///< a site each: whether it may stay as it is
  std::vector<SiteRule> rules;     ///< a candidate each, in the order of sites and their candidates
  Statistics statistics;           ///< with rounded weights, without the second moments that they are from
  RunOutputs reference;            ///< of the model as it is
  double output_power = 0;
  int64_t samples = 0;   ///< of calibration
  bool complete = true;  ///< whether the time was enough for all that was to be measured
  std::vector<std::string> notes;
  std::vector<std::string> left_out;  ///< notes of what is not known and could be
};

/// Values and layers under the model's rules. Errors: what rewriting, preparing and running give, data with numbers
/// that are not finite.
Result<Sensitivity> find_sensitivity(const Program& program, const Samples& samples, const PrepareModel& prepare,
                                     const SensitivityOptions& options);

/// Its two halves. The first calibrates and finds the rules; every error is still NaN but those that statistics
/// predict. The second measures in place what is not known yet, so that it goes on where it was stopped; a Deadline
/// (ir/cancellation.h) ends it as out_of_time does, in the middle of a measurement.
Result<Sensitivity> find_rules(const Program& program, const Samples& samples, const PrepareModel& prepare,
                               const SensitivityOptions& options);
Result<Nothing> measure_errors(Sensitivity& found, const Samples& samples, const PrepareModel& prepare,
                               const SensitivityOptions& options);

}  // namespace hoist
