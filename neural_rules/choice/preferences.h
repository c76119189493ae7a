// The user's preferences for the choice of rules, layer by layer: a small text with one statement per line. It is
// checked as a whole before anything runs: a text that contradicts itself or contains an unknown name changes nothing.
// Rules without a budget are named on the command line instead.
//
// pin conv1 w8a8 # the layer uses the rule, whatever it costs forbid "last layer" * # the layer stays unchanged forbid
// * e5m2 # never prefer * w8a8 # the only choice besides the unchanged model, if it applies
//
// A statement that names a layer overrides contrary statements for all layers (*). A rule that is pinned or preferred
// for all layers concerns the layers to which it applies. Names with spaces or # are quoted; inside quotes \" is a
// quote and \\ a backslash.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/base/result.h"
#include "neural_rules/model/site.h"
#include "neural_rules/neural_rules.h"

namespace hoist {

enum class Wish : uint8_t { pin, forbid, prefer };

struct Preference {
  Wish wish = Wish::pin;
  std::string layer;
  bool all_layers = false;  ///< *, not quoted
  std::string rule;         ///< forbid: "*" for all
  int line = 0;             ///< from 1
};

struct Preferences {
  std::string where;  ///< the file, for messages
  std::vector<Preference> statements;
};

/// Errors name `where`:line, all of them at once: an unknown statement (with the near miss), a missing or surplus word,
/// a quote without an end, `pin LAYER *`.
Result<Preferences> parse_preferences(const std::string& text, const std::string& where);

/// A site with the rules that could be used there, without "" for unchanged.
struct SiteCandidates {
  const Site* site = nullptr;
  std::vector<std::string> rules;
};

/// The candidates that the preferences allow.
struct AllowedRules {
  bool unchanged = true;           ///< the site may stay unchanged
  std::vector<std::string> rules;  ///< in the order of the candidates
};

/// One answer per site. Errors, all together: unknown layers or rules (with near misses), rules for another kind of
/// site than the layer has, or that cannot be used there, and contradictory statements of one scope (a layer, or *):
/// two pinned rules of one kind, a rule that is pinned or preferred and also forbidden, a preferred rule besides a
/// pinned one of its kind.
Result<std::vector<AllowedRules>> apply_preferences(const Preferences& preferences,
                                                    std::span<const SiteCandidates> sites,
                                                    std::span<const NeuralRule> rules);

}  // namespace hoist
