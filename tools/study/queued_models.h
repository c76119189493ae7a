// Models of a study whose runs over data are shared with the workers of a queue, for sensitivities and the verification
// of budgets. Times are measured on this machine, since comparisons need one device. Workers have a device with the
// same name, so outputs have the same bits. For stored bundles use evaluation_jobs.h.
#pragma once

#include "tools/queue/queue.h"
#include "tools/study/device_models.h"

namespace hoist::queue {

inline constexpr char models_on_queue_help[] =
    "let workers with the same device share long runs over data (times are measured here)";

/// Runs that take less than this in total are not worth sharing.
inline constexpr double least_shared_seconds = 2;

/// The function for open_for_study; empty if no queue is given. Runs that workers refuse happen here, with a warning.
Result<MakeRunnable> models_on_queue(const QueueOptions& options, double least_seconds = least_shared_seconds);

}  // namespace hoist::queue
