// Rules, their application and the record of it. A rule is a row of text (RuleRow): both sides are terms of the
// language with metavariables; RuleTable parses and types a row once, and refuses one that is wrong. rule_text.h reads
// rows from files. Application is at one place of a term and is pure; a Derivation records every application, prints
// like a proof and can be replayed from its text. A rule that does not apply is an empty optional, not an error.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/language/expression.h"
#include "ir/rules/rule_class.h"
#include "ir/text/row_origin.h"

namespace hoist {

/// One row. `given` declares the metavariables with their types: "x: [m*k]T, f: T -> U, z: U"; sizes and type variables
/// are declared by appearing there. `parameters` lists the sizes that a strategy may supply ("k, l"); a size that
/// matching determines may be omitted. The parameter "d" is a dimension: a row with `map group(d)` is three rows, with
/// 0, 1 and 2. `left` and `right` are terms; `map f x` may use a declared function by name, `f x y` applies it. On the
/// left a function is applied to bound variables or their components only, and matches a term that mentions no other
/// variable bound there; a value matches a term that mentions none. `where` lists side conditions separated by commas:
/// k divides n, k <= n, k < n, k = n sizes, known to hold constant n a size without names associative op,
/// exactly-associative op, commutative op op a b is one function of the table applied to a and b;
///                                         exactly means bit for bit in its type
///   neutral op z                          z is a literal, the neutral element of that function
///   z is 0                                z is this literal (of its own type; 0 and -0 differ on floats)
///   integer T, float T                    a type variable is such a scalar
///   NAME                                  a C++ condition (RuleFunctions)
/// A row whose right side is `native NAME` is a C++ function; its left side only limits the terms that the
/// function receives.
struct RuleRow {
  std::string name;
  std::string parameters;
  std::string given;
  std::string left, right;
  std::string where;
  RuleClass rule_class = RuleClass::exact;
  std::string meaning;  ///< one line, with its source where it has one
  /// The reason for a row that no strategy or pass applies: rules that users, --rules and --steps may name. "" for rows
  /// that compilations use.
  std::string library = {};
  std::string pass = {};         ///< the pass that applies it, or `strategies`; "" in the library
  std::string family = {};       ///< the file that it is from, without folder and ending
  RowOriginPointer origin = {};  ///< places of its texts, if it is from a file
};

/// C++ functions for rows that text cannot express; keep these rare.
struct Match;  // match.h
struct RuleFunctions {
  std::map<std::string, std::function<bool(const Match&)>> conditions;
  std::map<std::string, std::function<std::optional<Expr>(Expr term, const std::map<std::string, Nat>& arguments)>>
      rewrites;
};

class Rule;  // rule.h: parsed and typed; made by RuleTable only
class RuleTable {
 public:
  /// All rows, parsed and typed; all faults of all rows together: a side that does not parse or type, sides whose types
  /// differ, a name on the right that the left does not bind, an unknown condition.
  static Result<RuleTable> load(std::span<const RuleRow> rows, const RuleFunctions& functions = {});
  /// Rows that are known to be correct; each is parsed and typed at its first use, and a fault aborts. Rows and
  /// functions live as long as the program.
  static RuleTable of_known(std::span<const RuleRow> rows, const RuleFunctions& functions);
  /// The rules of both; `others` must not contain a name of this table.
  RuleTable with(const RuleTable& others) const;

  const Rule* find(const std::string& name) const;  ///< null when there is none
  bool has(const std::string& name) const { return by_name_.count(name) != 0; }
  std::vector<const Rule*> rules() const;
  std::vector<std::string> names() const;

 private:
  struct Slot;
  void add(Slot& slot);

  std::vector<Slot*> slots_;  // live as long as the program, as rules do
  std::unordered_map<std::string_view, Slot*> by_name_;
};
const RuleRow& row(const Rule& rule);

/// Sizes that a strategy supplies, by parameter name.
using RuleArguments = std::map<std::string, Nat>;

/// The right side for a term that the left side matches; nothing when it does not match, a side condition is not known
/// to hold, or the result would be ill-typed. The term may be open (under functions): bound positions are adjusted.
std::optional<Expr> apply_rule(const Rule& rule, Expr term, const RuleArguments& arguments = {});
/// The reason why apply_rule returns nothing, as text: the first difference ("expected reduce, found fold at 0.1").
std::string why_not(const Rule& rule, Expr term, const RuleArguments& arguments = {});

/// One application: `rule(k = 8) at 0.1`, followed by `rounding` or `neural` if the class is not exact.
struct Application {
  std::string rule;
  RuleArguments arguments;
  Path place;
  RuleClass rule_class = RuleClass::exact;
};
std::string text(const Application& application);

struct Derivation {
  Expr start = nullptr;
  std::vector<Application> steps;
};
/// The start and the term after each step. Fails if a step does not apply or states another class than its rule's.
Result<std::vector<Expr>> replay(const RuleTable& table, const Derivation& derivation);
/// Steps from their text, the text() of one Application per line.
Result<std::vector<Application>> parse_steps(const std::string& text);

/// A term being rewritten, with its record. Strategies are functions over this.
class Rewriter {
 public:
  Rewriter(const RuleTable& table, Expr start);
  Expr term() const { return term_; }
  const Derivation& derivation() const { return derivation_; }
  /// Applies the rule at the place; false (and no change) when it does not apply.
  bool apply(const std::string& rule, const Path& place, const RuleArguments& arguments = {});
  /// At the first place, outermost first and left to right, where it applies below `under`; the place, or nothing.
  std::optional<Path> apply_first(const std::string& rule, const RuleArguments& arguments = {}, const Path& under = {});
  /// The places at which terms have the rule's form (may_match), each term at its first place; elsewhere the rule
  /// applies with no arguments at all.
  std::vector<Path> places_of_form(const std::string& rule) const;
  /// The listed rules wherever they apply, outermost first, until none does or the limit is reached.
  int apply_everywhere(const std::vector<std::string>& rules, const Path& under = {}, int limit = 10000);

 private:
  const Rule& named(const std::string& name) const;
  // `term` is the term at the place.
  bool apply_to(Expr term, const Rule& rule, const Path& place, const RuleArguments& arguments);

  const RuleTable& table_;
  Expr term_;
  Derivation derivation_;
};

}  // namespace hoist
