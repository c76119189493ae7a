#include "tools/training/right_answers.h"

#include "ir/language/scalar.h"

namespace hoist {
namespace {

// The positions of a value: those before the axis of the classes, and those after it.
struct Places {
  int64_t outer = 1, classes = 1, inner = 1;
};

// The class with the highest score at a position, of the first `count`.
int64_t best_class(const Tensor& scores, const Places& all, int64_t count, int64_t outer, int64_t inner) {
  int64_t best = 0;
  const auto at = [&](int64_t c) { return scores.float_at((outer * all.classes + c) * all.inner + inner); };
  for (int64_t c = 1; c < count; ++c) {
    if (at(c) > at(best)) best = c;
  }
  return best;
}

}  // namespace

RightAnswers count_right(const Tensor& scores, const Tensor& target, const ClassAxis& classes, int64_t samples) {
  RightAnswers out;
  const std::vector<int64_t>& shape = scores.shape();
  const auto axis = static_cast<size_t>(classes.axis);
  Places all;
  for (size_t i = 0; i < shape.size(); ++i) (i < axis ? all.outer : i == axis ? all.classes : all.inner) *= shape[i];
  if (axis > 0) all.outer = all.outer / shape[0] * samples;
  const bool is_labels = is_integer(target.scalar());
  for (int64_t o = 0; o < all.outer; ++o) {
    for (int64_t p = 0; p < all.inner; ++p) {
      const int64_t label =
          is_labels ? target.integer_at(o * all.inner + p) : best_class(target, all, classes.count, o, p);
      if (label < 0) continue;
      ++out.all;
      if (best_class(scores, all, classes.count, o, p) == label) ++out.right;
    }
  }
  return out;
}

}  // namespace hoist
