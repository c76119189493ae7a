// Rules that a user brings: a text file of rows, as hoist's own tables have them, for --rules. Every row is parsed,
// typed and tested on random instances against the interpreter before it may be applied; a row that fails is refused
// with the instance that shows it. Rows are exact or rounding: what changes values needs an error model, which text
// here cannot give.
//
//   rule halve-loop exact
//     given x: [2*m]T, f: T -> U
//     left  map f x
//     right join (map (map f) (split 2 x))
//     meaning a loop of pairs
//
// A line that begins with -- is a comment; a line that is indented deeper than the key before goes on with its text.
// Keys: parameters, given, left, right, where, meaning, as in RuleRow (ir/rules/rewrite.h).
#pragma once

#include <string>
#include <vector>

#include "ir/rules/rewrite.h"

namespace hoist {

struct UserRules {
  std::string text;           ///< of the file, for the derivation
  std::vector<RuleRow> rows;  ///< the file's
  RuleTable table;            ///< hoist's rows for terms, and these
};

/// Rows from their text, neither typed nor tested. Errors name `where` and the line.
Result<std::vector<RuleRow>> parse_rule_rows(const std::string& text, const std::string& where);

/// Rows that are safe to apply. Errors of all rows in one go: what does not parse or type, a name that is taken, a
/// class that a file may not claim, and rows that a random instance shows to be wrong.
Result<UserRules> read_user_rules(const std::string& text, const std::string& where);

}  // namespace hoist
