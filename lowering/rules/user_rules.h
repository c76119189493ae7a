// Rules of the user for --rules: a text file of rows in the format of hoist's own tables. Every row is parsed, typed
// and tested on random instances against the interpreter before it may be applied; a failing row is refused with the
// instance. Rows are exact or rounding; a rule that changes values needs an error model, which this text cannot
// express.
//
// ir/rules/rule_text.h describes such a file. Rules within terms are for --steps and hoist rewrite, rules between
// operator calls for the pass user-rules, which applies them wherever it can:
//
//   rule halve-loop exact: a loop of pairs
//     given x: [2*m]T, f: T -> U
//     map f x => join (map (map f) (split 2 x))
//
//   rule relu-twice exact: the second one does nothing
//     Relu(Relu(x)) => Relu(x)
//     example Relu(Relu(%x : [n][m]f32))
#pragma once

#include <string>
#include <vector>

#include "ir/rules/rule_text.h"

namespace hoist {

struct UserRules {
  std::string text;                               ///< text of the file, for the derivation
  RuleRows rows;                                  ///< neither typed nor tested
  RuleTable table;                                ///< hoist's rows for terms, and the user's rows
  std::vector<const ProgramRule*> between_calls;  ///< rules in the order of the file

  /// The rule between operator calls of this name; null if the file has none.
  const ProgramRule* find_between_calls(const std::string& name) const;
};

/// Rows that are safe to apply. Errors of all rows together: rows that do not parse or type, names that are taken,
/// classes that a file may not claim, and rows that a random instance disproves.
Result<UserRules> read_user_rules(const std::string& text, const std::string& where);

/// True if a rule may be applied: rounding rules may not under strict.
Result<Nothing> check_strict(const ProgramRule& rule, bool strict);

}  // namespace hoist
