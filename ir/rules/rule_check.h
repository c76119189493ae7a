// Every rule is its own test: random instances of its left side (small sizes, random types, functions and data, and
// operators with the required properties from the table of functions), the rule applied, both sides interpreted and
// compared. Half of the instances are inside a function and depend on its variable. Exact rules have to agree bit for
// bit on data with signed zeros, infinities and NaN (all NaNs are equal); rounding rules within rounding_bound on data
// of moderate size. A rule whose left side or conditions exclude all instances is a fault as well. Not for use inside a
// compilation.
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

/// The first difference of two results, or nothing. Integers may differ by `integer_steps`.
std::optional<std::string> rule_difference(const Tensor& left, const Tensor& right, RuleClass rule_class,
                                           int64_t integer_steps = 0);

/// The bound on the difference of the sides of a rounding rule: this many times the rounding unit of the type, times
/// the largest magnitude among both results and 1.
inline constexpr double rounding_bound = 256;

}  // namespace hoist
