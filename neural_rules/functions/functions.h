// The neural rules for layers that call tanh, exp, erf or a sigmoid: the approximating formula of each function and its
// certified error. A neural rule is one or several rows of the rule engine (tanh and the sigmoid share a formula, so
// one choice covers a layer that calls both), applied at every match in a layer's expression. Rows exist for f32, and
// for bf16 if a table works on its bits; other types stay unchanged. GELU, SiLU, softmax and similar functions are
// covered by the functions that they call; softmax keeps its subtraction of the maximum. The same functions apply the
// rule of sums.h.
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

/// The rows of neural_rules() of this family, cheapest first per function.
std::span<const NeuralRule> function_rules();
/// Their rows in the rule engine, class neural; computed at the first call (0.2 s).
std::span<const RuleRow> function_rule_rows();
const RuleTable& function_rule_table();

/// The certificate of a row of function_rule_rows(), or of a neural rule with several rows: the certificate of the row
/// with the rule's name, or else the largest. Nothing for other names.
std::optional<Certificate> certificate_of(std::string_view rule);
/// "within 7.6e-05 for arguments in [-inf, inf]".
std::string promise_of(const Certificate& certificate);

/// The names of the rules of this family that apply in a term.
const std::set<std::string>& function_rules_in(Expr term);

struct Approximated {
  Expr term = nullptr;
  Derivation derivation;
};
/// Applies a neural rule of this family or of sums.h at every match in the term. Errors: an unknown rule (with the near
/// miss), or a term without a match.
Result<Approximated> approximate(Expr term, const std::string& rule);

struct UnderFunctions {
  Expr term = nullptr;
  /// One per call: its row, its position in the layers' term, and the certificate; without a value.
  std::vector<ProgramStep> steps;
};
/// The term of a definition that computes these layers, each under its rule in `functions` (layer -> rule). The steps
/// refer to the program at this point: later passes change the term, and with it the positions.
Result<UnderFunctions> under_functions(Expr term, const std::vector<std::string>& layers,
                                       const std::map<std::string, std::string>& functions);

}  // namespace hoist
