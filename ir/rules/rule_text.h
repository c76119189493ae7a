// Rules as text: hoist's own (*.rules in the folder that owns them) and the rules of a user's file, in the format of
// ir/text/row_text.h.
//
//   rule fold-halves(k) exact: in two parts        NAME(PARAMETERS) CLASS: MEANING
//     given x: [2*k]T, z: S, f: S, T -> S
//     fold f z x => fold f (fold f z (slice 0 k x)) (slice k k x)
//
// A rule is within terms (RuleRow, rewrite.h) or, if it has examples or is neural, between operator calls
// (ProgramRuleRow, program_rule.h). Keys: parameters, given, left, right, where, meaning, example, pass, library, for,
// gradient. `left` and `right` may be one line, LEFT => RIGHT.
//
// Rules of hoist's own name the pass that applies them, `pass NAME` (`pass strategies` for the strategies, which refer
// to rules by name), or the reason why they exist without a pass, `library REASON`.
//
// The class `exact or rounding by op` makes two rules: NAME, exact, which requires `associative op` bit for bit (and
// integers, which have one zero, if op also has to be commutative); and NAME-float, rounding. `library exact: REASON`
// concerns the first. `exact or rounding by T` makes NAME for integers and NAME-float for floats.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/rules/program_rule.h"
#include "ir/rules/rewrite.h"
#include "ir/text/row_text.h"

namespace hoist {

/// The rows of files, neither typed nor tested.
struct RuleRows {
  std::vector<RuleRow> within_terms;
  std::vector<ProgramRuleRow> between_calls;
};

/// `lets` come before the lets of the files. A user's rules cannot be C++ functions, have no pass and are not neural.
/// Errors name file, line and column, all together.
Result<RuleRows> parse_rules(std::span<const RowFile> files, bool of_user,
                             const std::map<std::string, std::string>& lets = {});

/// The rows of RowFiles::own. Errors: its errors, and errors of parse_rules.
Result<RuleRows> read_own_rules(std::span<const RowFile> files, const std::map<std::string, std::string>& lets = {});

}  // namespace hoist
