// Heads: the layers of a model after its trunk, one head for each of several tasks with data of their own (Arora, Du,
// Kakade, Luo and Saunshi, 2020). Either the trunk stays and is computed once for all heads and epochs, or the heads
// take turns with batches that also move the trunk. For one task use trainer.h.
#pragma once

#include <string>
#include <vector>

#include "tools/training/trainer.h"

namespace hoist {

struct Head {
  std::string name, data, labels;
};

/// Reads lines NAME DATA [LABELS]; a line that begins with # is a comment. Errors: other lines, a name that comes twice
/// or cannot be part of a file's name, no lines.
Result<std::vector<Head>> read_heads(const std::string& file);

/// Trains the heads from the same weights on; the results are in their order. Errors: as in train().
Result<std::vector<Trained>> train_heads(TrainingSession& session, const std::vector<Head>& heads,
                                         const std::vector<TrainingSets>& sets, const TrainingOptions& options);

}  // namespace hoist
