// Counts the positions of a batch at which a value has the highest score for the right class. For the top k of a bundle
// on a data set use tools/data/scores.h.
#pragma once

#include <cstdint>

#include "ir/language/tensor.h"

namespace hoist {

/// The scores of the classes are the first `count` along this axis.
struct ClassAxis {
  int64_t axis = 1, count = 0;
};

struct RightAnswers {
  int64_t right = 0, all = 0;
};

/// Compares with labels, if the target has integers, or with the best classes of other scores; the first `samples` of
/// the batch. Positions with a negative label are left out.
RightAnswers count_right(const Tensor& scores, const Tensor& target, const ClassAxis& classes, int64_t samples);

}  // namespace hoist
