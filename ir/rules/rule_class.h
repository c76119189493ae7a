// The extent to which a rule may change a value. For rules over terms (rewrite.h) and over operator calls
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

/// The distance of a layer's sums from the exact ones, for a rounding rule that computes them in another form: at most
/// `bound` times the quantity that `relative_to` describes.
struct RoundingBound {
  std::string layer, rule;
  double bound = 0;
  std::string relative_to;
};

}  // namespace hoist
