// The record of compilations under a budget: all measurements, and each choice that was made from them. A second
// compilation makes the same bundle without data and without a clock, or solves for another budget without measuring
// again (measured.h). Floats keep their last bit. The text form is JSON (tools/study/record_json.h). A study (study.h)
// contains more, for display.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "neural_rules/choice/outputs.h"
#include "neural_rules/choice/study.h"
#include "neural_rules/model/equalisation.h"
#include "neural_rules/model/site.h"

namespace hoist {

/// Records of other formats are refused.
inline constexpr int64_t record_format = 5;

/// The origin of a record: it applies only if all of these are equal. Hashes and names as text; "" for absent ones (for
/// example, no verification data).
struct RecordOrigin {
  std::string model_hash = {}, calibration_hash = {}, verification_hash = {}, profile_hash = {};
  std::string device = {};
  std::string objective = {};  ///< the objective of the timed kernels, since kernels for the smallest size differ
  std::string metric = {};     ///< the command that gave the points' metric
  uint64_t seed = 0;
  bool operator==(const RecordOrigin&) const = default;
};

/// One site with all its measurements and predictions.
struct RecordedSite {
  std::string key;  ///< Site::key()
  double sensitivity = 0, time = 0, bytes = 0;
  std::vector<Candidate> candidates;
};

/// The times of the model with one kind of rule wherever it applies (cost.h).
struct RecordedTimes {
  std::string name, cost_class;
  Assignment assignment;
  std::vector<double> site_seconds;  ///< seconds per site, then of kernels that belong to none
  bool operator==(const RecordedTimes&) const = default;
};

/// A verified assignment, and a summary of its outputs.
struct RecordedPoint {
  StudyPoint point;
  OutputDigest digest;
};

/// The choice for one budget and objective.
struct RecordedChoice {
  std::string budget, objective, preferences_hash;
  Assignment chosen;
  std::string certificate;      ///< certificate in the bundle's manifest
  std::string retraining = {};  ///< the retraining that was allowed; "" for none
  bool retrained = false;       ///< the chosen point is the retrained one
  bool operator==(const RecordedChoice&) const = default;
};

struct Record {
  RecordOrigin origin;
  std::string hoist_version;  ///< the version that wrote it; other versions may read it
  bool complete = false;      ///< Measured::complete(); false: the measurement was interrupted and can be continued
  bool all_timed = false;     ///< true if each kind of rule has its times
  double output_power = 0;    ///< mean square of the reference output, for SQNR
  int64_t calibration_samples = 0;
  ChannelFactors factors;  ///< factors by which the model's channels are scaled before rewriting
  Statistics statistics;   ///< for weights rounded with data the rounded numbers, without second moments
  std::vector<RecordedSite> sites;
  std::vector<RecordedTimes> times;
  std::vector<RecordedPoint> points;
  std::vector<RecordedChoice> choices;  ///< the last one is the latest
  std::vector<std::string> notes;
};

/// Checks that a record (read from `where`) applies to this compilation. Errors: one for each differing part of the
/// origin, with both values. Parts that are "" in `wanted` are not compared: a second compilation has no calibration
/// data.
Result<Nothing> check_origin(const Record& record, const RecordOrigin& wanted, const std::string& where);

/// The record's choice for a budget (Budget::text()) and an objective; "" matches any. Among choices that differ only
/// in preferences it is the latest. Errors: no choice; several matching budgets or objectives, with all of them.
Result<RecordedChoice> find_choice(const Record& record, const std::string& budget, const std::string& objective,
                                   const std::string& where);

/// The point that the choice took; null if the record lacks it.
const RecordedPoint* chosen_point(const Record& record, const RecordedChoice& choice);

/// Checks that a record is consistent, before it is used: sites and candidates are named once, choices name candidates
/// and have the weights that they round with data, every site has times, histograms and channels fit. Errors: all
/// problems together.
Result<Nothing> check_record(const Record& record, const std::string& where);

}  // namespace hoist
