// Program rules as they are parsed, and the match of their left sides. Only for program_rule*.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/rules/program_rule.h"
#include "ir/text/parse/syntax.h"

namespace hoist {

/// An operand of the left side, as `given` declares it.
struct GivenOperand {
  Type type = nullptr;      ///< null: of any type
  Syn otherwise = nullptr;  ///< the term that replaces an omitted operand
  bool optional = false;    ///< may be omitted, and is then omitted on the right side too
};

class ProgramRule {
 public:
  ProgramRuleRow row;
  std::map<std::string, GivenOperand> operands;
  std::map<std::string, Attribute> attributes;  ///< the value of an absent attribute
  std::set<std::string> operators;              ///< names that denote operators
  std::set<std::string> arguments;              ///< operands that the left side does not name
  std::vector<std::string> known, zero;
  std::vector<std::function<bool(ProgramMatch&)>> conditions;
  bool alone = false;
  Syn left = nullptr, right = nullptr;
  SyntaxStore store;

  bool is_about_reads() const { return left->kind == Syntax::application; }
};

/// Parses the texts of `rule.row` into the other members. Returns the faults of the row, with their places.
Diagnostics read_row(ProgramRule& rule, const ProgramConditions& conditions);

/// The match of the left side at a term, without side conditions; nothing if it does not match. `arguments` by the
/// row's names.
std::optional<ProgramMatch> match_left_side(const ProgramRule& rule, const ProgramIndex& index, Expr term,
                                            const std::map<std::string, Expr>& arguments);
/// Tests the side conditions of the row in its order. A condition may add attributes to the match.
bool conditions_hold(const ProgramRule& rule, ProgramMatch& match);

}  // namespace hoist
