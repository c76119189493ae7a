// A worker: takes jobs from a queue one at a time, runs each in a confined process, and stores the answers. It runs
// until it is interrupted or reaches its limits, regardless of failing jobs or an unreachable server.
#pragma once

#include <string>

#include "ir/base/result.h"
#include "tools/queue/queue.h"

namespace hoist::queue {

struct WorkerOptions {
  QueueOptions queue;
  std::string device;        ///< "" for the first OpenCL device and this processor's native code
  int threads = 0;           ///< threads of a CPU, per job; 0 for all
  double job_seconds = 600;  ///< time limit of a job
  double job_gigabytes = 8;  ///< memory limit of its process
  int64_t deliveries = 5;    ///< failed deliveries of a job before it is set aside
  double lease_seconds = 30;
  int64_t jobs = 0;  ///< stop after this number; 0 for no limit
  double idle = 0;   ///< stop after this number of seconds without a job; 0 for no limit
  bool unconfined = false;
};

/// Works until it is interrupted or a limit of the options is reached.
Result<Nothing> work(const WorkerOptions& options);

/// Lists the workers, the number of waiting jobs, and the jobs set aside.
Result<Nothing> list_queue(const QueueOptions& options, const std::string& json);

}  // namespace hoist::queue
