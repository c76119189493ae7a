// Rules as text: hoist's own (*.rules in the folder that owns them, embedded at build) and the rules of a user's file.
//
//   section folds                                  a heading, with keys that its rules share; any key of a rule
//     library for steps of one's own
//
//   rule fold-halves(k) exact: in two parts        NAME(PARAMETERS) CLASS: MEANING
//     given x: [2*k]T, z: S, f: S, T -> S
//     fold f z x => fold f (fold f z (slice 0 k x)) (slice k k x)
//
// A rule is within terms (RuleRow, rewrite.h) or, where it has examples, between operator calls (ProgramRuleRow,
// program_rule.h). Keys: parameters, given, left, right, where, meaning, example, pass, library, for. `left` and
// `right` may be one line, LEFT => RIGHT. A line that begins with -- is a comment; a line that is indented deeper than
// the key before goes on with its text, after one blank.
//
// Rules of hoist's own name the pass that applies them, `pass NAME` (`pass strategies` for the strategies, which refer
// to rules by name), or the reason to have them without one, `library REASON`.
//
// Shared parts of texts are lets of the file; the lets of a file without rules hold for the files that are read after
// it:
//
//   let missing(n, k) = $k*(($n+$k-1)//$k) - $n    $missing(h*w, R) stands for this text with h*w and R
//   let suffix(2) =                                the first case whose numbers and quoted words equal those
//   let suffix(n) = -$n                            of the reference
//   $(n+1)                                         a number, a sum or difference of two, as arguments may be too
//
// `for n in 2..4` or `for kind in group, global` makes a family: a rule for each value of $n. The class
// `exact or rounding by op` makes two: NAME, exact, where `associative op` is asked for bit for bit, and, where op has
// to be commutative too, on integers only, which have one zero; and NAME-float, rounding. `library exact: REASON` is
// about the first of them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/rules/program_rule.h"
#include "ir/rules/rewrite.h"

namespace hoist {

struct RuleFile {
  std::string_view name;  ///< messages begin with it; the rows' family is its last part, without the ending
  std::string_view text;
};

/// The rows of files, neither typed nor tested.
struct RuleRows {
  std::vector<RuleRow> within_terms;
  std::vector<ProgramRuleRow> between_calls;
};

/// `lets` come before the lets of the files. A user's rules are no C++ functions, have no pass and are not neural.
/// Errors name file, line and column, all together.
Result<RuleRows> parse_rules(std::span<const RuleFile> files, bool of_user,
                             const std::map<std::string, std::string>& lets = {});

/// The embedded files, or, if the environment variable HOIST_RULES_FOLDER is set, the files of the same names in that
/// folder, the root of hoist's sources: a rule changes without a build. Errors: errors of parse_rules, and missing
/// files.
Result<RuleRows> read_own_rules(std::span<const RuleFile> files, const std::map<std::string, std::string>& lets = {});

}  // namespace hoist
