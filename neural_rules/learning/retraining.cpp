#include "neural_rules/learning/retraining.h"

#include <fmt/format.h>

namespace hoist {

std::string text(const Retraining& retraining) {
  return fmt::format("after {} epochs of {} over {} samples, seed {}", retraining.epochs, retraining.loss,
                     retraining.samples, retraining.seed);
}

}  // namespace hoist
