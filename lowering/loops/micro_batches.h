// Micro-batches: layers that compute the samples of a batch separately run for a few samples at a time, one after the
// other, so that the arrays between them stay in the caches and the memory between layers does not grow with the batch.
// A part of the program becomes the body of a loop (Control) over parts of the batch; its definitions have the types of
// fewer samples. Exact: each element is computed by the same operations.
#pragma once

#include "ir/base/result.h"
#include "ir/program/program.h"
#include "ir/target/profile.h"

namespace hoist {

/// Chooses the layers and the numbers of samples by the bytes that move between the caches and memory. Changes nothing
/// if there is no batch, if the program has states, data-dependent extents or controls, or if it all fits in the
/// caches.
Result<Nothing> micro_batches(Program& program, const Profile& profile);

}  // namespace hoist
