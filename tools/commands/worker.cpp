// hoist worker: executes jobs of a queue, and lists its jobs.
#include "tools/queue/worker.h"

#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/queue/confinement.h"
#include "tools/queue/job_kinds.h"

namespace hoist {
namespace {

// The command that a worker starts for a job.
Attempt<> perform(const Options& command) {
  constexpr double gigabyte = 1 << 30U;
  queue::limit_memory(static_cast<int64_t>(command.worker.job_gigabytes * gigabyte));
  if (!command.worker.unconfined) HOIST_STEP_VOID(ExitCode::device, queue::confine({command.job, command.cache}, {}));
  return queue::perform_job(command.job, {command.worker.device, command.worker.threads});
}

}  // namespace

Attempt<> commands::worker(const Options& command) {
  if (!command.job.empty()) return perform(command);
  if (command.queue.url.empty())
    return usage_failure("--queue", "is not given", "hoist worker --queue nats://HOST:4222");
  if (command.list_queue) return queue::list_queue(command.queue, command.json);
  queue::WorkerOptions worker = command.worker;
  worker.queue = command.queue;
  return queue::work(worker);
}

}  // namespace hoist
