// Evaluating a bundle over a data set by the workers of a queue: parts of the data as jobs, and their sums. What a job
// does with its part: job_kinds.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tools/data/evaluation.h"
#include "tools/queue/queue.h"

namespace hoist::queue {

/// The name of the device that a bundle's jobs are for: the wanted one, else the one that it is made for; of native
/// code what this processor runs best.
Attempt<std::string> device_on_queue(const Plan& plan, const std::string& wanted);

/// The same as evaluate_samples on that device. The parts follow from the data alone, never from how many workers there
/// are; `samples_a_job` 0 chooses.
Attempt<Evaluation> evaluate_on_queue(Queue& queue, const std::filesystem::path& bundle, const LabelledData& data,
                                      const std::string& device, int64_t samples_a_job,
                                      const std::function<void(size_t done, size_t total)>& progress);

}  // namespace hoist::queue
