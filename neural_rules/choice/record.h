// What a compilation under a budget leaves behind so that a second one makes the same bundle without data and without a
// clock: what calibration found, what was measured, and what was chosen. Numbers are kept to the last bit. The text
// form is JSON (tools/record_json.h). Not a report: a study (study.h) has more, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/result.h"
#include "neural_rules/choice/study.h"
#include "neural_rules/model/equalisation.h"
#include "neural_rules/model/site.h"

namespace hoist {

/// A record of another format is refused.
inline constexpr int64_t record_format = 4;

/// What a record is of: it serves only where all of these are the same. Hashes and names as text; "" where there is
/// none (no verification data, say).
struct RecordOrigin {
  std::string model_hash = {}, calibration_hash = {}, verification_hash = {}, profile_hash = {};
  std::string device = {};
  std::string budget = {}, objective = {};
  std::string preferences_hash = {};
  uint64_t seed = 0;
  bool operator==(const RecordOrigin&) const = default;
};

/// One site with everything that was measured or predicted there.
struct RecordedSite {
  std::string key;  ///< Site::key()
  double sensitivity = 0, time = 0, bytes = 0;
  std::vector<Candidate> candidates;
};

/// The time that passing from one site's rule to another's takes, below 0 where it saves some; "" is the site as it is.
struct RecordedConversion {
  std::string from, from_rule, to, to_rule;
  double seconds = 0;
  bool operator==(const RecordedConversion&) const = default;
};

struct Record {
  RecordOrigin origin;
  std::string hoist_version;  ///< that wrote it; another one may read it
  double output_power = 0;    ///< mean square of the reference output, for SQNR
  ChannelFactors factors;     ///< that the model's channels are scaled by before it is rewritten
  Statistics statistics;      ///< of weights that are rounded with data the chosen numbers, no second moments
  std::vector<RecordedSite> sites;
  std::vector<RecordedConversion> conversions;
  Assignment chosen;
  std::string certificate;  ///< of the bundle, as its manifest has it
};

/// Whether a record (read from `where`) serves for what is to be compiled now. Errors: one for each part of the origin
/// that differs, with both. Parts that are "" in `wanted` are not asked for: a second compilation has no calibration
/// data.
Result<Nothing> check_origin(const Record& record, const RecordOrigin& wanted, const std::string& where);

/// Whether a record is one in itself, as it must be before it is used: sites and candidates named once, the choice
/// among them, with the weights that it rounds with data; histograms and channels that fit. Errors: all problems at
/// once.
Result<Nothing> check_record(const Record& record, const std::string& where);

}  // namespace hoist
