// Evaluates a bundle over a data set on the workers of a queue: parts of the data are jobs, and their results are added
// up. For the work of a job see job_kinds.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "tools/driver/evaluation.h"
#include "tools/queue/queue.h"

namespace hoist::queue {

/// The device name for a bundle's jobs: the given one, else the device that the bundle was compiled for; for native
/// code, the best target of this processor.
Result<std::string> device_on_queue(const Plan& plan, const std::string& wanted);

/// Computes the result of evaluate_samples on that device. The parts depend on the data only, not on the number of
/// workers; `samples_a_job` 0 selects the default.
Result<Evaluation> evaluate_on_queue(Queue& queue, const std::filesystem::path& bundle, const LabelledData& data,
                                     const std::string& device, int64_t samples_a_job,
                                     const std::function<void(size_t done, size_t total)>& progress);

}  // namespace hoist::queue
