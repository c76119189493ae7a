// A rule after loading: both sides as terms with metavariables, its declarations and its side conditions. For the
// engine (rewrite.cpp) and for the tests that make random instances of every row; everyone else uses rewrite.h.
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
  std::string text;           ///< as the row has it
  Nat a, b;                   ///< of the conditions on sizes
  std::string first, second;  ///< names of metavariables or of a type; of a literal condition the number
  std::function<bool(const Match&)> function;

  bool holds(const Match& match) const;
};

class Rule {
 public:
  /// One for each value of the parameter d, or just one.
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

/// One row, without regard to others. `where` of the diagnostics is the row's name.
Result<Rule> read_rule(const RuleRow& row, const RuleFunctions& functions);

/// The function of the table that a two-parameter function node calls on its two parameters, in this order.
std::optional<Function> called_function(Expr function);
/// Is this literal the neutral element of the function in its type?
bool is_neutral(Function function, Expr literal);
/// Is the function associative bit for bit in this type?
bool exactly_associative(Function function, Type type);

}  // namespace hoist
