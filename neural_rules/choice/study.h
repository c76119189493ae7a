// The results of a study of accuracy against time, in one structure: the report page, the JSON file, the terminal
// summary and the certificate of a bundle are views of it. Numbers that were not measured are NaN.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "neural_rules/choice/solver/interval.h"
#include "neural_rules/learning/retraining.h"
#include "neural_rules/rewrite/rewrite_model.h"

namespace hoist {

/// One assignment, evaluated on data that neither calibration nor the choice saw (if `verified`).
struct StudyPoint {
  std::string name;  ///< "reference", "uniform w8a8", "front 3"
  Assignment assignment;
  double predicted_time = 0,
         predicted_error = 0;  ///< predicted seconds of a run; predicted mean squared error of the output
  double size = 0;             ///< bytes of weights
  bool verified = false, chosen = false, on_front = false;
  Interval time = {std::nan(""), std::nan(""), std::nan("")};  ///< measured seconds of a run
  double error = 0, sqnr = 0;
  double psnr = std::nan("");  ///< dB, for outputs without scores
  Interval agreement{}, top1{};
  int64_t samples = 0, both_right = 0, lost = 0, gained = 0, both_wrong = 0;  ///< paired with the reference
  int64_t flips = 0;
  double worst_class_drop = 0;
  int64_t worst_class = -1;
  double user_metric = 0;
  std::shared_ptr<const Retraining> retraining = {};  ///< null for weights that were only rounded

  bool is_timed() const { return std::isfinite(time.value) && time.value > 0; }
};

/// A candidate rule at a site.
struct Candidate {
  std::string rule;
  double predicted_error = 0;  ///< error of the model's output: sensitivity times local error
  double error_alone = 0;      ///< error of the model's output, measured with this rule only
  double local_error = 0;      ///< mean squared error where the rule is applied
  double time = 0;             ///< seconds of the site's kernel under the rule
  double bytes = 0;
  double clipped_share = 0;
  double clip_low = std::nan(""), clip_high = std::nan("");  ///< the range of the format; NaN without clipping
  std::string proof;       ///< the proof of the certificate, or how it was measured: "256 samples"
  std::string cost_class;  ///< rules of one class cost the same (candidates.h)
  bool stands = false;     ///< measured for its class: the other members of the class are only predicted
};

struct StudySite {
  Site site;
  std::string operation;         ///< operation of the layer
  double sensitivity = 0;        ///< mean squared change of the output divided by the mean square of the added noise
  double time = 0, bytes = 0;    ///< time and bytes of the unchanged site
  double accumulated_error = 0;  ///< error of the output if this site and all earlier sites have their chosen rules
  std::vector<Candidate> candidates;
  std::string chosen;  ///< a rule, or "" for unchanged
  ValueStatistics statistics;
  std::vector<std::string> successors;  ///< keys of the sites that read this site, with format conversions between
};

struct Study {
  std::string model, model_hash, calibration_hash, verification_hash, device, profile, version, budget, objective;
  uint64_t seed = 0;
  int64_t calibration_samples = 0, verification_samples = 0, classes = 0;
  bool budget_met = true;
  std::string summary;             ///< the change in one sentence
  std::string confidence;          ///< the proof that the verification samples give of the budget (budget.h)
  double guessing = std::nan("");  ///< share of right answers on the verification data that guessing achieves
  double output_power = 0;         ///< mean square of the reference output (centred for classifiers), for SQNR
  std::vector<StudySite> sites;
  std::vector<StudyPoint> points;
  std::vector<std::string> notes;
};

}  // namespace hoist
