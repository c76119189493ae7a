// The neural rules for layers that call tanh, exp, erf or a sigmoid: which formula stands in for the function, and what
// is promised of it. A neural rule is one or several rows of the rule engine (tanh and the sigmoid share a formula, so
// that one choice does for a layer that calls both), applied wherever they match in a layer's expression. Rows exist
// for f32, and for bf16 where a table works on its bits; other types stay as they are. GELU, SiLU, softmax and the like
// follow from what they call; softmax keeps its subtraction of the maximum. The rule of sums.h is applied by the
// same functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/rules/rewrite.h"
#include "neural_rules/functions/approximation.h"
#include "neural_rules/neural_rules.h"

namespace hoist {

/// The rows of neural_rules() that belong to this family, cheapest first within a function.
std::span<const NeuralRule> function_rules();
/// Their rows in the rule engine, class neural; made on first use (two tenths of a second).
std::span<const RuleRow> function_rule_rows();
const RuleTable& function_rule_table();

/// What is promised of a row of function_rule_rows(), or of a neural rule that has several: the largest of theirs where
/// none has the rule's name. Nothing for other names.
std::optional<Certificate> certificate_of(std::string_view rule);
/// "within 7.6e-05 for arguments in [-inf, inf]".
std::string promise_of(const Certificate& certificate);

/// The rules of this family that apply somewhere in a term, by name.
const std::set<std::string>& function_rules_in(Expr term);

struct Approximated {
  Expr term = nullptr;
  Derivation derivation;
};
/// A neural rule of this family, or that of sums.h, wherever it applies in the term. Faults: no such rule (with the
/// near miss), or the term has nothing that the rule stands in for.
Result<Approximated> approximate(Expr term, const std::string& rule);

struct UnderFunctions {
  Expr term = nullptr;
  std::vector<ProgramStep> steps;  ///< one a call: its row, where in the layers' term, and the promise; without a value
};
/// The term of a definition that computes these layers, each under the rule that it has in `functions` (layer -> rule).
/// The steps are the program's: passes after this one change the term, and with it the places in it.
Result<UnderFunctions> under_functions(Expr term, const std::vector<std::string>& layers,
                                       const std::map<std::string, std::string>& functions);

}  // namespace hoist
