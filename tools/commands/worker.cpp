// hoist worker: executes jobs of a queue, and lists its jobs.
#include "tools/queue/worker.h"

#include <CLI/CLI.hpp>

#include "tools/cli/command.h"
#include "tools/cli/json_answer.h"
#include "tools/queue/confinement.h"
#include "tools/queue/job_kinds.h"

namespace hoist {
namespace {

struct WorkerCommand {
  queue::WorkerOptions options;
  bool list = false;
  std::string json;
  std::string job, cache;  ///< of the process for one job
};

// The command that a worker starts for a job.
Attempt<> perform(const WorkerCommand& command) {
  constexpr double gigabyte = 1 << 30U;
  queue::limit_memory(static_cast<int64_t>(command.options.job_gigabytes * gigabyte));
  if (!command.options.unconfined) HOIST_STEP_VOID(ExitCode::device, queue::confine({command.job, command.cache}, {}));
  return queue::perform_job(command.job, {command.options.device, command.options.threads});
}

Attempt<> run_worker(const WorkerCommand& command) {
  if (!command.job.empty()) return perform(command);
  if (command.options.queue.url.empty())
    return usage_failure("--queue", "is not given", "hoist worker --queue nats://HOST:4222");
  if (command.list) return queue::list_queue(command.options.queue, command.json);
  return queue::work(command.options);
}

}  // namespace

void add_worker(CLI::App& program, Action& action) {
  auto options = std::make_shared<WorkerCommand>();
  queue::WorkerOptions& how = options->options;
  CLI::App& command = add_command(program, action, "worker", "execute the jobs of a queue, for commands with --queue",
                                  "  hoist worker --queue nats://coordinator:4222\n"
                                  "  hoist worker --queue nats://coordinator:4222 --list",
                                  options, run_worker);
  CLI::Option* queue = add_queue_options(command, how.queue, "the address of the queue");
  command
      .add_option("--device", how.device,
                  "use only this device: an index, a name or a part of one, or native for native code (default: the "
                  "first OpenCL device and native code)")
      ->type_name("DEVICE");
  command.add_option("--threads", how.threads, "use at most so many threads of a CPU device for a job")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command.add_option("--job-time", how.job_seconds, "end a job that takes longer")
      ->type_name("SECONDS")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  command.add_option("--job-memory", how.job_gigabytes, "the memory limit of a job's process, in GiB")
      ->type_name("GIB")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  command
      .add_option("--attempts", how.deliveries,
                  "the number of attempts by workers that fail or end before a job is set aside")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option(
          "--lease", how.lease_seconds,
          "seconds of silence after which another worker gets the job; the first worker of a queue decides")
      ->type_name("SECONDS")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str();
  command.add_option("--jobs", how.jobs, "end after so many jobs")->check(CLI::PositiveNumber)->type_name("N");
  command.add_option("--idle", how.idle, "end after so long without a job")
      ->check(CLI::PositiveNumber)
      ->type_name("SECONDS");
  command.add_flag("--unconfined", how.unconfined,
                   "do not confine jobs: for systems without confinement, and drivers that fail in it");
  CLI::Option* list = command.add_flag(
      "--list", options->list, "print the workers, the waiting jobs, and the jobs that were set aside, and end");
  list->needs(queue);
  add_json_option(command, options->json, "with --list: the answer")->needs(list);
  // For the process that a worker starts; no help speaks of them.
  command.add_option("--job", options->job)->group("")->excludes(queue);
  command.add_option("--cache", options->cache)->group("");
}

}  // namespace hoist
