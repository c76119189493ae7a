// hoist worker: executes jobs of a queue, and lists its jobs.
#include "tools/queue/worker.h"

#include "tools/base/json_answer.h"
#include "tools/cli/command.h"
#include "tools/queue/confinement.h"
#include "tools/queue/job_kinds.h"

namespace hoist {
namespace {

// The command that a worker starts for a job.
Result<ExitCode> perform(const Options& command) {
  constexpr double gigabyte = 1 << 30U;
  queue::limit_memory(static_cast<int64_t>(command.worker.job_gigabytes * gigabyte));
  if (!command.worker.unconfined)
    HOIST_TRY_VOID(with_kind(ErrorKind::device, queue::confine({command.job, command.cache}, {})));
  return done(queue::perform_job(command.job, {command.worker.device, command.worker.threads}));
}

}  // namespace

Result<ExitCode> commands::worker(const Options& command) {
  if (!command.job.empty()) return perform(command);
  if (command.queue.url.empty()) return usage_error("--queue", "is not given", "hoist worker --queue nats://HOST:4222");
  if (command.list_queue) return done(queue::list_queue(command.queue, command.json));
  queue::WorkerOptions worker = command.worker;
  worker.queue = command.queue;
  return done(queue::work(worker));
}

}  // namespace hoist
