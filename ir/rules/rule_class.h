// How far a rule may change a value. For rules over terms (rewrite.h) and for those over operator calls
// (program_rule.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hoist {

/// exact: bit-identical. rounding: equal in real arithmetic, floats may round differently within a stated bound.
/// neural: the value changes; needs a budget or a name.
enum class RuleClass : uint8_t { exact, rounding, neural };
std::string_view name_of(RuleClass rule_class);

/// How far a layer's sums may be from the exact ones, where a rounding rule has another form compute them than the
/// layer's own: at most `bound` times what `relative_to` says, in words.
struct RoundingBound {
  std::string layer, rule;
  double bound = 0;
  std::string relative_to;
};

}  // namespace hoist
