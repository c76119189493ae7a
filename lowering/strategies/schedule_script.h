// The user's own steps for the kernel of one layer, from a text file (--steps LAYER=FILE): rules of hoist's tables or
// of --rules, at places that patterns name. They replace hoist's strategy, except on a line that runs it.
//
// reduce-map-fusion-to-fold everywhere wherever it applies multiply-add-to-fma at the first place where it applies,
// outermost first open-collapsed-group(d = 1) at result the whole result of the kernel open-tiles(R = 4, C = 16) in
// loop the body of the first loop that the step before has opened split-join(k = 8) at map #2 the second map, outermost
// first and left to right open-vectors(k = 16) in map unroll the body of the first map unroll strategy hoist's own
// strategy from here strategy rows the strategy of that name (lowering/strategies/strategy.h), where it applies stored
// 0 2 3 1 the order in which the result's dimensions are stored, innermost last
//
// A pattern is written as hoist prints it: its name, optionally with mode and sizes (map group(1), slide 3 1). A number
// after # counts occurrences. The derivation records steps with their places, so a bundle replays without the file.
// Steps cannot change the result of a layer: rules keep the meaning.
//
// A file with the line `stored` alone leaves the loops to the strategy. The pass choose-layouts takes the order, and
// choose-storage may add a border and padding.
//
// The steps replace the whole strategy of one kernel, or a line runs a whole strategy, because parts of strategies have
// no names. Patterns name places, because every step changes the paths.
#pragma once

#include <string>
#include <vector>

#include "ir/rules/rewrite.h"
#include "lowering/strategies/strategy.h"

namespace hoist {

struct ScheduleStep {
  enum Where : uint8_t { first, everywhere, result, loop, at_pattern, in_pattern, strategy } where = first;
  std::string rule;  ///< or the name of a strategy, "" for the first that applies
  RuleArguments arguments;
  std::string pattern;  ///< for at_pattern and in_pattern
  int number = 1;       ///< the number of the occurrence
  int line = 0;
  std::string former = {};  ///< the name in the file, if it is a former name of `rule`
};

struct ScheduleScript {
  std::string layer, where;  ///< the file, for messages
  std::vector<ScheduleStep> steps;
  std::vector<int64_t> order = {};  ///< order of the result's dimensions; empty: hoist's choice
  int order_line = 0;
};

/// An order of dimensions: "0 2 3 1", each dimension once.
Result<std::vector<int64_t>> parse_order(const std::string& text);

/// Former names of rules and strategies are replaced by the present ones. Errors name the file and the line.
Result<ScheduleScript> parse_schedule_script(const std::string& text, const std::string& layer,
                                             const std::string& where);

/// Applies the steps to the term of the rewriter, which is the input's term; the line `strategy` chooses from
/// `candidates`. Errors: a missing rule, place or strategy, a rule or strategy that does not apply (with the reason), a
/// rounding rule under strict.
Result<Nothing> run_schedule_script(Rewriter& rewriter, const RuleTable& rules, const ScheduleScript& script,
                                    const StrategyInput& input, const Profile& profile,
                                    const std::vector<Strategy>& candidates);

/// A node as patterns write it: "map group(1)", "slide 3 1", "reduce".
std::string pattern_text(Expr e);

}  // namespace hoist
