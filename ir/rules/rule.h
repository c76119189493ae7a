// A rule after loading: both sides as terms with metavariables, its declarations and its side conditions. For the
// engine (rewrite.cpp) and for the tests that make random instances of every row; all other code uses rewrite.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/rules/match.h"
#include "ir/rules/rewrite.h"
#include "ir/text/parse/parse_term.h"

namespace hoist {

struct Condition {
  enum Kind : uint8_t {
    divides,
    at_most,
    below,
    equal,
    constant,
    associative,
    exactly_associative,
    commutative,
    neutral,
    literal,
    integer_type,
    float_type,
    native,
  } kind = native;
  std::string text;           ///< text in the row
  Nat a, b;                   ///< sides of a condition on sizes
  std::string first, second;  ///< names of metavariables or of a type; for a literal condition the number
  std::function<bool(const Match&)> function;

  bool holds(const Match& match) const;
};

class Rule {
 public:
  /// One variant for each value of the parameter d, or a single one.
  struct Variant {
    std::optional<int64_t> dimension;
    Expr left = nullptr, right = nullptr;  ///< right is null where `rewrite` is set
  };

  RuleRow row;
  Declarations declarations;
  std::vector<std::string> parameters;
  std::vector<Variant> variants;
  std::vector<Condition> conditions;
  std::function<std::optional<Expr>(Expr, const RuleArguments&)> rewrite;
};

/// Loads one row alone. `where` of the diagnostics is the row's name.
Result<Rule> read_rule(const RuleRow& row, const RuleFunctions& functions);

/// The function of the table that a two-parameter function node calls on its two parameters, in this order.
std::optional<Function> called_function(Expr function);
/// True if this literal is the neutral element of the function in its type.
bool is_neutral(Function function, Expr literal);
/// True if the function is associative bit for bit in this type.
bool exactly_associative(Function function, Type type);

}  // namespace hoist
