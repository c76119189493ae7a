// What a bundle's model check expects: outputs of the whole model for seeded inputs, computed at compile time from the
// kernels' terms in the order of the steps, so without a device. It shows what checks of single kernels cannot: that
// the steps read and write the arrays that they should.
#pragma once

#include "ir/base/result.h"
#include "ir/plan/plan.h"

namespace hoist {

/// Fills the plan's model check for the outputs that can be compared, where the model is small enough. An output is
/// compared bit for bit where all that leads to it is exact; within bounds where the last kernel is not (a softmax),
/// and on devices that do not divide exactly; not at all where an error in between may grow or turn a rounding around.
/// The plan is complete but for this.
Result<Nothing> add_model_check(Plan& plan);

}  // namespace hoist
