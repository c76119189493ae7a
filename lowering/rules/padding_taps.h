// The condition of the rules that drop taps of filters: some taps along a dimension read only padding.
#pragma once

#include "ir/rules/program_rule.h"

namespace hoist {

/// A convolution of `x` with filters `w` whose first or last taps along some spatial dimension read only padding, as
/// with large dilations; known float filters have to be finite, since 0 times infinity is not 0. Adds `spatial`, the
/// filters' remaining taps `first_tap` and `end_tap`, the part of x that they read `first_read` and `end_read`, and its
/// `borders`. Removes the attributes from *A that these replace.
bool has_taps_of_padding(ProgramMatch& match);

}  // namespace hoist
