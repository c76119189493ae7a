// Rules that a user brings: a text file of rows, as hoist's own tables have them, for --rules. Every row is parsed,
// typed and tested on random instances against the interpreter before it may be applied; a row that fails is refused
// with the instance that shows it. Rows are exact or rounding: what changes values needs an error model, which text
// here cannot give.
//
//   rule halve-loop exact                              within a term: --steps and hoist rewrite apply it
//     given x: [2*m]T, f: T -> U
//     left  map f x
//     right join (map (map f) (split 2 x))
//     meaning a loop of pairs
//
//   rule relu-twice exact                              between operator calls, since it has examples: the pass
//   user-rules
//     left  Relu(Relu(x))                              applies it wherever it can
//     right Relu(x)
//     meaning the second one does nothing
//     example Relu(Relu(%x : [n][m]f32))
//
// A line that begins with -- is a comment; a line that is indented deeper than the key before goes on with its text.
// Keys: parameters, given, left, right, where, meaning, as in RuleRow (ir/rules/rewrite.h); given, left, right, where,
// meaning and one or more examples, as in ProgramRuleRow (ir/rules/program_rule.h), whose conditions in C++ are
// hoist's.
#pragma once

#include <string>
#include <vector>

#include "ir/rules/program_rule.h"
#include "ir/rules/rewrite.h"

namespace hoist {

/// What a file says, neither typed nor tested.
struct UserRuleRows {
  std::vector<RuleRow> within_terms;
  std::vector<ProgramRuleRow> between_calls;
};

struct UserRules {
  std::string text;  ///< of the file, for the derivation
  UserRuleRows rows;
  RuleTable table;                                ///< hoist's rows for terms, and these
  std::vector<const ProgramRule*> between_calls;  ///< in the order of the file

  /// The rule between operator calls of this name; null where the file has none.
  const ProgramRule* find_between_calls(const std::string& name) const;
};

/// Errors name `where` and the line.
Result<UserRuleRows> parse_rule_rows(const std::string& text, const std::string& where);

/// Rows that are safe to apply. Errors of all rows in one go: what does not parse or type, a name that is taken, a
/// class that a file may not claim, and rows that a random instance shows to be wrong.
Result<UserRules> read_user_rules(const std::string& text, const std::string& where);

/// That a rule may be applied: a rounding one may not under strict.
Result<Nothing> check_strict(const ProgramRule& rule, bool strict);

}  // namespace hoist
