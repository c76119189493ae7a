// All measurements of a model for choices of rules: the tolerance of each site, the cost of each kind of rule, and the
// verified assignments. A choice under another budget, objective or preferences needs no new measurements (choose.h).
// As a file it is a record (record.h). The choice itself is in study.h.
#pragma once

#include <vector>

#include "neural_rules/calibration/sensitivity.h"
#include "neural_rules/choice/cost.h"
#include "neural_rules/choice/outputs.h"
#include "neural_rules/choice/record.h"

namespace hoist {

struct Measured {
  Sensitivity sensitivity;
  std::vector<UniformBaseline> uniform;  ///< the unchanged model first
  bool all_timed = false;                ///< true if `uniform` has every kind of rule
  std::vector<StudyPoint> points;        ///< verified; the reference first
  std::vector<OutputDigest> digests;     ///< one per point
  std::string metric;                    ///< the command whose number the points have, "" for none

  bool empty() const { return sensitivity.sites.empty(); }
  /// True if only further points are left to measure: every point is timed, and every uniform-precision baseline that
  /// may be chosen is a point.
  bool complete() const;
  /// A uniform-precision baseline with permitted rules that is not a point yet, because the run ended before its
  /// verification.
  bool is_missing(const UniformBaseline& model) const;
};

/// Stores the measurements in the record, whose origin and choices stay. Measurements of rules and kinds of rules that
/// are not candidates here stay too.
void add_to_record(Record& record, const Measured& measured);

/// The inverse, for the program of the record and under these preferences: excluded rules are not candidates, and a
/// rule that was represented by another rule of its cost class has predicted errors. A note counts the rules that the
/// record does not cover. Errors, with `where` for the record: sites that the program lacks, a pinned rule without
/// measurements, errors of rewriting.
Result<Measured> recall(const Program& program, const Record& record, const Preferences& preferences,
                        const DeviceArithmetic& device, const std::string& where);

}  // namespace hoist
