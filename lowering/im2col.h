// The im2col form of convolution: the view of all windows becomes an array of its own, and what is left of the layer is
// a product of two matrices. The stencil form is the same definition without this pass; both have the same value.
#pragma once

#include "lowering/program.h"

namespace hoist {

/// Gives every convolution with windows larger than one element an array of windows [N][out...][C][k...], stored as
/// rows of the matrix: a definition named VALUE.windows before it. With groups there is a dimension for them after N.
void materialise_windows(Program& program);

}  // namespace hoist
