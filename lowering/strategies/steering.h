// A user's own steps for the kernel of one layer, from a text file (--steps LAYER=FILE): rules of hoist's tables or of
// --rules, with places said by patterns. They take the place of hoist's strategy, which runs where a line says so.
//
//   reduce-map-fusion-to-fold everywhere      wherever it applies
//   multiply-add-to-fma                       at the first place where it applies, outermost first
//   open-joined-group(d = 1) at result        the whole result of the kernel
//   open-tiles(R = 4, C = 16) in loop         the body of the first loop that the step before has opened
//   split-join(k = 8) at map #2               the second map, outermost first and left to right
//   open-vectors(k = 16) in map unroll        the body of the first map unroll
//   strategy                                  hoist's own strategy from here
//   strategy rows                             the one of that name (lowering/strategies/strategy.h), where it applies
//
// A pattern is written as hoist prints it: its name, with mode and sizes as far as wanted (map group(1), slide 3 1). A
// number behind # counts. Steps are recorded in the derivation with their places, so a bundle replays without the
// file. Not for changing what a layer computes: steps apply rules, and rules keep the meaning.
//
// The steps replace the whole strategy of one kernel, and a line runs one: half a strategy would need names for its
// parts. Patterns say places, since paths change with every step before.
#pragma once

#include <string>
#include <vector>

#include "ir/rules/rewrite.h"
#include "lowering/strategies/strategy.h"

namespace hoist {

struct SteeringStep {
  enum Where : uint8_t { first, everywhere, result, loop, at_pattern, in_pattern, strategy } where = first;
  std::string rule;  ///< or the name of a strategy, "" for the first that applies
  RuleArguments arguments;
  std::string pattern;  ///< of at_pattern and in_pattern
  int number = 1;       ///< which of them
  int line = 0;
};

struct Steering {
  std::string layer, where;  ///< where: the file
  std::vector<SteeringStep> steps;
};

/// Errors name the file and the line.
Result<Steering> parse_steering(const std::string& text, const std::string& layer, const std::string& where);

/// Applies the steps to the term that the rewriter holds, which is the input's; `candidates` are what the line
/// `strategy` chooses from. Errors: a rule, place or strategy that is not there, a rule or strategy that does not apply
/// (with the reason), a rounding rule under strict.
Result<Nothing> steer(Rewriter& rewriter, const RuleTable& rules, const Steering& steering, const StrategyInput& input,
                      const Profile& profile, const std::vector<Strategy>& candidates);

/// A node as a pattern is written: "map group(1)", "slide 3 1", "reduce".
std::string pattern_text(Expr e);

}  // namespace hoist
