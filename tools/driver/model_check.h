// The model check of a bundle: expected outputs of the whole model for seeded inputs, computed at compile time from the
// kernels' terms in step order, without a device. It finds errors that checks of single kernels cannot: steps that read
// or write the wrong arrays.
#pragma once

#include "ir/base/result.h"
#include "ir/plan/plan.h"

namespace hoist {

/// Fills the plan's model check for the outputs that can be compared, if the model is small enough. An output is
/// compared bit for bit if every kernel before it is exact; within bounds if the last kernel is inexact (a softmax) and
/// on devices that do not divide exactly; not at all if an intermediate error may grow or change a rounding. The plan
/// must be complete except for this check.
Result<Nothing> add_model_check(Plan& plan);

}  // namespace hoist
