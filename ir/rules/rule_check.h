// Every rule is its own test: random instances of its left side (small sizes, random types, functions and data,
// operators drawn from the table of functions where a condition asks for a property), the rule applied, both sides
// interpreted and compared. Half of the instances stand under a function and depend on its variable. Exact rules have
// to agree bit for bit on data with signed zeros, infinities and NaN (all NaNs are one); rounding rules within
// rounding_bound on data of moderate size. A rule whose left side or conditions leave nothing to instantiate is a fault
// as well. Not for use inside a compilation.
#pragma once

#include <string>
#include <vector>

#include "ir/rules/rule.h"

namespace hoist {

struct RuleCheck {
  int compared = 0;                 ///< instances whose two sides were interpreted
  std::vector<std::string> faults;  ///< each with its instance; at most a few
};

/// `examples` are used as left sides instead of random ones; a row with a C++ right side needs them.
RuleCheck check_rule(const Rule& rule, int instances, uint64_t seed, const std::vector<Expr>& examples = {});

/// What differs between two results, or nothing. Integers may lie `integer_steps` apart.
std::optional<std::string> rule_difference(const Tensor& left, const Tensor& right, RuleClass rule_class,
                                           int64_t integer_steps = 0);

/// How far the sides of a rounding rule may lie apart: this many times the rounding unit of the type, times the largest
/// magnitude among both results and 1.
inline constexpr double rounding_bound = 256;

}  // namespace hoist
