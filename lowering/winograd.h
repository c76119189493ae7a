// Which convolutions Winograd's forms (rules/convolution.cpp) make faster, and which form. Fewer products are paid for
// with transforms, whose tiles and products go through memory, and with launches: with few channels, or little to
// compute, the stencil stays. The estimate is of CPUs; on GPUs nobody asks for it unless a user does.
#pragma once

#include <optional>
#include <string>

#include "ir/rules/rewrite.h"

namespace hoist {

struct WinogradChoice {
  std::string rule;
  RuleArguments arguments;
  Path place;             ///< of the convolution
  double cost = 0;        ///< in multiply-adds that take as long
  double direct = 0;      ///< what the stencil costs
  int64_t transform = 0;  ///< operations that the filters' transform takes, about
};

/// The form that costs least for the first convolution in the term that has one.
std::optional<WinogradChoice> cheapest_winograd(Expr term);

}  // namespace hoist
