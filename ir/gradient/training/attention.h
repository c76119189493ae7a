// Attention maps of a convolutional network, for the loss attention-transfer (Zagoruyko and Komodakis, 2017): a student
// learns where its teacher's values are large. The map of a value [N][C][H][W] is the mean of the squares over the
// channels, divided by its length over all positions. For losses themselves use losses.h.
#pragma once

#include <string>

#include "ir/base/result.h"
#include "ir/program/program.h"

namespace hoist {

/// Adds a value [N][classes + positions] with the logits of `value`, [N][classes], and the maps of the last value of
/// each size of images that the logits depend on; maps are divided by the root of their number of positions, so that a
/// sum of squares is a mean. Returns its name. Errors: other logits, logits that depend on no images.
Result<std::string> add_attention(Program& program, const std::string& value);

}  // namespace hoist
