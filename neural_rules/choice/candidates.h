// The rules that may be used at the sites of a program, and their requirements at other sites: the table's
// preconditions joined with the user's preferences. sensitivity.h and choose.h decide whether a rule pays.
//
// Among rules of equal cost at a site, the rule with the least predicted noise represents all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "neural_rules/choice/preferences.h"
#include "neural_rules/neural_rules.h"
#include "neural_rules/rewrite/multi_variant.h"

namespace hoist {

struct CandidateRule {
  std::string rule;
  Assignment needs;  ///< the format of the value that a contraction reads, if the rule needs one
};

struct CandidateRules {
  std::vector<std::vector<CandidateRule>> rules;  ///< by site
  std::vector<bool> may_stay;                     ///< by site: true if it may stay unchanged
};

/// Errors: preferences that do not fit (apply_preferences), or that need a missing feature of the device.
Result<CandidateRules> candidate_rules(const Program& program, const std::vector<Site>& sites,
                                       const Preferences& preferences, const DeviceArithmetic& device);

/// The value site with the operand of the contraction, or sites.size() if there is none.
size_t input_site(const Program& program, const std::vector<Site>& sites, const Site& product);

/// By site: for a value the contractions and functions that read it; for a contraction or function the value that its
/// kernel writes.
std::vector<std::vector<size_t>> consumer_sites(const Program& program, const std::vector<Site>& sites);

/// A candidate with the facts known before anything runs.
struct WeighedRule {
  CandidateRule candidate;
  double predicted_noise = 0;  ///< mean squared error at the site; NaN without a prediction
  double bytes = 0;            ///< bytes of the weights, or of the stored value
  std::string cost_class;      ///< rules of one class cost the same
  bool kept = false;           ///< no other rule of the same cost is better
};

/// By site, in the order of the candidates. Rules that store the same number of bits and compute alike cost the same;
/// the rule with the least predicted noise represents them. Blocks of values are kept only if no smaller format is as
/// accurate. Rules whose statistics are missing are left out. Once the time is over, rules for contractions, whose
/// weights have to be packed, have no prediction, if their site may stay unchanged; integer contractions come first.
std::vector<std::vector<WeighedRule>> weigh_rules(
    const Program& program, const std::vector<Site>& sites, const CandidateRules& candidates,
    const Statistics& statistics, const std::function<bool()>& out_of_time = [] { return false; });

}  // namespace hoist
