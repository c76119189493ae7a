// Rules that a user brings: a text file of rows, as hoist's own tables have them, for --rules. Every row is parsed,
// typed and tested on random instances against the interpreter before it may be applied; a row that fails is refused
// with the instance that shows it. Rows are exact or rounding: what changes values needs an error model, which text
// here cannot give.
//
// ir/rules/rule_text.h says what such a file holds. Rules within terms are for --steps and hoist rewrite, those between
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
  std::string text;                               ///< of the file, for the derivation
  RuleRows rows;                                  ///< neither typed nor tested
  RuleTable table;                                ///< hoist's rows for terms, and these
  std::vector<const ProgramRule*> between_calls;  ///< in the order of the file

  /// The rule between operator calls of this name; null where the file has none.
  const ProgramRule* find_between_calls(const std::string& name) const;
};

/// Rows that are safe to apply. Errors of all rows in one go: what does not parse or type, a name that is taken, a
/// class that a file may not claim, and rows that a random instance shows to be wrong.
Result<UserRules> read_user_rules(const std::string& text, const std::string& where);

/// That a rule may be applied: a rounding one may not under strict.
Result<Nothing> check_strict(const ProgramRule& rule, bool strict);

}  // namespace hoist
