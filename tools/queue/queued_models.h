// Models of a study whose runs over data are shared with the workers of a queue: what sensitivity and the verification
// of budgets ask for. Times are this machine's: they are compared with each other, which takes one device. Workers have
// the same device, by name, so outputs are the same bits. Not for bundles that stay: evaluation_jobs.h.
#pragma once

#include "tools/queue/queue.h"
#include "tools/study/device_models.h"

namespace hoist::queue {

inline constexpr char models_on_queue_help[] =
    "share runs over data that take long with workers that have the same device (times are measured here)";

/// Runs that take less than this together are not worth asking others.
inline constexpr double least_shared_seconds = 2;

/// What open_for_study takes: empty where no queue is given. What workers refuse is run here, with a warning.
Attempt<MakeRunnable> models_on_queue(const QueueOptions& options, double least_seconds = least_shared_seconds);

}  // namespace hoist::queue
